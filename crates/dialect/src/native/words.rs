//! What was typed: each word once, for the command line and for files.
//!
//! The names of flags and the keys of a file both follow from the names of these fields, and so do help and manual.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use clap::{Args, Command};
use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Affinity, Amount, Arrival, BlockSplit, Content, Distribution, Division, DurableWrite, Engine,
    LatencyTarget, Priority, Skip, TraceSpeed, Walk, Warmup,
};
use serde::{Deserialize, Serialize};

use super::typed::{Typed, choices};
use super::vocabulary::{SyncKind, Weights};
use crate::error::Error;

const WHERE: &str = "Where";
const WHAT: &str = "What";
const DURABLE: &str = "Cache and durability";
const PACE: &str = "How much at a time";
const TIME: &str = "When";
const MACHINE: &str = "Machine";

/// The words that are about a span rather than one of its jobs.
pub(super) const SPAN_WORDS: [&str; 5] = ["warmup", "cooldown", "precondition", "steady", "latency-target"];

/// What was typed; a word that was not is `None`.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Words {
    /// Files, block devices or other targets
    #[arg(value_name = "TARGET")]
    #[serde(deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,

    /// How often each target is chosen with --depth-shared, such as 3,1; default 1 each
    #[arg(long, value_name = "N,...", help_heading = WHERE)]
    pub(super) weights: Option<Typed<Weights>>,

    /// Where the range begins; default 0
    #[arg(long, value_name = "SIZE", help_heading = WHERE)]
    pub(super) offset: Option<Typed<Bytes>>,

    /// How long the range is; default to the end of the target
    #[arg(long, value_name = "SIZE", help_heading = WHERE)]
    pub(super) length: Option<Typed<Bytes>>,

    /// Make missing files of this size, and bring shorter ones to it
    #[arg(long, value_name = "SIZE", help_heading = WHERE)]
    pub(super) size: Option<Typed<Bytes>>,

    /// How threads divide the range: parts, overlap, offset:SIZE; default parts
    #[arg(long, value_name = "HOW", help_heading = WHERE)]
    pub(super) division: Option<Typed<Division>>,

    /// A name for reports; default the first target
    #[arg(long, value_name = "NAME", help_heading = WHERE)]
    pub(super) name: Option<String>,

    /// Bytes of each operation, such as 4k, or 4k/60,64k/40 for 60 % and 40 %; default 4k
    #[arg(long, value_name = "SIZES", help_heading = WHAT)]
    pub(super) block_size: Option<Typed<BlockSplit>>,

    /// Bytes of each write, where they are not the block size
    #[arg(long, value_name = "SIZES", help_heading = WHAT)]
    pub(super) write_block_size: Option<Typed<BlockSplit>>,

    /// Bytes of each trim, where they are not the block size
    #[arg(long, value_name = "SIZES", help_heading = WHAT)]
    pub(super) trim_block_size: Option<Typed<BlockSplit>>,

    /// Percent of operations that write; default 0
    #[arg(long, value_name = "PERCENT", help_heading = WHAT)]
    pub(super) write: Option<Typed<u8>>,

    /// Percent of operations that trim; default 0
    #[arg(long, value_name = "PERCENT", help_heading = WHAT)]
    pub(super) trim: Option<Typed<u8>>,

    /// To places drawn at random (default)
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = WHAT)]
    pub(super) random: Option<bool>,

    /// One operation after the other, and again from the start
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = WHAT)]
    pub(super) sequential: Option<bool>,

    /// Sequential, with so much from start to start; default the length of the operation
    #[arg(long, value_name = "SIZE", help_heading = WHAT)]
    pub(super) stride: Option<Typed<Bytes>>,

    /// Who advances through a sequential range; default each thread
    #[arg(long, value_name = "WHO", help_heading = WHAT, value_parser = choices::<Walk>())]
    pub(super) walk: Option<Typed<Walk>>,

    /// Random offsets are multiples of this; default the smallest block
    #[arg(long, value_name = "SIZE", help_heading = WHAT)]
    pub(super) align: Option<Typed<Bytes>>,

    /// uniform, each-once, zipf:THETA, pareto:POWER, normal:PERCENT, zoned:IO%/LENGTH,...; default uniform
    #[arg(long, value_name = "KIND", help_heading = WHAT)]
    pub(super) distribution: Option<Typed<Distribution>>,

    /// Percent of operations that draw a new place, 1 to 99; the others go on
    #[arg(long, value_name = "PERCENT", help_heading = WHAT)]
    pub(super) random_percent: Option<Typed<u8>>,

    /// Operations from each drawn place, at least 2
    #[arg(long, value_name = "N", help_heading = WHAT)]
    pub(super) run_length: Option<Typed<u32>>,

    /// Replay this trace instead, an iolog of fio or blktrace; its targets unless some are named, and its times
    #[arg(long, value_name = "FILE", help_heading = WHAT)]
    pub(super) trace: Option<String>,

    /// How fast to replay: a percent of the recorded speed, or unpaced, as fast as the depth allows; default 100
    #[arg(long, value_name = "PERCENT", help_heading = WHAT)]
    pub(super) trace_speed: Option<Typed<TraceSpeed>>,

    /// Divide the offsets of the trace by this, for a smaller target; default 1
    #[arg(long, value_name = "N", help_heading = WHAT)]
    pub(super) trace_scale: Option<Typed<u64>>,

    /// Round the offsets of the trace down to multiples of this
    #[arg(long, value_name = "SIZE", help_heading = WHAT)]
    pub(super) trace_align: Option<Typed<Bytes>>,

    /// Leave out of the trace: read, write, trim, sync, or several such as trim,sync
    #[arg(long, value_name = "KINDS", help_heading = WHAT)]
    pub(super) trace_skip: Option<Typed<Skip>>,

    /// What is written: pattern, zeroes, repeated, counting, reducible:C%/D%, buffer:SIZE, file:SIZE,PATH; default pattern
    #[arg(long, value_name = "KIND", help_heading = WHAT)]
    pub(super) content: Option<Typed<Content>>,

    /// Check all that is read, and at the end all that was written
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = WHAT)]
    pub(super) verify: Option<bool>,

    /// Seed of all random choices; default from the clock, and always recorded
    #[arg(long, value_name = "N", help_heading = WHAT)]
    pub(super) seed: Option<Typed<u64>>,

    /// Past the page cache, O_DIRECT (default)
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = DURABLE)]
    pub(super) direct: Option<bool>,

    /// Through the page cache
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = DURABLE)]
    pub(super) cached: Option<bool>,

    /// Through the page cache and dropped from it at once, RWF_DONTCACHE
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = DURABLE)]
    pub(super) drop_behind: Option<bool>,

    /// By loads and stores to a mapping; a flush is msync
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = DURABLE)]
    pub(super) mapped: Option<bool>,

    /// Make writes durable after every N of a thread; 0 and default never
    #[arg(long, value_name = "N", help_heading = DURABLE)]
    pub(super) sync_every: Option<Typed<u32>>,

    /// How: a call, or each Nth write a durable one (dsync); default fdatasync. range makes nothing durable
    #[arg(long, value_name = "KIND", help_heading = DURABLE, value_parser = choices::<SyncKind>())]
    pub(super) sync_kind: Option<Typed<SyncKind>>,

    /// Flush when the load is over
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = DURABLE)]
    pub(super) sync_at_end: Option<bool>,

    /// Every write is durable when it completes, RWF_DSYNC
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = DURABLE)]
    pub(super) dsync: Option<bool>,

    /// Every Nth write of a thread is durable when it completes; 0 and default none
    #[arg(long, value_name = "N", help_heading = DURABLE)]
    pub(super) dsync_every: Option<Typed<u32>>,

    /// What a durable write is: RWF_DSYNC or RWF_SYNC; default dsync
    #[arg(long, value_name = "KIND", help_heading = DURABLE, value_parser = choices::<DurableWrite>())]
    pub(super) durable_write: Option<Typed<DurableWrite>>,

    /// Requests that each thread keeps in flight on a target; default 1, and 64 for a trace
    #[arg(long, value_name = "N", help_heading = PACE)]
    pub(super) depth: Option<Typed<u32>>,

    /// The depth is that of a thread over all its targets
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = PACE)]
    pub(super) depth_shared: Option<bool>,

    /// Threads for each target, or in all with --threads-shared; default 1
    #[arg(long, value_name = "N", help_heading = PACE)]
    pub(super) threads: Option<Typed<u32>>,

    /// Every thread works on every target
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = PACE)]
    pub(super) threads_shared: Option<bool>,

    /// At most so much a second on a fixed schedule, such as 5000iops or 100MiB; default no limit
    #[arg(long, value_name = "RATE", help_heading = PACE)]
    pub(super) rate: Option<Typed<Amount>>,

    /// Intervals of the schedule: equal, or random as of many clients; default fixed
    #[arg(long, value_name = "KIND", help_heading = PACE, value_parser = choices::<Arrival>())]
    pub(super) arrival: Option<Typed<Arrival>>,

    /// Pause after so many operations of a thread
    #[arg(long, value_name = "N", help_heading = PACE)]
    pub(super) burst: Option<Typed<u32>>,

    /// How long, from the last operation of a burst to the next burst
    #[arg(long, value_name = "TIME", help_heading = PACE)]
    pub(super) pause: Option<Typed<Nanos>>,

    /// Find the depth at which a latency is still kept, such as 10ms@99
    #[arg(long, value_name = "TIME@PERCENTILE", help_heading = PACE)]
    pub(super) latency_target: Option<Typed<LatencyTarget>>,

    /// Measure so long, such as 500ms, 1m30s, or seconds; default 30s if no count or bytes end it
    #[arg(long, value_name = "TIME", help_heading = TIME)]
    pub(super) duration: Option<Typed<Nanos>>,

    /// End after so many operations, of all threads together
    #[arg(long, value_name = "N", help_heading = TIME)]
    pub(super) count: Option<Typed<u64>>,

    /// End after so many bytes, of all threads together
    #[arg(long, value_name = "SIZE", help_heading = TIME)]
    pub(super) bytes: Option<Typed<Bytes>>,

    /// Run so long before measuring; auto: until the rate has settled; default 0
    #[arg(long, value_name = "TIME", help_heading = TIME)]
    pub(super) warmup: Option<Typed<Warmup>>,

    /// Run on so long after measuring; default 0
    #[arg(long, value_name = "TIME", help_heading = TIME)]
    pub(super) cooldown: Option<Typed<Nanos>>,

    /// Wait so long before this job begins; default 0
    #[arg(long, value_name = "TIME", help_heading = TIME)]
    pub(super) start_delay: Option<Typed<Nanos>>,

    /// First write each target twice from end to end in 128 KiB blocks
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = TIME)]
    pub(super) precondition: Option<bool>,

    /// Repeat until five rounds agree, at most so many; a round takes the duration
    #[arg(long, value_name = "ROUNDS", help_heading = TIME)]
    pub(super) steady: Option<Typed<u32>>,

    /// How requests reach the kernel; default auto: io_uring where allowed
    #[arg(long, value_name = "KIND", help_heading = MACHINE, value_parser = choices::<Engine>())]
    pub(super) engine: Option<Typed<Engine>>,

    /// Processors of threads: any, each:0,2 in turn, shared:0-3 all on any of these; default any
    #[arg(long, value_name = "WHERE", help_heading = MACHINE)]
    pub(super) affinity: Option<Typed<Affinity>>,

    /// I/O priority; default normal
    #[arg(long, value_name = "CLASS", help_heading = MACHINE, value_parser = choices::<Priority>())]
    pub(super) priority: Option<Typed<Priority>>,

    /// Go on after a failed operation, and count it: the run then ends with 1; a failed flush always ends it
    #[arg(long, num_args = 0, default_missing_value = "true", help_heading = MACHINE)]
    pub(super) continue_on_error: Option<bool>,
}

