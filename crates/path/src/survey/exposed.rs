//! Planning of the readings for each layer of a path that determine the loss in a power cut.

use plumb_linux::probe::{ProbedDevice, Request, wire};
use plumb_linux::tree::DeviceNumber;
use plumb_linux::tree::filesystems::{Backing, FileSystemTypes};
use plumb_linux::tree::mountinfo::Mount;
use plumb_state::{UblkRecord, places};

use super::surveyor::Surveyor;
use crate::exposure::ExposurePlan;
use crate::exposure::plan::{Drive, Journal, LoopFile, Memory, Reading, Source};
use crate::exposure::settled::SettledData;
use crate::model::{Cache, Layer, LayerKind, SERVED_DRIVE, WritePath};

/// Maximum commit interval of ext4 in seconds: JBD2_DEFAULT_MAX_COMMIT_AGE.
const EXT4_COMMIT: f64 = 5.0;
/// Commit interval of btrfs in seconds: BTRFS_DEFAULT_COMMIT_INTERVAL.
const BTRFS_COMMIT: f64 = 30.0;
/// Maximum number of concurrent commits of jbd2, plus one: an extent may become part of its file one
/// transaction after its data was written (ext4 with `dioread_nolock`).
const COMMITS_AT_ONCE: u64 = 2;

