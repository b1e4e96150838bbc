//! Syncs compared with the flushes at the devices: dropped, none seen, missing, merged.
//!
//! With a surveyed write path, its layers define the expected fate of a flush; otherwise the devices do.

use plumb_block::{Caching, DeviceCounters};
use plumb_measure::StorageSide;
use plumb_path::{Cache, Flush, Fua, Layer, LayerKind, Severity, WritePath};

use super::evidence::Evidence;
use super::outcome::{Verdict, device_layers, lowest_devices};
use crate::document::{FlushMethod, RunJob, RunTarget, Sides};
use crate::figures::FlushCount;
use crate::quantity::{count, counted, listed};
use crate::wording;

/// Minimum number of syncs for a conclusion about flushes.
const SYNCS_MIN: u64 = 10;
/// Number of flushes for each sync below which some are missing. The rest allows for the time between two
/// readings.
const COMPLETE_FROM: f64 = 0.95;

/// Requests of a target for durability, and the requests that its devices received.
struct Account<'a> {
    label: &'a str,
    target: &'a RunTarget,
    job: &'a RunJob,
    path: Option<&'a WritePath>,
    storage: &'a StorageSide,
    /// Number of flushes if each sync sent its own.
    asked: u64,
    /// Flushes counted. Those of all programs are an upper bound for the run.
    flushes: FlushCount,
    /// Ability of the counters to count flushes.
    counters: Counters,
}

/// Ability of device counters to count flushes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counters {
    Count,
    /// The counters did not count direct requests either, so a count of zero proves nothing. On older kernels
    /// the heads of NVMe multipath count nothing.
    Blind,
    /// The devices do not count flushes.
    Flushless,
}

impl Account<'_> {
    fn words(&self) -> String {
        let whose = if self.flushes.is_of_all() { " of all programs" } else { "" };
        let (asked, handed) = (count(self.asked), counted(self.flushes.count, "device flush"));
        format!("{}: {asked} {}, {handed}{whose}", self.label, syncs_word(self.job))
    }

    fn is_short(&self) -> bool {
        self.flushes.count > 0
            && (self.flushes.count as f64) < COMPLETE_FROM * self.asked as f64
            && self.counters == Counters::Count
            && self.path.and_then(absorbing_cache).is_none()
    }

    /// Returns true if there were fewer flushes than needed by syncs of which `waiting` can share one.
    fn lacks_flushes(&self, waiting: Option<u64>) -> bool {
        waiting.is_some_and(|most| {
            (self.flushes.count as f64) * (most.max(1) as f64) < COMPLETE_FROM * self.asked as f64
        })
    }

    /// Returns the reason why the flushes must have been dropped; `None` if there is another explanation. A
    /// path that drops flushes does so whatever the counters show. Otherwise only a device with counters and
    /// writes is evidence: a loop device on a drive without a cache reports a cache of its own and flushes
    /// nothing.
    fn drop_cause(&self) -> Option<String> {
        let Some(path) = self.path else {
            let volatile = self.target.device.volatile_cache == Some(true) && self.storage.write_bytes > 0;
            return (volatile && self.counters == Counters::Count)
                .then(|| "the device says that its volatile cache is on".to_owned());
        };
        if let Some(layer) = path.layers.iter().find(|layer| layer.flush == Flush::Dropped) {
            return Some(format!("{} drops flushes", layer.name));
        }
        // An absorbing cache later flushes the data that it destages.
        if self.counters != Counters::Count || absorbing_cache(path).is_some() {
            return None;
        }
        let written = || lowest_devices(path).filter(|layer| self.is_written(layer));
        if let Some(layer) = written().find(|layer| layer.cache == Cache::Volatile) {
            return Some(format!("{} holds acknowledged data in a volatile cache", layer.name));
        }
        let all_forward = path.layers.iter().all(|layer| layer.flush == Flush::Forwarded || is_bottom(layer));
        let unknown =
            written().find(|layer| layer.cache == Cache::Unknown && layer.flush == Flush::Forwarded);
        unknown.filter(|_| all_forward).map(|layer| {
            format!(
                "every layer ought to forward flushes, and whether {} has a volatile cache is unknown",
                layer.name
            )
        })
    }

    /// Returns true if the device was written meanwhile, or has no counters to tell.
    fn is_written(&self, layer: &Layer) -> bool {
        let own = self.storage.devices.iter().find(|device| device.name == layer.name);
        own.is_none_or(|device| device.writes > 0)
    }
}

