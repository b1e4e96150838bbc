//! Device requests of the file system: those that a call waits for, and those of write-back.

use std::collections::VecDeque;
use std::sync::Arc;

use plumb_block::{
    Bytes, Completion, Device, Error, ErrorKind, Lba, LbaRange, Nanos, Op, Outcome, Pattern, Payload, Pool,
    PoolShape, Queue, QueueOptions, Request, Result, Tag, Time, VirtualClock, Wait, Waiter as _, wait_any,
};

use super::state::PAGE;

/// Maximum number of requests in flight.
const DEPTH: u32 = 64;
/// Maximum number of write-back requests in flight, of the total [`DEPTH`].
const BACKGROUND_DEPTH: usize = 32;

/// Kind of a request: awaited or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Awaited,
    Background,
}

/// A run of pages of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pages {
    pub(super) first: u64,
    pub(super) count: u64,
}

pub(super) struct Io {
    device: Arc<dyn Device>,
    queue: Box<dyn Queue>,
    time: Time,
    completions: Vec<Completion>,
    /// Number of requests in flight that a call waits for.
    awaited: usize,
    background: usize,
    /// Pages to be written back, in order.
    waiting: VecDeque<Pages>,
    request_max: Bytes,
    generation: u64,
    failed: Option<Outcome>,
}

impl Io {
    pub(super) fn open(
        device: Arc<dyn Device>,
        clock: &Arc<VirtualClock>,
        request_max: Bytes,
    ) -> Result<Self> {
        let info = device.info();
        let shape = PoolShape { buffer: PAGE, count: 1, alignment: info.dma_alignment.max(Bytes(512)) };
        let queue = device.open_queue(QueueOptions { depth: DEPTH, pool: Pool::new(shape)? })?;
        Ok(Self {
            queue,
            time: Time::Virtual(Arc::clone(clock)),
            completions: Vec::new(),
            awaited: 0,
            background: 0,
            waiting: VecDeque::new(),
            request_max: request_max.min(info.transfer_max).max(PAGE),
            generation: 0,
            failed: None,
            device,
        })
    }

    /// Returns the number of pages of the device.
    pub(super) fn pages(&self) -> u64 {
        self.device.info().size.0 / PAGE.0
    }

    pub(super) fn now(&self) -> Nanos {
        (&self.time).now()
    }

    /// Lets the time `cost` pass, during which the device continues.
    pub(super) fn spend(&mut self, cost: Nanos) -> Result<()> {
        let until = self.now().saturating_add(cost);
        while self.now() < until {
            self.reap()?;
            wait_any([&*self.queue], Some(until), &mut &self.time)?;
        }
        self.reap()
    }

    /// Reads pages and waits for them.
    pub(super) fn read(&mut self, runs: &[Pages]) -> Result<()> {
        self.submit_all(Op::Read, runs, Kind::Awaited)?;
        self.settle("read")
    }

    /// Writes pages and waits for them. On a drive with a volatile cache they are not durable.
    pub(super) fn write(&mut self, runs: &[Pages]) -> Result<()> {
        self.submit_all(Op::Write { fua: false }, runs, Kind::Awaited)?;
        self.settle("write")
    }

    /// Writes one page durably.
    pub(super) fn write_durable(&mut self, page: u64) -> Result<()> {
        self.submit_all(Op::Write { fua: true }, &[Pages { first: page, count: 1 }], Kind::Awaited)?;
        self.settle("write")
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.submit(Op::Flush, LbaRange::EMPTY, Kind::Awaited)?;
        self.settle("flush")
    }

    /// Queues pages for write-back in the background.
    pub(super) fn write_back(&mut self, runs: impl IntoIterator<Item = Pages>) -> Result<()> {
        self.waiting.extend(runs);
        self.submit_waiting()
    }

    /// Returns the number of pages that are still to be written back.
    pub(super) fn unwritten(&self) -> usize {
        self.waiting.len() + self.background
    }

    /// Waits until a write-back request completes.
    pub(super) fn wait_for_room(&mut self) -> Result<()> {
        self.submit_waiting()?;
        self.wait()?;
        self.reap()
    }

    /// Waits until write-back is complete.
    pub(super) fn drain(&mut self) -> Result<()> {
        while self.unwritten() > 0 {
            self.wait_for_room()?;
        }
        self.settle("write")
    }

    fn submit_all(&mut self, op: Op, runs: &[Pages], kind: Kind) -> Result<()> {
        let (block, most) = (self.device.info().logical_block, self.request_max.0 / PAGE.0);
        let per_page = PAGE.0 / block.0;
        for run in runs {
            let mut at = 0;
            while at < run.count {
                let count = most.min(run.count - at);
                let range = LbaRange::new(Lba((run.first + at) * per_page), count * per_page);
                self.submit(op, range, kind)?;
                at += count;
            }
        }
        Ok(())
    }

    fn submit(&mut self, op: Op, range: LbaRange, kind: Kind) -> Result<()> {
        while self.awaited + self.background >= DEPTH as usize {
            self.wait()?;
            self.reap()?;
        }
        self.generation += 1;
        let payload = match op {
            Op::Write { .. } => {
                Payload::Pattern(Pattern { seed: 0, lba: range.lba, generation: self.generation })
            }
            _ => Payload::None,
        };
        let request = Request { tag: Tag(kind as u64), op, range, payload, deadline: None };
        self.queue.submit(request).map_err(|_| self.broken("is full although it has room"))?;
        match kind {
            Kind::Awaited => self.awaited += 1,
            Kind::Background => self.background += 1,
        }
        Ok(())
    }

    /// Submits waiting runs, up to the limit for write-back.
    fn submit_waiting(&mut self) -> Result<()> {
        while self.background < BACKGROUND_DEPTH {
            let Some(run) = self.waiting.pop_front() else { break };
            self.submit_all(Op::Write { fua: false }, &[run], Kind::Background)?;
        }
        Ok(())
    }

    /// Waits for all awaited requests; fails with the first failure since the last call.
    fn settle(&mut self, operation: &'static str) -> Result<()> {
        self.reap()?;
        while self.awaited > 0 {
            self.wait()?;
            self.reap()?;
        }
        match self.failed.take() {
            None => Ok(()),
            Some(outcome) => {
                let kind = match outcome {
                    Outcome::Failed(errno) => ErrorKind::Os(errno),
                    _ => ErrorKind::PowerLost,
                };
                Err(Error::new(kind, operation, self.device.info().name))
            }
        }
    }

    fn wait(&mut self) -> Result<()> {
        match wait_any([&*self.queue], None, &mut &self.time)? {
            true => Ok(()),
            false => Err(self.broken("never answers")),
        }
    }

    fn reap(&mut self) -> Result<()> {
        let mut completions = std::mem::take(&mut self.completions);
        self.queue.poll(Wait::NONE, &mut completions)?;
        for completion in completions.drain(..) {
            match completion.tag.0 {
                tag if tag == Kind::Awaited as u64 => self.awaited -= 1,
                _ => self.background -= 1,
            }
            if !completion.outcome.is_done() {
                self.failed.get_or_insert(completion.outcome);
            }
        }
        self.completions = completions;
        self.submit_waiting()
    }

    fn broken(&self, how: &str) -> Error {
        Error::new(ErrorKind::Invalid, "wait for", self.device.info().name)
            .because(format!("its queue {how}"))
    }
}
