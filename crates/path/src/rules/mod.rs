//! The rules: from typed facts to a judged path. Pure functions; the same facts always give the same verdict.
//!
//! In order: [`flow`] says for every layer what becomes of FLUSH and FUA, [`durable`] where data is durable,
//! and [`traps`] and [`storage`] what is wrong or worth knowing. The rule behind all of them: a path is
//! unsafe if any node on it drops flushes while any node at or below it holds volatile data; the device and
//! the kernel are both read, and neither is trusted alone.

mod device;
mod durable;
mod finding;
mod flow;
mod storage;
mod traps;
pub mod untorn;

use crate::catalogue::CATALOGUE;
use crate::facts::Node;
use crate::finding::Finding;
use crate::model::{Layer, WritePath};

pub(crate) use flow::Flow;

/// A rule: what it finds on a path, if anything.
type Rule = fn(&Flow<'_>) -> Option<finding::RuleResult>;

/// The rules with their ids in the catalogue, in the order in which equals are reported: causes before what
/// they come to.
const RULES: [(&str, Rule); 36] = [
    ("memory", storage::memory),
    ("barriers-off", storage::barriers_off),
    ("volatile-overlay", storage::volatile_overlay),
    ("syncs-preloaded", storage::syncs_preloaded),
    ("nbd-no-flush", storage::no_flush_offered),
    ("h1-temporary-write-through", traps::temporary_write_through),
    ("h2-queue-write-through", traps::queue_write_through),
    ("h3-stale-kernel-view", traps::stale_kernel_view),
    ("h4-stale-dm-table", traps::stale_dm_table),
    ("h5-dm-over-disabled-queue", traps::dm_over_disabled_queue),
    ("h9-driver-swallows-flush", traps::driver_swallows_flush),
    ("flush-dropped", traps::flush_dropped),
    ("h7-nvme-feature-hidden", traps::nvme_feature_hidden),
    ("h8-write-protected", traps::write_protected),
    ("driver-may-swallow-flush", traps::driver_may_swallow_flush),
    ("no-caching-page", traps::no_caching_page),
    ("synchronous-mount", storage::synchronous),
    ("lax-order", storage::lax_order),
    ("no-auto-da-alloc", storage::replaces_unsynced),
    ("external-journal", storage::external_journal),
    ("virtio-no-flush", storage::no_flush_command),
    ("write-hole", storage::write_hole),
    ("btrfs-write-hole", storage::btrfs_parity),
    ("errors-recorded", storage::errors_recorded),
    ("shingled", storage::shingled),
    ("bcache-dirty", storage::bcache_dirty),
    ("cache-dirty", storage::cache_dirty),
    ("raid-controller-hides-members", storage::hidden_members),
    ("volatile-cache", storage::volatile_cache),
    ("untorn-lost-above", untorn::lost_above),
    ("simulated", storage::simulated),
    ("unknown-below-the-hypervisor", storage::below_hypervisor),
    ("remote-storage", storage::remote),
    ("path-ends-unseen", storage::unseen),
    ("needs-root", storage::needs_root),
    ("refused-to-root", storage::refused_to_root),
];

/// Judges one path. `nodes` are in order, each before all that are below it, the application first.
pub fn judge(target: &str, nodes: &[Node]) -> WritePath {
    let flow = Flow::new(nodes);
    let layers: Vec<Layer> =
        nodes.iter().enumerate().map(|(index, node)| layer(node, &flow, index)).collect();
    let mut findings: Vec<Finding> =
        RULES.iter().filter_map(|(id, rule)| finding(id, rule(&flow)?)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
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

/// Builds the finding with this id from a rule's result; the remedy is the catalogue's unless the rule gives
/// one.
fn finding(id: &str, found: finding::RuleResult) -> Option<Finding> {
    let remedy = found.remedy.or_else(|| Some(CATALOGUE.get(id)?.remedy.clone()));
    Some(Finding {
        id: id.to_owned(),
        severity: found.severity,
        sentence: found.sentence,
        evidence: found.evidence,
        remedy: remedy.unwrap_or_default(),
    })
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
}