/// Returns the word for syncs. A check measures durable writes; for other jobs each sync may cover several
/// writes.
fn syncs_word(job: &RunJob) -> &'static str {
    if job.method.is_some() { "durable writes" } else { "syncs" }
}

/// Returns the accounts of targets that requested enough flushes and whose devices were counted.
fn accounts<'a>(evidence: &'a Evidence<'_>) -> Vec<Account<'a>> {
    let account = |(label, target, job): (&'a str, &'a RunTarget, &'a RunJob)| {
        let storage = target.sides.storage.as_ref()?;
        let asked = asked(evidence, target, job);
        let counters = match () {
            () if is_blind(evidence, storage) => Counters::Blind,
            () if !can_count_flushes(storage, asked) => Counters::Flushless,
            () => Counters::Count,
        };
        let (flushes, path) = (FlushCount::from_storage(storage)?, evidence.document.path_of(target));
        (asked >= SYNCS_MIN).then_some(Account {
            label,
            target,
            job,
            path,
            storage,
            asked,
            flushes,
            counters,
        })
    };
    evidence.targets().filter_map(account).collect()
}

/// Returns the number of flushes that the job requested: its own, and those of its durable writes if the
/// devices are known to lack FUA. Writes that a mount option makes synchronous share flushes when several are
/// in flight, so they are not counted.
fn asked(evidence: &Evidence<'_>, target: &RunTarget, job: &RunJob) -> u64 {
    let (sides, path) = (&target.sides, evidence.document.path_of(target));
    let syncs = match job.flush {
        None | Some(FlushMethod::Range) => 0,
        Some(_) => sides.sync.ios,
    };
    let native = match path {
        Some(path) => Some(lowest_devices(path).any(|layer| layer.fua == Fua::Native)),
        None => target.device.fua_native,
    };
    match (job.durable_write_every, native) {
        (Some(every), Some(false)) => syncs.saturating_add(sides.write.ios / u64::from(every.max(1))),
        _ => syncs,
    }
}

/// Returns true if direct requests moved bytes but the counters of the devices of `storage` never changed.
fn is_blind(evidence: &Evidence<'_>, storage: &StorageSide) -> bool {
    let beside = || evidence.targets().map(|(_, target, job)| (&target.sides, job.caching));
    let sees = |seen: &StorageSide| seen.write_bytes > 0 || seen.read_bytes > 0;
    let same = || beside().filter_map(|(sides, caching)| Some((sides, caching, sides.storage.as_ref()?)));
    let same = || same().filter(|(_, _, seen)| shares_devices(seen, storage));
    let moved = |sides: &Sides| sides.write.bytes > 0 || sides.read.bytes > 0;
    same().any(|(sides, caching, _)| caching == Caching::Direct && moved(sides))
        && !same().any(|(_, _, seen)| sees(seen))
}

fn shares_devices(one: &StorageSide, other: &StorageSide) -> bool {
    std::ptr::eq(one, other)
        || one.devices.iter().any(|device| other.devices.iter().any(|same| same.name == device.name))
}

/// Devices without a request queue (dm, md, zram and the like) count no flushes of their own, and the heads
/// of NVMe multipath count a flush as an empty read (`bdev_start_io_acct` in `block/blk-core.c`).
fn can_count_flushes(storage: &StorageSide, syncs: u64) -> bool {
    let bio_based = |device: &DeviceCounters| {
        ["dm-", "md", "zram", "ram", "pmem", "nullb", "bcache"]
            .iter()
            .any(|prefix| device.name.starts_with(prefix))
    };
    let as_reads = |device: &DeviceCounters| {
        device.reads as f64 >= COMPLETE_FROM * syncs as f64
            && device.read_bytes.0 < device.reads.saturating_mul(512)
    };
    let devices = &storage.devices;
    devices.is_empty() || devices.iter().any(|device| !bio_based(device) && !as_reads(device))
}

