//! Faults that are planted between the server and the cache, to test whether the world finds them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use plumb_block::{
    Completion, Device, DeviceLayer, Nanos, Op, Outcome, Payload, Queue, QueueFull, QueueOptions, Request,
    Result, Tag, Wait,
};

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlantedFault {
    /// Flushes are answered but not executed.
    DroppedFlush,
    /// A flush is executed only if its own connection has written.
    FlushOfOneConnection,
    /// A write with FUA is a plain write.
    LostFua,
    /// Writes are acknowledged before they are in the log.
    EarlyAcknowledgement,
    /// A write is acknowledged, but executed after the next one.
    WrongOrder,
    /// A block that was read once always reads as it did then.
    StaleRead,
    /// The answer to one write carries the cookie of another one.
    OtherCookie,
}

impl PlantedFault {
    /// Every fault.
    pub(super) const ALL: [Self; 7] = [
        Self::DroppedFlush,
        Self::FlushOfOneConnection,
        Self::LostFua,
        Self::EarlyAcknowledgement,
        Self::WrongOrder,
        Self::StaleRead,
        Self::OtherCookie,
    ];
}

/// A device with a fault.
pub(super) struct Faulty {
    pub(super) inner: Arc<dyn Device>,
    pub(super) planted: PlantedFault,
    /// Blocks as they were first read.
    pub(super) read: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
}

impl DeviceLayer for Faulty {
    type Inner = dyn Device;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &*self.inner
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        Ok(Box::new(FaultyQueue {
            block: self.inner.info().logical_block.0 as usize,
            inner: self.inner.open_queue(options)?,
            planted: self.planted,
            read: Arc::clone(&self.read),
            early: Vec::new(),
            in_flight: BTreeMap::new(),
            aliases: BTreeMap::new(),
            held: None,
            has_written: false,
        }))
    }
}

struct FaultyQueue {
    inner: Box<dyn Queue>,
    planted: PlantedFault,
    block: usize,
    read: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
    /// Completions without the device.
    early: Vec<Completion>,
    /// Operation and first block of the device's requests.
    in_flight: BTreeMap<Tag, (Op, u64)>,
    /// Tags under which completions are reported instead of their own.
    aliases: BTreeMap<Tag, Tag>,
    held: Option<Request>,
    has_written: bool,
}

/// Bit in the tag of a request that was answered before it was executed.
const ANSWERED: u64 = 1 << 63;

impl FaultyQueue {
    /// Answers a request at once.
    fn answer(&mut self, tag: Tag) {
        self.early.push(Request::flush(tag).completed(Outcome::Done, Nanos::ZERO));
    }

    /// Submits a request that was answered already.
    fn carry_out(&mut self, mut request: Request) {
        request.tag = Tag(request.tag.0 | ANSWERED);
        // A queue with room for all slots of the server has room for this request; otherwise the write is
        // lost, which is a fault, too.
        self.inner.submit(request).ok();
    }

    fn falsify(&mut self, completion: &mut Completion) {
        let Some((op, lba)) = self.in_flight.remove(&completion.tag) else { return };
        match (self.planted, &mut completion.payload) {
            (PlantedFault::StaleRead, Payload::Into(buffer)) => {
                let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
                for (block, bytes) in (lba..).zip(buffer.chunks_exact_mut(self.block)) {
                    bytes.copy_from_slice(read.entry(block).or_insert_with(|| bytes.to_vec()));
                }
            }
            (PlantedFault::OtherCookie, _) => {
                let alias = self.aliases.remove(&completion.tag);
                let is_write = |(_, (op, _)): &(&Tag, &(Op, u64))| matches!(op, Op::Write { .. });
                let other = self.in_flight.iter().find(is_write).map(|(tag, _)| *tag);
                let own = alias.unwrap_or(completion.tag);
                match other.filter(|other| alias.is_none() && !self.aliases.contains_key(other)) {
                    Some(other) if matches!(op, Op::Write { .. }) => {
                        self.aliases.insert(other, own);
                        completion.tag = other;
                    }
                    _ => completion.tag = own,
                }
            }
            _ => {}
        }
    }
}

impl Queue for FaultyQueue {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        let (tag, op) = (request.tag, request.op);
        let is_write = matches!(op, Op::Write { .. });
        if let Some(held) = self.held.take_if(|_| !is_write) {
            self.carry_out(held);
        }
        match self.planted {
            PlantedFault::DroppedFlush if op == Op::Flush => {
                self.answer(tag);
                return Ok(());
            }
            PlantedFault::FlushOfOneConnection if op == Op::Flush && !self.has_written => {
                self.answer(tag);
                return Ok(());
            }
            PlantedFault::EarlyAcknowledgement if is_write => {
                self.answer(tag);
                self.carry_out(request);
                return Ok(());
            }
            PlantedFault::WrongOrder if is_write => {
                self.answer(tag);
                match self.held.take() {
                    None => self.held = Some(request),
                    Some(held) => {
                        self.carry_out(request);
                        self.carry_out(held);
                    }
                }
                return Ok(());
            }
            PlantedFault::LostFua if is_write => request.op = Op::Write { fua: false },
            _ => {}
        }
        self.has_written = op != Op::Flush && (self.has_written || op != Op::Read);
        let lba = request.range.lba.0;
        self.inner.submit(request)?;
        self.in_flight.insert(tag, (op, lba));
        Ok(())
    }

    fn poll(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let first = completions.len();
        completions.append(&mut self.early);
        let mut own = Vec::new();
        self.inner.poll(wait, &mut own)?;
        own.retain(|completion| completion.tag.0 & ANSWERED == 0);
        own.iter_mut().for_each(|completion| self.falsify(completion));
        completions.append(&mut own);
        Ok(completions.len() - first)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wake_fd()
    }
}
