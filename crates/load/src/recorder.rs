//! Record of one worker. No operation allocates memory here.

use plumb_block::{Bytes, Nanos, Outcome};
use plumb_measure::{Series, SeriesEvent};

use crate::in_flight::{InFlight, Kind};
use crate::outcome::{Ending, Failure, LoadOutcome};

/// Figures of one worker, and the group of writes that its next flush will make durable.
#[derive(Debug)]
pub(crate) struct Recorder {
    outcome: LoadOutcome,
    /// Start of the measurement; earlier operations are not counted.
    from: Option<Nanos>,
    /// End of the measurement: operations with a later intended start are not counted.
    until: Option<Nanos>,
    /// Last counted completion, or the end of the workload if that is later.
    end: Nanos,
    stream_ended: bool,
    /// Submission of the first write since the last flush.
    group_start: Option<Nanos>,
    /// Operations that are counted but not yet entered.
    run: Run,
    totals: [(u64, u64); Kind::COUNT],
}

/// Successive operations with equal values: operations that are submitted together and seen together have the
/// same times, from two clock readings. They are entered together, since the figures are in many places that
/// are seldom in the processor cache; at the end of each batch at the latest.
#[derive(Debug, Clone, Copy)]
struct Run {
    kind: Kind,
    intended_at: Nanos,
    submitted_at: Nanos,
    completed_at: Nanos,
    bytes: Bytes,
    /// True if their intended start is in the window.
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

    /// Returns true if the operation has the same values as the run.
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

    /// Starts the measurement at `from`, and ends it `duration` later, if time ends it.
    pub(crate) fn measure(&mut self, from: Nanos, duration: Option<Nanos>) {
        self.from = Some(from);
        self.until = duration.map(|duration| from.saturating_add(duration));
        self.end = from;
        // Only the parts that depend on the time are created again. Histograms are large and still empty:
        // memory that is freed and allocated again must be cleared, and is then resident although no
        // operation ever uses it.
        let LoadOutcome { read, write, trim, flush, .. } = &mut self.outcome;
        for direction in [read, write, trim, flush] {
            direction.series = Series::starting_at(from, duration.unwrap_or(Nanos::ZERO));
        }
        self.outcome.in_flight_max = 0;
        self.outcome.latencies_late = 0;
        self.outcome.unstarted = 0;
    }

    /// Returns true if the measurement has begun or will begin at a known time.
    #[inline]
    pub(crate) fn is_measuring(&self) -> bool {
        self.from.is_some()
    }

    /// Returns true if an operation with the intended start `time` counts.
    #[inline]
    fn counts(&self, time: Nanos) -> bool {
        self.from.is_some_and(|from| time >= from) && self.until.is_none_or(|until| time < until)
    }

    /// Records that an operation with the intended start `intended` started `lateness` late, with `interval`
    /// between intended starts.
    #[inline]
    pub(crate) fn started_late(&mut self, intended: Nanos, lateness: Nanos, interval: Nanos) {
        if self.counts(intended) {
            self.outcome.backlog_max = self.outcome.backlog_max.max(lateness);
            self.outcome.late_starts += u64::from(lateness > interval);
        }
    }

    /// Records that no operation starts from `now` on, and that `unstarted` operations were due.
    pub(crate) fn ended(&mut self, now: Nanos, unstarted: u64) {
        if !self.stream_ended {
            self.stream_ended = true;
            self.end = self.end.max(self.until.map_or(now, |until| until.min(now)));
            self.outcome.unstarted = unstarted;
        }
    }

    /// Records that `count` requests are in flight.
    #[inline]
    pub(crate) fn in_flight(&mut self, count: usize) {
        self.outcome.in_flight_max = self.outcome.in_flight_max.max(count as u64);
    }

    /// Records that the next `count` requests may have completed long before that was seen.
    #[cold]
    pub(crate) fn came_late(&mut self, count: u64) {
        self.outcome.latencies_late += count;
    }

    /// Records a completion, successful or failed.
    #[inline]
    pub(crate) fn completed(&mut self, request: &InFlight, answer: &Answer) {
        if self.run.takes(request, answer) {
            self.run.count += 1;
        } else {
            self.completed_unlike(request, answer);
        }
    }

    /// Records a completion that differs from those before it.
    fn completed_unlike(&mut self, request: &InFlight, answer: &Answer) {
        self.settle();
        let failure = Failure::from_outcome(answer.outcome);
        let group_start = self.group(request, answer, failure.is_some());
        // A flush is counted with the writes that it makes durable.
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

    /// Enters the counted operations. Call after each batch, so that totals are correct and the window may
    /// begin.
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

    /// Updates the group of writes. For a successful flush, returns when its group began.
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

    /// Returns the completed operations of each kind since the start, with the warm-up, and their bytes.
    pub(crate) fn totals(&self) -> [(u64, u64); Kind::COUNT] {
        self.totals
    }

    /// Returns the counted figures so far, after a [`settle`](Self::settle).
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
