//! Replay of a trace: the events of each target in order, and an equivalent workload for code that needs only
//! sizes, shares and rates.
//!
//! All targets of a trace share one list of events, sorted by target and then by time; workers copy nothing.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use plumb_block::{Bytes, Nanos};

use crate::access::Access;
use crate::block_sizes::{BlockSizes, BlockSplit};
use crate::byte_range::ByteRange;
use crate::generator::Operation;
use crate::invalid::Invalid;
use crate::pace::{Amount, Arrival, Rate, Stop};
use crate::scenario::{Job, TargetUse};
use crate::trace::{Trace, TraceEvent, TraceOp, TraceUse};
use crate::workload::{Durability, Workload};

/// Events of a trace on one target, in order of time.
#[derive(Clone)]
pub struct RecordedEvents {
    events: Arc<Vec<TraceEvent>>,
    mine: Range<usize>,
    how: TraceUse,
    sums: Sums,
}

/// Recorded events for a job to replay.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Events of each target of the job, in the job's order.
    pub targets: Vec<RecordedEvents>,
}

/// Replays of a scenario by the indices of span and job.
pub type Replays = BTreeMap<(usize, usize), Replay>;

impl Replay {
    /// Prepares the replay of a trace by `job`. Returns the events, and the job with its targets and an
    /// equivalent workload.
    ///
    /// A job without targets uses those of the trace. A single target receives all events; of several, each
    /// receives the events of the trace's target at the same index.
    ///
    /// # Errors
    /// If the trace has no events, or the job has another number of targets.
    pub fn new(job: &Job, how: &TraceUse, trace: Trace) -> Result<(Job, Self), Invalid> {
        let mut trace = how.apply(trace);
        forget_untouched(&mut trace);
        if !trace.events.iter().any(|event| event.op != TraceOp::Flush) {
            return Err(Invalid::new(
                "trace",
                &how.path,
                "a trace with reads, writes or trims that are not left out",
            ));
        }
        redirect(&mut trace, &job.targets)?;
        let sums = Sums::from_events(&trace.events);
        let targets: Vec<TargetUse> =
            trace.targets.iter().map(|name| TargetUse { name: name.clone(), weight: 1 }).collect();
        let range = ByteRange::ALL;
        let workload = Workload { range, ..sums.stand_in(&job.workload, how.is_paced()) };
        let name = if job.name.is_empty() { how.path.clone() } else { job.name.clone() };
        let job = Job { name, targets, trace: None, workload, ..job.clone() };
        Ok((job, Self { targets: RecordedEvents::by_target(trace, how) }))
    }

    /// Returns the number of events.
    pub fn events(&self) -> u64 {
        self.targets.iter().map(|target| target.events().len() as u64).sum()
    }

    /// Returns the time from the first event to the last at the replay's speed.
    pub fn length(&self) -> Nanos {
        self.targets.iter().map(RecordedEvents::length).max().unwrap_or(Nanos::ZERO)
    }
}

impl RecordedEvents {
    /// Splits the events of `trace` by target.
    fn by_target(trace: Trace, how: &TraceUse) -> Vec<Self> {
        let Trace { targets, mut events } = trace;
        if targets.len() > 1 {
            // Stable: the events of a target stay in order of time.
            events.sort_by_key(|event| event.target);
        }
        let events = Arc::new(events);
        let of = |target: usize| {
            let begin = events.partition_point(|event| usize::from(event.target) < target);
            let mine = begin..events.partition_point(|event| usize::from(event.target) <= target);
            let sums = Sums::from_events(&events[mine.clone()]);
            Self { events: Arc::clone(&events), mine, how: how.clone(), sums }
        };
        (0..targets.len()).map(of).collect()
    }

    /// Returns the events, in order of time.
    pub fn events(&self) -> &[TraceEvent] {
        &self.events[self.mine.clone()]
    }

    /// Returns true if events have times, rather than starting as soon as possible.
    pub fn is_paced(&self) -> bool {
        self.how.is_paced()
    }

    /// Returns the options of the replay.
    pub fn how(&self) -> &TraceUse {
        &self.how
    }

