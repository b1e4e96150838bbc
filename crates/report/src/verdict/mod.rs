//! The verdict rules: pure functions from what was seen to what it means.
//!
//! A rule has an id, a sentence with the figures in it, evidence and a remedy. No rule says that a path loses nothing
//! because it is fast: it says what the figures are consistent with, and what would prove it. On a healthy machine no
//! rule is above info, so that plumb exits with 0 there.
//!
//! | id | severity | fires when | why this severity |
//! |---|---|---|---|
//! | `flush-dropped` | danger | 10 or more syncs, no flush at a device that counts them, a written device beneath with a volatile cache, or an unknown one that every layer claims to flush | synced data can be lost |
//! | `no-flush-seen` | info | the same, but a layer says why (write through) or the device does not count flushes, or not even the direct loads | many virtual disks are like this |
//! | `no-flush-seen` | warning | the same, with no volatile cache known and a layer that does not say what it does with a flush | the sync may do nothing |
//! | `flushes-missing` | warning | fewer than 95 flushes for 100 syncs of one writer, but some | one writer's syncs share no flush: some sent none |
//! | `memory` | warning | the target is memory by its kind | the figures are not of any storage |
//! | `page-cache` | info | the devices moved under 10% of what a cached load moved | expected, and often misread |
//! | `cached-below` | info | the devices moved under 10% of what a direct load moved | a layer below, such as a loop device, answered from memory |
//! | `unwritten-extents` | warning | under 99.9% of a range that was read had been written | reads of the rest come from nothing |
//! | `faster-than-the-platter` | warning | a drive that states its rotation makes half of the rewrites durable within a quarter turn | a non-volatile cache, or a lie |
//! | `check-failed`, `load-failed` | danger | the run ended because a device or a flush failed | what was written since the last good flush may be lost |
//! | `waiting-on-flushes` | info | flushes of 1 ms or more take half of the workers' time, the processor idle | explains, condemns nothing |
//! | `generator-bound` | info | a worker of a direct load was over 95% busy | that one figure is a lower bound; durability is not touched |
//! | `device-shared-with-others` | info | others moved over 5% of the bytes, and 1 MiB | a live system always shares |
//! | `steal` | info | the hypervisor took over 2% of the processor time | the neighbours' doing |
//! | `not-steady`, `noisy`, `ramp` | info | slope of 10%; variation of 30%; no settling in the first third | a short run on a live system wavers |
//! | `too-short` | info | fewer than 30 operations, 100 for p99, 1,000 for p99.9 | says which figures rest on few |
//! | `data-not-as-written` | danger | a block that was read is lost, torn, misdirected or stale | data is damaged |
//! | `operations-failed` | danger, warning | flushes, or other operations, failed and the run went on | as above; figures are of the rest |
//! | `flushes-merged` | info | fewer than 95 flushes for 100 syncs of several workers | syncs at the same time may share a flush |
//! | `backlog` | warning | 1% of a schedule never started, or 10% started late and 100 ms behind | its latencies measure the length of the run |
//! | `depth-not-reached` | info | in flight on average under 70% of what was asked | the figures are of another depth |
//! | `depth-not-reached` | warning | the same, because the engine makes one call at a time | what was asked for was not done |
//! | `latency-target-missed` | warning | no depth kept the latency | what was asked for was not found |
//! | `no-steady-state` | warning | the rounds that were asked for did not become steady | the figures depend on when one looks |
//! | `not-settled` | info | measuring began while the rate changed | part of the ramp is in the mean |
//! | `compressible` | info | what was written compresses or repeats | a path that reduces data had less to write |
//! | `range-is-not-durable` | info | the flush was sync_file_range | explains, condemns nothing |

mod content;
mod depth;
mod evidence;
mod extents;
mod failure;
mod flushes;
mod memory;
mod neighbours;
mod page_cache;
mod platter;
mod rounds;
mod samples;
mod schedule;
mod steadiness;
#[cfg(test)]
mod tests;
mod verification;
mod waiting;

use plumb_path::{Finding, Flush, Layer, Severity, WritePath};

use self::evidence::Evidence;
use crate::document::RunDocument;
use crate::headline::Headline;
use crate::wording;

