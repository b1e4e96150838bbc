//! A device with a volatile cache that completes requests in any order, makes only required data durable, and
//! loses the rest when its server dies.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

use plumb_block::{
    Completion, Device, Extent, ExtentState, Latch, Nanos, Outcome, Queue, QueueFull, QueueOptions, Request,
};

use super::*;

/// The versions of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StoredVersions {
    pub(super) visible: u64,
    pub(super) durable: u64,
}

pub(super) struct CachedVersions {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    blocks: BTreeMap<u64, StoredVersions>,
    has_cache: bool,
    fails_next: bool,
    /// Number of server deaths, which invalidate older queues.
    life: u32,
    random: Xoshiro256PlusPlus,
}

impl CachedVersions {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let random = Xoshiro256PlusPlus::seed_from_u64(!seed);
        let inner = Inner { blocks: BTreeMap::new(), has_cache: true, fails_next: false, life: 0, random };
        Arc::new(Self { inner: Arc::new(Mutex::new(inner)) })
    }

    pub(super) fn set_cache(&self, has_cache: bool) {
        lock(&self.inner).has_cache = has_cache;
    }

    /// Lets the next flush or FUA write fail.
    pub(super) fn fail_next_promise(&self) {
        lock(&self.inner).fails_next = true;
    }

    pub(super) fn die(&self) {
        let mut inner = lock(&self.inner);
        inner.life += 1;
        for stored in inner.blocks.values_mut() {
            stored.visible = stored.durable;
        }
    }

    pub(super) fn stored(&self) -> BTreeMap<u64, StoredVersions> {
        lock(&self.inner).blocks.clone()
    }
}

impl Device for CachedVersions {
    fn info(&self) -> DeviceInfo {
        let inner = lock(&self.inner);
        let volatile_cache = if inner.has_cache { VolatileCache::Enabled } else { VolatileCache::None };
        let plain = DeviceInfo::plain("cached", Bytes(BLOCKS * BLOCK), Bytes(BLOCK));
        DeviceInfo { volatile_cache, fua_native: true, discard_max: Bytes(BLOCKS * BLOCK), ..plain }
    }

    fn open_queue(&self, _options: QueueOptions) -> plumb_block::Result<Box<dyn Queue>> {
        let device = Arc::clone(&self.inner);
        let life = lock(&device).life;
        Ok(Box::new(AnyOrder {
            device,
            life,
            pending: Vec::new(),
            wakeups: File::open("/dev/null").unwrap(),
        }))
    }

    fn extents(&self, range: LbaRange) -> plumb_block::Result<Vec<Extent>> {
        Ok(vec![Extent { range, state: ExtentState::Unknown }])
    }

    fn set_wce(&self, enabled: bool) -> plumb_block::Result<()> {
        self.set_cache(enabled);
        Ok(())
    }

    fn latched(&self) -> Option<Latch> {
        None
    }
}

/// A queue that completes pending requests in any order, or later.
struct AnyOrder {
    device: Arc<Mutex<Inner>>,
    life: u32,
    /// Pending requests, each with the versions visible at its submission, which a flush must make durable.
    pending: Vec<(Request, BTreeMap<u64, u64>)>,
    wakeups: File,
}

impl Queue for AnyOrder {
    fn submit(&mut self, request: Request) -> Result<(), QueueFull> {
        // Fewer than the kernel has tags, so that a backlog is needed.
        if self.pending.len() >= usize::from(DEPTH) - 2 {
            return Err(QueueFull(request));
        }
        let blocks = &lock(&self.device).blocks;
        let visible = blocks.iter().map(|(block, stored)| (*block, stored.visible)).collect();
        self.pending.push((request, visible));
        Ok(())
    }

    fn poll(&mut self, _wait: Wait, completions: &mut Vec<Completion>) -> plumb_block::Result<usize> {
        let mut device = lock(&self.device);
        if device.life != self.life {
            return Ok(0);
        }
        let mut count = 0;
        while !self.pending.is_empty() && !device.random.next_u64().is_multiple_of(3) {
            let index = device.random.next_u64() as usize % self.pending.len();
            let (mut request, visible) = self.pending.swap_remove(index);
            let outcome = device.carry_out(&mut request, &visible);
            completions.push(request.completed(outcome, Nanos(0)));
            count += 1;
        }
        Ok(count)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wakeups.as_fd())
    }
}

impl Inner {
    fn carry_out(&mut self, request: &mut Request, visible: &BTreeMap<u64, u64>) -> Outcome {
        let is_promise = matches!(request.op, Op::Flush | Op::Write { fua: true });
        if is_promise && std::mem::take(&mut self.fails_next) {
            return Outcome::Failed(Errno::EIO);
        }
        let block = request.range.lba.0;
        match (request.op, &mut request.payload) {
            (Op::Read, Payload::Into(bytes)) => {
                let version = self.blocks.get(&block).map_or(0, |stored| stored.visible);
                bytes[..8].copy_from_slice(&version.to_ne_bytes());
            }
            (Op::Write { fua }, Payload::Bytes(bytes)) => {
                let version = kernel::version(bytes);
                let is_durable = fua || !self.has_cache;
                let stored = self.blocks.entry(block).or_default();
                stored.visible = version;
                stored.durable = if is_durable { stored.durable.max(version) } else { stored.durable };
            }
            (Op::Flush, _) => {
                for (block, version) in visible {
                    let stored = self.blocks.entry(*block).or_default();
                    stored.durable = stored.durable.max(*version);
                }
            }
            _ => {}
        }
        Outcome::Done
    }
}
