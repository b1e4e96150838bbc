//! The flushes that a load asked for against those that the devices were handed.

use plumb_block::Caching;
use plumb_measure::StorageSide;
use plumb_path::{Finding, Severity};

use super::super::Verdict;
use super::super::flushes::{COMPLETE_FROM, REMEDY, SYNCS_MIN, can_count_flushes};
use super::targets;
use crate::document::{FlushMethod, RunDocument, RunJob, RunTarget};
use crate::quantity::count;

/// What a target asked to be made durable, and what its devices were handed.
struct Account<'a> {
    label: String,
    target: &'a RunTarget,
    storage: &'a StorageSide,
    /// Flushes that ought to have been sent, had each its own.
    asked: u64,
    /// Flushes that were counted.
    handed: u64,
    /// Workers of this and other targets that flush the same devices at the same time.
    writers: u64,
}

impl Account<'_> {
    fn words(&self) -> String {
        format!("{}: {} syncs, {} device flushes", self.label, count(self.asked), count(self.handed))
    }
}

/// The accounts of the targets whose flushes can be counted and that asked for enough of them.
fn accounts(document: &RunDocument) -> Vec<Account<'_>> {
    targets(document)
        .filter_map(|(label, target, job)| {
            let storage = target.sides.storage.as_ref()?;
            let asked = asked(target, job);
            let counts = can_count_flushes(Some(storage), asked) && !is_blind(target, job, storage);
            (asked >= SYNCS_MIN && counts).then_some(())?;
            Some(Account {
                label,
                target,
                storage,
                asked,
                handed: storage.flushes?,
                writers: writers_of(document, target, storage),
            })
        })
        .collect()
}

/// How many flushes the job asked for: its own, and those of its durable writes where the device is known to have no
/// FUA.
fn asked(target: &RunTarget, job: &RunJob) -> u64 {
    let syncs = match job.flush {
        None | Some(FlushMethod::Range) => 0,
        Some(_) => target.sides.sync.ios,
    };
    let durable = match (job.durable_write_every, target.device.fua_native) {
        (Some(every), Some(false)) => target.sides.write.ios / u64::from(every.max(1)),
        _ => 0,
    };
    syncs.saturating_add(durable)
}

/// Whether the counters did not see direct requests either: then a zero proves nothing.
fn is_blind(target: &RunTarget, job: &RunJob, storage: &StorageSide) -> bool {
    let sides = &target.sides;
    job.caching == Caching::Direct
        && ((sides.write.bytes > 0 && storage.write_bytes == 0)
            || (sides.read.bytes > 0 && storage.read_bytes == 0))
}

/// How many workers flush a device of `storage` in the span of `target`.
fn writers_of(document: &RunDocument, target: &RunTarget, storage: &StorageSide) -> u64 {
    let shares = |other: &RunTarget| {
        let devices = other.sides.storage.iter().flat_map(|side| &side.devices);
        let mut names = devices.map(|device| device.name.as_str());
        std::ptr::eq(other, target)
            || names.any(|name| storage.devices.iter().any(|device| device.name == name))
    };
    targets(document)
        .filter(|(_, other, job)| other.span == target.span && asked(other, job) > 0 && shares(other))
        .map(|(_, _, job)| u64::from(job.threads))
        .fold(0, u64::saturating_add)
}

/// `flush-dropped`: syncs, a volatile cache beneath that was written to, and no flush.
pub(in super::super) fn dropped(document: &RunDocument) -> Option<Finding> {
    let silent: Vec<Account<'_>> = accounts(document).into_iter().filter(is_drop).collect();
    let first = silent.first()?;
    Some(
        Verdict {
            id: "flush-dropped",
            severity: Severity::Danger,
            sentence: format!(
                "{} syncs caused no flush at the devices of {}, which has a volatile cache: a power cut can lose what was \
                 synced.",
                count(first.asked),
                first.label
            ),
            evidence: silent.iter().map(Account::words).collect(),
            remedy: REMEDY,
        }
        .into(),
    )
}

fn is_drop(account: &Account<'_>) -> bool {
    account.handed == 0
        && account.storage.write_bytes > 0
        && account.target.device.volatile_cache == Some(true)
}

/// `no-flush-seen`: no flush, and no volatile cache is known beneath.
pub(in super::super) fn none_seen(document: &RunDocument) -> Option<Finding> {
    let silent = |account: &Account<'_>| account.handed == 0 && !is_drop(account);
    let silent: Vec<Account<'_>> = accounts(document).into_iter().filter(silent).collect();
    let first = silent.first()?;
    let why = match (first.target.device.volatile_cache, first.storage.write_bytes) {
        (Some(false), _) => "it says that it has no volatile cache, so the kernel sends none",
        (Some(true), _) => "nothing was written to them either",
        (None, _) => "whether it has a volatile cache is not known",
    };
    Some(
        Verdict {
            id: "no-flush-seen",
            severity: Severity::Info,
            sentence: format!(
                "{} syncs caused no flush at the devices of {}: {why}.",
                count(first.asked),
                first.label
            ),
            evidence: silent.iter().map(Account::words).collect(),
            remedy: "plumb survey shows which layer says so. Whether a synced write survives, only a power cut with a \
                     witness can tell.",
        }
        .into(),
    )
}

/// `flushes-missing`: some flushes, but fewer than one worker's syncs, which share none.
pub(in super::super) fn missing(document: &RunDocument) -> Option<Finding> {
    let short = short_of_flushes(document, |writers| writers <= 1);
    let first = short.first()?;
    Some(
        Verdict {
            id: "flushes-missing",
            severity: Severity::Warning,
            sentence: format!(
                "One worker synced {} times, waiting each time, but the devices of {} were handed only {} flushes: some \
                 syncs sent none.",
                count(first.asked),
                first.label,
                count(first.handed)
            ),
            evidence: short.iter().map(Account::words).collect(),
            remedy: "Repeat it while nothing else syncs to these devices: if no flush comes then, a layer drops them. If \
                     some still come, a power cut with a witness would tell what is lost.",
        }
        .into(),
    )
}

/// `flushes-merged`: fewer flushes than syncs because several workers' syncs can share one.
pub(in super::super) fn merged(document: &RunDocument) -> Option<Finding> {
    let shared = short_of_flushes(document, |writers| writers > 1);
    let first = shared.first()?;
    Some(
        Verdict {
            id: "flushes-merged",
            severity: Severity::Info,
            sentence: format!(
                "{} workers synced {} times and the devices of {} were handed {} flushes: syncs at the same time may share \
                 one, which is not a drop.",
                count(first.writers),
                count(first.asked),
                first.label,
                count(first.handed)
            ),
            evidence: shared.iter().map(Account::words).collect(),
            remedy: "Load it with one worker to see one flush for each sync.",
        }
        .into(),
    )
}

fn short_of_flushes(document: &RunDocument, by: impl Fn(u64) -> bool) -> Vec<Account<'_>> {
    let is_short = |account: &Account<'_>| {
        account.handed > 0
            && (account.handed as f64) < COMPLETE_FROM * account.asked as f64
            && by(account.writers)
    };
    accounts(document).into_iter().filter(is_short).collect()
}
