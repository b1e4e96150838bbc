//! `plumb cache advise`: how large a log the user's own writes need. A recording of them is done again in simulated time, over the
//! backing device alone and over caches of several sizes, with the rules by which a cache is served.

mod replayed;
mod text;

use plumb_block::{Bytes, Nanos};
use plumb_target::Name;
use plumb_workload::{ByteRange, Job, Recorded, Replay, TraceOp, TraceUse, Workload};
use serde::Serialize;

use super::refused;
use crate::arguments::cache::AdviseArguments;
use crate::exit::{Exit, Refusal, usage};
use crate::{stop, terminal, traces};

/// So much of what is written a log holds at least, in the worst case: a header of 4 KiB for each write of 4 KiB, and what is not used of it.
const LOG_PER_WRITTEN: u64 = 3;
/// The smallest log that is tried as one that never fills.
const ENDLESS_MIN: Bytes = Bytes::gib(1);
/// A log absorbs the bursts if so many writes in a thousand are.
const ABSORBED_MIN: f64 = 0.999;

/// What is said of a recording.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    schema: &'static str,
    recording: String,
    /// What it holds.
    writes: u64,
    written_bytes: u64,
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
    /// The smallest of them that absorbs the bursts; null if none does.
    advised_size: Option<u64>,
}

/// How long a client waited.
#[derive(Debug, Serialize)]
struct Waiting {
    /// For all writes and flushes together, each from the moment at which the recording has it.
    seconds: f64,
    /// Of one write: the mean, 99 in 100 and all are answered in so many seconds.
    write_mean: f64,
    write_p99: f64,
    write_max: f64,
}

/// A size of the log.
#[derive(Debug, Serialize)]
struct Tried {
    size: u64,
    /// Which share of the writes were answered as fast as a log answers them that never fills.
    absorbed: f64,
    /// For how long clients waited more than for such a log, all together.
    stall_seconds: f64,
    /// How many times as long clients waited without a cache.
    speed_up: f64,
    waiting: Waiting,
    /// What the backing device took meanwhile, and what went past the log.
    destaged_bytes: u64,
    bypassed_bytes: u64,
}

pub(super) fn run(arguments: &AdviseArguments, json: bool) -> anyhow::Result<Exit> {
    let stop = stop::on_signals()?;
    let recorded = recorded(&arguments.recording)?;
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
    let mut sizes = arguments.size.clone();
    sizes.sort_unstable();
    let mut tried = Vec::new();
    for size in sizes {
        terminal::say(&format!("plumb: a log of {size}"));
        tried.push(Tried::of(size, &again(&devices.cache(size)?)?, &uncached, &fastest));
    }
    let count = |op| recorded.events().iter().filter(|event| event.op == op).count() as u64;
    let advice = Advice {
        schema: "plumb/cache-advice/1",
        recording: arguments.recording.clone(),
        writes,
        written_bytes: written,
        reads: count(TraceOp::Read),
        flushes: count(TraceOp::Flush),
        seconds: recorded.length().as_secs_f64(),
        backing: devices.backing,
        log: devices.log,
        uncached: Waiting::of(&uncached),
        advised_size: tried.iter().find(|tried| tried.absorbed >= ABSORBED_MIN).map(|tried| tried.size),
        sizes: tried,
    };
    if json {
        terminal::print_json(&advice)?
    } else {
        terminal::print(&advice.text())?
    }
    Ok(Exit::Done)
}

/// What was recorded, as one target.
fn recorded(path: &str) -> Result<Recorded, Refusal> {
    let job = Job::on("cache", Workload::over(ByteRange::ALL, Bytes::kib(4)));
    let (_, replay) = Replay::of(&job, &TraceUse::of(path), traces::named(path)?).map_err(usage)?;
    replay
        .targets
        .into_iter()
        .next()
        .ok_or_else(|| Refusal::new(Exit::Usage, format!("{path}: it does nothing")))
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
                    rate.map_or(100, |rate| (rate.0 / 1_000_000).max(1))
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
