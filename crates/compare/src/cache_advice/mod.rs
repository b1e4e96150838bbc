//! Advice on the size of a log for the user's own writes. A recording of the writes is replayed in simulated
//! time, on the backing device alone and on caches of several sizes, with the rules by which caches are
//! served.

mod replayed;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Nanos};
use plumb_report::document::cache::{CacheAdvice, CacheSize};
use plumb_targets::Name;
use plumb_trial::TrialError;
use plumb_workload::{ByteRange, Job, RecordedEvents, Replay, Skip, Trace, TraceOp, TraceUse, Workload};

use self::replayed::{tried, waiting};
use crate::factor::with_option;

/// Size of a log that never fills, as a multiple of the written bytes, in the worst case: a header of 4 KiB
/// for each write of 4 KiB, and the unused part of the log.
const LOG_PER_WRITTEN: u64 = 3;
/// Smallest log that is tried as one that never fills.
const ENDLESS_MIN: Bytes = Bytes::gib(1);
/// Share of the writes that a log must absorb for the bursts to count as absorbed.
const ABSORBED_MIN: f64 = 0.999;
/// Smallest log that is tried.
const SIZE_MIN: Bytes = Bytes::mib(16);
/// Unit of the sizes that are tried without being requested.
const STEP: Bytes = Bytes::mib(1);

/// Question about a recording.
#[derive(Debug)]
pub struct AdviceQuestion<'a> {
    /// Name of the recording.
    pub recording: &'a str,
    /// Simulated drive that represents the slow device; `None` for a device with `backing_iops` and
    /// `backing_rate`.
    pub backing: &'a Option<String>,
    /// Writes per second of the slow device.
    pub backing_iops: NonZeroU32,
    /// Bytes per second of the slow device; `None` if unlimited.
    pub backing_rate: Option<Bytes>,
    /// Simulated drive that represents the device of the log.
    pub log: &'a String,
    /// Rated endurance of the device of the log, in bytes written.
    pub endurance: Option<Bytes>,
    /// Sizes that are tried in any case.
    pub sizes: &'a [Bytes],
}

/// Tries logs of several sizes on a recording; `say` receives a message before each.
///
/// # Errors
/// If the requested cache is impossible, the recording writes nothing, or `stop` becomes true.
pub fn advise(
    question: &AdviceQuestion<'_>,
    trace: Trace,
    stop: &AtomicBool,
    say: &mut dyn FnMut(Bytes),
) -> Result<CacheAdvice, TrialError> {
    possible(question)?;
    let (recorded, reads) = recorded(question.recording, trace)?;
    let devices = Devices::new(question, &recorded);
    let again = |name: &Name| replayed::over(name, &recorded, stop);
    let written = recorded
        .events()
        .iter()
        .filter(|event| matches!(event.op, TraceOp::Write { .. }))
        .map(|event| event.length().0);
    let (writes, written) = written.fold((0, 0), |(count, bytes), length| (count + 1, bytes + length));
    let uncached = again(&Name::parse(&devices.backing)?)?;
    let endless = Bytes(written.saturating_mul(LOG_PER_WRITTEN)).max(ENDLESS_MIN);
    let fastest = again(&devices.cache(endless)?)?;
    // A log that never fills absorbs everything.
    let mut sizes = BTreeMap::from([(endless, tried(endless, &fastest, &uncached, &fastest))]);
    let mut wanted: VecDeque<_> = question.sizes.iter().copied().collect();
    while let Some(size) = wanted.pop_front().or_else(|| between(&sizes)) {
        say(size);
        sizes.insert(size, tried(size, &again(&devices.cache(size)?)?, &uncached, &fastest));
    }
    let advised_size = smallest(&sizes);
    // The log that never fills is shown only if it is advised or requested.
    if advised_size != endless && !question.sizes.contains(&endless) {
        sizes.remove(&endless);
    }
    let seconds = recorded.length().as_secs_f64();
    let lasts = |tried: CacheSize| {
        let times = question.endurance.map(|endurance| endurance.0 as f64 / tried.log_written_bytes as f64);
        CacheSize {
            log_lifetime: times.map(|times| times * seconds).filter(|life| life.is_finite()),
            ..tried
        }
    };
    let count = |op| recorded.events().iter().filter(|event| event.op == op).count() as u64;
    Ok(CacheAdvice {
        schema: CacheAdvice::SCHEMA.to_owned(),
        recording: question.recording.to_owned(),
        writes,
        written_bytes: written,
        reads,
        flushes: count(TraceOp::Flush),
        seconds,
        backing: devices.backing,
        log: devices.log,
        uncached: waiting(&uncached),
        advised_size: advised_size.0,
        sizes: sizes.into_values().map(lasts).collect(),
    })
}