/// Returns accounts without a flush: the dropped ones with the evidence, or the others.
fn silent<'a>(evidence: &'a Evidence<'_>, is_dropped: bool) -> Vec<(Account<'a>, Option<String>)> {
    let without = accounts(evidence).into_iter().filter(|account| account.flushes.count == 0);
    let caused = without.map(|account| {
        let cause = account.drop_cause();
        (account, cause)
    });
    caused.filter(|(_, cause)| cause.is_some() == is_dropped).collect()
}

/// Returns true if the flushes of the syncs on this target of the document were dropped.
pub(super) fn are_dropped(evidence: &Evidence<'_>, target: &RunTarget) -> bool {
    silent(evidence, true).iter().any(|(account, _)| std::ptr::eq(account.target, target))
}

/// Judges `flush-dropped`: syncs to a volatile cache that was written, and no flush. Also if only some of the
/// devices received none.
pub(super) fn dropped(evidence: &Evidence<'_>) -> Option<Verdict> {
    let (dropped, causes): (Vec<_>, Vec<_>) = silent(evidence, true).into_iter().unzip();
    if let Some(subject) = subject(evidence, &dropped) {
        let mut lines: Vec<String> = dropped.iter().map(Account::words).collect();
        lines.extend(causes.into_iter().flatten());
        lines.dedup();
        let sentence = format!("{subject}: a power cut can lose what was synced.");
        return Some(Verdict::new(Severity::Danger, sentence, lines));
    }
    let skipped = skipped_devices(evidence);
    let names: Vec<&str> = skipped.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let sentence = format!(
        "{} held written data in a volatile cache but was sent no flush, while other devices were.",
        listed(&names, "and")
    );
    Some(Verdict::new(Severity::Danger, sentence, skipped.into_iter().map(|(_, line)| line).collect()))
}

/// Returns `2,700 syncs caused no flush at the devices`; `None` without any. With several targets, those
/// affected are named.
fn subject(evidence: &Evidence<'_>, accounts: &[Account<'_>]) -> Option<String> {
    let first = accounts.first()?;
    let asked = accounts.iter().fold(0_u64, |sum, account| sum.saturating_add(account.asked));
    let of = of_targets(evidence, accounts);
    Some(format!("{} {} caused no flush at the devices{of}", count(asked), syncs_word(first.job)))
}

/// Returns ` of /mnt/a and /mnt/b` if a run has several targets.
fn of_targets(evidence: &Evidence<'_>, accounts: &[Account<'_>]) -> String {
    if evidence.document.names().len() < 2 {
        return String::new();
    }
    format!(" of {}", listed(&accounts.iter().map(|account| account.label).collect::<Vec<_>>(), "and"))
}

/// Judges `no-flush-seen`: no flush, and either an explanation or no conclusion.
pub(super) fn none_seen(evidence: &Evidence<'_>) -> Option<Verdict> {
    let (without, _): (Vec<_>, Vec<_>) = silent(evidence, false).into_iter().unzip();
    let first = without.first()?;
    let subject = subject(evidence, &without)?;
    let absorbing = first.path.and_then(|path| {
        let device = || device_layers(path).find(|layer| layer.flush == Flush::Absorbed);
        absorbing_cache(path).or_else(device)
    });
    let info = |why: &str| (Severity::Info, why.to_owned());
    let all = |counters| without.iter().all(|account| account.counters == counters);
    let (severity, why) = match first.path {
        _ if without.iter().any(|account| account.counters == Counters::Blind) => {
            info("their counters did not see the direct loads either, so they count nothing")
        }
        _ if all(Counters::Flushless) => info("the devices do not count flushes of their own"),
        Some(path) => explained(path, absorbing),
        None => match first.target.device.volatile_cache {
            Some(false) => info("it says that it has no volatile cache, so the kernel sends none"),
            Some(true) => info("nothing was written to them either"),
            None => info("whether it has a volatile cache is not known"),
        },
    };
    let mut lines: Vec<String> = without.iter().map(Account::words).collect();
    let said = absorbing.into_iter().flat_map(|layer| &layer.evidence);
    lines.extend(said.map(|line| format!("{}: {} ({})", line.source, line.value, line.means)));
    Some(Verdict::new(severity, format!("{subject}: {why}."), lines))
}

