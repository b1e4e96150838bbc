//! Write-back caches of plumb: attached as a loop device, exported through ublk, or named directly. The
//! configuration of a cache names its devices.

use std::path::Path;

use plumb_linux::probe::Probe;
use plumb_linux::tree::Tree;
use plumb_state::{CacheRecord, LegRecord, UblkRecord, places};

use super::device::application;
use super::mounts::attached_drive;
use super::surveyor::Surveyor;
use crate::facts::{Log, Mark, Node};
use crate::model::{Cache, Flush, Layer, LayerKind, Survey};
use crate::rules;

/// Returns the path through the write-back cache named `target`, configured in the file `config`. The cache
/// is not opened, and another process may serve it.
pub fn survey_cache(tree: &dyn Tree, probe: &dyn Probe, target: &str, config: &str) -> Survey {
    let mut surveyor = Surveyor::new(tree, probe);
    surveyor.ensure(target, |surveyor| {
        let mut node = Node::new(LayerKind::WriteBackCache, target);
        surveyor.plumb_cache(&mut node, target.strip_prefix("cache:").unwrap_or(target), config);
        node
    });
    let nodes = surveyor.nodes_under(vec![application(target)], target);
    Survey { schema: Survey::SCHEMA.to_owned(), kernel: None, paths: vec![rules::judge(target, &nodes)] }
}

/// Durability of acknowledged writes on a log device that is not flushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnflushedLog {
    /// Durable: nothing volatile is below.
    Kept,
    /// Lost in a power cut; with the reason.
    Lost(String),
    /// Unknown; with the reason.
    Unknown(String),
}

/// Judges whether the device or file `path` keeps acknowledged data without a flush, as the log of a cache in
/// the mode `protected` must.
pub fn survey_unflushed_log(tree: &dyn Tree, probe: &dyn Probe, path: &str) -> UnflushedLog {
    let target = format!("a log on {path}");
    let mut surveyor = Surveyor::new(tree, probe);
    surveyor.ensure(&target, |surveyor| {
        let mut node = Node::new(LayerKind::WriteBackCache, &target);
        let (uuid, mode) = (String::new(), CacheRecord::PROTECTED.to_owned());
        let legs = vec![LegRecord::Whole(path.to_owned())];
        let config = CacheRecord { uuid, mode, backing: path.to_owned(), legs };
        surveyor.plumb_cache_of(&mut node, &target, config, path);
        node
    });
    let judged = rules::judge(&target, &surveyor.nodes_under(vec![application(&target)], &target));
    let flush = judged.layers.iter().find(|layer| layer.name == target).map(|layer| layer.flush);
    let holders = || {
        let is_below = |layer: &&Layer| layer.name != target && layer.kind != LayerKind::Application;
        let layers = judged.layers.iter().filter(is_below).filter(|layer| layer.cache == Cache::Volatile);
        let words = |layer: &Layer| match layer.kind {
            LayerKind::Tmpfs | LayerKind::Ram | LayerKind::Zram => format!("{} is memory", layer.name),
            _ => format!("{} has a volatile cache", layer.name),
        };
        layers.map(words).collect::<Vec<_>>().join(", and ")
    };
    match flush {
        Some(Flush::Dropped) => UnflushedLog::Lost(holders()),
        Some(Flush::Forwarded | Flush::Absorbed) => UnflushedLog::Kept,
        Some(Flush::Unknown) | None => {
            let found = judged.findings.iter().find(|finding| finding.id == "flush-dropped");
            let why = found.map(|finding| finding.sentence.clone()).unwrap_or_default();
            UnflushedLog::Unknown(why)
        }
    }
}

/// Returns the names of the disks below the device or file `path`: the lowest layers that this machine sees.
pub fn disks_below(tree: &dyn Tree, probe: &dyn Probe, path: &str) -> Vec<String> {
    let Ok(judged) = super::survey_path(tree, probe, path) else { return Vec::new() };
    let is_beyond = |kind| matches!(kind, LayerKind::Hypervisor | LayerKind::Controller | LayerKind::Remote);
    let beyond: Vec<&String> =
        judged.layers.iter().filter(|layer| is_beyond(layer.kind)).map(|layer| &layer.name).collect();
    let disks = judged.layers.iter().filter(|layer| {
        let is_last = layer.below.iter().all(|below| beyond.contains(&below));
        is_last
            && !is_beyond(layer.kind)
            && !matches!(layer.kind, LayerKind::Application | LayerKind::PageCache)
    });
    disks.map(|layer| layer.name.clone()).collect()
}

/// Reads the configuration from the file `path`; `None` if it cannot be read.
fn read(tree: &dyn Tree, path: &str) -> Option<CacheRecord> {
    CacheRecord::parse(&tree.text(path).ok()?)
}

