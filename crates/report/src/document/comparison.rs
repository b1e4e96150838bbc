//! Document of a comparison, as `plumb compare --json` prints it: the levels of a factor, the measurements of
//! each block, and the result for each pair of levels.
//!
//! Ratios are of a level to the one that it is compared with. Null means unknown, or not bounded by the data.

use std::collections::BTreeMap;

use plumb_path::{Finding, WritePath};
use serde::{Deserialize, Serialize};

use super::run::Environment;
use super::sides::Sides;
use crate::verdict::Foreign;

/// Results of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonDocument {
    /// Name and version of the document: [`ComparisonDocument::SCHEMA`].
    pub schema: String,
    /// Workload of the comparison; left out if there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `warning` if a limit was exceeded or a rule found something in the runs, otherwise `none` or `info`.
    pub level: String,
    /// Result in one sentence.
    pub headline: String,
    /// Factor that differs between the levels: `buffering`, or `workload`.
    pub factor: String,
    /// Levels. The others are compared with the first.
    pub levels: Vec<LevelResult>,
    /// Number of blocks of each level that count.
    pub blocks: u64,
    /// Figure that decides.
    pub figure: String,
    /// Second level compared with the first.
    #[serde(flatten)]
    pub contrast: Contrast,
    /// Further levels compared with the first.
    pub others: Vec<Contrast>,
    /// Limits set by the user.
    pub limits: Vec<LimitResult>,
    /// Design of the experiment.
    pub design: DesignFacts,
    /// Each block that ran, in order.
    pub measured: Vec<Block>,
    /// Write path below the targets; null if unknown.
    pub path: Option<WritePath>,
    /// Findings of the rules in the blocks.
    pub verdicts: Vec<Finding>,
    /// Requested workload in plumb's own language (TOML), with a span for each level.
    pub workload: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// True if the experiment ran to its end.
    pub complete: bool,
    /// Reason why it is not complete; null if it is.
    pub incomplete_because: Option<String>,
    /// True if a host of a comparison on many hosts did not finish its part of a block, which ended it.
    #[serde(default)]
    pub partial: bool,
    /// True if it ended because of a failure, such as that of a flush or a device.
    pub failed: bool,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// Environment of the measurement.
    pub environment: Environment,
    /// Path of the recording; null if there is none.
    pub run_directory: Option<String>,
    /// Complete comparison of each workload, judged separately, if there are several. The other fields are
    /// those of the first workload, except for those about the end, which cover all. Left out if there is
    /// only one workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chapters: Vec<ComparisonDocument>,
}

impl ComparisonDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/compare/1";

    /// Returns all comparisons with the first level.
    pub fn contrasts(&self) -> impl Iterator<Item = &Contrast> {
        std::iter::once(&self.contrast).chain(&self.others)
    }

    /// Returns the comparisons of all workloads as one document; a single one stays as it is.
    pub fn of_chapters(mut all: Vec<Self>) -> Self {
        if all.len() < 2 {
            return all.pop().unwrap_or_default();
        }
        let told = |chapter: &Self| format!("{}: {}", chapter.name, chapter.headline);
        let worst = all.iter().find(|chapter| chapter.level == "warning").unwrap_or(&all[0]);
        Self {
            name: String::new(),
            level: worst.level.clone(),
            headline: all.iter().map(told).collect::<Vec<_>>().join("; "),
            // The blocks are in the chapters.
            measured: Vec::new(),
            complete: all.iter().all(|chapter| chapter.complete),
            incomplete_because: all.iter().find_map(|chapter| chapter.incomplete_because.clone()),
            failed: all.iter().any(|chapter| chapter.failed),
            chapters: all.clone(),
            ..all.swap_remove(0)
        }
    }

    /// Returns the comparison of each workload.
    pub fn chapters(&self) -> &[Self] {
        if self.chapters.is_empty() { std::slice::from_ref(self) } else { &self.chapters }
    }
}

