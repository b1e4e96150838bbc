//! `plumb cache advise`: how large a log the user's own writes need. A recording of them is done again in
//! simulated time, over the backing device alone and over caches of several sizes, with the rules by which a
//! cache is served.

mod replayed;
mod text;

use std::collections::{BTreeMap, VecDeque};

use plumb_block::{Bytes, Nanos};
use plumb_targets::Name;
use plumb_workload::{ByteRange, Job, Recorded, Replay, Skip, TraceOp, TraceUse, Workload};
use serde::Serialize;

use super::refused;
use crate::arguments::cache::AdviseArguments;
use crate::exit::{Exit, Refusal, usage};
use crate::{stop, terminal, traces};

/// Size of a log that never fills, as a multiple of what is written, in the worst case: a header of 4 KiB for
/// each write of 4 KiB, and what is not used of it.
const LOG_PER_WRITTEN: u64 = 3;
/// The smallest log that is tried as one that never fills.
const ENDLESS_MIN: Bytes = Bytes::gib(1);
/// A log absorbs the bursts if so many writes in a thousand are.
const ABSORBED_MIN: f64 = 0.999;
/// The smallest log that is tried.
const SIZE_MIN: Bytes = Bytes::mib(16);
/// Unit of the sizes that are tried without being requested.
const STEP: Bytes = Bytes::mib(1);

/// Advice for a recording.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    schema: &'static str,
    recording: String,
    /// Writes of the recording.
    writes: u64,
    written_bytes: u64,
    /// Left out.
    reads: u64,
    flushes: u64,
    /// From its first request to its last.
    seconds: f64,
    /// The devices that stood for the real ones.
    backing: String,
    log: String,
    /// Without a cache.
    uncached: Waiting,
    /// By size, the smallest first.
    sizes: Vec<Tried>,
    /// The smallest that absorbs the bursts, to a sixteenth of it.
    advised_size: u64,
}

/// How long a client waited.
#[derive(Debug, Serialize)]
struct Waiting {
    /// For all writes and flushes together, each from the moment at which the recording has it.
    seconds: f64,
    /// Latency of one write in seconds: the mean, and within what time 99 in 100 and all are answered.
    write_mean: f64,
    write_p99: f64,
    write_max: f64,
}

/// A size of the log.
#[derive(Debug, Serialize)]
struct Tried {
    size: u64,
    /// Share of the writes that were answered no later than a tenth after the slowest of a log that never
    /// fills.
    absorbed: f64,
    /// For how long clients waited more than for such a log, all together.
    stall_seconds: f64,
    /// How many times as long clients waited without a cache.
    speed_up: f64,
    waiting: Waiting,
    /// Bytes that the backing device took meanwhile, and that went past the log.
    destaged_bytes: u64,
    bypassed_bytes: u64,
}

pub(super) fn run(arguments: &AdviseArguments, json: bool) -> anyhow::Result<Exit> {
    let stop = stop::on_signals()?;
    possible(arguments)?;
    let (recorded, reads) = recorded(&arguments.recording)?;
    let devices = Devices::of(arguments, &recorded);
    let again = |name: &Name| replayed::over(name, &recorded, &stop);
    let written = recorded
        .events()
        .iter()
        .filter(|event| matches!(event.op, TraceOp::Write { .. }))
        .map(|event| event.length().0);
    let (writes, written) = written.fold((0, 0), |(count, bytes), length| (count + 1, bytes + length));
    let uncached = again(&Name::parse(&devices.backing).map_err(refused)?)?;
    let endless = Bytes(written.saturating_mul(LOG_PER_WRITTEN)).max(ENDLESS_MIN);
    let fastest = again(&devices.cache(endless)?)?;
    let mut tried = BTreeMap::new();
    // A log that never fills absorbs everything.
    tried.insert(endless, Tried::of(endless, &fastest, &uncached, &fastest));
    let mut sizes: VecDeque<_> = arguments.size.iter().copied().collect();
    while let Some(size) = sizes.pop_front().or_else(|| between(&tried)) {
        terminal::say(&format!("plumb: a log of {size}"));
        tried.insert(size, Tried::of(size, &again(&devices.cache(size)?)?, &uncached, &fastest));
    }
    let advised_size = smallest(&tried);
    // It stands for the end of the scale, and is shown if nothing smaller does.
    if advised_size != endless && !arguments.size.contains(&endless) {
        tried.remove(&endless);
    }
    let count = |op| recorded.events().iter().filter(|event| event.op == op).count() as u64;
    let advice = Advice {
        schema: "plumb/cache-advice/1",
        recording: arguments.recording.clone(),
        writes,
        written_bytes: written,
        reads,
        flushes: count(TraceOp::Flush),
        seconds: recorded.length().as_secs_f64(),
        backing: devices.backing,
        log: devices.log,
        uncached: Waiting::of(&uncached),
        advised_size: advised_size.0,
        sizes: tried.into_values().collect(),
    };
    if json {
        terminal::print_json(&advice)?
    } else {
        terminal::print(&advice.text())?
    }
    Ok(Exit::Done)
}

