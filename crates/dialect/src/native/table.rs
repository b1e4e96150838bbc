//! All words, as data: the name, the value, the help. Flags of `plumb load`, keys of a file and the manual follow from it.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Affinity, Amount, Arrival, BlockSplit, Content, Distribution, Division, DurableWrite, EngineChoice,
    LatencyTarget, PageCache, Priority, Skip, TraceSpeed, Walk, Warmup,
};

use super::vocabulary::{SyncKind, Vocabulary, Weights};

/// One word.
pub(super) struct Word {
    /// The key in a file; the flag has dashes before it.
    pub(super) name: &'static str,
    /// What its value is called in the help.
    pub(super) value_name: &'static str,
    /// One line of help.
    pub(super) help: &'static str,
    /// What it takes.
    pub(super) takes: Takes,
}

/// What a word takes.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    /// Nothing on a command line, true or false in a file.
    Nothing,
    /// Any text.
    Text,
    /// One or more texts; on a command line those without a flag.
    Texts,
    /// A value with a form of its own.
    Value(Form),
}

/// The text form of a type of values.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Completes the sentence "expected ...".
    pub(super) expected: &'static str,
    /// Whether a file holds it as an array.
    pub(super) is_list: bool,
    /// All values, where there are few.
    pub(super) names: fn() -> Vec<&'static str>,
    /// Whether a text has this form.
    pub(super) accepts: fn(&str) -> bool,
}

impl Takes {
    /// Completes the sentence "expected ...".
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Nothing => "true or false",
            Self::Text => "a string",
            Self::Texts => "a target or an array of targets, each a string",
            Self::Value(form) => form.expected,
        }
    }
}

/// The words that are about a span rather than one of its jobs.
pub(super) const SPAN_WORDS: [&str; 5] = ["warmup", "cooldown", "precondition", "steady", "latency-target"];

/// The word of this name.
pub(super) fn find(name: &str) -> Option<&'static Word> {
    all().find(|word| word.name == name)
}

/// All words in their order.
pub(super) fn all() -> impl Iterator<Item = &'static Word> {
    GROUPS.iter().flat_map(|(_, words)| *words)
}

const fn flag(name: &'static str, help: &'static str) -> Word {
    Word { name, value_name: "", help, takes: Takes::Nothing }
}

const fn text(name: &'static str, value_name: &'static str, help: &'static str) -> Word {
    Word { name, value_name, help, takes: Takes::Text }
}

const fn value<T: Vocabulary>(name: &'static str, value_name: &'static str, help: &'static str) -> Word {
    let form = Form { expected: T::EXPECTED, is_list: T::IS_LIST, names: T::names, accepts: accepts::<T> };
    Word { name, value_name, help, takes: Takes::Value(form) }
}

fn accepts<T: Vocabulary>(text: &str) -> bool {
    T::parse(text).is_some()
}

const TARGETS: Word = Word {
    name: "targets",
    value_name: "TARGET",
    help: "Files, block devices or other targets",
    takes: Takes::Texts,
};

