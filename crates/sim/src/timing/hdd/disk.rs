//! The disk as [`Mechanics`]: one arm, a queue, and the selection of the next access.
//!
//! The next access is the one that can start first, counting seek and rotation (shortest access time first),
//! with a bonus for waiting time so that none starves. An access that follows the last sector without a gap
//! goes first, since it passes under the head anyway.

use std::collections::VecDeque;

use plumb_block::{Bytes, Nanos};

use super::geometry::Place;
use super::parameters::HddParameters;
use super::positioning::{Arm, Positioning};
use super::read_ahead::ReadAhead;
use crate::command::{SECTOR, Sectors};
use crate::timing::mechanics::{Job, JobId, JobKind, Mechanics, Urgency};

/// Job that waits for the arm, reduced to the data for its selection.
#[derive(Debug, Clone, Copy)]
struct WaitingJob {
    place: Place,
    writes: bool,
    arrived: u64,
    /// Penalty in nanoseconds for a job that nobody waits for; 0 otherwise.
    handicap: i64,
}

/// Job being executed.
#[derive(Debug, Clone, Copy)]
struct Current {
    job: Job,
    /// Place where it starts.
    place: Place,
    done: u64,
}

/// A spinning disk.
#[derive(Debug)]
pub struct Hdd {
    disk: Positioning,
    physical: u64,
    window: usize,
    /// Waiting time counts divided by `1 << patience_shift`.
    patience_shift: u32,
    handicap: i64,
    arm: Arm,
    /// End of the last access, its time and its kind.
    last: Option<(u64, u64, JobKind)>,
    /// Jobs to choose from; stored contiguously because all are examined each time.
    queue: Vec<WaitingJob>,
    /// Full jobs, in the order of `queue`.
    jobs: Vec<Job>,
    current: Option<Current>,
    /// Jobs done without the arm, in order of time.
    unmoved: VecDeque<(JobId, u64)>,
    read_ahead: ReadAhead,
}

impl Hdd {
    /// Creates a disk with `parameters`, of which the first `size` bytes are used, with the arm at the outer
    /// edge.
    pub fn new(parameters: &HddParameters, size: Bytes) -> Self {
        Self {
            disk: Positioning::new(parameters, size),
            physical: parameters.physical_sector.0.0 / SECTOR.0,
            window: parameters.reorder_window as usize,
            patience_shift: parameters.patience.ilog2(),
            handicap: parameters.background_handicap.0.0 as i64,
            arm: Arm::default(),
            last: None,
            queue: Vec::with_capacity(256),
            jobs: Vec::with_capacity(256),
            current: None,
            unmoved: VecDeque::new(),
            read_ahead: ReadAhead::new(
                parameters.read_ahead_segments as usize,
                parameters.read_ahead.0.0 / SECTOR.0,
            ),
        }
    }

    /// Selects the job that can start first. Returns its index and start.
    fn choose(&self, now: u64) -> Option<(usize, u64)> {
        if let Some(index) = self.following(now) {
            return Some((index, now + self.disk.gap_before(self.jobs[index].sectors.first)));
        }
        let mut best = (usize::MAX, i64::MAX, 0);
        for (index, waiting) in self.queue.iter().enumerate() {
            let credit = ((now - waiting.arrived) >> self.patience_shift) as i64;
            let travel = self.disk.travel(self.arm, &waiting.place, waiting.writes);
            let begin = travel + self.disk.rotation(now + travel, &waiting.place, travel > 0);
            let score = begin as i64 + waiting.handicap - credit;
            // Rarely true: a new minimum becomes less likely.
            if score < best.1 {
                best = (index, score, now + begin);
            }
        }
        (best.0 != usize::MAX).then_some((best.0, best.2))
    }

    /// Returns the index of the job that continues where the last access has just ended.
    fn following(&self, now: u64) -> Option<usize> {
        let (next, _, kind) = self.last.filter(|(_, ended, _)| *ended == now)?;
        self.jobs.iter().position(|job| job.sectors.first == next && job.kind == kind)
    }

