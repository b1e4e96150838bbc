//! A Ceph OSD on one disk, log and data together, simulated as a host of any device. The study's file chooses
//! the facts about the load that field report D does not give.
//!
//! ```text
//!   small write ──► log: append, fdatasync ──► acknowledged ──► 64 of them: overwritten in place (direct)
//!   large write ──► data: direct ──► fdatasync of the data ──► log: append, fdatasync ──► acknowledged
//! ```
//!
//! One thread commits (kv_sync_thread): it takes all waiting transactions, makes the data durable if any was
//! written since the last commit, appends to the log, and syncs the log. The log is written through the page
//! cache, so the fdatasync of the log writes and then flushes. The data is written directly, so its fdatasync
//! only flushes. A kernel that assumes a disabled cache sends no flush. Every fdatasync is measured from call
//! to return, and every small write from arrival to acknowledgement.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{
    Bytes, Clock as _, Completion, Device, Error, ErrorKind, Lba, LbaRange, Nanos, Op, Pattern, Payload,
    Pool, PoolShape, Queue, QueueOptions, Request, Result, Tag, Time, Wait, wait_any,
};
use plumb_measure::Histogram;
use plumb_workload::ByteRange;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Load of the OSD's clients, costs of its host, and limits of the run, as keys of the study's file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreLoad {
    /// Writes that go through the log; their lengths are uniformly distributed from 4 KiB.
    small_writes_per_second: f64,
    small_max_kib: u64,
    /// Writes that go straight to the data.
    large_writes_per_second: f64,
    large_kib: u64,
    /// Reads that reach the disk.
    reads_per_second: f64,
    read_kib: u64,
    /// Number of overwrites that are collected before they are written (bluestore_deferred_batch_ops_hdd).
    deferred_batch: usize,
    /// Mean time that a call costs the host besides the drive, exponentially distributed.
    call_us: u64,
    /// Part of the disk that holds data.
    filled: f64,
    /// Number of syncs at which the run ends; `None`: unlimited.
    syncs_max: Option<u64>,
    /// Time in seconds at which the run ends.
    seconds_max: u64,
}

/// Measurements of the store.
#[derive(Debug, Default)]
pub(crate) struct StoreFigures {
    /// Time that every fdatasync took.
    pub(crate) syncs: Histogram,
    /// Time that small writes took until they were acknowledged.
    pub(crate) writes: Histogram,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    SmallWrite,
    LargeWrite,
    Read,
    /// The call to sync the log has begun, and the log must be written.
    LogCalled,
}

/// Tags of requests, by their purpose.
const READ: Tag = Tag(0);
const LARGE_DATA: Tag = Tag(1);
const DEFERRED: Tag = Tag(2);
const LOG: Tag = Tag(3);
const DATA_FLUSH: Tag = Tag(4);
const LOG_FLUSH: Tag = Tag(5);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Committer {
    Idle,
    SyncingData(Nanos),
    SyncingLog(Nanos),
}

/// Bytes of metadata that each transaction adds to the log.
const METADATA: u64 = 2048;
/// Length at which the log file is recycled.
const LOG_LENGTH: u64 = 64 << 20;
/// Range of a flush.
const NOWHERE: ByteRange = ByteRange { offset: Bytes(0), length: Bytes(0) };
/// Unit of all offsets and lengths.
const UNIT: u64 = 4096;
/// Longest write of the log, and size of a buffer.
const LOG_WRITE_MAX: u64 = 512 << 10;
const DEPTH: u32 = 64;

/// The store, with its disk.
pub(crate) struct ObjectStore<'a> {
    device: Arc<dyn Device>,
    queue: Box<dyn Queue>,
    time: &'a Time,
    load: StoreLoad,
    chance: Xoshiro256PlusPlus,
    due: BinaryHeap<Reverse<(Nanos, u64, Due)>>,
    /// Requests for which the queue has no room yet.
    backlog: VecDeque<Request>,
    /// Number of requests in the queue.
    in_flight: u32,
    numbers: u64,
    committer: Committer,
    /// Transactions that wait for the committer: bytes for the log, and the arrival time of each small write.
    queued: (u64, Vec<Nanos>),
    committing: (u64, Vec<Nanos>),
    data_written: bool,
    log_at: u64,
    deferred: usize,
    served: StoreFigures,
}