/// Explains from the path why flushes were not seen.
fn explained(path: &WritePath, absorbing: Option<&Layer>) -> (Severity, String) {
    let quiet = path.layers.iter().find(|layer| layer.flush == Flush::Unknown && !is_bottom(layer));
    match (absorbing, quiet) {
        (Some(layer), _) if layer.kind == LayerKind::WriteBackCache => (
            Severity::Info,
            format!(
                "the log of {} is sent none, since no volatile cache is known on its devices",
                layer.name
            ),
        ),
        (Some(layer), _) => (
            Severity::Info,
            format!("{} says that it has no volatile cache, so the kernel sends none", layer.name),
        ),
        (None, Some(layer)) => {
            (Severity::Warning, format!("{} does not say what it does with a flush", layer.name))
        }
        (None, None) => (Severity::Info, "no volatile cache is known beneath".to_owned()),
    }
}

/// Judges `flushes-missing`: some flushes, but fewer than the syncs need at least. One flush can serve only
/// the syncs that wait at the same time, so a writer that waits for each needs one for each. The counted ones
/// may belong to another program.
pub(super) fn missing(evidence: &Evidence<'_>) -> Option<Verdict> {
    let short = short_of_flushes(evidence, true);
    let (first, waiting) = short.first()?;
    let (asked, handed) = (count(first.asked), counted(first.flushes.count, "flush"));
    let handed = match first.flushes.is_of_all() {
        true => format!("{handed} by all programs, at most {} of this run", count(first.flushes.count)),
        false => handed,
    };
    let of = of_targets(evidence, std::slice::from_ref(first));
    let sentence = match waiting {
        Some(1) | None => format!(
            "One writer synced {asked} times, waiting each time, but the devices{of} were handed only {handed}: some \
             syncs sent none."
        ),
        Some(most) => format!(
            "At most {} syncs waited at the same time, so {asked} of them need at least {}, but the devices{of} \
             were handed only {handed}: some syncs sent none.",
            count(*most),
            counted(first.asked.div_ceil(*most), "flush")
        ),
    };
    let lines = short.iter().map(|(account, _)| account.words()).collect();
    Some(Verdict::new(Severity::Warning, sentence, lines))
}

/// Judges `flushes-merged`: fewer flushes than syncs because syncs that wait at the same time can share one.
pub(super) fn merged(evidence: &Evidence<'_>) -> Option<Verdict> {
    let shared = short_of_flushes(evidence, false);
    let (first, waiting) = shared.first()?;
    let at_once =
        waiting.map_or_else(String::new, |most| format!(", up to {} at the same time,", count(most)));
    let sentence = format!(
        "{} syncs{at_once} were handed to the devices{} as {}: syncs at the same time may share one, which is \
         not a drop.",
        count(first.asked),
        of_targets(evidence, std::slice::from_ref(first)),
        counted(first.flushes.count, "flush")
    );
    let lines = shared.iter().map(|(account, _)| account.words()).collect();
    Some(Verdict::new(Severity::Info, sentence, lines))
}

/// Returns the accounts with fewer flushes than syncs, each with the maximum number of syncs waiting at the
/// same time: those that this does not explain, or the others.
fn short_of_flushes<'a>(evidence: &'a Evidence<'_>, is_missing: bool) -> Vec<(Account<'a>, Option<u64>)> {
    let short = accounts(evidence).into_iter().filter(Account::is_short).map(|account| {
        let waiting = waiting(evidence, &account);
        (account, waiting)
    });
    short.filter(|(account, waiting)| account.lacks_flushes(*waiting) == is_missing).collect()
}

