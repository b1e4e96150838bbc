//! A cache over simulated drives for experiments, `cache:backing=sim:MODEL,log=sim:MODEL,size=1GiB`: created
//! when opened, and gone with the process.

use std::str::FromStr as _;
use std::sync::Arc;

use plumb_block::{Bytes, StorageCounters, StorageSnapshot, Time};
use plumb_cache::driver::{self, CachedDevice, Members};
use plumb_cache::{Layout, Mode, Settings, Uuid};
use plumb_guard::opened::OpenedTarget;
use plumb_guard::simulated::{Words, in_this_process};
use plumb_guard::{Error, Intent, Name, Permission, Result, Scheme, TargetRequest, open_all};
use plumb_linux::FileOptions;
use plumb_sim::kernel::{self, Flushes};

use crate::create::SEGMENT;
use crate::named::{NamedCache, options_of};

/// Syntax of the name, for messages.
const TYPED_AS: &str = "write it as in \
                        cache:backing=sim:nearline-4tb,log=sim:plp-nvme-ssd,size=1GiB,mode=write-back; \
                        several log= are a mirror, or with layout=stripe a stripe";

/// Cache that is open as a target.
#[derive(Clone)]
pub(crate) struct InlineCache {
    pub(crate) device: CachedDevice,
    /// Counters of the simulated drives.
    pub(crate) counters: Option<Arc<dyn StorageCounters>>,
    /// Cache that keeps its marker up to date, if it is a named one.
    pub(crate) named: Option<Arc<NamedCache>>,
}

struct TypedCache {
    backing: Name,
    legs: Vec<Name>,
    size: Bytes,
    mode: Mode,
    layout: Layout,
}

/// Returns the simulated drives in the name of a cache, the backing device first; `None` if the name has
/// none.
pub fn drives_of(name: &Name) -> Option<Vec<Name>> {
    let Name::Scheme { scheme: Scheme::Cache, rest } = name else { return None };
    let typed = TypedCache::parse(&name.to_string(), rest).ok()?;
    Some([vec![typed.backing], typed.legs].concat())
}

impl TypedCache {
    fn parse(shown: &str, rest: &str) -> Result<Self> {
        let wrong = |found: String| Error::usage(shown, found, TYPED_AS);
        let (mut backing, mut legs) = (None, Vec::new());
        let (mut size, mut mode, mut layout) = (Bytes::gib(1), Mode::WriteBack, Layout::Mirror);
        for part in rest.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(wrong(format!("`{part}` is not a KEY=VALUE")));
            };
            let drive = || match Name::parse(value)? {
                name @ Name::Scheme { scheme: Scheme::Sim, .. } => Ok(name),
                _ => Err(wrong(format!(
                    "`{value}` is not a simulated drive: for real devices make a cache with `plumb cache \
                     create`, and name it as cache:NAME"
                ))),
            };
            match key {
                "backing" => backing = Some(drive()?),
                "log" => legs.push(drive()?),
                "size" => size = Bytes::from_str(value).map_err(|error| wrong(error.to_string()))?,
                "mode" => mode = word(value).ok_or_else(|| wrong(format!("`{value}` is not a mode")))?,
                "layout" => {
                    layout = word(value).ok_or_else(|| wrong(format!("`{value}` is not a layout")))?
                }
                _ => return Err(wrong(format!("there is no `{key}` of a cache"))),
            }
        }
        let Some(backing) = backing.filter(|_| !legs.is_empty()) else {
            return Err(wrong("it needs backing= and at least one log=".to_owned()));
        };
        Ok(Self { backing, legs, size, mode, layout })
    }
}

/// Parses a value by its name in documents.
pub(crate) fn word<T: serde::de::DeserializeOwned>(value: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(value.to_owned())).ok()
}