impl<'a> ObjectStore<'a> {
    /// Creates an OSD on all of `device`.
    ///
    /// # Errors
    /// If the device cannot open a queue for the OSD.
    pub(crate) fn new(device: Arc<dyn Device>, time: &'a Time, load: StoreLoad, seed: u64) -> Result<Self> {
        let info = device.info();
        let shape = PoolShape {
            buffer: Bytes(LOG_WRITE_MAX),
            count: DEPTH,
            alignment: info.dma_alignment.max(Bytes(UNIT)),
        };
        let queue = device.open_queue(QueueOptions { depth: DEPTH, pool: Pool::new(shape)? })?;
        Ok(Self {
            device,
            queue,
            time,
            load,
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
            due: BinaryHeap::new(),
            backlog: VecDeque::new(),
            in_flight: 0,
            numbers: 0,
            committer: Committer::Idle,
            queued: (0, Vec::new()),
            committing: (0, Vec::new()),
            data_written: false,
            log_at: 0,
            deferred: 0,
            served: StoreFigures::default(),
        })
    }

    /// Serves until a limit is reached, or `stop` is set.
    ///
    /// # Errors
    /// If a request fails, or is never answered.
    pub(crate) fn serve(mut self, stop: &AtomicBool) -> Result<StoreFigures> {
        let end = self.now().saturating_add(Nanos::secs(self.load.seconds_max));
        for due in [Due::SmallWrite, Due::LargeWrite, Due::Read] {
            self.arrive_again(due);
        }
        let mut completions = Vec::new();
        let most = self.load.syncs_max.unwrap_or(u64::MAX);
        while self.served.syncs.count() < most && self.now() < end && !stop.load(Ordering::Relaxed) {
            while self.due.peek().is_some_and(|Reverse((at, ..))| *at <= self.time.now())
                && let Some(Reverse((_, _, due))) = self.due.pop()
            {
                self.happen(due);
            }
            self.submit_backlog();
            self.queue.poll(Wait::NONE, &mut completions)?;
            if completions.is_empty() {
                let next = self.due.peek().map(|Reverse((at, ..))| *at);
                wait_any([&*self.queue], next, &mut &*self.time)?;
                continue;
            }
            for completion in completions.drain(..) {
                self.completed(&completion)?;
            }
        }
        self.finish()
    }

    /// Waits for the requests in flight, so that they do not affect later measurements.
    fn finish(mut self) -> Result<StoreFigures> {
        let mut completions = Vec::new();
        self.backlog.clear();
        while self.in_flight > 0 {
            self.queue.poll(Wait::NONE, &mut completions)?;
            self.in_flight -= completions.drain(..).count() as u32;
            if self.in_flight > 0 && !wait_any([&*self.queue], None, &mut &*self.time)? {
                return Err(Error::new(ErrorKind::PowerLost, "wait for", self.device.info().name));
            }
        }
        Ok(self.served)
    }

    fn now(&self) -> Nanos {
        self.time.now()
    }

    fn exponential(&mut self, mean: f64) -> Nanos {
        let unit = (self.chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        Nanos((-mean * libm::log(1.0 - unit)) as u64)
    }

    fn note(&mut self, after: Nanos, due: Due) {
        self.numbers += 1;
        let at = self.now().saturating_add(after);
        self.due.push(Reverse((at, self.numbers, due)));
    }

    fn arrive_again(&mut self, due: Due) {
        let rate = match due {
            Due::SmallWrite => self.load.small_writes_per_second,
            Due::LargeWrite => self.load.large_writes_per_second,
            _ => self.load.reads_per_second,
        };
        if rate > 0.0 {
            let after = self.exponential(1e9 / rate);
            self.note(after, due);
        }
    }

    fn submit(&mut self, tag: Tag, op: Op, range: ByteRange) {
        self.numbers += 1;
        let block = self.device.info().logical_block.0;
        let range = LbaRange::new(Lba(range.offset.0 / block), range.length.0 / block);
        let payload = match op {
            Op::Write { .. } => {
                Payload::Pattern(Pattern { seed: 1, lba: range.lba, generation: self.numbers })
            }
            _ => Payload::None,
        };
        self.backlog.push_back(Request { tag, op, range, payload, deadline: None });
    }

    fn submit_backlog(&mut self) {
        while self.in_flight < DEPTH {
            let Some(request) = self.backlog.pop_front() else { return };
            match self.queue.submit(request) {
                Ok(()) => self.in_flight += 1,
                Err(full) => return self.backlog.push_front(full.0),
            }
        }
    }

    /// Returns a random place among the data.
    fn place(&mut self, length: Bytes) -> ByteRange {
        let filled = (self.device.info().size.0 as f64 * self.load.filled) as u64;
        let places = (filled.saturating_sub(length.0) / UNIT).max(1);
        ByteRange { offset: Bytes(self.chance.next_u64() % places * UNIT), length }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::SmallWrite => {
                let bytes = (1 + self.chance.next_u64() % ((self.load.small_max_kib << 10) / UNIT)) * UNIT;
                self.queued.0 += bytes + METADATA;
                let now = self.now();
                self.queued.1.push(now);
                self.arrive_again(due);
                self.commit();
            }
            Due::LargeWrite => {
                let place = self.place(Bytes::kib(self.load.large_kib));
                self.submit(LARGE_DATA, Op::Write { fua: false }, place);
                self.arrive_again(due);
            }
            Due::Read => {
                let place = self.place(Bytes::kib(self.load.read_kib));
                self.submit(READ, Op::Read, place);
                self.arrive_again(due);
            }
            Due::LogCalled => self.write_log(),
        }
    }

