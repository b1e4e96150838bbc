//! The path to a device outside the kernel: a simulated drive or a write-back cache in this process, or an
//! export of an NBD server.
//!
//! There is no file system or page cache in between, and nothing in /sys: the device's own report is the only
//! evidence.

use plumb_block::{Bytes, DeviceInfo, VolatileCache};

use super::assemble::APPLICATION;
use crate::facts::{KernelFua, Mark, NO_FLUSH_NO_FUA, Node, ONLY_FUA, Units, Untorn};
use crate::model::{Cache, LayerKind, Survey, WritePath};
use crate::rules;

/// Kind of a device outside the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// A simulated drive in this process.
    Simulated,
    /// An export of an NBD server.
    Nbd,
    /// A write-back cache in this process.
    Cache,
}

/// Returns the path to the device called `target` with the properties `info`. If it has counters, they are
/// under the same name.
pub fn survey_device(target: &str, info: &DeviceInfo, kind: DeviceKind) -> Survey {
    Survey { schema: Survey::SCHEMA.to_owned(), kernel: None, paths: vec![path(target, info, kind)] }
}

/// Returns the path to the target `target` of another program that drops what is written (fio's
/// `ioengine=null`).
pub fn null_device(target: &str) -> WritePath {
    let info = DeviceInfo { keeps_nothing: true, ..DeviceInfo::plain(target, Bytes(0), Bytes(512)) };
    let node = device(LayerKind::NullBlk, target, &info, "the options of the program");
    rules::judge(target, &[application(target), node])
}

fn path(target: &str, info: &DeviceInfo, kind: DeviceKind) -> WritePath {
    let mut nodes = vec![application(target)];
    match kind {
        DeviceKind::Simulated => {
            let mut drive = device(LayerKind::SimulatedDrive, target, info, "the drive");
            drive.mark(Mark::Simulated);
            nodes.push(drive);
        }
        DeviceKind::Cache => {
            nodes.push(device(LayerKind::WriteBackCache, target, info, "the mode and the log"))
        }
        DeviceKind::Nbd => {
            let mut export = device(LayerKind::Nbd, target, info, "transmission flags");
            if info.is_read_only {
                export.saw("transmission flags", "NBD_FLAG_READ_ONLY", "the export takes no writes");
                export.mark(Mark::ReadOnly);
            } else if info.volatile_cache == VolatileCache::Unknown {
                let offered = if info.fua_native { ONLY_FUA } else { NO_FLUSH_NO_FUA };
                export.mark(Mark::NoFlushOffered { offered });
            }
            let server = format!("server of {target}");
            export.below = vec![server.clone()];
            nodes.push(export);
            let mut remote = Node::new(LayerKind::Remote, server);
            remote.cache = Cache::Unknown;
            remote.mark(Mark::RemoteEnd { what: format!("the NBD server of {target}") });
            nodes.push(remote);
        }
    }
    rules::judge(target, &nodes)
}

/// Returns the node of the client of the device outside the kernel called `target`.
pub(super) fn application(target: &str) -> Node {
    let mut node = Node::new(LayerKind::Application, APPLICATION);
    node.cache = Cache::Volatile;
    node.below = vec![target.to_owned()];
    node.saw(
        "requests",
        "handed to the device as they are",
        "no file system and no page cache is between: a request that was acknowledged is in the device",
    );
    node
}

/// Returns the node of the device itself, with its properties as evidence from `source`.
fn device(kind: LayerKind, name: &str, info: &DeviceInfo, source: &str) -> Node {
    let mut node = Node::new(kind, name);
    let (cache, means) = match info.volatile_cache {
        VolatileCache::None => (Cache::None, "an acknowledged write is durable"),
        VolatileCache::Enabled if info.is_cache_protected => {
            (Cache::Protected, "an acknowledged write survives a power cut")
        }
        VolatileCache::Enabled => (Cache::Volatile, "only a flush or FUA makes writes durable"),
        VolatileCache::Unknown => {
            (Cache::Unknown, "no flush is offered: whether acknowledged writes are durable is not said")
        }
    };
    node.cache = cache;
    match info.keeps_nothing {
        true => {
            node.mark(Mark::KeepsNothing);
            node.saw(source, "a null device", "what is written is dropped, and reads return zeroes");
        }
        false => node.saw(source, cache_words(kind, info), means),
    }
    if info.is_flush_dropped {
        node.saw("the driver", "a flush is answered and not sent", "no flush reaches the drive");
        node.mark(Mark::IgnoresFlush);
    }
    let units = Units::of_device(info);
    node.untorn = Untorn::Units(units);
    node.saw(
        source,
        format!("atomic unit {}, boundary {}", units.max, units.boundary),
        "the largest write that a power cut does not tear, and the boundaries that it must not cross, in bytes",
    );
    node.fua = if info.fua_native { KernelFua::Yes } else { KernelFua::No };
    let fua = if info.fua_native { "FUA is taken" } else { "FUA is not taken" };
    let means = match (info.fua_native, info.volatile_cache) {
        (true, _) if info.keeps_nothing => "and makes nothing durable",
        (true, _) => "a write can be durable by itself",
        (false, VolatileCache::Unknown) => "and no flush can stand in for it",
        (false, _) => "it becomes a write and a flush",
    };
    node.saw(source, fua, means);
    node
}