/// One level.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelResult {
    /// Name of the level.
    pub name: String,
    /// Median of each figure over the blocks, without an interval: the blocks of one level drift, and only
    /// ratios do not.
    pub figures: BTreeMap<String, f64>,
    /// The counts of all blocks together.
    pub counts: Counts,
    /// True if a power cut loses data that was synced, according to the path below the targets or the counted
    /// flushes.
    #[serde(default)]
    pub loses_synced: bool,
    /// Mount option or file attribute that makes each write synchronous; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronous: Option<String>,
    /// Distribution of the time of an operation over all blocks that count, the fastest first; empty for
    /// recorded runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distribution: Vec<Within>,
}

/// Point of a distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// Time of an operation, in seconds.
    pub seconds: f64,
    /// Share of the operations that took at most this time: 0.99.
    pub share: f64,
}

/// Ratio with its confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median.
    pub median: f64,
    /// Lower end of the interval; null if the data do not bound it.
    pub low: Option<f64>,
    /// Upper end of the interval; null if the data do not bound it.
    pub high: Option<f64>,
    /// Confidence level of the interval: 0.95.
    pub level: f64,
}

/// Comparison of one level with another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// Name of the level.
    pub compared: String,
    /// Name of the level that it is compared with.
    pub against: String,
    /// Outcome for the figure that decides.
    pub outcome: Outcome,
    /// Ratio of that figure; null if there are too few blocks.
    pub ratio: Option<Estimate>,
    /// Smallest difference that this experiment would have found in four of five cases, as a share: 0.03 is a
    /// ratio of 1.03. Null if it could not have found any.
    pub smallest_detectable: Option<f64>,
    /// Ratio of each figure that both levels have, each with its own interval.
    pub ratios: BTreeMap<String, Estimate>,
    /// Terms that explain the difference in the time from one operation to the next; empty without the
    /// necessary counts.
    pub explanation: Vec<Term>,
}

/// Outcome of an experiment for two levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The levels differ.
    Different,
    /// The levels are equal within the threshold.
    Equivalent,
    /// Neither a difference nor equality could be shown.
    NoneSeen,
    /// The ratio is known, but of too few runs to distinguish it from chance.
    NotJudged,
    /// There are not blocks of both levels.
    #[default]
    NotMeasured,
}

/// Term of the explanation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Term {
    /// Name of the term: `depth`, `sync-count`, `flushes-per-sync`, `flush-count` (where not both levels
    /// sync), `flush-cost`, `sync-calls`, `device-ios`, `device-io-cost`, `queueing`, `processor`,
    /// `processor-wait`, `remainder`.
    pub term: String,
    /// Share of the difference; the shares of all terms add up to 1. Null if the difference is small, or much
    /// smaller than a term.
    pub share: Option<f64>,
    /// Contribution to the difference, in seconds from one operation to the next; negative if it saves time.
    pub seconds: f64,
    /// Sentence with the figures behind the term.
    pub sentence: String,
}

/// Limit set by the user, and its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitResult {
    /// Limit as the user typed it.
    pub limit: String,
    /// Level whose ratio is limited.
    pub compared: String,
    /// True if the whole interval is beyond the limit; null if the interval contains the limit, or the ratio
    /// is unknown.
    pub exceeded: Option<bool>,
}

/// Design of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DesignFacts {
    /// True if blocks of the levels followed one another in a random order. Otherwise drift may look like a
    /// difference.
    pub interleaved: bool,
    /// True if the levels of a round ran at the same time instead of in turn.
    #[serde(default)]
    pub together: bool,
    /// Maximum number of rounds, each with a block of every level.
    pub rounds_max: u64,
    /// Looks at the results: the rounds, and the share of the error.
    pub looks: Vec<LookFacts>,
    /// True if it ended at a look before the last because the outcome was clear.
    pub ended_early: bool,
    /// Error that all looks share: 0.05.
    pub error: f64,
    /// Ratio up to which levels count as equivalent: 1.05.
    pub equivalent: f64,
    /// Duration of the measurement of a block in seconds; null for recorded runs.
    pub block_seconds: Option<f64>,
    /// Warm-up of a block in seconds; null for recorded runs.
    pub warmup_seconds: Option<f64>,
    /// Prediction from practice; null for recorded runs, and before the end of practice.
    pub prediction: Option<Prediction>,
}

