//! A Ceph OSD on one disk, log and data together, as a host that knows only commands and answers. What a field report
//! does not tell of its load is chosen in [`StoreLoad::MODERATE`].
//!
//! ```text
//!   small write ──► log: append, fdatasync ──► acknowledged ──► 64 of them: overwritten in place (direct)
//!   large write ──► data: direct ──► fdatasync of the data ──► log: append, fdatasync ──► acknowledged
//! ```
//!
//! One thread commits (kv_sync_thread): it takes all that has come, makes the data durable if any were written since the
//! last time, appends to the log, and syncs it. The log is written through the page cache, so the fdatasync of the log
//! writes and then flushes; the data are written directly, so theirs only flushes. A kernel that knows the cache to be
//! off sends no flush. Every fdatasync is measured from call to return.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use plumb_block::{Nanos, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use plumb_sim::command::{Command, CommandId, Sectors};
use plumb_sim::timing::{Event, Timing};

/// What clients do to the OSD, and what its host costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreLoad {
    /// Writes per second that go through the log.
    pub(crate) small_writes: f64,
    /// Their length in sectors, at most; at least 4 KiB, evenly spread.
    pub(crate) small_sectors_max: u64,
    /// Writes per second that go straight to the data.
    pub(crate) large_writes: f64,
    /// Their length in sectors.
    pub(crate) large_sectors: u64,
    /// Reads per second that reach the disk.
    pub(crate) reads: f64,
    /// Their length in sectors.
    pub(crate) read_sectors: u64,
    /// How many overwrites are collected (bluestore_deferred_batch_ops_hdd).
    pub(crate) deferred_batch: usize,
    /// What a call costs the host besides the drive, on average; exponentially spread.
    pub(crate) call: Nanos,
    /// Which part of the disk holds data.
    pub(crate) filled: f64,
}

impl StoreLoad {
    /// A moderately busy one: about half of what a disk at 7200 rpm can do.
    pub(crate) const MODERATE: Self = Self {
        small_writes: 40.0,
        small_sectors_max: 64,
        large_writes: 12.0,
        large_sectors: 256,
        reads: 30.0,
        read_sectors: 128,
        deferred_batch: 64,
        call: Nanos::micros(130),
        filled: 0.6,
    };
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    SmallWrite,
    LargeWrite,
    Read,
    /// The log is to be written, the call having begun.
    LogCalled,
    /// A sync returns to its caller.
    Returned,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    LargeData,
    Deferred,
    Log,
    DataFlush,
    LogFlush,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Committer {
    Idle,
    SyncingData(Nanos),
    SyncingLog(Nanos),
}

/// Bytes of metadata that each transaction adds to the log, in sectors.
const METADATA: u64 = 4;
/// The log file is recycled at this length, in sectors.
const LOG: u64 = (64 << 20) / 512;

/// The store, with its disk.
pub(crate) struct ObjectStore<'t> {
    drive: &'t mut dyn Timing,
    flushes: bool,
    load: StoreLoad,
    sectors: u64,
    chance: Xoshiro256PlusPlus,
    now: Nanos,
    due: BinaryHeap<Reverse<(Nanos, u64, Due)>>,
    inside: HashMap<CommandId, Purpose>,
    numbers: u64,
    committer: Committer,
    /// Transactions that wait for the committer: sectors for the log, and how many overwrites follow.
    queued: (u64, usize),
    committing: (u64, usize),
    data_written: bool,
    log_at: u64,
    deferred: usize,
    /// How long every fdatasync took.
    pub(crate) syncs: Vec<Nanos>,
}

impl<'t> ObjectStore<'t> {
    /// An OSD on `drive` of `sectors`, whose kernel sends flushes or not.
    pub(crate) fn new(
        drive: &'t mut dyn Timing,
        flushes: bool,
        sectors: u64,
        load: StoreLoad,
        seed: u64,
    ) -> Self {
        Self {
            drive,
            flushes,
            load,
            sectors,
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
            now: Nanos(0),
            due: BinaryHeap::new(),
            inside: HashMap::new(),
            numbers: 0,
            committer: Committer::Idle,
            queued: (0, 0),
            committing: (0, 0),
            data_written: false,
            log_at: 0,
            deferred: 0,
            syncs: Vec::new(),
        }
    }

    /// Runs until `count` syncs have been measured, or nothing can happen any more.
    pub(crate) fn run(&mut self, count: usize) {
        for due in [Due::SmallWrite, Due::LargeWrite, Due::Read] {
            self.arrive_again(due);
        }
        let mut events = Vec::new();
        while self.syncs.len() < count {
            let own = self.due.peek().map(|Reverse((at, ..))| *at);
            match self.drive.next_event() {
                Some(at) if own.is_none_or(|own| at <= own) => {
                    self.now = at;
                    self.drive.advance(at, &mut events);
                    for event in events.drain(..) {
                        if let Event::Completed { id, .. } = event {
                            self.completed(id);
                        }
                    }
                }
                _ => {
                    let Some(Reverse((at, _, due))) = self.due.pop() else { return };
                    self.now = at;
                    self.happen(due);
                }
            }
        }
    }

