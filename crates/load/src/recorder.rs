//! What one worker records. Nothing here allocates for each operation.

use plumb_block::{Bytes, Nanos, Outcome};
use plumb_measure::SeriesEvent;

use crate::in_flight::{InFlight, Kind};
use crate::outcome::{Ending, Failure, LoadOutcome};

/// One worker's figures, and the group of writes that its next flush will make durable.
#[derive(Debug)]
pub(crate) struct Recorder {
    outcome: LoadOutcome,
    start: Nanos,
    /// The last completion, or the end of the workload's time if that is later.
    end: Nanos,
    stream_ended: bool,
    /// When the first write since the last flush was handed to the device.
    group_start: Option<Nanos>,
}

/// What came back for a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) submitted_at: Nanos,
    pub(crate) completed_at: Nanos,
    pub(crate) bytes: Bytes,
}

impl Recorder {
    pub(crate) fn starting_at(start: Nanos, expected: Nanos, scheduled: bool) -> Self {
        let outcome = LoadOutcome::starting_at(start, expected, scheduled);
        Self { outcome, start, end: start, stream_ended: false, group_start: None }
    }

    /// An operation starts `lateness` after its intended time, with `interval` between intended times.
    #[inline]
    pub(crate) fn started_late(&mut self, lateness: Nanos, interval: Nanos) {
        self.outcome.backlog_max = self.outcome.backlog_max.max(lateness);
        self.outcome.late_starts += u64::from(lateness > interval);
    }

    /// Nothing starts any more from `now` on, `unstarted` operations that were due among them.
    pub(crate) fn ended(&mut self, now: Nanos, unstarted: u64) {
        if !self.stream_ended {
            self.stream_ended = true;
            self.end = self.end.max(now);
            self.outcome.unstarted = unstarted;
        }
    }

    /// So many requests are in flight.
    #[inline]
    pub(crate) fn in_flight(&mut self, count: usize) {
        self.outcome.in_flight_max = self.outcome.in_flight_max.max(count as u64);
    }

    /// A request completed, well or not.
    #[inline]
    pub(crate) fn completed(&mut self, request: &InFlight, answer: Answer) {
        self.end = self.end.max(answer.completed_at);
        let direction = match request.kind {
            Kind::Read => &mut self.outcome.read,
            Kind::Write => &mut self.outcome.write,
            Kind::Flush => &mut self.outcome.flush,
        };
        if let Some(failure) = Failure::of(answer.outcome) {
            direction.count_failures(failure, 1);
            return;
        }
        let latency = answer.completed_at.since(answer.submitted_at);
        direction.latency.record(latency);
        if let Some(histogram) = &mut direction.latency_from_intended_start {
            histogram.record(answer.completed_at.since(request.intended_at));
        }
        direction.bytes += answer.bytes;
        direction.series.record(SeriesEvent { at: answer.completed_at, bytes: answer.bytes.0, latency });
        match request.kind {
            Kind::Read => {}
            Kind::Write => {
                let first = self.group_start.map_or(answer.submitted_at, |at| at.min(answer.submitted_at));
                self.group_start = Some(first);
            }
            Kind::Flush => {
                if let Some(first) = self.group_start.take() {
                    self.outcome.durable.record(answer.completed_at.since(first));
                }
            }
        }
    }

    /// Reads, writes and flushes that completed so far, and their bytes.
    pub(crate) fn totals(&self) -> [(u64, u64); 3] {
        [&self.outcome.read, &self.outcome.write, &self.outcome.flush]
            .map(|direction| (direction.operations(), direction.bytes.0))
    }

    /// Ends the recording.
    pub(crate) fn finish(mut self, ending: Ending) -> LoadOutcome {
        self.outcome.length = self.end.since(self.start);
        self.outcome.ending = ending;
        self.outcome
    }
}
