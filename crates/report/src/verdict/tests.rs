//! Rules on samples of loads, each with and without a verdict.

use plumb_block::{Caching, DeviceCounters};
use plumb_measure::Attribution;
use plumb_path::{Finding, Severity};

use super::{RULES, judge};
use crate::document::{DepthTried, FlushMethod, LatencyTargetResult, Round, RunDocument, ScheduleResult};
use crate::{fixture, rules};

fn finding(document: &RunDocument, id: &str) -> Option<Finding> {
    judge(document).into_iter().find(|finding| finding.id == id)
}

/// Returns the load of one worker that flushes after each write, on one disk with a volatile cache that
/// receives all flushes.
fn flushing() -> RunDocument {
    let mut document = fixture::load("side-by-side");
    document.targets.remove(0);
    document
}

fn set_flushes(document: &mut RunDocument, flushes: u64) {
    let storage = document.targets[0].sides.storage.as_mut().unwrap();
    storage.flushes = Some(flushes);
    storage.devices[0].flushes = Some(flushes);
}

/// Rules of profiles, of policies and of many hosts, which are applied elsewhere.
const ELSEWHERE: [&str; 11] = [
    "claim-expired",
    "hosts-missing",
    "limit-met",
    "limit-missed",
    "limit-unmeasured",
    "no-kernel-view",
    "other-configurator",
    "protection-failed",
    "start-skew",
    "straggler",
    "writeback-failed",
];

#[test]
fn every_rule_is_explained_and_every_explanation_has_a_rule() {
    for (id, _) in RULES {
        assert!(rules::find(id).is_some(), "{id} has no explanation");
    }
    let surveyed: Vec<&str> = plumb_path::CATALOGUE.iter().map(|rule| rule.id.as_str()).collect();
    for rule in rules::all() {
        let id = rule.id.as_str();
        let has_rule = RULES.iter().any(|(known, _)| *known == id) || surveyed.contains(&id);
        assert!(has_rule || ELSEWHERE.contains(&id), "{id} is not a rule");
        assert!(!rule.meaning.is_empty() && !rule.found.is_empty() && !rule.remedy.is_empty(), "{id}");
    }
    assert!(rules::find("[steal]").is_some_and(|rule| rule.id == "steal"));
    assert!(rules::find("no-such-rule").is_none());
}

#[test]
fn every_sample_is_judged_once_with_evidence_and_a_remedy() {
    for name in ["cache-or-disk", "side-by-side", "all-wrong", "many-writers", "denied"] {
        let findings = judge(&fixture::load(name));
        for (index, finding) in findings.iter().enumerate() {
            assert!(!finding.evidence.is_empty() && !finding.remedy.is_empty(), "{name}: {finding:?}");
            assert!(!finding.sentence.to_lowercase().contains("safe"), "{name}: {finding:?}");
            assert!(
                findings[..index].iter().all(|other| other.id != finding.id),
                "{name}: {} twice",
                finding.id
            );
        }
        assert!(findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity)), "{name}");
    }
}

#[test]
fn a_healthy_load_has_notes_only() {
    for name in ["cache-or-disk", "many-writers"] {
        let findings = judge(&fixture::load(name));
        assert!(findings.iter().all(|finding| finding.severity == Severity::Info), "{name}: {findings:#?}");
    }
}

#[test]
fn cached_targets_are_memory_and_direct_ones_beside_them_are_not() {
    let document = fixture::load("cache-or-disk");
    let memory = finding(&document, "page-cache").unwrap();
    assert!(
        memory.sentence.contains("215,000 IOPS") && memory.sentence.contains("served 0"),
        "{}",
        memory.sentence
    );
    assert_eq!(memory.evidence.len(), 2, "{:?}", memory.evidence);
    assert!(finding(&document, "cached-below").is_none());
    let mut document = document;
    let storage = document.targets[2].sides.storage.as_mut().unwrap();
    (storage.reads, storage.read_bytes) = (0, 0);
    assert!(finding(&document, "cached-below").unwrap().sentence.contains("68,500"));
}

#[test]
fn wrong_blocks_are_a_danger_with_examples_and_whole_ones_are_nothing() {
    let mut document = fixture::load("all-wrong");
    let found = finding(&document, "data-not-as-written").unwrap();
    assert_eq!(found.severity, Severity::Danger);
    assert!(found.sentence.contains("2 lost, 1 torn, 1 misdirected and 3 stale"), "{}", found.sentence);
    assert!(
        found.evidence.iter().any(|line| line.contains("block 8192 is lost: version 7 was acknowledged"))
    );
    let verified = document.total.verified.as_mut().unwrap();
    (verified.lost, verified.torn, verified.misdirected, verified.stale) = (0, 0, 0, 0);
    assert!(finding(&document, "data-not-as-written").is_none());
    document.total.verified = None;
    assert!(finding(&document, "data-not-as-written").is_none());
}

