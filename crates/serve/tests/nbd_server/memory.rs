//! A device in memory that completes every request while it is submitted.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, Errno, Error, ErrorKind, Extent, ExtentState, Latch, Lba,
    LbaRange, Nanos, Op, Outcome, Payload, Queue, QueueFull, QueueOptions, RealClock, Request, Result,
    VolatileCache, Wait,
};

/// Number of bytes that share one lock.
const SHARD_BYTES: usize = 1 << 20;
/// Granularity of the record of written data.
const GRAIN_BYTES: u64 = 4096;

/// A device in memory.
pub(crate) struct Memory {
    pub(crate) info: DeviceInfo,
    shards: Vec<RwLock<Vec<u8>>>,
    /// True for each grain that was written.
    written: Mutex<Vec<bool>>,
}

impl Memory {
    /// Creates a device of `size` bytes of zeroes, in blocks of 512 bytes.
    pub(crate) fn new(size: Bytes) -> Arc<Self> {
        let count = (size.0 as usize).div_ceil(SHARD_BYTES);
        let shards = (0..count).map(|_| RwLock::new(vec![0; SHARD_BYTES])).collect();
        let written = Mutex::new(vec![false; size.0.div_ceil(GRAIN_BYTES) as usize]);
        Arc::new(Self { info: info("memory", size), shards, written })
    }

    fn each_part(
        &self,
        offset: u64,
        length: usize,
        mut part: impl FnMut(usize, usize, std::ops::Range<usize>),
    ) {
        let mut done = 0;
        while done < length {
            let at = offset as usize + done;
            let within = at % SHARD_BYTES;
            let count = (SHARD_BYTES - within).min(length - done);
            part(at / SHARD_BYTES, within, done..done + count);
            done += count;
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        self.each_part(offset, into.len(), |shard, within, range| {
            let shard = self.shards[shard].read().unwrap_or_else(PoisonError::into_inner);
            let count = range.len();
            into[range].copy_from_slice(&shard[within..within + count]);
        });
    }

    fn write(&self, offset: u64, length: usize, bytes: Option<&[u8]>) {
        self.each_part(offset, length, |shard, within, range| {
            let mut shard = self.shards[shard].write().unwrap_or_else(PoisonError::into_inner);
            let into = &mut shard[within..within + range.len()];
            match bytes {
                Some(bytes) => into.copy_from_slice(&bytes[range]),
                None => into.fill(0),
            }
        });
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let last = (offset + length as u64).div_ceil(GRAIN_BYTES);
        for grain in offset / GRAIN_BYTES..last {
            written[grain as usize] = bytes.is_some();
        }
    }

    /// Executes a request.
    pub(crate) fn carry_out(&self, request: &mut Request) -> Outcome {
        let offset = request.range.lba.0 * self.info.logical_block.0;
        if request.op != Op::Flush && !self.info.holds(request.range) {
            return Outcome::Failed(Errno::EINVAL);
        }
        let length = self.info.length_of(request.range).0 as usize;
        match (request.op, &mut request.payload) {
            (Op::Read, Payload::Into(buffer)) if buffer.len() == length => self.read(offset, buffer),
            (Op::Write { .. }, Payload::Bytes(buffer)) if buffer.len() == length => {
                self.write(offset, length, Some(buffer));
            }
            (Op::Discard | Op::WriteZeroes { no_hole: false, .. }, _) => self.write(offset, length, None),
            (Op::WriteZeroes { .. }, _) => self.write(offset, length, Some(&vec![0; length])),
            (Op::Flush, _) | (Op::Read, Payload::None) => {}
            _ => return Outcome::Failed(Errno::EINVAL),
        }
        Outcome::Done
    }
}

fn info(name: &str, size: Bytes) -> DeviceInfo {
    DeviceInfo {
        discard_max: Bytes::gib(1),
        discard_zeroes: true,
        dma_alignment: Bytes(1),
        volatile_cache: VolatileCache::Enabled,
        fua_native: true,
        ..DeviceInfo::plain(name, size, Bytes(512))
    }
}

/// A device that can be shared by its queues.
pub(crate) struct SharedMemory(pub(crate) Arc<Memory>);

impl Device for SharedMemory {
    fn info(&self) -> DeviceInfo {
        self.0.info.clone()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let memory = Arc::clone(&self.0);
        let depth = options.depth as usize;
        Ok(Box::new(Inline { memory, depth, done: Vec::with_capacity(depth), clock: RealClock::start() }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        let block = self.0.info.logical_block.0;
        let written = self.0.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut extents = Vec::new();
        let mut lba = range.lba.0;
        while lba < range.end().0 {
            let grain = lba * block / GRAIN_BYTES;
            let end = ((grain + 1) * GRAIN_BYTES / block).min(range.end().0);
            let is_written = written.get(grain as usize).copied().unwrap_or(false);
            let state = if is_written { ExtentState::Written } else { ExtentState::Hole };
            extents.push(Extent { range: LbaRange::new(Lba(lba), end - lba), state });
            lba = end;
        }
        Ok(extents)
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "switch the write cache of", "memory"))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

/// A queue that executes each request at its submission.
struct Inline {
    memory: Arc<Memory>,
    depth: usize,
    done: Vec<Completion>,
    clock: RealClock,
}

impl Queue for Inline {
    fn submit(&mut self, mut request: Request) -> std::result::Result<(), QueueFull> {
        if self.done.len() >= self.depth {
            return Err(QueueFull(request));
        }
        let outcome = self.memory.carry_out(&mut request);
        let at = Nanos::ZERO;
        let Request { tag, payload, .. } = request;
        self.done.push(Completion { tag, outcome, submitted_at: at, completed_at: at, payload });
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let now = self.clock.now();
        let count = self.done.len();
        completions.extend(self.done.drain(..).map(|done| Completion { completed_at: now, ..done }));
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