/// Returns the maximum number of syncs that waited at the same time on devices of the account in its span;
/// `None` if unknown. Flushes that wait together become one command (block/blk-flush.c), and so do commits of
/// a journal.
fn waiting(evidence: &Evidence<'_>, account: &Account<'_>) -> Option<u64> {
    let shares = |other: &RunTarget| {
        std::ptr::eq(other, account.target)
            || other.sides.storage.as_ref().is_some_and(|side| shares_devices(side, account.storage))
    };
    let beside = evidence.targets().filter(|(_, other, job)| {
        other.span == account.target.span && asked(evidence, other, job) > 0 && shares(other)
    });
    beside
        .map(|(_, other, job)| {
            let threads = u64::from(job.threads).max(1);
            match (job.durable_write_every, other.sides.in_flight_max) {
                // A thread waits for its own flush before it continues.
                (None, _) => Some(threads),
                (Some(_), 0) => None,
                (Some(_), most) => Some(most.max(threads)),
            }
        })
        .try_fold(0, |sum: u64, waiting| Some(sum.saturating_add(waiting?)))
}

/// Returns true for the end of the path, where nothing is forwarded.
fn is_bottom(layer: &Layer) -> bool {
    layer.below.is_empty() && wording::is_beyond_sight(layer.kind)
}

/// Returns the written devices with a volatile cache that received no flush while others received many.
fn skipped_devices(evidence: &Evidence<'_>) -> Vec<(String, String)> {
    let mut skipped: Vec<(String, String)> = Vec::new();
    for (label, target, job) in evidence.targets() {
        let Some(path) = evidence.document.path_of(target) else { continue };
        let flushed = |device: &&DeviceCounters| device.flushes.is_some_and(|flushes| flushes >= SYNCS_MIN);
        let Some(storage) = target.sides.storage.as_ref().filter(|_| asked(evidence, target, job) > 0) else {
            continue;
        };
        let Some(other) = storage.devices.iter().find(flushed) else { continue };
        let quiet =
            storage.devices.iter().filter(|device| device.flushes == Some(0) && device.writes >= SYNCS_MIN);
        for device in quiet {
            let volatile =
                lowest_devices(path).any(|layer| layer.name == device.name && layer.cache == Cache::Volatile);
            let known = skipped.iter().any(|(name, _)| *name == device.name);
            let by_itself =
                is_one_of_several_paths(path, &device.name) || is_written_back(path, &device.name);
            if volatile && !known && !by_itself {
                let line = format!(
                    "{label}: {} took {} writes and 0 flushes, {} took {}",
                    device.name,
                    count(device.writes),
                    other.name,
                    counted(other.flushes.unwrap_or(0), "flush")
                );
                skipped.push((device.name.clone(), line));
            }
        }
    }
    skipped
}

/// Returns true if the device is one of several paths to a drive. A flush on any of them empties the drive's
/// cache.
fn is_one_of_several_paths(path: &WritePath, name: &str) -> bool {
    path.layers
        .iter()
        .any(|layer| layer.kind == LayerKind::DmMultipath && layer.below.iter().any(|below| below == name))
}

/// Returns the write-back cache whose log absorbs flushes: it is protected from power cuts, or it is on
/// devices without a volatile cache, to which the kernel sends none.
fn absorbing_cache(path: &WritePath) -> Option<&Layer> {
    let mut caches = path.layers.iter().filter(|layer| layer.kind == LayerKind::WriteBackCache);
    caches.find(|layer| {
        // The backing device is the last layer below.
        let legs = layer.below.split_last().map_or(&[][..], |(_, legs)| legs);
        layer.flush == Flush::Absorbed || (!legs.is_empty() && legs.iter().all(|leg| absorbs(path, leg)))
    })
}

/// Returns true if every path below the layer called `name` ends a flush because nothing below is volatile.
fn absorbs(path: &WritePath, name: &str) -> bool {
    path.layers.iter().find(|layer| layer.name == name).is_some_and(|layer| {
        layer.flush == Flush::Absorbed
            || (!layer.below.is_empty() && layer.below.iter().all(|below| absorbs(path, below)))
    })
}

/// Returns true if a write-back cache writes to the device. The cache flushes the device itself before it
/// frees the log.
fn is_written_back(path: &WritePath, name: &str) -> bool {
    let mut reached: Vec<&str> = Vec::new();
    for layer in &path.layers {
        if layer.kind == LayerKind::WriteBackCache || reached.contains(&layer.name.as_str()) {
            reached.extend(layer.below.iter().map(String::as_str));
        }
    }
    reached.contains(&name)
}

#[cfg(test)]
mod tests;
