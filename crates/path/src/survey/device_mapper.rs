//! Device mapper: dm/{name,uuid} for all users, the table for root. Documentation/admin-guide/device-mapper.

use plumb_linux::probe::wire::dm::{self, DmTarget};
use plumb_linux::probe::{Refusal, Request};

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

/// Prefixes of dm/uuid with the kind that each implies, if the table may not be read. A logical volume can be
/// anything.
const UUID_PREFIXES: [(&str, LayerKind); 6] = [
    ("CRYPT-VERITY", LayerKind::DmVerity),
    ("CRYPT-INTEGRITY", LayerKind::DmIntegrity),
    ("CRYPT-", LayerKind::DmCrypt),
    ("mpath-", LayerKind::DmMultipath),
    ("DMRAID-", LayerKind::DmRaid),
    ("part", LayerKind::DmLinear),
];

/// Targets without a kind of their own that forward a flush after making their own state durable (drivers/md:
/// `num_flush_bios` is 1). Data that is only acknowledged may depend on their mapping or delay.
const FORWARDING: [&str; 7] = ["clone", "delay", "era", "log-writes", "pcache", "vdo", "zoned"];
/// Targets that receive no flush (`num_flush_bios` is 0): device mapper completes it, and nothing goes down.
/// The message of Linux commit 1122c0c1cc71 (6.11) calls it a data integrity bug in these targets; the write
/// cache that newer kernels report for them does not change it.
const FLUSHLESS: [&str; 2] = ["switch", "unstriped"];

impl Surveyor<'_> {
    /// Fills in a dm device. Every target clones a flush to the devices below it, unless the table was loaded
    /// when none of them had a cache (trap H4).
    pub(super) fn device_mapper(&mut self, node: &mut Node, place: &Place) {
        let read = |name: &str| self.tree.text(&format!("{}/dm/{name}", place.sysfs)).unwrap_or_default();
        let (name, uuid) = (read("name"), read("uuid"));
        node.cache = Cache::None;
        node.identity = Some(uuid.clone()).filter(|uuid| !uuid.is_empty());
        node.saw(format!("{}/dm/{{name,uuid}}", place.sysfs), format!("{name} {uuid}"), "the mapping");
        let table = self.ask(node, place.number, Request::DmTable, "dm table");
        node.kind = match &table {
            Ok(bytes) => self.by_table(node, place, &dm::parse(bytes)),
            Err(_) => by_uuid(&uuid),
        };
        if let Err(refusal) = &table
            && *refusal != Refusal::Denied
        {
            node.saw("DM_TABLE_STATUS", refusal.to_string(), "the kind is taken from the uuid");
        }
        self.members(node, place);
    }

    /// Returns the kind of device that a table implies, with the marks of all its targets.
    fn by_table(&self, node: &mut Node, place: &Place, targets: &[DmTarget]) -> LayerKind {
        for target in targets {
            self.target(node, place, target);
        }
        // A mixed table has the kind of an unknown target if there is one, otherwise that of the first target
        // that does more than remap addresses.
        let telling = targets
            .iter()
            .find(|target| !is_known(&target.kind))
            .or_else(|| targets.iter().find(|target| by_target(&target.kind).is_none()))
            .or_else(|| targets.iter().find(|target| !matches!(target.kind.as_str(), "linear" | "striped")))
            .or_else(|| targets.iter().find(|target| target.kind == "striped"))
            .or_else(|| targets.first());
        let Some(target) = telling else {
            node.mark(Mark::Unseen { what: format!("{} has no table", node.name) });
            return LayerKind::DmOther;
        };
        let short: String = target.parameters.chars().take(120).collect();
        node.saw(
            "DM_TABLE_STATUS",
            format!("{} {}", target.kind, short),
            format!("target {} of {} in the table", target.kind, targets.len()),
        );
        by_target(&target.kind).unwrap_or(LayerKind::DmOther)
    }

    /// Adds the facts about one target of a table to `node`.
    fn target(&self, node: &mut Node, place: &Place, target: &DmTarget) {
        match target.kind.as_str() {
            "cache" => self.cache_status(node, place),
            "writecache" => self.writecache_status(node, place),
            "raid" => raid(node, &target.parameters),
            "snapshot" => snapshot(node, &target.parameters),
            other if FLUSHLESS.contains(&other) => {
                let why = format!("the dm target {other} sends no flush to the devices below");
                if !node.marks.iter().any(|mark| matches!(mark, Mark::SendsNoFlush { .. })) {
                    node.saw("DM_TABLE_STATUS", other, why.clone());
                    node.mark(Mark::SendsNoFlush { why });
                }
            }
            other if !is_known(other) => {
                let what = format!("what the dm target {other} of {} does with a flush", node.name);
                if !node.marks.contains(&Mark::Unseen { what: what.clone() }) {
                    node.mark(Mark::Unseen { what });
                }
            }
            _ => {}
        }
    }

    /// Reads the status of dm-cache: Documentation/admin-guide/device-mapper/cache.rst. The eleventh word is
    /// the number of dirty blocks.
    fn cache_status(&self, node: &mut Node, place: &Place) {
        let Some(status) = self.dm_status(node, place, "cache") else { return };
        let words: Vec<&str> = status.split_ascii_whitespace().collect();
        let Some(dirty) = words.get(10).and_then(|word| word.parse::<u64>().ok()) else { return };
        node.saw(
            "DM_TABLE_STATUS, cache status word 11",
            dirty.to_string(),
            "dirty blocks on the cache device only",
        );
        if dirty > 0 {
            node.mark(Mark::Dirty { what: format!("{dirty} blocks") });
        }
    }

    /// Reads the status of dm-writecache: Documentation/admin-guide/device-mapper/writecache.rst. Words 2 and
    /// 3 are the numbers of all and of free blocks.
    fn writecache_status(&self, node: &mut Node, place: &Place) {
        let Some(status) = self.dm_status(node, place, "writecache") else { return };
        let number = |at| status.split_ascii_whitespace().nth(at).and_then(|word| word.parse::<u64>().ok());
        let (Some(blocks), Some(free)) = (number(1), number(2)) else { return };
        let used = blocks.saturating_sub(free);
        node.saw(
            "DM_TABLE_STATUS, writecache status words 2 and 3",
            format!("{blocks} {free}"),
            "blocks, free blocks",
        );
        if used > 0 {
            node.mark(Mark::Dirty { what: format!("up to {used} blocks") });
        }
    }

    fn dm_status(&self, node: &mut Node, place: &Place, kind: &str) -> Option<String> {
        let reply = self.ask(node, place.number, Request::DmStatus, "dm status").ok()?;
        dm::parse(&reply).into_iter().find(|target| target.kind == kind).map(|target| target.parameters)
    }
}

