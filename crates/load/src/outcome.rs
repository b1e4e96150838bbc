//! Measurements of a load, and their conversion to the result data of `measure`.

use plumb_block::{Bytes, Errno, Nanos, Outcome};
use plumb_measure::process::OwnThread;
use plumb_measure::{ApplicationSide, Histogram, Quality, Series, Steadiness, VerifyResult};
use serde::{Deserialize, Serialize};

use crate::in_flight::Kind;

/// Measurements of a load over all workers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadOutcome {
    /// Reads.
    pub read: Direction,
    /// Writes, each timed from submission to completion: acknowledged, durable only with FUA.
    pub write: Direction,
    /// Trims.
    pub trim: Direction,
    /// Flushes.
    pub flush: Direction,
    /// Time from the submission of the first write of each group to the end of the flush that made the group
    /// durable; with a flush after every write, the latency of a durable write. With a rate limit since the
    /// intended start of that write. One entry for each successful flush.
    pub durable: Histogram,
    /// Length of the window: from the end of the warm-up to the end of the workload, or to the last
    /// completion if that was later; with a cool-down always to the end of the workload.
    pub length: Nanos,
    /// Reason for the end.
    pub ending: Ending,
    /// Largest number of requests in flight, summed over workers.
    pub in_flight_max: u64,
    /// Number of latencies that may be recorded too long by more than
    /// [`LATENCY_EXCESS_MAX`](crate::LATENCY_EXCESS_MAX): those of batches in which a request, or the thread
    /// itself, stalled.
    pub latencies_late: u64,
    /// Number of operations that started more than one interval late, with a rate limit.
    pub late_starts: u64,
    /// Longest delay of an operation after its intended time, with a rate limit.
    pub backlog_max: Nanos,
    /// Number of operations, with a rate limit, whose intended start was before the end and which did not
    /// start because the operations before them took too long. They have no latency; their absence is the
    /// measurement.
    pub unstarted: u64,
    /// Processor time of each worker's thread, in order; `None` if it is not recorded, and in virtual time.
    pub worker_cpu: Vec<Option<OwnThread>>,
    /// Findings on the data that was read; `None` without verification.
    pub verified: Option<VerifyResult>,
    /// Transactions, if the load is a program; `None` for block requests.
    pub transactions: Option<Box<Transactions>>,
}

/// Transactions of a program, and its calls for them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Transactions {
    /// Latencies of whole transactions, as seen by the application.
    pub latency: Histogram,
    /// Latencies of calls, by the name of their kind; kinds without calls are left out.
    pub calls: Vec<(String, Histogram)>,
    /// Notes for the reader of the figures, each once.
    pub notes: Vec<String>,
}

/// Operations of one direction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Direction {
    /// Service times of completed operations.
    pub latency: Histogram,
    /// Times since the intended start; `None` without a rate limit, and for flushes, which have no schedule.
    pub latency_from_intended_start: Option<Histogram>,
    /// Number of bytes that completed operations moved.
    pub bytes: Bytes,
    /// Number of failed requests, by kind of failure.
    pub errors: Vec<(Failure, u64)>,
    /// Completed operations over time.
    pub series: Series,
}

/// Failure of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Failure {
    /// Failure with an error number.
    Errno(Errno),
    /// Failure without an answer.
    Unknown,
    /// The device lost power.
    PowerLost,
}

/// Way in which a load ended without a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ending {
    /// The workload ran to its end.
    Complete,
    /// The run was stopped earlier; the measurements until then are valid.
    Interrupted,
}

impl Failure {
    /// Returns the failure for `outcome`; `None` if it is not a failure.
    pub fn from_outcome(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Done => None,
            Outcome::Failed(errno) => Some(Self::Errno(errno)),
            Outcome::Unknown => Some(Self::Unknown),
            Outcome::PowerLost => Some(Self::PowerLost),
        }
    }
}

impl Direction {
    /// Creates an empty outcome. `expected` is the expected length, as far as known.
    pub(crate) fn starting_at(start: Nanos, expected: Nanos, scheduled: bool) -> Self {
        Self {
            latency: Histogram::new(),
            latency_from_intended_start: scheduled.then(Histogram::new),
            bytes: Bytes(0),
            errors: Vec::new(),
            series: Series::starting_at(start, expected),
        }
    }