/// Prediction of the result and the necessary length of an experiment, from the differences between blocks of
/// practice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Difference to be found, as a share: 0.03 is a ratio of 1.03.
    pub difference: f64,
    /// Probability of finding it: 0.8.
    pub power: f64,
    /// Number of rounds needed.
    pub rounds: u64,
    /// Factor by which the blocks must be longer; above 1 if the number of rounds is at its maximum.
    pub times_as_long: f64,
    /// Budget for these rounds, including practice, in seconds.
    pub seconds: f64,
    /// Smallest difference that the rounds of the given budget find with this probability, as a share.
    pub smallest_detectable: f64,
}

/// Look at the results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LookFacts {
    /// Number of rounds before the look.
    pub rounds: u64,
    /// Share of the error that the look uses.
    pub error: f64,
}

/// Measurements of one block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Index of the block's level in `levels`.
    pub level: usize,
    /// Round of the block, from 1; 0 for practice, which does not count.
    pub round: u64,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
    /// Time in the block until the rate settled, in seconds; null if it never did, or the block was too short
    /// to tell.
    pub settled_after: Option<f64>,
    /// Figures of the block, by name.
    pub figures: BTreeMap<String, f64>,
    /// Counts of the block.
    pub counts: Counts,
    /// Operations per second in parts of the block of equal length, in order; empty for recorded runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<f64>,
}

impl Block {
    /// Returns a figure by its name. `None` if the block has none, or completed nothing: its rates then
    /// assume half an operation, for the statistics only.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied().filter(|_| self.counts.operations > 0)
    }
}

/// Counts of all targets together. Times are sums over operations and requests, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Length of the window.
    pub seconds: f64,
    /// Operations that completed: reads, writes and trims.
    pub operations: u64,
    /// Time of all slots for requests, used or not: the length of the window times the depth.
    pub slot_seconds: f64,
    /// Time of all threads: the length of the window times their number; null if the processor time is
    /// unknown.
    pub thread_seconds: Option<f64>,
    /// True if all operations went through the page cache.
    #[serde(default)]
    pub page_cache: bool,
    /// Number of writes that stayed in the page cache or the drive's cache indefinitely: neither a sync nor a
    /// durable write was requested.
    #[serde(default)]
    pub unsynced_writes: u64,
    /// Time of operations.
    pub operation_seconds: f64,
    /// Number of syncs by the application.
    pub syncs: u64,
    /// Time of syncs.
    pub sync_seconds: f64,
    /// Number of reads and writes at the devices; null, like the following fields, if the devices could not
    /// be read. Known requests and flushes of other programs are excluded from all of these, together with a
    /// proportional part of the time, since they are not part of this load.
    pub device_ios: Option<u64>,
    /// Bytes of these reads and writes.
    pub device_bytes: Option<u64>,
    /// Time of these reads and writes.
    pub device_seconds: Option<f64>,
    /// Time during which a device was busy, summed over devices.
    pub device_busy_seconds: Option<f64>,
    /// Flushes sent to the devices.
    pub flushes: Option<u64>,
    /// Time of the flushes.
    pub flush_seconds: Option<f64>,
    /// Processor time of the workers.
    pub cpu_seconds: Option<f64>,
    /// Time in which the workers were runnable but waited for a processor, assuming that each waited as long
    /// as the one that waited longest.
    pub waiting_seconds: Option<f64>,
}