#[test]
fn failures_end_a_load_or_are_told() {
    let mut document = fixture::load("all-wrong");
    assert_eq!(finding(&document, "operations-failed").unwrap().severity, Severity::Warning);
    document.targets[0].sides.sync.errors = 1;
    assert_eq!(finding(&document, "operations-failed").unwrap().severity, Severity::Danger);
    assert!(finding(&document, "load-failed").is_none());
    document.failed = true;
    document.incomplete_because = Some("cannot sync /dev/sdd: Input/output error (5)".to_owned());
    assert!(finding(&document, "load-failed").unwrap().sentence.starts_with("Cannot sync /dev/sdd"));
    assert!(finding(&document, "operations-failed").is_none(), "the same twice");
    assert!(finding(&flushing(), "operations-failed").is_none());
}

#[test]
fn no_flush_under_a_volatile_cache_is_a_drop_and_under_none_is_a_note() {
    let mut document = flushing();
    assert!(finding(&document, "flush-dropped").is_none() && finding(&document, "no-flush-seen").is_none());
    set_flushes(&mut document, 0);
    let dropped = finding(&document, "flush-dropped").unwrap();
    assert!(
        dropped.severity == Severity::Danger && dropped.sentence.starts_with("2,700 syncs"),
        "{}",
        dropped.sentence
    );
    assert!(finding(&document, "no-flush-seen").is_none());
    for says in [Some(false), None] {
        document.targets[0].device.volatile_cache = says;
        assert!(finding(&document, "flush-dropped").is_none());
        assert_eq!(finding(&document, "no-flush-seen").unwrap().severity, Severity::Info);
    }
    document.spans[0].jobs[1].flush = Some(FlushMethod::Range);
    assert!(finding(&document, "no-flush-seen").is_none(), "nothing was to be flushed");
    assert!(finding(&document, "range-is-not-durable").is_some());
}

#[test]
fn counters_that_saw_no_direct_write_prove_nothing() {
    let mut document = flushing();
    set_flushes(&mut document, 0);
    document.targets[0].sides.storage.as_mut().unwrap().write_bytes = 0;
    assert!(finding(&document, "flush-dropped").is_none());
    let seen = finding(&document, "no-flush-seen").unwrap();
    assert!(seen.severity == Severity::Info && seen.sentence.contains("count nothing"), "{}", seen.sentence);
}

#[test]
fn durable_writes_ask_for_flushes_where_the_device_has_no_fua() {
    let mut document = flushing();
    set_flushes(&mut document, 0);
    document.spans[0].jobs[1].flush = None;
    assert!(finding(&document, "flush-dropped").is_none());
    document.spans[0].jobs[1].durable_write_every = Some(1);
    assert!(finding(&document, "flush-dropped").is_some());
    document.targets[0].device.fua_native = Some(true);
    assert!(finding(&document, "flush-dropped").is_none(), "FUA is not a flush");
}

#[test]
fn one_worker_shares_no_flush_and_several_may() {
    let mut document = flushing();
    set_flushes(&mut document, 1300);
    assert_eq!(finding(&document, "flushes-missing").unwrap().severity, Severity::Warning);
    assert!(finding(&document, "flushes-merged").is_none());
    document.spans[0].jobs[1].threads = 4;
    assert!(finding(&document, "flushes-missing").is_none());
    assert_eq!(finding(&document, "flushes-merged").unwrap().severity, Severity::Info);
    assert!(
        finding(&fixture::load("many-writers"), "flushes-merged")
            .unwrap()
            .sentence
            .contains("16 at the same time")
    );
}

#[test]
fn waiting_on_flushes_needs_slow_flushes_and_an_idle_processor() {
    let mut document = flushing();
    let waiting = finding(&document, "waiting-on-flushes").unwrap();
    assert!(waiting.sentence.contains("2,700 syncs"), "{}", waiting.sentence);
    document.targets[0].sides.quality.worker_busy = Some(0.9);
    assert!(finding(&document, "waiting-on-flushes").is_none());
    document.targets[0].sides.quality.worker_busy = Some(0.02);
    document.targets[0].sides.sync.latency.as_mut().unwrap().mean = 50e-6;
    assert!(finding(&document, "waiting-on-flushes").is_none());
}

#[test]
fn durable_within_a_quarter_turn_is_not_on_the_platter() {
    let mut document = flushing();
    assert!(finding(&document, "faster-than-the-platter").is_none(), "21 ms is slow enough");
    document.targets[0].sides.durable_latency.as_mut().unwrap().p50 = Some(200e-6);
    assert!(finding(&document, "faster-than-the-platter").unwrap().sentence.contains("8.33 ms"));
    document.targets[0].device.revolution_seconds = None;
    assert!(finding(&document, "faster-than-the-platter").is_none());
}