    /// Returns the number of completed operations.
    pub fn operations(&self) -> u64 {
        self.latency.count()
    }

    /// Returns the latencies of operations, like
    /// [`ApplicationSide`](plumb_measure::ApplicationSide::operation_latency): since the intended start if
    /// there is one.
    pub fn operation_latency(&self) -> &Histogram {
        self.latency_from_intended_start.as_ref().unwrap_or(&self.latency)
    }

    /// Returns the number of failures.
    pub fn failures(&self) -> u64 {
        self.errors.iter().map(|(_, count)| count).sum()
    }

    /// Adds the counts of `other`. The result is exact, in any order.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        if let Some(theirs) = &other.latency_from_intended_start {
            self.latency_from_intended_start.get_or_insert_with(Histogram::new).merge(theirs);
        }
        self.bytes += other.bytes;
        for (failure, count) in &other.errors {
            self.count_failures(*failure, *count);
        }
        self.series.merge(&other.series);
    }

    /// Adds measurements of the same time, or of a window that began `after` this one by the given time.
    fn join(&mut self, other: &Self, after: Option<Nanos>) {
        let Some(length) = after else { return self.merge(other) };
        let mut series = std::mem::replace(&mut self.series, other.series.clone());
        series.append(length, &other.series);
        self.merge(other);
        self.series = series;
    }

    pub(crate) fn count_failures(&mut self, failure: Failure, count: u64) {
        match self.errors.iter_mut().find(|(known, _)| *known == failure) {
            Some((_, counted)) => *counted += count,
            None => self.errors.push((failure, count)),
        }
    }

    /// Returns the application side of a window of `length`.
    pub fn application(&self, length: Nanos) -> ApplicationSide {
        let seconds = length.as_secs_f64();
        let rate = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let operations = self.operations();
        ApplicationSide {
            operations,
            errors: self.failures(),
            bytes: self.bytes.0,
            seconds,
            iops: rate(operations as f64),
            bytes_per_second: rate(self.bytes.0 as f64),
            io_bytes_mean: (operations > 0).then(|| self.bytes.0 as f64 / operations as f64),
            latency: self.latency.summary(),
            latency_from_intended_start: self
                .latency_from_intended_start
                .as_ref()
                .and_then(Histogram::summary),
            in_flight_mean: (seconds > 0.0).then(|| self.latency.sum_ns() as f64 / 1e9 / seconds),
        }
    }
}

impl Transactions {
    /// Adds the results of another program, or of the same one in another window.
    fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        for (name, theirs) in &other.calls {
            match self.calls.iter_mut().find(|(known, _)| known == name) {
                Some((_, mine)) => mine.merge(theirs),
                None => self.calls.push((name.clone(), theirs.clone())),
            }
        }
        let is_new = |note: &&String| !self.notes.contains(note);
        let notes: Vec<_> = other.notes.iter().filter(is_new).cloned().collect();
        self.notes.extend(notes);
    }
}

impl LoadOutcome {
    /// Returns the outcome of a load without workers.
    pub fn empty() -> Self {
        Self::starting_at(Nanos::ZERO, Nanos::ZERO, false)
    }

    /// Creates an empty outcome. `expected` is the expected length, as far as known.
    pub(crate) fn starting_at(start: Nanos, expected: Nanos, scheduled: bool) -> Self {
        let direction = |scheduled| Direction::starting_at(start, expected, scheduled);
        Self {
            read: direction(scheduled),
            write: direction(scheduled),
            trim: direction(scheduled),
            flush: direction(false),
            durable: Histogram::new(),
            length: Nanos::ZERO,
            ending: Ending::Complete,
            in_flight_max: 0,
            latencies_late: 0,
            late_starts: 0,
            backlog_max: Nanos::ZERO,
            unstarted: 0,
            worker_cpu: Vec::new(),
            verified: None,
            transactions: None,
        }
    }