impl Counts {
    /// Returns the counts of all targets of a span. Those of the devices exclude other programs.
    pub fn from_sides(sides: &Sides) -> Self {
        let application = &sides.application;
        let seconds = application.seconds;
        let latency =
            |latency: Option<plumb_measure::Latency>| latency.map_or(0.0, |of| of.mean * of.count as f64);
        let storage = sides.storage.as_ref();
        let devices = || storage.into_iter().flat_map(|storage| &storage.devices);
        let time =
            |device: &plumb_block::DeviceCounters| (device.read_time + device.write_time).as_secs_f64();
        let others = storage.and_then(|storage| Foreign::new(storage, &sides.quality)).unwrap_or_default();
        let own = |others: u64, all: u64| 1.0 - others.min(all) as f64 / all.max(1) as f64;
        let own_moved = storage.map_or(1.0, |of| own(others.bytes, of.read_bytes + of.write_bytes));
        let own_flushed =
            storage.and_then(|of| of.flushes).map_or(1.0, |flushes| own(others.flushes, flushes));
        let part = |count: u64, own: f64| (count as f64 * own).round() as u64;
        let thread_seconds = sides.threads.map(|threads| threads as f64 * seconds);
        let slots = sides.depth.map(|depth| depth as f64).or(application.in_flight_mean);
        Self {
            seconds,
            operations: application.operations,
            slot_seconds: slots.unwrap_or(0.0) * seconds,
            thread_seconds,
            page_cache: false,
            unsynced_writes: 0,
            operation_seconds: latency(application.latency),
            syncs: sides.sync.ios,
            sync_seconds: latency(sides.sync.latency),
            device_ios: storage.map(|storage| part(storage.reads + storage.writes, own_moved)),
            device_bytes: storage.map(|storage| part(storage.read_bytes + storage.write_bytes, own_moved)),
            device_seconds: storage.map(|_| own_moved * devices().map(time).sum::<f64>()),
            device_busy_seconds: storage
                .map(|_| own_moved * devices().map(|device| device.busy_time.as_secs_f64()).sum::<f64>()),
            flushes: storage.and_then(|storage| storage.flushes).map(|flushes| part(flushes, own_flushed)),
            flush_seconds: storage
                .map(|_| own_flushed * devices().map(|device| device.flush_time.as_secs_f64()).sum::<f64>()),
            cpu_seconds: sides.cpu.map(|cpu| cpu.user + cpu.system),
            waiting_seconds: sides.quality.worker_waiting.zip(thread_seconds).map(|(share, of)| share * of),
        }
    }

    /// Returns the counts without those that are unknown in `other`, since they could not be compared.
    pub fn known_with(self, other: &Self) -> Self {
        Self {
            device_ios: self.device_ios.filter(|_| other.device_ios.is_some()),
            device_bytes: self.device_bytes.filter(|_| other.device_bytes.is_some()),
            device_seconds: self.device_seconds.filter(|_| other.device_seconds.is_some()),
            device_busy_seconds: self.device_busy_seconds.filter(|_| other.device_busy_seconds.is_some()),
            flushes: self.flushes.filter(|_| other.flushes.is_some()),
            flush_seconds: self.flush_seconds.filter(|_| other.flush_seconds.is_some()),
            thread_seconds: self.thread_seconds.filter(|_| other.thread_seconds.is_some()),
            cpu_seconds: self.cpu_seconds.filter(|_| other.cpu_seconds.is_some()),
            waiting_seconds: self.waiting_seconds.filter(|_| other.waiting_seconds.is_some()),
            ..self
        }
    }

    /// Returns the sum. A count that is unknown in one of them is unknown in the sum.
    pub fn plus(self, other: Self) -> Self {
        let count = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        let time = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        Self {
            seconds: self.seconds + other.seconds,
            operations: self.operations + other.operations,
            slot_seconds: self.slot_seconds + other.slot_seconds,
            thread_seconds: time(self.thread_seconds, other.thread_seconds),
            page_cache: self.page_cache && other.page_cache,
            unsynced_writes: self.unsynced_writes + other.unsynced_writes,
            operation_seconds: self.operation_seconds + other.operation_seconds,
            syncs: self.syncs + other.syncs,
            sync_seconds: self.sync_seconds + other.sync_seconds,
            device_ios: count(self.device_ios, other.device_ios),
            device_bytes: count(self.device_bytes, other.device_bytes),
            device_seconds: time(self.device_seconds, other.device_seconds),
            device_busy_seconds: time(self.device_busy_seconds, other.device_busy_seconds),
            flushes: count(self.flushes, other.flushes),
            flush_seconds: time(self.flush_seconds, other.flush_seconds),
            cpu_seconds: time(self.cpu_seconds, other.cpu_seconds),
            waiting_seconds: time(self.waiting_seconds, other.waiting_seconds),
        }
    }
}