#[test]
fn a_schedule_that_is_not_kept_is_a_backlog_and_a_hiccup_is_not() {
    let mut document = fixture::load("all-wrong");
    let backlog = finding(&document, "backlog").unwrap();
    assert!(backlog.sentence.contains("3.3 s behind"), "{}", backlog.sentence);
    let mut set = |schedule| document.targets[0].sides.schedule = schedule;
    set(Some(ScheduleResult { late_starts: 3000, backlog_max: 0.02, unstarted: 0 }));
    assert!(finding(&document, "backlog").is_none());
    // The one operation of a thread that is due exactly at the end.
    let mut document = fixture::load("all-wrong");
    let sides = &mut document.targets[0].sides;
    (sides.application.operations, sides.threads) = (40, Some(1));
    sides.schedule = Some(ScheduleResult { late_starts: 0, backlog_max: 0.0015, unstarted: 1 });
    assert!(finding(&document, "backlog").is_none());
    let mut document = fixture::load("all-wrong");
    document.targets[0].sides.schedule = None;
    assert!(finding(&document, "backlog").is_none());
}

#[test]
fn a_depth_that_is_not_reached_is_said_and_an_engine_without_depth_is_a_warning() {
    let mut document = fixture::load("cache-or-disk");
    assert!(finding(&document, "depth-not-reached").is_none());
    let sides = &mut document.targets[3].sides;
    sides.application.in_flight_mean = Some(12.0);
    let shallow = finding(&document, "depth-not-reached").unwrap();
    assert!(
        shallow.severity == Severity::Info && shallow.sentence.contains("32 requests"),
        "{}",
        shallow.sentence
    );
    let target = &mut document.targets[3];
    target.sides.application.in_flight_mean = Some(0.98);
    target.sides.in_flight_max = 1;
    target.engine = "pread/pwrite".to_owned();
    let capped = finding(&document, "depth-not-reached").unwrap();
    assert!(
        capped.severity == Severity::Warning && capped.sentence.contains("pread/pwrite"),
        "{}",
        capped.sentence
    );
    let sides = &mut document.targets[3].sides;
    let before = (sides.sync.ios, sides.write.ios);
    (sides.sync.ios, sides.write.ios) = (1_000, 1_000);
    assert!(finding(&document, "depth-not-reached").is_none(), "each write waits for its flush");
    let sides = &mut document.targets[3].sides;
    (sides.sync.ios, sides.write.ios) = before;
    document.spans[1].jobs[1].scheduled = true;
    assert!(finding(&document, "depth-not-reached").is_none(), "a schedule sets its own depth");
}

#[test]
fn what_was_asked_for_and_not_found_is_a_warning() {
    let wrong = fixture::load("all-wrong");
    assert!(finding(&wrong, "latency-target-missed").unwrap().evidence[0].contains("depth 1"));
    assert_eq!(finding(&wrong, "no-steady-state").unwrap().severity, Severity::Warning);
    assert!(finding(&wrong, "not-settled").unwrap().sentence.contains("60 s"));
    for healthy in ["cache-or-disk", "many-writers"] {
        let document = fixture::load(healthy);
        for id in ["latency-target-missed", "no-steady-state", "not-settled"] {
            assert!(finding(&document, id).is_none(), "{healthy}: {id}");
        }
    }
    let mut few = wrong;
    let steady = few.spans[0].steady.as_mut().unwrap();
    (steady.rounds, steady.steady) = (vec![Round { seconds: 2.0, iops: 10.0 }], None);
    assert!(finding(&few, "no-steady-state").unwrap().sentence.contains("needs five"));
}

#[test]
fn a_depth_that_did_not_keep_its_latency_while_measured_is_a_warning() {
    let mut document = fixture::load("cache-or-disk");
    let tried = DepthTried { depth: 64, iops: 9000.0, latency: Some(1.9e-3) };
    let target = LatencyTargetResult { latency: 2e-3, percentile: 99.0, depth: Some(64), tried: vec![tried] };
    document.spans[0].latency_target = Some(target);
    let p99 = |document: &mut RunDocument, seconds: f64| {
        document.spans[0].total.application.latency.as_mut().unwrap().p99 = Some(seconds);
    };
    p99(&mut document, 3.38e-3);
    let missed = finding(&document, "latency-target-missed").unwrap();
    assert!(missed.sentence.contains("3.38 ms"), "{}", missed.sentence);
    let lines = crate::sentences::lines(&document).join(" ");
    assert!(!lines.contains("A depth of 64 keeps"), "{lines}");
    p99(&mut document, 1.9e-3);
    assert!(finding(&document, "latency-target-missed").is_none());
    assert!(crate::sentences::lines(&document).join(" ").contains("A depth of 64 keeps"));
}