    /// Returns the sum of outcomes that were measured at the same time.
    pub fn together<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = all.into_iter();
        let Some(mut whole) = all.next().cloned() else { return Self::empty() };
        all.for_each(|more| whole.merge(more));
        whole
    }

    /// Adds another worker or another target that ran at the same time.
    pub fn merge(&mut self, other: &Self) {
        self.join(other, None);
        self.length = self.length.max(other.length);
        if other.ending == Ending::Interrupted {
            self.ending = Ending::Interrupted;
        }
        self.in_flight_max += other.in_flight_max;
        self.worker_cpu.extend_from_slice(&other.worker_cpu);
    }

    /// Adds the next window of the same worker, as if the two were one.
    pub fn append(&mut self, next: &Self) {
        self.join(next, Some(self.length));
        self.length += next.length;
        self.ending = next.ending;
        self.in_flight_max = self.in_flight_max.max(next.in_flight_max);
        for (mine, theirs) in self.worker_cpu.iter_mut().zip(&next.worker_cpu) {
            *mine = mine.zip(*theirs).map(|(mine, theirs)| mine.plus(theirs));
        }
    }

    /// Adds the values that can be added however the two windows lie.
    fn join(&mut self, other: &Self, after: Option<Nanos>) {
        self.read.join(&other.read, after);
        self.write.join(&other.write, after);
        self.trim.join(&other.trim, after);
        self.flush.join(&other.flush, after);
        self.durable.merge(&other.durable);
        self.latencies_late += other.latencies_late;
        self.late_starts += other.late_starts;
        self.backlog_max = self.backlog_max.max(other.backlog_max);
        self.unstarted += other.unstarted;
        if let Some(theirs) = &other.verified {
            self.verified.get_or_insert_default().merge(theirs);
        }
        if let Some(theirs) = &other.transactions {
            self.transactions.get_or_insert_default().merge(theirs);
        }
    }

    /// Returns the number of completed transactions; 0 if the load is not a program.
    pub fn transaction_count(&self) -> u64 {
        self.transactions.as_ref().map_or(0, |transactions| transactions.latency.count())
    }

    /// Returns the number of flushes per transaction; `None` if there was no transaction.
    pub fn syncs_per_transaction(&self) -> Option<f64> {
        let count = self.transaction_count();
        (count > 0).then(|| self.flush.operations() as f64 / count as f64)
    }

    /// Returns transactions per second; `None` if no time passed.
    pub fn transactions_per_second(&self) -> Option<f64> {
        let seconds = self.length.as_secs_f64();
        (seconds > 0.0).then(|| self.transaction_count() as f64 / seconds)
    }

    /// Returns the record of requests of `kind`.
    #[inline]
    pub(crate) fn direction_mut(&mut self, kind: Kind) -> &mut Direction {
        match kind {
            Kind::Read => &mut self.read,
            Kind::Write => &mut self.write,
            Kind::Trim => &mut self.trim,
            Kind::Flush => &mut self.flush,
        }
    }

    /// Returns reads, writes and trims as one direction.
    pub fn operations(&self) -> Direction {
        let mut all = self.read.clone();
        all.merge(&self.write);
        all.merge(&self.trim);
        all
    }

    /// Returns the application side: reads, writes and trims together.
    pub fn application(&self) -> ApplicationSide {
        self.operations().application(self.length)
    }

    /// Returns the quality facts that the load itself knows about its measurement; others stay null.
    pub fn quality(&self) -> Quality {
        let all = self.operations();
        let mut quality = Quality {
            worker_busy: self.worker_busy(),
            worker_waiting: self.most(|thread| thread.waiting),
            ..Quality::default()
        };
        let points = all.series.whole_points(self.length);
        Steadiness::from_series(&points, all.series.width()).put_into(&mut quality);
        quality
    }

    /// Returns the share of the window during which the busiest worker's thread was on a processor; `None` if
    /// unknown.
    pub fn worker_busy(&self) -> Option<f64> {
        self.most(|thread| thread.running)
    }

    /// Returns the largest share of the window that `of` has for a worker's thread; `None` if unknown.
    fn most(&self, of: impl Fn(&OwnThread) -> Nanos) -> Option<f64> {
        let most = self.worker_cpu.iter().flatten().map(of).max()?;
        (self.length > Nanos::ZERO).then(|| most.as_secs_f64() / self.length.as_secs_f64())
    }
}