/// Refuses an impossible cache.
fn possible(question: &AdviceQuestion<'_>) -> Result<(), TrialError> {
    if question.backing_rate == Some(Bytes(0)) {
        let problem = "--backing-rate 0: expected bytes per second, such as 150M";
        return Err(TrialError::usage(problem));
    }
    match question.sizes.iter().find(|size| **size < SIZE_MIN) {
        Some(small) => Err(TrialError::usage(format!(
            "--size {small}: expected at least {SIZE_MIN}: a log has segments of 4 MiB"
        ))),
        None => Ok(()),
    }
}

/// Returns the smallest tried size that absorbs the bursts.
fn smallest(tried: &BTreeMap<Bytes, CacheSize>) -> Bytes {
    let absorbs = tried.iter().filter(|(_, tried)| tried.absorbed >= ABSORBED_MIN);
    absorbs.map(|(size, _)| *size).next().unwrap_or_default()
}

/// Returns the size to try next: half-way between the smallest that absorbs the bursts and the next smaller
/// one; `None` if they are close enough.
fn between(tried: &BTreeMap<Bytes, CacheSize>) -> Option<Bytes> {
    let enough = smallest(tried).0;
    let too_small = tried.range(..Bytes(enough)).next_back().map_or(0, |(size, _)| size.0);
    let middle = (enough.midpoint(too_small)).next_multiple_of(STEP.0);
    let is_close = enough - too_small <= (enough / 16).max(STEP.0);
    (!is_close && middle >= SIZE_MIN.0 && middle < enough).then_some(Bytes(middle))
}

/// Returns the events other than reads, as those of one target, and the number of reads. Reads are left out:
/// a cache makes none faster, and waits for a slow device would hide the effect on writes.
fn recorded(path: &str, trace: Trace) -> Result<(RecordedEvents, u64), TrialError> {
    let job = Job::on("cache", Workload::over(ByteRange::ALL, Bytes::kib(4)));
    let reads = trace.events.iter().filter(|event| event.op == TraceOp::Read).count() as u64;
    let writes = TraceUse { skip: Skip { reads: true, ..Skip::default() }, ..TraceUse::new(path) };
    let (_, replay) = Replay::new(&job, &writes, trace)?;
    let recorded = replay.targets.into_iter().next();
    let recorded = recorded.ok_or_else(|| TrialError::usage(format!("{path}: it writes nothing")))?;
    Ok((recorded, reads))
}

/// The simulated devices.
struct Devices {
    backing: String,
    log: String,
}

impl Devices {
    fn new(question: &AdviceQuestion<'_>, recorded: &RecordedEvents) -> Self {
        let size = recorded.end().0.next_multiple_of(1 << 20).max(64 << 20);
        let backing = match (&question.backing, question.backing_rate) {
            (Some(model), _) => model.clone(),
            (None, rate) => {
                let command = Nanos::from_secs_f64(1.0 / f64::from(question.backing_iops.get())).0 / 1000;
                format!(
                    "sim:all-flash-cluster?array.member=memory&array.columns=1&array.copies=1&array.jitter=0us&array.round_trip=0us\
                     &array.command={command}us&array.link={}MB/s",
                    rate.map_or(100.0, |rate| rate.0 as f64 / 1e6)
                )
            }
        };
        Self { backing: with_option(&backing, &format!("size={size}")), log: question.log.clone() }
    }

    fn cache(&self, size: Bytes) -> Result<Name, TrialError> {
        // Twice the size of the log leaves room for everything else that the core stores.
        let log = with_option(&self.log, &format!("size={}", size.0.saturating_mul(2)));
        Ok(Name::parse(format!("cache:backing={},log={log},size={}", self.backing, size.0))?)
    }
}