    /// Returns true if an event writes or trims.
    pub fn changes(&self) -> bool {
        self.sums.write.count + self.sums.trim.count > 0
    }

    /// Returns the first byte after all events.
    pub fn end(&self) -> Bytes {
        Bytes(self.sums.end)
    }

    /// Returns the intended start of the last event.
    pub fn length(&self) -> Nanos {
        self.sums.last
    }

    /// Returns the scale for the whole trace that makes its events fit into `size` bytes; `None` if a single
    /// request is longer.
    pub fn scale_for(&self, size: Bytes) -> Option<u64> {
        let longest = self.sums.longest();
        let room = size.0.checked_sub(longest)?;
        let factor = if room == 0 { self.sums.last_offset } else { self.sums.last_offset.div_ceil(room) };
        self.how.scale.checked_mul(factor.max(1)).filter(|scale| *scale > 0)
    }

    /// Returns the event at `index` as an operation, whose generation is `index` + 1.
    #[inline]
    pub fn operation(&self, index: usize) -> Option<Operation> {
        let event = self.events().get(index)?;
        let (offset, length, generation) = (event.offset, event.length(), index as u64 + 1);
        Some(match event.op {
            TraceOp::Read => Operation::Read { offset, length },
            TraceOp::Write { fua } => Operation::Write { offset, length, generation, fua },
            TraceOp::Trim => Operation::Trim { offset, length },
            TraceOp::Flush => Operation::Flush,
        })
    }

    /// Returns a workload equivalent to the events, with their lengths, shares, rates and range, exactly or
    /// on average, and with the depth, the seed, the content and the time limit of `job`.
    pub fn stand_in(&self, job: &Workload) -> Workload {
        self.sums.stand_in(job, self.is_paced())
    }
}

impl std::fmt::Debug for RecordedEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorded")
            .field("events", &self.mine.len())
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

/// Removes targets without events, so that they are not opened.
fn forget_untouched(trace: &mut Trace) {
    let mut places: Vec<Option<u16>> = vec![None; trace.targets.len()];
    for event in &trace.events {
        places[usize::from(event.target)] = Some(0);
    }
    for (place, next) in places.iter_mut().flatten().zip(0..) {
        *place = next;
    }
    let mut kept = places.iter();
    trace.targets.retain(|_| kept.next().is_some_and(Option::is_some));
    for event in &mut trace.events {
        event.target = places[usize::from(event.target)].unwrap_or(0);
    }
}

fn redirect(trace: &mut Trace, targets: &[TargetUse]) -> Result<(), Invalid> {
    match targets {
        [] => return Ok(()),
        [_] => trace.events.iter_mut().for_each(|event| event.target = 0),
        _ if targets.len() == trace.targets.len() => {}
        _ => {
            let named = trace.targets.len();
            let first: Vec<&str> = trace.targets.iter().take(3).map(String::as_str).collect();
            let more = if named > 3 { ", ..." } else { "" };
            let expected = format!(
                "none, one for all, or one for each of the {named} that the trace names: {}{more}",
                first.join(", ")
            );
            return Err(Invalid::new("targets", targets.len(), expected));
        }
    }
    trace.targets = targets.iter().map(|target| target.name.clone()).collect();
    Ok(())
}

/// Totals of events.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    read: Lengths,
    write: Lengths,
    trim: Lengths,
    durable_writes: u64,
    flushes: u64,
    start: Option<u64>,
    last_offset: u64,
    end: u64,
    last: Nanos,
}

/// Number of operations and their lengths.
#[derive(Debug, Clone, Copy, Default)]
struct Lengths {
    count: u64,
    shortest: u64,
    longest: u64,
}

impl Lengths {
    fn add(&mut self, length: u64) {
        self.shortest = if self.count == 0 { length } else { self.shortest.min(length) };
        self.longest = self.longest.max(length);
        self.count += 1;
    }