/// A write-back cache that appears as a block device of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedCache {
    /// Name of the cache.
    pub name: String,
    /// Mode of the cache: `write-back`, `protected`; `None` if its configuration cannot be read.
    pub mode: Option<String>,
}

impl AttachedCache {
    /// Returns the cache behind the block device with this kernel name: a loop device over a file that plumb
    /// serves, or a ublk device. `None` if it is something else.
    pub fn find(tree: &dyn Tree, probe: &dyn Probe, device: &str) -> Option<Self> {
        let surveyor = Surveyor::new(tree, probe);
        let name = match device.strip_prefix("ublkb") {
            Some(number) => surveyor.ublk_cache(number)?,
            None => {
                let file = tree.text(&format!("/sys/class/block/{device}/loop/backing_file")).ok()?;
                let mount = surveyor.mounts().of_path(&file)?;
                attached_drive(mount).filter(|name| surveyor.is_plumb_cache(name))?.to_owned()
            }
        };
        let mode = read(tree, &config_of(&name)).map(|config| config.mode);
        Some(Self { name, mode })
    }

    /// Returns true if the log is not flushed because the user vouches for its devices.
    pub fn is_protected(&self) -> bool {
        self.mode.as_deref() == Some(CacheRecord::PROTECTED)
    }
}

/// Returns the path of root's configuration of the cache `name`.
pub(super) fn config_of(name: &str) -> String {
    let directory = places::cache_configurations(Path::new(places::STATE));
    places::cache_configuration(&directory, name).display().to_string()
}

impl Surveyor<'_> {
    /// Returns true if plumb's attachment of this name is a cache rather than a simulated drive.
    pub(super) fn is_plumb_cache(&self, name: &str) -> bool {
        let socket = places::control_socket(&places::cache_sockets(Path::new(places::RUN)), name);
        self.tree.stat(&socket.to_string_lossy()).is_ok()
    }

    /// Returns the name of the cache behind a ublk device, from its server's record.
    pub(super) fn ublk_cache(&self, number: &str) -> Option<String> {
        let text = self.tree.text(&format!("{}/{number}", places::UBLK_RECORDS)).ok()?;
        let UblkRecord { name, identity, .. } = UblkRecord::parse(&text)?;
        (identity.starts_with("cache ") && self.is_plumb_cache(&name)).then_some(name)
    }

    /// Fills in the cache `name`, configured in the file `config`. A flush becomes a flush of the log, except
    /// in the mode `protected`, and of the backing device if writes bypassed the log.
    pub(super) fn plumb_cache(&mut self, node: &mut Node, name: &str, config: &str) {
        node.kind = LayerKind::WriteBackCache;
        let Some(found) = read(self.tree, config) else {
            node.cache = Cache::Unknown;
            node.mark(Mark::Unseen {
                what: format!("the devices of the cache {name} are not known: {config} cannot be read"),
            });
            return;
        };
        self.plumb_cache_of(node, name, found, config);
    }

    /// Fills in `node` for the cache `name` from `config`, which was read from `source`.
    fn plumb_cache_of(&mut self, node: &mut Node, name: &str, config: CacheRecord, source: &str) {
        let CacheRecord { uuid, mode, backing, legs } = config;
        let legs: Vec<&str> = legs.iter().map(LegRecord::path).collect();
        node.identity = Some(uuid);
        let is_flushed = mode != CacheRecord::PROTECTED;
        // Data held by the cache is on its devices, which have their own nodes below.
        node.cache = if is_flushed { Cache::None } else { Cache::Protected };
        let means = match is_flushed {
            true => "a flush becomes a flush of the log; nothing that was acknowledged is in memory alone",
            false => {
                "the log is not flushed: whoever set this mode vouches that its devices keep what they acknowledged; the \
                 backing device is flushed where a write went past the log"
            }
        };
        node.saw(source, format!("{mode}, log {}", legs.join(" ")), means);
        let mut log = Log { cache: name.to_owned(), on: Vec::new(), is_hidden: false, is_flushed };
        for path in legs {
            match self.below_cache(node, path) {
                Some(leg) => log.on.push(leg),
                None => log.is_hidden = true,
            }
        }
        self.below_cache(node, &backing);
        node.mark(Mark::Log(log));
    }

    /// Returns the first layer of the device at `path`, as one below `node`.
    fn below_cache(&mut self, node: &mut Node, path: &str) -> Option<String> {
        let below = self.beneath_path(path);
        match &below {
            Some(below) if node.below.contains(below) => {}
            Some(below) => node.below.push(below.clone()),
            None => node.mark(Mark::Unseen { what: format!("{path} is not visible from here") }),
        }
        below
    }
}