    fn unit(&mut self) -> f64 {
        (self.chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> Nanos {
        let unit = self.unit();
        Nanos((-mean * libm::log(1.0 - unit)) as u64)
    }

    fn note(&mut self, after: Nanos, due: Due) {
        self.numbers += 1;
        self.due.push(Reverse((self.now + after, self.numbers, due)));
    }

    fn arrive_again(&mut self, due: Due) {
        let rate = match due {
            Due::SmallWrite => self.load.small_writes,
            Due::LargeWrite => self.load.large_writes,
            _ => self.load.reads,
        };
        if rate > 0.0 {
            let after = self.exponential(1e9 / rate);
            self.note(after, due);
        }
    }

    fn submit(&mut self, purpose: Purpose, op: Op, sectors: Sectors) {
        self.numbers += 1;
        let id = CommandId(self.numbers);
        self.inside.insert(id, purpose);
        self.drive.submit(self.now, Command { id, op, sectors });
    }

    /// Somewhere among the data, aligned to 4 KiB.
    fn place(&mut self, count: u64) -> Sectors {
        let filled = (self.sectors as f64 * self.load.filled) as u64;
        Sectors { first: self.chance.next_u64() % (filled / 8) * 8, count }
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::SmallWrite => {
                let blocks = self.load.small_sectors_max / 8;
                let sectors = (1 + self.chance.next_u64() % blocks) * 8;
                self.queued = (self.queued.0 + sectors + METADATA, self.queued.1 + 1);
                self.arrive_again(due);
                self.commit();
            }
            Due::LargeWrite => {
                let place = self.place(self.load.large_sectors);
                self.submit(Purpose::LargeData, Op::Write { fua: false }, place);
                self.arrive_again(due);
            }
            Due::Read => {
                let place = self.place(self.load.read_sectors);
                self.submit(Purpose::Read, Op::Read, place);
                self.arrive_again(due);
            }
            Due::LogCalled => self.write_log(),
            Due::Returned => self.returned(),
        }
    }

    fn completed(&mut self, id: CommandId) {
        match self.inside.remove(&id) {
            None | Some(Purpose::Read) => {}
            Some(Purpose::Deferred) => self.data_written = true,
            Some(Purpose::LargeData) => {
                self.data_written = true;
                self.queued.0 += METADATA;
                self.commit();
            }
            Some(Purpose::Log) if self.flushes => self.submit(Purpose::LogFlush, Op::Flush, Sectors::NONE),
            Some(Purpose::Log | Purpose::LogFlush | Purpose::DataFlush) => self.note(Nanos(0), Due::Returned),
        }
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
        self.committer = Committer::SyncingData(self.now);
        if self.flushes {
            self.submit(Purpose::DataFlush, Op::Flush, Sectors::NONE);
        } else {
            // A system call that finds nothing to do.
            self.note(Nanos::micros(3), Due::Returned);
        }
    }

    fn call_log_sync(&mut self) {
        self.committer = Committer::SyncingLog(self.now);
        let after = self.exponential(self.load.call.0 as f64);
        self.note(after, Due::LogCalled);
    }

    /// Writes the pages that the transactions have made dirty: the last one, which was not full, once more.
    fn write_log(&mut self) {
        if self.log_at % LOG + self.committing.0 > LOG {
            self.log_at += LOG - self.log_at % LOG;
        }
        let first = self.log_at % LOG / 8 * 8;
        let end = (self.log_at % LOG + self.committing.0).next_multiple_of(8);
        self.log_at += self.committing.0;
        let base = self.sectors / 4 / 8 * 8;
        self.submit(
            Purpose::Log,
            Op::Write { fua: false },
            Sectors { first: base + first, count: end - first },
        );
    }

    fn returned(&mut self) {
        match self.committer {
            Committer::Idle => {}
            Committer::SyncingData(since) => {
                self.syncs.push(self.now.since(since));
                self.call_log_sync();
            }
            Committer::SyncingLog(since) => {
                self.syncs.push(self.now.since(since));
                self.deferred += self.committing.1;
                if self.deferred >= self.load.deferred_batch {
                    for _ in 0..std::mem::take(&mut self.deferred) {
                        let place = self.place(8);
                        self.submit(Purpose::Deferred, Op::Write { fua: false }, place);
                    }
                }
                self.committer = Committer::Idle;
                self.commit();
            }
        }
    }
}