/// A rule: what it finds in a run, if anything.
type Rule = fn(&Evidence<'_>) -> Option<Verdict>;

/// The rules, in the order in which equals are reported.
const RULES: [Rule; 27] = [
    failure::run_failed,
    verification::not_as_written,
    failure::operations_failed,
    flushes::dropped,
    flushes::none_seen,
    flushes::missing,
    flushes::merged,
    memory::memory,
    platter::faster_than_the_platter,
    schedule::backlog,
    depth::not_reached,
    depth::latency_target_missed,
    rounds::no_steady_state,
    rounds::not_settled,
    waiting::waiting_on_flushes,
    content::reducible,
    content::not_durable,
    extents::unwritten,
    page_cache::page_cache,
    page_cache::cached_below,
    waiting::generator_bound,
    neighbours::device_shared,
    neighbours::steal,
    steadiness::not_steady,
    steadiness::noisy,
    steadiness::ramp,
    samples::too_short,
];

/// All that is wrong or worth knowing about a run: the findings of its survey and the verdicts of the rules, worst first,
/// each once. The document's own `verdicts` are not read, so judging again changes nothing.
pub fn judge(document: &RunDocument) -> Vec<Finding> {
    let surveyed = document.path.as_ref();
    let mut all = surveyed.map(|path| path.findings.clone()).unwrap_or_default();
    let evidence = Evidence::of(document);
    for verdict in RULES.iter().filter_map(|rule| rule(&evidence)).map(Finding::from) {
        let is_same = |finding: &&mut Finding| surveyed.is_some_and(|path| same(finding, &verdict, path));
        match all.iter_mut().find(is_same) {
            Some(finding) => add_evidence(finding, verdict),
            None => all.push(verdict),
        }
    }
    all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    all
}

/// Judges `document` and writes down what comes of it: verdicts, level and headline. `beside` are findings that no rule
/// makes, such as limits of the user's own; they stand last.
pub fn conclude(document: &mut RunDocument, beside: Vec<Finding>) {
    document.verdicts = judge(document);
    document.verdicts.extend(beside);
    summarise(document);
}

/// Writes down level and headline, made from the verdicts. Documents of older versions come without.
pub(crate) fn summarise(document: &mut RunDocument) {
    let worst = document.verdicts.iter().map(|finding| finding.severity).max();
    document.level = worst.map_or("none", wording::severity).to_owned();
    document.headline = Headline::of(document).verdict;
}

/// Whether both say the same: by their id, or because the survey knows which layer drops the flushes that a
/// measurement misses.
fn same(surveyed: &Finding, verdict: &Finding, path: &WritePath) -> bool {
    let names_the_layer = || {
        verdict.id == "flush-dropped"
            && surveyed.severity == Severity::Danger
            && path.layers.iter().any(|layer| layer.flush == Flush::Dropped)
    };
    surveyed.id == verdict.id || names_the_layer()
}

/// The survey's sentence stays; what was measured is added to what it rests on.
fn add_evidence(surveyed: &mut Finding, verdict: Finding) {
    surveyed.severity = surveyed.severity.max(verdict.severity);
    for line in verdict.evidence {
        if !surveyed.evidence.contains(&line) {
            surveyed.evidence.push(line);
        }
    }
}

/// What a rule found.
struct Verdict {
    id: &'static str,
    severity: Severity,
    sentence: String,
    evidence: Vec<String>,
    remedy: &'static str,
}

impl From<Verdict> for Finding {
    fn from(verdict: Verdict) -> Self {
        Self {
            id: verdict.id.to_owned(),
            severity: verdict.severity,
            sentence: verdict.sentence,
            evidence: verdict.evidence,
            remedy: verdict.remedy.to_owned(),
        }
    }
}

/// The layers from the first block device down.
fn device_layers(path: &WritePath) -> impl Iterator<Item = &Layer> {
    path.layers.iter().filter(|layer| !wording::is_above_devices(layer.kind))
}

/// The devices whose counters were read. Below them there may be an adapter, a hypervisor or a server.
fn lowest_devices(path: &WritePath) -> impl Iterator<Item = &Layer> {
    path.layers.iter().filter(|layer| path.is_lowest_device(layer))
}

/// Names in a sentence: `a`, `a and b`, `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
