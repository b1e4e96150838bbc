//! Record of one worker. Nothing here allocates for each operation.

use plumb_block::{Bytes, Nanos, Outcome};
use plumb_measure::{Series, SeriesEvent};

use crate::in_flight::{InFlight, Kind};
use crate::outcome::{Ending, Failure, LoadOutcome};

/// One worker's figures, and the group of writes that its next flush will make durable.
#[derive(Debug)]
pub(crate) struct Recorder {
    outcome: LoadOutcome,
    /// When measuring begins; nothing counts before.
    from: Option<Nanos>,
    /// When it ends: operations that were meant to start later do not count.
    until: Option<Nanos>,
    /// The last completion that counts, or the end of the workload if that is later.
    end: Nanos,
    stream_ended: bool,
    /// When the first write since the last flush was handed to the device.
    group_start: Option<Nanos>,
    /// Operations that are counted but not yet entered.
    run: Run,
    totals: [(u64, u64); Kind::COUNT],
}

/// Operations that cannot be told apart, one after the other: what is submitted together and seen together
/// has the same times by two readings of the clock. They are entered at once, since the places of the figures
/// are many and seldom in the processor's cache; at the end of each batch at the latest.
#[derive(Debug, Clone, Copy)]
struct Run {
    kind: Kind,
    intended_at: Nanos,
    submitted_at: Nanos,
    completed_at: Nanos,
    bytes: Bytes,
    /// True if they were meant to start in the window.
    counts: bool,
    count: u64,
}

impl Run {
    const EMPTY: Self = Self {
        kind: Kind::Read,
        intended_at: Nanos::ZERO,
        submitted_at: Nanos::ZERO,
        completed_at: Nanos::ZERO,
        bytes: Bytes(0),
        counts: false,
        count: 0,
    };

    /// Returns true if this is one more of them.
    #[inline]
    fn takes(&self, request: &InFlight, answer: &Answer) -> bool {
        self.count > 0
            && answer.submitted_at == self.submitted_at
            && answer.completed_at == self.completed_at
            && request.intended_at == self.intended_at
            && answer.bytes == self.bytes
            && request.kind == self.kind
            && answer.outcome.is_done()
    }
}

/// Answer to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) submitted_at: Nanos,
    pub(crate) completed_at: Nanos,
    pub(crate) bytes: Bytes,
}

impl Recorder {
    /// Creates a recorder that does not measure yet.
    pub(crate) fn new(scheduled: bool) -> Self {
        Self {
            outcome: LoadOutcome::starting_at(Nanos::ZERO, Nanos::ZERO, scheduled),
            from: None,
            until: None,
            end: Nanos::ZERO,
            stream_ended: false,
            group_start: None,
            run: Run::EMPTY,
            totals: [(0, 0); Kind::COUNT],
        }
    }

    /// Begins to measure at `from`, and ends `duration` later, if time ends it.
    pub(crate) fn measure(&mut self, from: Nanos, duration: Option<Nanos>) {
        self.from = Some(from);
        self.until = duration.map(|duration| from.saturating_add(duration));
        self.end = from;
        // Only what knows the time is made anew. Histograms are large, and nothing is in them yet: memory
        // that was given back and is taken again has to be cleared, and is then resident although no
        // operation ever touches it.
        let LoadOutcome { read, write, trim, flush, .. } = &mut self.outcome;
        for direction in [read, write, trim, flush] {
            direction.series = Series::starting_at(from, duration.unwrap_or(Nanos::ZERO));
        }
        self.outcome.in_flight_max = 0;
        self.outcome.latencies_late = 0;
        self.outcome.unstarted = 0;
    }

    /// Returns true if measuring has begun or will at a known time.
    #[inline]
    pub(crate) fn is_measuring(&self) -> bool {
        self.from.is_some()
    }

    /// Returns true if an operation that was meant to start at `time` counts.
    #[inline]
    fn counts(&self, time: Nanos) -> bool {
        self.from.is_some_and(|from| time >= from) && self.until.is_none_or(|until| time < until)
    }

    /// An operation meant to start at `intended` starts `lateness` after, with `interval` between intended
    /// times.
    #[inline]
    pub(crate) fn started_late(&mut self, intended: Nanos, lateness: Nanos, interval: Nanos) {
        if self.counts(intended) {
            self.outcome.backlog_max = self.outcome.backlog_max.max(lateness);
            self.outcome.late_starts += u64::from(lateness > interval);
        }
    }