/// The words under the headings of the help.
pub(super) const GROUPS: [(&str, &[Word]); 6] = [
    (
        "Where",
        &[
            TARGETS,
            value::<Weights>(
                "weights",
                "N,...",
                "How often --depth-shared chooses each target, such as 3,1; default 1 each",
            ),
            value::<Bytes>("offset", "SIZE", "Start of the range; default 0"),
            value::<Bytes>("length", "SIZE", "Length of the range; default to the end of the target"),
            value::<Bytes>("size", "SIZE", "Make missing files of this size, and extend shorter ones to it"),
            flag("append", "Files begin empty and grow to the size by sequential writes, then begin again"),
            value::<Division>(
                "division",
                "HOW",
                "How threads divide the range: parts, overlap, offset:SIZE; default parts",
            ),
            text("name", "NAME", "Name of the job in reports; default the first target"),
        ],
    ),
    (
        "What",
        &[
            value::<BlockSplit>(
                "block-size",
                "SIZES",
                "Bytes of each operation, such as 4k, or 4k/60,64k/40 for 60 % and 40 %; default 4k",
            ),
            value::<BlockSplit>("write-block-size", "SIZES", "Bytes of each write; default the block size"),
            value::<BlockSplit>("trim-block-size", "SIZES", "Bytes of each trim; default the block size"),
            value::<u8>("write", "PERCENT", "Percent of operations that write; default 0"),
            value::<u8>("trim", "PERCENT", "Percent of operations that trim; default 0"),
            flag("random", "Random offsets (default)"),
            flag("sequential", "Ascending offsets, and again from the start"),
            value::<Bytes>(
                "stride",
                "SIZE",
                "Sequential, with this distance from start to start; default the length of the operation",
            ),
            value::<Walk>("walk", "WHO", "Who advances through a sequential range; default each thread"),
            value::<Bytes>(
                "align",
                "SIZE",
                "Random offsets are multiples of this; default the smallest block",
            ),
            value::<Distribution>(
                "distribution",
                "KIND",
                "uniform, each-once, zipf:THETA, pareto:POWER, normal:PERCENT, zoned:IO%/LENGTH,...; default uniform",
            ),
            value::<u8>(
                "random-percent",
                "PERCENT",
                "Percent of operations at a random offset, 1 to 99; the others follow their predecessor",
            ),
            value::<u32>("run-length", "N", "Operations in a row from each random offset, at least 2"),
            text(
                "trace",
                "FILE",
                "Replay this trace, an iolog of fio or blktrace, with its times, on its targets unless some are named",
            ),
            value::<TraceSpeed>(
                "trace-speed",
                "PERCENT",
                "Speed of the replay: a percent of the recorded one, or unpaced for as fast as the depth allows; default 100",
            ),
            value::<u64>(
                "trace-scale",
                "N",
                "Divide the offsets of the trace by this, for a smaller target; default 1",
            ),
            value::<Bytes>("trace-align", "SIZE", "Round the offsets of the trace down to multiples of this"),
            value::<Skip>(
                "trace-skip",
                "KINDS",
                "Leave out of the trace: read, write, trim, sync, or several such as trim,sync",
            ),
            value::<Content>(
                "content",
                "KIND",
                "What is written: pattern, zeroes, repeated, counting, reducible:C%/D%, buffer:SIZE, file:SIZE,PATH; default pattern",
            ),
            flag("verify", "Check all that is read, and at the end all that was written"),
            value::<u64>(
                "seed",
                "N",
                "Seed of all random choices; default from the clock, and always recorded",
            ),
        ],
    ),
    (
        "Cache and durability",
        &[
            flag("direct", "Past the page cache, O_DIRECT (default)"),
            flag("cached", "Through the page cache"),
            flag("drop-behind", "Through the page cache and dropped from it at once, RWF_DONTCACHE"),
            flag("mapped", "By loads and stores to a mapping; a flush is msync"),
            value::<PageCache>(
                "page-cache",
                "WHAT",
                "Pages of files in memory at first: as-is, evicted, or loaded, for half the duration at most; default as-is",
            ),
            value::<u32>("sync-every", "N", "Flush after every N writes of a thread; default 0, never"),
            value::<SyncKind>(
                "sync-kind",
                "KIND",
                "The flush: a call, or dsync, which makes each Nth write durable; default fdatasync. range makes nothing durable",
            ),
            flag("sync-at-end", "Flush when the load is over"),
            flag("dsync", "Every write is durable when it completes, RWF_DSYNC"),
            value::<u32>(
                "dsync-every",
                "N",
                "Every Nth write of a thread is durable when it completes; default 0, none",
            ),
            value::<DurableWrite>(
                "durable-write",
                "KIND",
                "A durable write is RWF_DSYNC or RWF_SYNC; default dsync",
            ),
        ],
    ),
    (
        "How much at a time",
        &[
            value::<u32>(
                "depth",
                "N",
                "Requests that each thread keeps in flight on a target; default 1, and 64 for a trace",
            ),
            flag("depth-shared", "The depth counts the requests of a thread on all its targets"),
            value::<u32>(
                "threads",
                "N",
                "Threads for each target, or in all with --threads-shared; default 1",
            ),
            flag("threads-shared", "Every thread works on every target"),
            value::<Amount>(
                "rate",
                "RATE",
                "At most this much a second on a fixed schedule, such as 5000iops or 100MiB; default no limit",
            ),
            value::<Arrival>(
                "arrival",
                "KIND",
                "Intervals of the schedule: equal, or random as of many clients; default fixed",
            ),
            value::<u32>("burst", "N", "Pause after this many operations of a thread"),
            value::<Nanos>(
                "pause",
                "TIME",
                "Length of the pause, from the last operation of a burst to the next burst",
            ),
            value::<LatencyTarget>(
                "latency-target",
                "TIME@PERCENTILE",
                "Find the largest depth that keeps this latency, such as 10ms@99",
            ),
        ],
    ),
    (
        "When",
        &[
            value::<Nanos>(
                "duration",
                "TIME",
                "Measured time, such as 500ms, 1m30s, or seconds; default 30s without --count and --bytes",
            ),
            value::<u64>("count", "N", "End after this many operations of all threads together"),
            value::<Bytes>("bytes", "SIZE", "End after this many bytes of all threads together"),
            value::<Warmup>(
                "warmup",
                "TIME",
                "Run this long before measuring; auto: until the rate has settled; default 0",
            ),
            value::<Nanos>("cooldown", "TIME", "Run on this long after measuring; default 0"),
            value::<Nanos>("start-delay", "TIME", "Wait this long before this job begins; default 0"),
            flag("precondition", "First write each target twice from end to end in 128 KiB blocks"),
            value::<u32>(
                "steady",
                "ROUNDS",
                "Repeat until five rounds agree, at most this often; a round takes the duration",
            ),
        ],
    ),
    (
        "Machine",
        &[
            value::<EngineChoice>(
                "engine",
                "KIND",
                "How requests reach the kernel; default auto: io_uring where allowed",
            ),
            value::<Affinity>(
                "affinity",
                "WHERE",
                "Processors of threads: any, each:0,2 in turn, shared:0-3 all on any of these; default any",
            ),
            value::<Priority>("priority", "CLASS", "I/O priority; default normal"),
            flag(
                "continue-on-error",
                "Continue after a failed operation, count it, and end with exit code 1; a failed flush always ends the run",
            ),
        ],
    ),
];