/// Refuses what no cache can be.
fn possible(arguments: &AdviseArguments) -> Result<(), Refusal> {
    let usage = |message: String| Err(Refusal::new(Exit::Usage, message));
    if arguments.backing_rate == Some(Bytes(0)) {
        return usage(
            "--backing-rate 0: expected what the device takes in a second, such as 150M".to_owned(),
        );
    }
    match arguments.size.iter().find(|size| **size < SIZE_MIN) {
        Some(small) => {
            usage(format!("--size {small}: expected at least {SIZE_MIN}: a log has segments of 4 MiB"))
        }
        None => Ok(()),
    }
}

/// The smallest that absorbs the bursts.
fn smallest(tried: &BTreeMap<Bytes, Tried>) -> Bytes {
    let absorbs = tried.iter().filter(|(_, tried)| tried.absorbed >= ABSORBED_MIN);
    absorbs.map(|(size, _)| *size).next().unwrap_or_default()
}

/// The size to try next, half-way between the smallest that absorbs the bursts and the next smaller one,
/// unless that says it well enough.
fn between(tried: &BTreeMap<Bytes, Tried>) -> Option<Bytes> {
    let enough = smallest(tried).0;
    let too_small = tried.range(..Bytes(enough)).next_back().map_or(0, |(size, _)| size.0);
    let middle = (enough.midpoint(too_small)).next_multiple_of(STEP.0);
    let is_close = enough - too_small <= (enough / 16).max(STEP.0);
    (!is_close && middle >= SIZE_MIN.0 && middle < enough).then_some(Bytes(middle))
}

/// Returns what was written, as one target, and how many reads there were beside. They are left out: a cache
/// makes none faster, and a slow device that they wait for would hide what it does for writes.
fn recorded(path: &str) -> Result<(Recorded, u64), Refusal> {
    let job = Job::on("cache", Workload::over(ByteRange::ALL, Bytes::kib(4)));
    let trace = traces::named(path)?;
    let reads = trace.events.iter().filter(|event| event.op == TraceOp::Read).count() as u64;
    let writes = TraceUse { skip: Skip { reads: true, ..Skip::default() }, ..TraceUse::of(path) };
    let (_, replay) = Replay::of(&job, &writes, trace).map_err(usage)?;
    let recorded = replay.targets.into_iter().next();
    let recorded = recorded.ok_or_else(|| Refusal::new(Exit::Usage, format!("{path}: it writes nothing")))?;
    Ok((recorded, reads))
}

/// The simulated devices.
struct Devices {
    backing: String,
    log: String,
}

impl Devices {
    fn of(arguments: &AdviseArguments, recorded: &Recorded) -> Self {
        let size = recorded.end().0.next_multiple_of(1 << 20).max(64 << 20);
        let backing = match (&arguments.backing, arguments.backing_rate) {
            (Some(model), _) => model.clone(),
            (None, rate) => {
                let command = Nanos::from_secs_f64(1.0 / f64::from(arguments.backing_iops.get())).0 / 1000;
                format!(
                    "sim:all-flash-cluster?array.member=memory&array.columns=1&array.copies=1&array.jitter=0us&array.round_trip=0us\
                     &array.command={command}us&array.link={}MB/s",
                    rate.map_or(100.0, |rate| rate.0 as f64 / 1e6)
                )
            }
        };
        let joint = if backing.contains('?') { '&' } else { '?' };
        Self { backing: format!("{backing}{joint}size={size}"), log: arguments.log.clone() }
    }

    fn cache(&self, size: Bytes) -> anyhow::Result<Name> {
        let joint = if self.log.contains('?') { '&' } else { '?' };
        // A device of twice the length: whatever the core needs beside.
        let log = format!("{}{joint}size={}", self.log, size.0.saturating_mul(2));
        Name::parse(format!("cache:backing={},log={log},size={}", self.backing, size.0)).map_err(refused)
    }
}