/// Returns true if the target's handling of a flush is known. Flakey drops writes, zero and error have
/// nothing below, dust fails on request.
fn is_known(target: &str) -> bool {
    by_target(target).is_some() || FORWARDING.contains(&target) || FLUSHLESS.contains(&target)
}

/// Returns the kind of a target that has its own kind and clones flushes to the devices below it.
fn by_target(target: &str) -> Option<LayerKind> {
    Some(match target {
        "linear" => LayerKind::DmLinear,
        "striped" => LayerKind::DmStriped,
        "crypt" => LayerKind::DmCrypt,
        "thin" => LayerKind::DmThin,
        "thin-pool" => LayerKind::DmThinPool,
        "cache" => LayerKind::DmCache,
        "writecache" => LayerKind::DmWritecache,
        "multipath" => LayerKind::DmMultipath,
        "mirror" => LayerKind::DmMirror,
        "raid" => LayerKind::DmRaid,
        "integrity" => LayerKind::DmIntegrity,
        "verity" => LayerKind::DmVerity,
        "snapshot" | "snapshot-origin" | "snapshot-merge" => LayerKind::DmSnapshot,
        _ => return None,
    })
}

/// Records the type of a snapshot: Documentation/admin-guide/device-mapper/snapshot.rst. The third word tells
/// whether the exception store is persistent. A transient one (N) keeps the list of changed chunks in memory,
/// so a power cut destroys the snapshot.
fn snapshot(node: &mut Node, parameters: &str) {
    let Some(word) = parameters.split_ascii_whitespace().nth(2) else { return };
    if word.starts_with(['N', 'n']) {
        node.saw(
            "DM_TABLE_STATUS, snapshot word 3",
            word,
            "a transient exception store: which chunks were changed is in memory and nowhere else",
        );
        node.cache = Cache::Volatile;
        node.mark(Mark::InMemory);
    }
}

/// Records the level of an array: Documentation/admin-guide/device-mapper/dm-raid.rst. The parameters of the
/// table begin with the level.
fn raid(node: &mut Node, parameters: &str) {
    let level = parameters.split_ascii_whitespace().next().unwrap_or_default();
    let parity = ["raid4", "raid5", "raid6"].iter().any(|name| level.starts_with(name));
    if parity && !parameters.contains("journal_dev") {
        node.mark(Mark::WriteHole { what: format!("{level}, no journal device"), degraded: false });
    }
}

fn by_uuid(uuid: &str) -> LayerKind {
    let found = UUID_PREFIXES.iter().find(|(prefix, _)| uuid.starts_with(prefix));
    found.map_or(LayerKind::DmOther, |(_, kind)| *kind)
}