impl Words {
    /// All words there are, in their order.
    pub(super) fn all() -> &'static [String] {
        static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
            let command = Words::augment_args(Command::new("words"));
            command.get_arguments().map(|word| word.get_id().as_str().replace('_', "-")).collect()
        });
        &ALL
    }

    /// The words and their values, as a file holds them.
    pub(super) fn table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("words are strings, integers, booleans and arrays of these")
    }

    /// The words of a table that came from [`Self::table`].
    pub(super) fn of_table(table: toml::Table) -> Self {
        table.try_into().expect("what was written as words reads as words")
    }

    /// The words that are said and not denied.
    pub(super) fn said(&self) -> BTreeSet<String> {
        let affirmed = |(_, value): &(String, toml::Value)| *value != toml::Value::Boolean(false);
        self.table().into_iter().filter(affirmed).map(|(word, _)| word).collect()
    }

    /// How long and how an application profile is to run, which knows all else itself.
    ///
    /// # Errors
    /// A word that is about what a profile decides.
    pub fn profile_limits(&self) -> Result<ProfileLimits, Error> {
        const TAKEN: [&str; 5] = ["targets", "duration", "count", "threads", "seed"];
        if let Some(other) = self.said().into_iter().find(|word| !TAKEN.contains(&word.as_str())) {
            let problem = "a profile says that itself; with --profile only a target, --duration, --count, --threads and \
                           --seed can be said";
            return Err(Error::new(format!("--{other}"), problem));
        }
        Ok(ProfileLimits {
            duration: self.duration.as_ref().map(|typed| typed.0),
            count: self.count.as_ref().map(|typed| typed.0),
            threads: self.threads.as_ref().map(|typed| typed.0),
            seed: self.seed.as_ref().map(|typed| typed.0),
        })
    }

    /// The TOML file that is meant, if one target that ends in `.toml` is all that was typed.
    pub fn file(&self) -> Option<&str> {
        let [target] = &self.targets[..] else { return None };
        let alone = *self == Self { targets: self.targets.clone(), ..Self::default() };
        (alone && is_file_of_words(target)).then_some(target)
    }
}

/// Whether a target is rather a file of words: it ends in `.toml`, and is no model of a simulated drive.
pub fn is_file_of_words(target: &str) -> bool {
    target.ends_with(".toml") && !target.starts_with("sim:")
}

/// How long and how an application profile is to run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProfileLimits {
    /// For so long.
    pub duration: Option<Nanos>,
    /// So many transactions.
    pub count: Option<u64>,
    /// By so many threads.
    pub threads: Option<u32>,
    /// From this seed.
    pub seed: Option<u64>,
}

/// A string, or an array of strings.
fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a target or an array of targets, each a string")]
    enum Targets {
        One(String),
        Many(Vec<String>),
    }
    Targets::deserialize(deserializer).map(|targets| match targets {
        Targets::One(target) => vec![target],
        Targets::Many(targets) => targets,
    })
}