/// Creates the cache of this name. Its drives register with the clock before the cache does.
pub(crate) fn make(name: &Name, rest: &str, time: &Time) -> Result<InlineCache> {
    let shown = name.to_string();
    let failed = |error: plumb_block::Error| Error::device(&shown, &error);
    let typed = TypedCache::parse(&shown, rest)?;
    let open = |name: &Name| {
        // Each drive is a separate one, even if two have the same name.
        let mut options = FileOptions::write_direct().shared();
        // The drives receive the cache's flushes unchanged.
        options.opening.raw_flush = true;
        let wanted = TargetRequest { name: name.clone(), intent: Intent::WRITE, options };
        let opened = open_all(&[wanted], &Permission::default(), time)?.pop();
        opened.ok_or_else(|| Error::usage(&shown, "a drive of it was not opened", ""))
    };
    let backing = open(&typed.backing)?;
    let legs = typed.legs.iter().map(open).collect::<Result<Vec<_>>>()?;
    let counters = legs.iter().chain([&backing]).filter_map(|drive| drive.counters.clone()).collect();
    let devices: Vec<_> = legs.iter().map(|leg| Arc::clone(&leg.device)).collect();
    let TypedCache { size, layout, mode, .. } = typed;
    let (cache, uuid) = (Uuid([0; 16]), Uuid([1; 16]));
    let settings = Settings { cache, backing: uuid, size, segment: SEGMENT, layout };
    driver::create(&settings, &devices, &backing.device.info()).map_err(failed)?;
    let members = Members { legs: devices.into_iter().map(Some).collect(), backing: backing.device };
    let options = options_of(mode).map_err(failed)?;
    let device = CachedDevice::open(options, members, time.clone()).map_err(failed)?;
    Ok(InlineCache { device, counters: Some(Arc::new(All(counters))), named: None })
}

/// Wraps the cache as a target.
pub(crate) fn describe(want: &TargetRequest, made: InlineCache, time: &Time) -> Result<OpenedTarget> {
    let example = "backing=sim:MODEL?size=";
    let device = kernel::above(Arc::new(made.device), time, Flushes::Raw);
    in_this_process(want, device, made.counters, Words { what: "its backing device", example })
}

/// Opens a cache over simulated drives as a target. Returns the cache beside it, for its status.
///
/// # Errors
/// If the name is invalid, or the drives are too small.
pub fn open_simulated(name: &Name, time: &Time) -> Result<(OpenedTarget, CachedDevice)> {
    let shown = name.to_string();
    let Name::Scheme { scheme: Scheme::Cache, rest } = name else {
        return Err(Error::usage(&shown, "it is not a cache", TYPED_AS));
    };
    let made = make(name, rest, time)?;
    let cache = made.device.clone();
    let want = TargetRequest {
        name: name.clone(),
        intent: Intent::WRITE,
        options: FileOptions::write_direct().shared(),
    };
    Ok((describe(&want, made, time)?, cache))
}

/// Counters of all drives of a cache, the log first.
struct All(Vec<Arc<dyn StorageCounters>>);

impl StorageCounters for All {
    fn read(&self) -> plumb_block::Result<StorageSnapshot> {
        let read = self.0.iter().map(|counters| counters.read()).collect::<plumb_block::Result<Vec<_>>>()?;
        let at = read.first().map(|snapshot| snapshot.at).unwrap_or_default();
        Ok(StorageSnapshot { at, devices: read.into_iter().flat_map(|snapshot| snapshot.devices).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_wrong_is_named() {
        for (typed, named) in [
            ("backing=sim:memory", "log="),
            ("log=sim:memory", "backing="),
            ("backing=/dev/sda,log=sim:memory", "plumb cache create"),
            ("backing=sim:memory,log=sim:memory,size=x", "`x` is not a size"),
            ("backing=sim:memory,log=sim:memory,mode=fast", "`fast`"),
            ("backing=sim:memory,log=sim:memory,colour=red", "`colour`"),
            ("backing=sim:memory,log", "KEY=VALUE"),
        ] {
            let error =
                TypedCache::parse("cache:x", typed).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(named), "{typed}: {error}");
        }
        let name = Name::parse("cache:backing=sim:memory?seed=3,log=sim:memory,log=sim:memory,mode=ordered")
            .unwrap();
        assert_eq!(drives_of(&name).map(|drives| drives.len()), Some(3));
    }
}