/// Describes the device's cache. An NBD server that accepts flushes does not reveal whether it has one.
fn cache_words(kind: LayerKind, info: &DeviceInfo) -> &'static str {
    match (kind, info.volatile_cache) {
        (LayerKind::Nbd, VolatileCache::Enabled) => "flushes are taken",
        _ => info.cache_words(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Flush, Fua};

    fn surveyed(volatile_cache: VolatileCache, kind: DeviceKind) -> WritePath {
        let plain = DeviceInfo::plain("x", Bytes::gib(1), Bytes(512));
        let info = DeviceInfo { volatile_cache, fua_native: true, ..plain };
        survey_device("sim:x", &info, kind).paths.remove(0)
    }

    #[test]
    fn without_a_cache_an_acknowledged_write_is_durable() {
        let path = surveyed(VolatileCache::None, DeviceKind::Simulated);
        assert_eq!(path.durable_at.write.as_deref(), Some("sim:x"));
        assert_eq!(path.durable_at.fsync.as_deref(), Some("sim:x"));
        assert_eq!(path.block_devices(), ["sim:x"]);
        assert!(path.findings.iter().all(|finding| finding.id == "simulated"), "{:?}", path.findings);
    }

    #[test]
    fn a_driver_that_drops_flushes_makes_nothing_durable_that_is_in_a_volatile_cache() {
        let plain = DeviceInfo::plain("x", Bytes::gib(1), Bytes(512));
        for (volatile_cache, flush) in
            [(VolatileCache::Enabled, Flush::Dropped), (VolatileCache::None, Flush::Absorbed)]
        {
            let info = DeviceInfo { is_flush_dropped: true, volatile_cache, ..plain.clone() };
            let path = survey_device("sim:x", &info, DeviceKind::Simulated).paths.remove(0);
            let is_lost = flush == Flush::Dropped;
            assert_eq!(path.layers[1].flush, flush);
            assert_eq!(path.durable_at.fsync.is_none(), is_lost, "{}", path.durable_at.sentence);
            assert_eq!(path.findings.iter().any(|finding| finding.id == "flush-dropped"), is_lost);
        }
    }

    #[test]
    fn a_null_device_makes_nothing_durable() {
        let plain = DeviceInfo::plain("x", Bytes::gib(1), Bytes(512));
        for kind in [DeviceKind::Simulated, DeviceKind::Cache] {
            let info = DeviceInfo { keeps_nothing: true, ..plain.clone() };
            let path = survey_device("sim:x", &info, kind).paths.remove(0);
            let durable_at = path.durable_at;
            assert_eq!((durable_at.write, durable_at.direct, durable_at.fsync), (None, None, None));
            assert_eq!(
                (path.findings[0].id.as_str(), path.layers[1].flush),
                ("keeps-nothing", Flush::Dropped)
            );
        }
    }

    #[test]
    fn the_null_device_of_another_program_is_told_as_one() {
        let path = null_device("x");
        let ids: Vec<&str> = path.findings.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!((ids, path.durable_at.fsync), (vec!["keeps-nothing"], None));
    }

    #[test]
    fn with_a_cache_only_a_flush_makes_durable() {
        let path = surveyed(VolatileCache::Enabled, DeviceKind::Simulated);
        assert_eq!(path.durable_at.write, None);
        assert_eq!(path.durable_at.fsync.as_deref(), Some("sim:x"));
        assert!(path.findings.iter().any(|finding| finding.id == "volatile-cache"));
        let drive = &path.layers[1];
        assert_eq!((drive.flush, drive.fua, drive.cache), (Flush::Forwarded, Fua::Native, Cache::Volatile));
    }

    #[test]
    fn a_cache_that_survives_a_power_cut_is_protected() {
        let plain = DeviceInfo::plain("x", Bytes::gib(1), Bytes(512));
        let on = DeviceInfo { volatile_cache: VolatileCache::Enabled, is_cache_protected: true, ..plain };
        let path = survey_device("sim:x", &on, DeviceKind::Simulated).paths.remove(0);
        assert_eq!((path.layers[1].cache, path.layers[1].flush), (Cache::Protected, Flush::Forwarded));
        assert_eq!(path.durable_at.write.as_deref(), Some("sim:x"));
        assert!(path.findings.iter().all(|finding| finding.id != "volatile-cache"), "{:?}", path.findings);
    }

    #[test]
    fn what_a_server_does_is_never_claimed() {
        for cache in [VolatileCache::None, VolatileCache::Enabled, VolatileCache::Unknown] {
            let path = surveyed(cache, DeviceKind::Nbd);
            assert_eq!((path.durable_at.write, path.durable_at.fsync), (None, None));
            assert!(path.unknown_below.unwrap().contains("NBD server"));
            let said = format!("{:?}{:?}", path.findings, path.layers);
            assert!(!said.contains("that is on:") && !said.contains("\"a volatile cache is on"), "{said}");
        }
    }

    #[test]
    fn an_export_that_takes_no_writes_is_read_only_whatever_it_offers() {
        for volatile_cache in [VolatileCache::Enabled, VolatileCache::Unknown] {
            let plain = DeviceInfo::plain("x", Bytes::gib(1), Bytes(512));
            let info = DeviceInfo { is_read_only: true, volatile_cache, ..plain };
            let path = survey_device("nbd://h/x", &info, DeviceKind::Nbd).paths.remove(0);
            let ids: Vec<&str> = path.findings.iter().map(|finding| finding.id.as_str()).collect();
            assert!(ids.contains(&"read-only") && !ids.contains(&"nbd-no-flush"), "{ids:?}");
            assert!(path.durable_at.sentence.contains("is read-only"), "{}", path.durable_at.sentence);
            assert!(path.layers[1].evidence.iter().any(|line| line.value == "NBD_FLAG_READ_ONLY"));
        }
    }

    #[test]
    fn fua_that_is_not_taken_becomes_a_write_and_a_flush() {
        let info = DeviceInfo::plain("x", Bytes::gib(1), Bytes(512));
        let path = survey_device("sim:x", &info, DeviceKind::Simulated).paths.remove(0);
        assert_eq!(path.layers[1].fua, Fua::Emulated);
    }
}
