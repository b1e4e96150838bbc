//! Rules that turn typed facts into a judged path. Pure functions: equal facts always give the same verdict.
//!
//! In this order, [`flow`] determines the fate of FLUSH and FUA at every layer, [`durable`] where data is
//! durable, and [`traps`] and [`storage`] report problems and noteworthy facts. The common principle: a path
//! is unsafe if any node on it drops flushes while any node at or below it holds volatile data. Both the
//! device and the kernel are read, and neither is trusted alone.

mod device;
mod durable;
mod finding;
mod flow;
mod storage;
mod traps;
pub mod untorn;

use self::Rule::{Own, Plain};
use self::finding::{RuleResult, Those, marked};
use crate::catalogue::CATALOGUE;
use crate::facts::{Mark, Node};
use crate::finding::Finding;
use crate::finding::Severity::{self, Danger, Info, Warning};
use crate::model::{Layer, WritePath};

pub(crate) use flow::Flow;

/// A rule: returns a finding about a path, if any.
enum Rule {
    /// A rule that selects layers; the sentence is in the catalogue.
    Plain(Severity, for<'a> fn(&Flow<'a>) -> Those<'a>),
    /// A rule that words its finding itself.
    Own(fn(&Flow<'_>) -> Option<RuleResult>),
}

/// Rules with their ids in the catalogue. The order decides among findings of equal severity: causes before
/// consequences.
const RULES: [(&str, Rule); 43] = [
    ("memory", Plain(Danger, |flow| marked!(flow, Mark::InMemory => ""))),
    ("keeps-nothing", Plain(Danger, |flow| marked!(flow, Mark::KeepsNothing => ""))),
    ("barriers-off", Own(storage::barriers_off)),
    ("volatile-overlay", Plain(Danger, |flow| storage::syncs_omitted(flow, false))),
    ("zfs-sync-disabled", Own(storage::zfs_sync_disabled)),
    ("syncs-preloaded", Plain(Danger, |flow| marked!(flow, Mark::SyncsPreloaded { library } => library))),
    // drivers/block/nbd.c: without NBD_FLAG_SEND_FLUSH the queue is set to write through, and no request is
    // made durable.
    ("nbd-no-flush", Plain(Danger, |flow| marked!(flow, Mark::NoFlushOffered { offered } => offered))),
    ("h1-temporary-write-through", Plain(Danger, traps::temporary_write_through)),
    ("h2-queue-write-through", Plain(Danger, traps::queue_write_through)),
    ("h3-stale-kernel-view", Plain(Danger, traps::stale_kernel_view)),
    ("h4-stale-dm-table", Plain(Danger, traps::stale_dm_table)),
    ("h5-dm-over-disabled-queue", Plain(Danger, traps::dm_over_disabled_queue)),
    ("h9-driver-swallows-flush", Own(traps::driver_swallows_flush)),
    ("h10-zfs-remembers", Own(storage::zfs_remembers)),
    ("flush-dropped", Own(traps::flush_dropped)),
    ("h7-nvme-feature-hidden", Plain(Info, traps::nvme_feature_hidden)),
    ("h8-write-protected", Plain(Warning, traps::write_protected)),
    ("driver-may-swallow-flush", Own(traps::driver_may_swallow_flush)),
    ("no-caching-page", Plain(Warning, traps::no_caching_page)),
    ("synchronous-mount", Own(storage::synchronous)),
    ("lax-order", Plain(Info, |flow| marked!(flow, Mark::LaxOrder { option } => option))),
    ("no-auto-da-alloc", Plain(Info, |flow| marked!(flow, Mark::ReplacesUnsynced { option } => option))),
    // fs/jbd2: an fsync relies on the commit to flush the data's disk (jbd2_trans_will_send_data_barrier),
    // which did not happen in guests with Debian's kernels 6.1 and 6.12.
    ("external-journal", Plain(Warning, |flow| marked!(flow, Mark::ExternalJournal { device } => device))),
    ("zfs-single-log", Plain(Info, |flow| marked!(flow, Mark::SyncLog { single: Some(log) } => log))),
    ("zfs-log-bypassed", Plain(Info, |flow| marked!(flow, Mark::LogBypassed => ""))),
    ("zfs-flush-errors", Plain(Info, |flow| marked!(flow, Mark::FlushErrorsIgnored { version } => version))),
    ("virtio-no-flush", Own(storage::no_flush_command)),
    ("write-hole", Own(storage::write_hole)),
    // The btrfs documentation calls these profiles not ready for use (btrfs(5), RAID56).
    ("btrfs-write-hole", Plain(Warning, |flow| marked!(flow, Mark::BtrfsParity { what } => what))),
    ("errors-recorded", Plain(Warning, |flow| marked!(flow, Mark::ErrorsRecorded { what } => what))),
    ("shingled", Plain(Info, |flow| marked!(flow, Mark::Shingled { what } => what))),
    ("bcache-dirty", Plain(Info, |flow| storage::dirty(flow, true))),
    ("cache-dirty", Plain(Info, |flow| storage::dirty(flow, false))),
    ("raid-controller-hides-members", Plain(Info, |flow| marked!(flow, Mark::HidesMembers { why } => why))),
    ("volatile-cache", Own(storage::volatile_cache)),
    ("untorn-lost-above", Own(untorn::lost_above)),
    (
        "read-only",
        Plain(Info, |flow| Those {
            nodes: durable::read_only(flow).into_iter().collect(),
            words: Vec::new(),
        }),
    ),
    ("simulated", Own(storage::simulated)),
    ("unknown-below-the-hypervisor", Plain(Info, |flow| marked!(flow, Mark::Guest { .. } => ""))),
    ("remote-storage", Plain(Info, |flow| marked!(flow, Mark::RemoteEnd { what } => what))),
    ("path-ends-unseen", Own(storage::ends_unseen)),
    ("needs-root", Own(storage::needs_root)),
    ("refused-to-root", Own(storage::refused_to_root)),
];

/// Judges a path. `nodes` must be in topological order, the application first.
pub fn judge(target: &str, nodes: &[Node]) -> WritePath {
    let flow = Flow::new(nodes);
    let layers: Vec<Layer> =
        nodes.iter().enumerate().map(|(index, node)| layer(node, &flow, index)).collect();
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|(id, rule)| finding(id, rule, &flow)).collect();
    Finding::sort_by_severity(&mut findings);
    WritePath {
        target: target.to_owned(),
        durable_at: durable::durable_at(&flow),
        unknown_below: durable::unknown_below(&flow),
        untorn: untorn::pages(&flow),
        exposure: None,
        layers,
        findings,
    }
}

/// Applies a rule to a path, with the catalogue's text unless the rule has its own.
fn finding(id: &str, rule: &Rule, flow: &Flow<'_>) -> Option<Finding> {
    let words = CATALOGUE.get(id);
    let found = match rule {
        Own(find) => find(flow)?,
        Plain(severity, choose) => {
            let those = choose(flow);
            those.found(*severity, those.fill(words?.sentence.as_deref()?))?
        }
    };
    let RuleResult { severity, sentence, evidence, remedy } = found;
    let remedy = remedy.or_else(|| Some(words?.remedy.clone())).unwrap_or_default();
    Some(Finding { id: id.to_owned(), severity, sentence, evidence, remedy })
}

fn layer(node: &Node, flow: &Flow<'_>, index: usize) -> Layer {
    Layer {
        kind: node.kind,
        name: node.name.clone(),
        identity: node.identity.clone(),
        cache: flow.cache(index),
        flush: flow.flush(index),
        fua: flow.fua(index),
        untorn: untorn::of_layer(node),
        evidence: node.evidence.clone(),
        below: node.below.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LayerKind;

    #[test]
    fn every_rule_is_explained_and_every_explanation_has_a_rule() {
        let mut rules: Vec<&str> = RULES.iter().map(|(id, _)| *id).collect();
        rules.sort_unstable();
        let explained: Vec<&str> = CATALOGUE.iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(rules, explained);
        for rule in CATALOGUE.iter() {
            assert!(
                !rule.meaning.is_empty() && !rule.found.is_empty() && !rule.remedy.is_empty(),
                "{}",
                rule.id
            );
        }
    }

    #[test]
    fn the_remedy_of_synchronous_writes_is_one_that_the_file_system_has() {
        for (kind, option, remedy) in [
            (LayerKind::Zfs, "sync=always", "To pay once for each write, `zfs set sync=standard tank/fast`"),
            (LayerKind::FileSystem, "dirsync", "To pay once for each write, unmount the file system"),
            (LayerKind::FileSystem, "sync", "`mount -o remount,async MOUNTPOINT`"),
        ] {
            let mut application = Node::new(LayerKind::Application, "application");
            application.below = vec!["x /srv".to_owned()];
            let mut system = Node::new(kind, "x /srv");
            system.identity = Some("tank/fast".to_owned());
            system.mark(Mark::Synchronous { option: option.to_owned() });
            let path = judge("/srv", &[application, system]);
            let found = path.findings.iter().find(|finding| finding.id == "synchronous-mount").unwrap();
            assert!(found.remedy.contains(remedy), "{option}: {}", found.remedy);
        }
    }
}
