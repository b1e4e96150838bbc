//! A device in memory that completes every request while it is submitted.

use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{
    Bytes, Clock, Completion, Device, DeviceInfo, DeviceLayer, Errno, Error, ErrorKind, Extent, ExtentState,
    Latch, Lba, LbaRange, Nanos, Op, Outcome, Payload, Queue, QueueFull, QueueOptions, RealClock, Request,
    Result, VolatileCache, Wait,
};

/// Granularity of the record of written data.
const GRAIN_BYTES: usize = 4096;

/// A device in memory, which its queues share.
pub(crate) struct Memory {
    info: DeviceInfo,
    contents: Mutex<Contents>,
}

struct Contents {
    bytes: Vec<u8>,
    /// True for each grain that was written.
    written: Vec<bool>,
}

impl Memory {
    /// Creates a device of `size` bytes of zeroes, in blocks of 512 bytes.
    fn new(size: Bytes) -> Self {
        let info = DeviceInfo {
            discard_max: Bytes::gib(1),
            discard_zeroes: true,
            dma_alignment: Bytes(1),
            volatile_cache: VolatileCache::Enabled,
            fua_native: true,
            ..DeviceInfo::plain("memory", size, Bytes(512))
        };
        let size = size.0 as usize;
        let contents = Contents { bytes: vec![0; size], written: vec![false; size.div_ceil(GRAIN_BYTES)] };
        Self { info, contents: Mutex::new(contents) }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes a request.
    fn carry_out(&self, request: &mut Request) -> Outcome {
        if request.op == Op::Flush {
            return Outcome::Done;
        }
        if !self.info.holds(request.range) {
            return Outcome::Failed(Errno::EINVAL);
        }
        let start = (request.range.lba.0 * self.info.logical_block.0) as usize;
        let end = start + self.info.length_of(request.range).0 as usize;
        let Contents { bytes, written } = &mut *self.contents();
        let bytes = &mut bytes[start..end];
        match (request.op, &mut request.payload) {
            (Op::Read, Payload::None) => return Outcome::Done,
            (Op::Read, Payload::Into(buffer)) if buffer.len() == bytes.len() => {
                buffer.copy_from_slice(bytes);
                return Outcome::Done;
            }
            (Op::Write { .. }, Payload::Bytes(buffer)) if buffer.len() == bytes.len() => {
                bytes.copy_from_slice(buffer);
            }
            (Op::Discard | Op::WriteZeroes { .. }, _) => bytes.fill(0),
            _ => return Outcome::Failed(Errno::EINVAL),
        }
        let is_kept = matches!(request.op, Op::Write { .. } | Op::WriteZeroes { no_hole: true, .. });
        written[start / GRAIN_BYTES..end.div_ceil(GRAIN_BYTES)].fill(is_kept);
        Outcome::Done
    }
}

/// Returns a device of `size` bytes of zeroes, in blocks of 512 bytes.
pub(crate) fn memory(size: Bytes) -> Arc<dyn Device> {
    Arc::new(SharedMemory(Arc::new(Memory::new(size))))
}

/// A device that says that it is read-only, and leaves it to the server to refuse writes.
pub(crate) struct ReadOnly(pub(crate) Arc<dyn Device>);

impl DeviceLayer for ReadOnly {
    type Inner = dyn Device;

    fn inner(&self) -> impl Deref<Target = Self::Inner> {
        &*self.0
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo { is_read_only: true, ..self.0.info() }
    }
}

struct SharedMemory(Arc<Memory>);

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
        let (block, grain_bytes) = (self.0.info.logical_block.0, GRAIN_BYTES as u64);
        let written = &self.0.contents().written;
        let mut extents = Vec::new();
        let mut lba = range.lba.0;
        while lba < range.end().0 {
            let grain = lba * block / grain_bytes;
            let end = ((grain + 1) * grain_bytes / block).min(range.end().0);
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
        self.done.push(request.completed(outcome, Nanos::ZERO));
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
