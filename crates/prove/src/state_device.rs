//! Device that holds a state, so that a file system on it can be mounted and checked.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{
    Clock, Completion, Device, DeviceInfo, Errno, Extent, ExtentState, Latch, LbaRange, Op, Outcome, Payload,
    Queue, QueueFull, QueueOptions, Request, Result, VolatileCache, Wait,
};

use crate::explore::OwnedState;
use crate::recording::{Content, Recording, bytes_of};

/// Device that holds one state after another. Writes are discarded when the next state is set.
///
/// The device notes which blocks are read before they are written, for
/// [`ObservedResults`](crate::observed::ObservedResults). Blocks that hold the same in every state, since no
/// command of the recording writes them in the explored part, are not noted.
#[derive(Clone)]
pub struct StateDevice {
    shared: Arc<Mutex<SharedState>>,
    recording: Arc<Recording>,
    info: DeviceInfo,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct SharedState {
    /// `None`: all zeroes.
    state: Option<OwnedState>,
    written: HashMap<u64, Box<[u8]>>,
    /// Number of commands that have changed blocks.
    writes: u64,
    /// Blocks that may differ between states.
    varied: HashSet<u64>,
    read: Vec<(u64, Content)>,
    was_read: HashSet<u64>,
}

impl StateDevice {
    /// Creates a device with the capacity of the recorded one. It holds zeroes until a state is set.
    pub fn new(recording: Arc<Recording>, clock: Arc<dyn Clock>) -> Self {
        let mut info = DeviceInfo::plain("a state of a recording", recording.size, recording.logical_block);
        info.volatile_cache = VolatileCache::Enabled;
        info.fua_native = true;
        info.discard_max = info.size;
        info.discard_zeroes = true;
        Self { shared: Arc::default(), recording, info, clock }
    }

    /// Sets the blocks that may differ between the coming states. All reads of these are noted.
    pub fn set_varied(&self, varied: HashSet<u64>) {
        self.lock().varied = varied;
    }

    /// Creates another device for states of the same recording.
    pub fn another(&self) -> Self {
        let shared = SharedState { varied: self.lock().varied.clone(), ..SharedState::default() };
        Self { shared: Arc::new(Mutex::new(shared)), ..self.clone() }
    }

    /// Sets the state. Nothing may be mounted from the previous one.
    pub fn hold(&self, state: OwnedState) {
        let mut shared = self.lock();
        let varied = std::mem::take(&mut shared.varied);
        *shared = SharedState { state: Some(state), varied, ..SharedState::default() };
    }

    /// Returns the blocks that may differ between states and have been read in this state, in the order of
    /// their first reads.
    pub fn read(&self) -> Vec<(u64, Content)> {
        self.lock().read.clone()
    }

    /// Returns the number of writes and discards in this state.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carry_out(&self, request: &mut Request) -> Outcome {
        let block = self.info.logical_block.0 as usize;
        let written = bytes_of(&self.info, request);
        let carries = self.info.holds(request.range) && request.carries(self.info.length_of(request.range));
        let Request { op, range, payload, .. } = request;
        let mut shared = self.lock();
        shared.writes += u64::from(written.is_some() && *op != Op::Flush);
        match (op, payload, written) {
            (Op::Flush, ..) => {}
            (Op::Read, Payload::None, _) if carries => {}
            (Op::Read, Payload::Into(bytes), _) if carries => {
                for (lba, bytes) in blocks(*range).zip(bytes.chunks_exact_mut(block)) {
                    shared.read_block(lba, &self.recording, bytes);
                }
            }
            (Op::Write { .. }, _, Some(bytes)) => {
                let bytes = bytes.chunks_exact(block).map(Into::into);
                shared.written.extend(blocks(*range).zip(bytes));
            }
            (Op::Discard | Op::WriteZeroes { .. }, _, Some(_)) if carries => shared.zero(*range, block),
            _ => return Outcome::Failed(Errno::EINVAL),
        }
        Outcome::Done
    }
}

impl SharedState {
    fn read_block(&mut self, lba: u64, recording: &Recording, into: &mut [u8]) {
        if let Some(bytes) = self.written.get(&lba) {
            into.copy_from_slice(bytes);
            return;
        }
        let content = self.content(lba);
        if self.varied.contains(&lba) && self.was_read.insert(lba) {
            self.read.push((lba, content));
        }
        into.copy_from_slice(recording.contents.bytes(content));
    }

    fn content(&self, lba: u64) -> Content {
        self.state.as_ref().map_or(Content::ZEROES, |state| state.content(lba))
    }

    /// A range may be as long as the device, so only blocks that are not zeroes are written.
    fn zero(&mut self, range: LbaRange, block: usize) {
        let mut held: Vec<u64> = self.written.keys().copied().collect();
        if let Some(state) = &self.state {
            held.extend(state.durable.blocks_in(range).map(|(lba, _)| lba));
            held.extend(state.changes.iter().map(|(lba, _)| *lba));
        }
        for lba in held.into_iter().filter(|lba| blocks(range).contains(lba)) {
            self.written.insert(lba, vec![0; block].into());
        }
    }
}

impl Device for StateDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        Ok(Box::new(StateQueue {
            device: self.clone(),
            waiting: VecDeque::new(),
            depth: options.depth as usize,
        }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        Ok(vec![Extent { range, state: ExtentState::Unknown }])
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(plumb_block::Error::new(
            plumb_block::ErrorKind::Unsupported,
            "set the write cache of",
            &self.info.name,
        ))
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

struct StateQueue {
    device: StateDevice,
    waiting: VecDeque<Request>,
    depth: usize,
}

impl Queue for StateQueue {
    fn submit(&mut self, request: Request) -> std::result::Result<(), QueueFull> {
        if self.waiting.len() >= self.depth {
            return Err(QueueFull(request));
        }
        self.waiting.push_back(request);
        Ok(())
    }

    /// Executes all submitted requests at once.
    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> Result<usize> {
        let count = self.waiting.len();
        let now = self.device.clock.now();
        for mut request in self.waiting.drain(..) {
            let outcome = self.device.carry_out(&mut request);
            let (tag, payload) = (request.tag, request.payload);
            completions.push(Completion { tag, outcome, submitted_at: now, completed_at: now, payload });
        }
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

const fn blocks(range: LbaRange) -> std::ops::Range<u64> {
    range.lba.0..range.end().0
}