    /// Notes that nothing starts any more from `now` on, `unstarted` operations that were due among them.
    pub(crate) fn ended(&mut self, now: Nanos, unstarted: u64) {
        if !self.stream_ended {
            self.stream_ended = true;
            self.end = self.end.max(self.until.map_or(now, |until| until.min(now)));
            self.outcome.unstarted = unstarted;
        }
    }

    /// Notes that `count` requests are in flight.
    #[inline]
    pub(crate) fn in_flight(&mut self, count: usize) {
        self.outcome.in_flight_max = self.outcome.in_flight_max.max(count as u64);
    }

    /// The `count` requests that are recorded next may have completed long before it was seen.
    #[cold]
    pub(crate) fn came_late(&mut self, count: u64) {
        self.outcome.latencies_late += count;
    }

    /// A request completed, well or not.
    #[inline]
    pub(crate) fn completed(&mut self, request: &InFlight, answer: &Answer) {
        if self.run.takes(request, answer) {
            self.run.count += 1;
        } else {
            self.completed_unlike(request, answer);
        }
    }

    /// Records a completion that is not like those before it.
    fn completed_unlike(&mut self, request: &InFlight, answer: &Answer) {
        self.settle();
        let failure = Failure::from_outcome(answer.outcome);
        let group_start = self.group(request, answer, failure.is_some());
        // A flush counts with the writes that it makes durable.
        let counts = self.counts(group_start.unwrap_or(request.intended_at));
        if let Some(failure) = failure {
            if counts {
                self.end = self.end.max(answer.completed_at);
                self.outcome.direction_mut(request.kind).count_failures(failure, 1);
            }
            return;
        }
        if let (Some(first), true) = (group_start, counts) {
            self.outcome.durable.record(answer.completed_at.since(first));
        }
        self.run = Run {
            kind: request.kind,
            intended_at: request.intended_at,
            submitted_at: answer.submitted_at,
            completed_at: answer.completed_at,
            bytes: answer.bytes,
            counts,
            count: 1,
        };
    }

    /// Enters what is counted. Due after each batch, so that totals are true and the window may begin.
    #[inline]
    pub(crate) fn settle(&mut self) {
        let Run { kind, intended_at, submitted_at, completed_at, bytes, counts, count } = self.run;
        if count == 0 {
            return;
        }
        self.run.count = 0;
        let total = &mut self.totals[kind as usize];
        total.0 += count;
        total.1 += bytes.0 * count;
        if !counts {
            return;
        }
        self.end = self.end.max(completed_at);
        let direction = self.outcome.direction_mut(kind);
        let latency = completed_at.since(submitted_at);
        if let Some(histogram) = &mut direction.latency_from_intended_start {
            histogram.record_n(completed_at.since(intended_at), count);
        }
        direction.bytes += bytes * count;
        direction.series.record_n(SeriesEvent { at: completed_at, bytes: bytes.0, latency }, count);
        direction.latency.record_n(latency, count);
    }

    /// Keeps the group of writes up to date; of a flush that succeeded, when its group began.
    #[inline]
    fn group(&mut self, request: &InFlight, answer: &Answer, failed: bool) -> Option<Nanos> {
        match request.kind {
            Kind::Write if !failed => {
                let is_scheduled = self.outcome.write.latency_from_intended_start.is_some();
                let start = if is_scheduled { request.intended_at } else { answer.submitted_at };
                self.group_start = Some(self.group_start.map_or(start, |at| at.min(start)));
                None
            }
            Kind::Flush if !failed => self.group_start.take(),
            _ => None,
        }
    }

    /// Returns the operations of each kind that completed since the start, warm-up included, and their bytes.
    pub(crate) fn totals(&self) -> [(u64, u64); Kind::COUNT] {
        self.totals
    }

    /// Returns the figures that count until now, after a [`settle`](Self::settle).
    pub(crate) fn figures(&self) -> LoadOutcome {
        let length = self.from.map_or(Nanos::ZERO, |from| self.end.since(from));
        LoadOutcome { length, ending: Ending::Interrupted, ..self.outcome.clone() }
    }

    /// Ends the recording. With a cool-down the window ends with the workload and not with its last
    /// completion.
    pub(crate) fn finish(mut self, ending: Ending, has_cooldown: bool) -> LoadOutcome {
        self.settle();
        let end = match self.until {
            Some(until) if has_cooldown => self.end.min(until),
            _ => self.end,
        };
        self.outcome.length = self.from.map_or(Nanos::ZERO, |from| end.since(from));
        self.outcome.ending = ending;
        self.outcome
    }
}