    fn completed(&mut self, completion: &Completion) -> Result<()> {
        self.in_flight -= 1;
        if !completion.outcome.is_done() {
            let because = format!("{:?}", completion.outcome);
            return Err(Error::new(ErrorKind::PowerLost, "use", self.device.info().name).because(because));
        }
        match completion.tag {
            DEFERRED => self.data_written = true,
            LARGE_DATA => {
                self.data_written = true;
                self.queued.0 += METADATA;
                self.commit();
            }
            LOG => self.submit(LOG_FLUSH, Op::Flush, NOWHERE),
            LOG_FLUSH | DATA_FLUSH => self.returned(),
            _ => {}
        }
        Ok(())
    }

    /// Begins a commit if none is under way and there is something to commit.
    fn commit(&mut self) {
        if self.committer != Committer::Idle || self.queued.0 == 0 {
            return;
        }
        self.committing = std::mem::take(&mut self.queued);
        if !std::mem::take(&mut self.data_written) {
            return self.call_log_sync();
        }
        self.committer = Committer::SyncingData(self.now());
        self.submit(DATA_FLUSH, Op::Flush, NOWHERE);
    }

    fn call_log_sync(&mut self) {
        self.committer = Committer::SyncingLog(self.now());
        // In real time, the calls cost this host their real time.
        let call = if self.time.is_virtual() { Nanos::micros(self.load.call_us).0 as f64 } else { 0.0 };
        let after = self.exponential(call);
        self.note(after, Due::LogCalled);
    }

    /// Writes the pages that the transactions have made dirty, including a last page that was not full
    /// before.
    fn write_log(&mut self) {
        let size = self.device.info().size.0;
        let log = LOG_LENGTH.min(size / 4 / UNIT * UNIT);
        let bytes = self.committing.0.min(log);
        if self.log_at % log + bytes > log {
            self.log_at += log - self.log_at % log;
        }
        let first = self.log_at % log / UNIT * UNIT;
        let end = (self.log_at % log + bytes).next_multiple_of(UNIT).min(log);
        self.log_at += bytes;
        // A write longer than a buffer has accumulated during a slow sync: only its first part is written.
        let most = self.device.info().transfer_max.0.min(LOG_WRITE_MAX);
        let base = size / 4 / UNIT * UNIT;
        let range = ByteRange { offset: Bytes(base + first), length: Bytes((end - first).min(most)) };
        self.submit(LOG, Op::Write { fua: false }, range);
    }

    fn returned(&mut self) {
        let now = self.now();
        match self.committer {
            Committer::Idle => {}
            Committer::SyncingData(since) => {
                self.served.syncs.record(now.since(since));
                self.call_log_sync();
            }
            Committer::SyncingLog(since) => {
                self.served.syncs.record(now.since(since));
                let acknowledged = std::mem::take(&mut self.committing.1);
                self.deferred += acknowledged.len();
                acknowledged.iter().for_each(|came| self.served.writes.record(now.since(*came)));
                if self.deferred >= self.load.deferred_batch {
                    for _ in 0..std::mem::take(&mut self.deferred) {
                        let place = self.place(Bytes(UNIT));
                        self.submit(DEFERRED, Op::Write { fua: false }, place);
                    }
                }
                self.committer = Committer::Idle;
                self.commit();
            }
        }
    }
}