impl Surveyor<'_> {
    /// Plans the readings of the layers of `path`.
    pub(super) fn exposed(&self, path: &WritePath) -> ExposurePlan {
        let mut sources = Vec::new();
        let mut is_below_loop = false;
        for (place, layer) in path.layers.iter().enumerate() {
            let is_first = path.layers[..place]
                .iter()
                .all(|above| matches!(above.kind, LayerKind::Application | LayerKind::PageCache));
            let mut add = |reading| sources.push(Source { layer: layer.name.clone(), reading });
            if let Some(mount) = self.systems.get(&layer.name) {
                self.of_file_system(path, layer, mount, is_below_loop).into_iter().for_each(&mut add);
                continue;
            }
            let has_page_cache = path.layers[..place].iter().any(|above| above.kind == LayerKind::PageCache);
            if is_first && has_page_cache && layer.is_block_device() {
                let device = self.number_of(&layer.name);
                let counts = device.and_then(|device| self.counts_of(device));
                add(Reading::Memory(Memory { counts, file_system: None, device }));
            }
            is_below_loop |= layer.kind == LayerKind::Loop;
            self.of_layer(layer).into_iter().for_each(&mut add);
        }
        ExposurePlan { sources }
    }

    /// Returns the readings of a mounted file system. A file system below a loop device holds the loop
    /// device's file, which has its own reading.
    fn of_file_system(
        &self,
        path: &WritePath,
        layer: &Layer,
        mount: &Mount,
        is_below_loop: bool,
    ) -> Vec<Reading> {
        match layer.kind {
            LayerKind::Tmpfs => return vec![Reading::Files { point: mount.point.clone() }],
            // The data is in the page cache of the upper directory's file system.
            LayerKind::Overlay => return Vec::new(),
            // Written data waits in the pool.
            LayerKind::Zfs => return Vec::new(),
            _ => {}
        }
        if let Some(name) = layer.name.strip_prefix(SERVED_DRIVE) {
            return vec![Reading::SimulatedDrive { name: name.to_owned() }];
        }
        if let Some(name) = layer.name.strip_prefix("plumb cache ") {
            return vec![Reading::PlumbCache { name: name.to_owned() }];
        }
        let is_local = layer.kind == LayerKind::FileSystem && self.is_on_device(mount);
        let memory = Memory {
            counts: self.counts_of_file_system(layer, mount),
            file_system: is_local.then_some(mount.device),
            device: None,
        };
        let mut readings = Vec::new();
        if !is_below_loop {
            readings.push(Reading::Memory(memory));
        }
        readings.extend(self.journal(path, layer, mount).map(Reading::Journal));
        if !is_local {
            let because = format!("what the server of {} holds cannot be seen from here", layer.name);
            readings.push(Reading::Unknown { because });
        }
        readings
    }

    /// Returns true if the file system's data is on block devices of this machine, so that no query can wait
    /// for a server.
    fn is_on_device(&self, mount: &Mount) -> bool {
        let types = FileSystemTypes::parse(&self.tree.text("/proc/filesystems").unwrap_or_default());
        let is_user_space = mount.kind == "fuseblk" || mount.kind.starts_with("fuse");
        types.backing(&mount.kind) == Backing::Block && !is_user_space || mount.kind == "bcachefs"
    }

    fn journal(&self, path: &WritePath, layer: &Layer, mount: &Mount) -> Option<Journal> {
        let seconds = |text: String, unit: f64| text.trim().parse::<f64>().ok().map(|value| value * unit);
        let read = |file: &str, unit| self.tree.text(file).ok().and_then(|text| seconds(text, unit));
        let option = mount.super_option("commit").and_then(|value| seconds(value.to_owned(), 1.0));
        let commit = match mount.kind.as_str() {
            "ext3" | "ext4" => Some(option.unwrap_or(EXT4_COMMIT)),
            "btrfs" => Some(option.unwrap_or(BTRFS_COMMIT)),
            "xfs" => read("/proc/sys/fs/xfs/xfssyncd_centisecs", 0.01),
            "ext2" | "vfat" | "exfat" | "msdos" => return None,
            _ if layer.kind != LayerKind::FileSystem => return None,
            _ => None,
        };
        let devices = layer.below.iter().filter(|name| path.layer(name).is_some_and(Layer::is_block_device));
        let devices: Vec<String> = devices.cloned().collect();
        // With data=journal the running transaction holds data itself in memory, and no counter shows the
        // amount.
        let is_jbd2 =
            matches!(mount.kind.as_str(), "ext3" | "ext4") && mount.super_option("data") != Some("journal");
        let commits = devices.first().filter(|_| is_jbd2).and_then(|device| self.commits_of(device));
        Some(Journal {
            file_system: mount.kind.clone(),
            commit,
            commits,
            devices,
            settled: SettledData::new(COMMITS_AT_ONCE),
        })
    }

    /// Returns the file with the commit statistics of the journal inside the file system on `device`.
    fn commits_of(&self, device: &str) -> Option<String> {
        let journals = self.tree.list("/proc/fs/jbd2").ok()?;
        let inside = |journal: &&String| {
            let inode = journal.strip_prefix(device).and_then(|rest| rest.strip_prefix('-'));
            inode.is_some_and(|inode| inode.bytes().all(|byte| byte.is_ascii_digit()))
        };
        Some(format!("/proc/fs/jbd2/{}/info", journals.iter().find(inside)?))
    }

    fn of_layer(&self, layer: &Layer) -> Option<Reading> {
        use LayerKind as K;
        Some(match layer.kind {
            K::Application | K::PageCache => return None,
            K::Zfs => {
                let because = "ZFS keeps written data outside the page cache, until its transaction group is synced (zfs_txg_timeout, 5 s)";
                Reading::Unknown { because: because.to_owned() }
            }
            K::Loop => Reading::LoopFile(self.loop_file(layer)),
            K::Zram | K::Ram | K::NullBlk => Reading::Disk { bytes: self.size_of(&layer.name) },
            K::Bcache => Reading::Bcache { directory: format!("/sys/class/block/{}/bcache", layer.name) },
            K::DmCache | K::DmWritecache => {
                Reading::DeviceMapper { name: layer.name.clone(), number: self.number_of(&layer.name)? }
            }
            K::WriteBackCache => Reading::PlumbCache { name: self.cache_name(&layer.name) },
            K::SimulatedDrive => match layer.name.strip_prefix(SERVED_DRIVE) {
                Some(name) => Reading::SimulatedDrive { name: name.to_owned() },
                None => {
                    Reading::Unknown { because: "it is made again for each command that names it".to_owned() }
                }
            },
            K::Ublk if layer.below.iter().any(|below| below.starts_with(SERVED_DRIVE)) => return None,
            K::Ublk => match self.ublk_drive(&layer.name) {
                Some(name) => Reading::SimulatedDrive { name },
                None => Reading::Unknown {
                    because: format!("what the server of {} holds cannot be seen", layer.name),
                },
            },
            _ => return self.of_cache(layer),
        })
    }

    /// Returns the reading of a layer with only a cache.
    fn of_cache(&self, layer: &Layer) -> Option<Reading> {
        let is_drive = layer.is_block_device() && !layer.below.iter().any(|below| self.is_device(below));
        match layer.cache {
            Cache::None if !is_drive => None,
            Cache::None => {
                Some(Reading::Nothing { because: "it has no volatile cache, by what it declares" })
            }
            Cache::Protected => Some(Reading::Nothing {
                because: "its cache survives a power cut, by what is declared or claimed",
            }),
            Cache::Volatile if layer.is_block_device() => {
                let queues = self.tree.list(&format!("/sys/class/block/{}/mq", layer.name));
                let at_once = queues.map_or(1, |queues| queues.len().max(1) as u64);
                Some(Reading::Drive(Drive { name: layer.name.clone(), settled: SettledData::new(at_once) }))
            }
            Cache::Volatile | Cache::Unknown => {
                let because = format!("what {} holds cannot be seen from here", layer.name);
                Some(Reading::Unknown { because })
            }
        }
    }

    fn is_device(&self, name: &str) -> bool {
        self.tree.link(&format!("/sys/class/block/{name}")).is_ok()
    }

    fn loop_file(&self, layer: &Layer) -> Option<LoopFile> {
        let path = layer.identity.clone()?;
        let number = self.number_of(&layer.name)?;
        let asked = ProbedDevice { name: &layer.name, number };
        let reply = self.probe.ask(asked, Request::LoopStatus).ok();
        let status = reply.and_then(|bytes| wire::loop_status::parse(&bytes));
        if status.as_ref().is_some_and(|status| status.node.is_some()) {
            return None;
        }
        let mount = self.mounts().of_path(&path)?;
        // A file served by plumb has no dirty pages: each write goes to its server.
        self.is_on_device(mount)
            .then(|| LoopFile { path, identity: status.map(|status| (status.device, status.inode)) })
    }

    fn cache_name(&self, layer: &str) -> String {
        let number = layer.strip_prefix("ublkb");
        let by_ublk = number.and_then(|number| self.ublk_cache(number));
        by_ublk.unwrap_or_else(|| layer.strip_prefix("cache:").unwrap_or(layer).to_owned())
    }

    /// Returns the name of the simulated drive behind a ublk device, from its server's record.
    fn ublk_drive(&self, device: &str) -> Option<String> {
        let number = device.strip_prefix("ublkb")?;
        let text = self.tree.text(&format!("{}/{number}", places::UBLK_RECORDS)).ok()?;
        Some(UblkRecord::parse(&text)?.name)
    }

    fn number_of(&self, device: &str) -> Option<DeviceNumber> {
        self.tree.text(&format!("/sys/class/block/{device}/dev")).ok()?.parse().ok()
    }

    fn size_of(&self, device: &str) -> Option<u64> {
        let sectors = self.tree.text(&format!("/sys/class/block/{device}/size")).ok()?;
        Some(sectors.parse::<u64>().ok()? * 512)
    }

    /// Returns the name of the kernel's counts for a block device; a partition uses those of its disk.
    fn counts_of(&self, device: DeviceNumber) -> Option<String> {
        let place = self.tree.canonical(&format!("/sys/dev/block/{device}")).ok()?;
        let is_part = self.tree.text(&format!("{place}/partition")).is_ok();
        let disk = if is_part { place.rsplit_once('/')?.0 } else { &place };
        self.tree.text(&format!("{disk}/dev")).ok()
    }

    fn counts_of_file_system(&self, layer: &Layer, mount: &Mount) -> Option<String> {
        if !mount.device.is_anonymous() {
            return self.counts_of(mount.device);
        }
        match (mount.kind.as_str(), &layer.identity) {
            ("btrfs", Some(uuid)) => {
                let link = self.tree.link(&format!("/sys/fs/btrfs/{uuid}/bdi")).ok()?;
                link.rsplit('/').next().map(str::to_owned)
            }
            ("btrfs", None) => None,
            _ => Some(mount.device.to_string()),
        }
    }
}