    /// Starts the next job, if there is one.
    fn start(&mut self, now: u64) {
        let Some((index, begin)) = self.choose(now) else { return };
        let WaitingJob { place, .. } = self.queue.swap_remove(index);
        let job = self.jobs.swap_remove(index);
        self.read_ahead.stop(now, &self.disk);
        let done = begin + self.disk.transfer_from(place, job.sectors) + self.read_first(&job);
        self.current = Some(Current { job, place, done });
    }

    /// Returns the extra time of a write of partial physical sectors, which reads them first and returns a
    /// revolution later.
    fn read_first(&self, job: &Job) -> u64 {
        let whole = (job.sectors.first | job.sectors.count).is_multiple_of(self.physical);
        if job.kind == JobKind::Write && !whole { self.disk.revolution() } else { 0 }
    }

    /// Records the end of the current job, which leaves the arm after it.
    fn finish(&mut self, Current { job, place, done }: Current) {
        let Sectors { first, count } = job.sectors;
        self.arm = self.disk.arm_after(place, job.sectors);
        self.last = Some((first + count, done, job.kind));
        if job.kind == JobKind::Read {
            self.read_ahead.keep(job.sectors);
        }
        self.start(done);
        if self.current.is_none() && job.kind == JobKind::Read {
            let gap = self.disk.gap_before(first + count);
            self.read_ahead.stream_from(job.sectors, done, gap);
        }
    }

    /// Answers a read from the buffer, or from the read-ahead in progress. Returns false if neither has it.
    fn read_from_buffer(&mut self, now: u64, job: Job) -> bool {
        if self.current.is_none() {
            self.read_ahead.catch_up(now, &self.disk);
        }
        if self.read_ahead.holds(job.sectors) {
            self.unmoved.push_back((job.id, now));
            return true;
        }
        if self.current.is_some() {
            return false;
        }
        let Some(done) = self.read_ahead.arrival(job.sectors, &self.disk) else { return false };
        self.read_ahead.stop(now, &self.disk);
        self.current = Some(Current { job, place: self.disk.locate(job.sectors.first), done });
        true
    }
}

impl Mechanics for Hdd {
    fn submit(&mut self, now: Nanos, job: Job) {
        match job.kind {
            JobKind::Trim => return self.unmoved.push_back((job.id, now.0)),
            _ if job.sectors.count == 0 => return self.unmoved.push_back((job.id, now.0)),
            JobKind::Read if self.read_from_buffer(now.0, job) => return,
            JobKind::Read => {}
            JobKind::Write => self.read_ahead.forget(job.sectors),
        }
        self.queue.push(WaitingJob {
            place: self.disk.locate(job.sectors.first),
            writes: job.kind == JobKind::Write,
            arrived: now.0,
            handicap: if job.urgency == Urgency::Background { self.handicap } else { 0 },
        });
        self.jobs.push(job);
        if self.current.is_none() {
            self.start(now.0);
        }
    }

    fn hurry(&mut self, _now: Nanos, job: JobId) {
        if let Some(index) = self.jobs.iter().position(|waiting| waiting.id == job) {
            self.queue[index].handicap = 0;
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let moved = self.current.map(|current| current.done);
        let unmoved = self.unmoved.front().map(|(_, at)| *at);
        match (moved, unmoved) {
            (Some(moved), Some(unmoved)) => Some(Nanos(moved.min(unmoved))),
            (one, other) => one.or(other).map(Nanos),
        }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<(JobId, Nanos)>) {
        while let Some(next) = self.next_event()
            && next <= now
        {
            if let Some((id, at)) = self.unmoved.front().copied().filter(|(_, at)| *at <= next.0) {
                self.unmoved.pop_front();
                done.push((id, Nanos(at)));
            } else if let Some(current) = self.current.take() {
                done.push((current.job.id, Nanos(current.done)));
                self.finish(current);
            }
        }
    }

    fn parallelism(&self) -> usize {
        self.window
    }

    fn power_cut(&mut self, _now: Nanos) {
        self.queue.clear();
        self.jobs.clear();
        self.current = None;
        self.unmoved.clear();
        self.read_ahead.clear();
        self.last = None;
        self.arm = Arm::default();
    }
}