    /// Returns the shortest and the longest length, both at most `most`.
    fn split(&self, most: u64) -> BlockSplit {
        match (self.count, self.shortest.min(most), self.longest.min(most)) {
            (0, ..) => BlockSplit::one(Bytes(most)),
            (_, shortest, longest) if shortest == longest => BlockSplit::one(Bytes(longest)),
            (_, shortest, longest) => BlockSplit(vec![(Bytes(shortest), 50), (Bytes(longest), 50)]),
        }
    }
}

impl Sums {
    fn from_events(events: &[TraceEvent]) -> Self {
        let mut sums = Self::default();
        for event in events {
            sums.last = sums.last.max(event.at);
            let lengths = match event.op {
                TraceOp::Read => &mut sums.read,
                TraceOp::Write { fua } => {
                    sums.durable_writes += u64::from(fua);
                    &mut sums.write
                }
                TraceOp::Trim => &mut sums.trim,
                TraceOp::Flush => {
                    sums.flushes += 1;
                    continue;
                }
            };
            lengths.add(event.length_bytes.into());
            sums.start = Some(sums.start.map_or(event.offset.0, |start| start.min(event.offset.0)));
            sums.last_offset = sums.last_offset.max(event.offset.0);
            sums.end = sums.end.max(event.end());
        }
        sums
    }

    fn operations(&self) -> u64 {
        self.read.count + self.write.count + self.trim.count
    }

    fn longest(&self) -> u64 {
        self.read.longest.max(self.write.longest).max(self.trim.longest)
    }

    fn stand_in(&self, job: &Workload, is_paced: bool) -> Workload {
        let (write_percent, trim_percent) = self.percents();
        let start = self.start.unwrap_or(0);
        Workload {
            blocks: self.blocks(),
            access: Access::RANDOM,
            write_percent,
            trim_percent,
            stop: Stop { operations: Some(self.operations().max(1)), ..job.stop },
            durability: self.durability(),
            rate: if is_paced { self.rate() } else { Rate::Unlimited },
            range: ByteRange { offset: Bytes(start), length: Bytes(self.end.saturating_sub(start).max(1)) },
            verify: false,
            ..job.clone()
        }
    }

    /// Returns the block sizes for buffers. Trims need no buffer, so their lengths do not count.
    fn blocks(&self) -> BlockSizes {
        let longest = match self.read.longest.max(self.write.longest) {
            0 => self.trim.longest.clamp(1, Bytes::MIB),
            longest => longest,
        };
        BlockSizes {
            read: self.read.split(longest),
            write: self.write.split(longest),
            trim: self.trim.split(longest),
        }
    }

    /// Returns the percentages of writes and trims; a kind that occurs has at least one percent, others have
    /// zero.
    fn percents(&self) -> (u8, u8) {
        let of = |lengths: &Lengths| match lengths.count {
            0 => 0,
            count => (u128::from(count) * 100 / u128::from(self.operations())).max(1) as u8,
        };
        let (write, trim) = (of(&self.write), of(&self.trim));
        let rest = 100 - u8::from(self.read.count > 0);
        match (self.read.count, self.write.count) {
            // Without reads, everything that is not a trim is a write.
            (0, 1..) => (100 - trim, trim),
            (0, 0) => (0, trim),
            (_, 0) => (0, trim.min(rest)),
            _ => (write.min(rest.saturating_sub(trim)), trim.min(rest - 1)),
        }
    }

    fn durability(&self) -> Durability {
        let every = |count: u64| {
            let every = self.write.count.checked_div(count).filter(|_| self.write.count > 0)?;
            NonZeroU32::new(u32::try_from(every.max(1)).unwrap_or(u32::MAX))
        };
        Durability {
            flush_every: every(self.flushes),
            fua_every: every(self.durable_writes),
            ..Durability::NEVER
        }
    }

    fn rate(&self) -> Rate {
        if self.last == Nanos::ZERO || self.operations() < 2 {
            return Rate::Unlimited;
        }
        let iops = (self.operations() as f64 / self.last.as_secs_f64()).clamp(1e-9, Workload::IOPS_MAX);
        Rate::Scheduled { amount: Amount::Iops(iops), arrival: Arrival::Fixed }
    }
}

#[cfg(test)]
mod tests;