#[test]
fn a_sync_is_told_apart_by_what_it_waits_for() {
    let mut document = flushing();
    let sides = &mut document.targets[0].sides;
    let (syncs, mean) = (sides.sync.ios, sides.sync.latency.unwrap().mean);
    let storage = sides.storage.as_mut().unwrap();
    (storage.flushes, storage.flush_mean) = (Some(syncs), Some(0.9 * mean));
    let found = finding(&document, "waiting-on-flushes").unwrap();
    assert!(found.sentence.contains("90% flushing at the device"), "{}", found.sentence);
    assert!(found.remedy.contains("power-loss protection"), "{}", found.remedy);
    // The total time is unchanged, but a flush is 1% of it, so a better drive would not help.
    document.targets[0].sides.storage.as_mut().unwrap().flush_mean = Some(0.01 * mean);
    let found = finding(&document, "waiting-on-flushes").unwrap();
    assert!(!found.remedy.contains("power-loss protection"), "{}", found.remedy);
    // A loop device above takes most of the time.
    let storage = document.targets[0].sides.storage.as_mut().unwrap();
    let flush_time = plumb_block::Nanos((0.8 * mean * 1e9) as u64 * syncs);
    storage.above = vec![DeviceCounters { flush_time, ..DeviceCounters::default() }];
    let found = finding(&document, "waiting-on-flushes").unwrap();
    assert!(found.remedy.contains("above the device"), "{}", found.remedy);
    // The worker waited for a processor.
    document.targets[0].sides.storage.as_mut().unwrap().above.clear();
    document.targets[0].sides.quality.worker_waiting = Some(0.9);
    let found = finding(&document, "waiting-on-flushes").unwrap();
    assert!(found.remedy.contains("waited for a processor"), "{}", found.remedy);
}

#[test]
fn syncs_beside_the_flushes_of_others_are_on_a_shared_device() {
    let mut document = fixture::virtual_machine();
    assert!(finding(&document, "device-shared-with-others").is_none());
    let storage = document.targets[0].sides.storage.as_mut().unwrap();
    let shared = Attribution { foreign_flushes: Some(30_000), ..Attribution::default() };
    storage.attribution = Some(shared);
    let found = finding(&document, "device-shared-with-others").unwrap();
    assert!(
        found.sentence.contains("overwrite-fdatasync others asked for 30,000 flushes"),
        "{}",
        found.sentence
    );
}

#[test]
fn content_that_reduces_is_noted_if_it_was_written() {
    let mut document = fixture::load("all-wrong");
    assert!(finding(&document, "compressible").unwrap().evidence[0].contains("0 to 255"));
    document.spans[0].jobs[0].reducible = false;
    assert!(finding(&document, "compressible").is_none());
}

#[test]
fn the_rules_of_a_check_see_a_load_too() {
    let mut document = fixture::load("all-wrong");
    for id in [
        "unwritten-extents",
        "generator-bound",
        "steal",
        "device-shared-with-others",
        "not-steady",
        "too-short",
    ] {
        assert!(finding(&document, id).is_some(), "{id}");
    }
    document.spans[0].jobs[0].caching = Caching::Cached;
    assert!(finding(&document, "generator-bound").is_none(), "a cached load is always bound by its worker");
    for id in ["unwritten-extents", "generator-bound", "steal", "not-steady"] {
        assert!(finding(&flushing(), id).is_none(), "{id}");
    }
}

#[test]
fn a_healthy_machine_has_notes_only() {
    for name in ["virtual-machine", "no-storage", "interrupted"] {
        let findings = judge(&fixture::document(name));
        assert!(findings.iter().all(|finding| finding.severity == Severity::Info), "{name}: {findings:#?}");
    }
}

#[test]
fn every_sample_is_judged_once_and_completely() {
    for mut document in fixture::all() {
        let findings = judge(&document);
        let mut ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
        ids.sort_unstable();
        let before = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), before, "{}: a verdict twice: {ids:?}", document.target);
        for finding in &findings {
            assert!(!finding.remedy.is_empty() && !finding.evidence.is_empty(), "{finding:?}");
            assert!(!finding.sentence.to_lowercase().contains("safe"), "{finding:?}");
        }
        document.verdicts = findings.clone();
        assert_eq!(judge(&document), findings);
    }
}

#[test]
fn what_the_survey_found_is_kept_and_gains_evidence() {
    let document = fixture::document("raid-eight-disks");
    let surveyed = document
        .path
        .as_ref()
        .unwrap()
        .findings
        .iter()
        .find(|finding| finding.id == "flush-dropped")
        .unwrap();
    let judged = judge(&document);
    let judged = judged.iter().find(|finding| finding.id == "flush-dropped").unwrap();
    assert_eq!(judged.sentence, surveyed.sentence);
    assert!(judged.evidence.len() > surveyed.evidence.len());
}
