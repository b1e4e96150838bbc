//! The model as a [`Device`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bug::Bug;
use super::queue::ModelQueue;
use super::state::State;
use crate::clock::{Clock, VirtualClock};
use crate::device::{Device, Latch, Queue, QueueOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::info::{DeviceInfo, Extent, VolatileCache};
use crate::request::LbaRange;
use crate::units::{Bytes, Lba, Nanos};

/// Options of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelOptions {
    /// Seed from which everything random follows.
    pub seed: u64,
    /// Capacity in blocks.
    pub blocks: u64,
    /// The size of a block.
    pub logical_block: Bytes,
    /// True if there is a volatile cache; without one every completed write is durable.
    pub is_cached: bool,
    /// True if blocks can be discarded.
    pub discards: bool,
    /// True if discarded blocks are promised to read as zeroes.
    pub discard_zeroes: bool,
    /// True if zeroes are written without being sent.
    pub fast_zeroes: bool,
    /// A way to break the contract.
    pub bug: Option<Bug>,
}

impl ModelOptions {
    /// 256 blocks of 512 bytes, cached, with discard but without promises.
    pub const fn small(seed: u64) -> Self {
        Self {
            seed,
            blocks: 256,
            logical_block: Bytes(512),
            is_cached: true,
            discards: true,
            discard_zeroes: false,
            fast_zeroes: false,
            bug: None,
        }
    }
}

/// The reference device.
#[derive(Clone)]
pub struct ModelDevice {
    state: Arc<Mutex<State>>,
    pub(super) clock: Arc<VirtualClock>,
    pub(super) options: ModelOptions,
}

impl ModelDevice {
    /// Creates a device with power, all zeroes.
    pub fn new(options: ModelOptions, clock: Arc<VirtualClock>) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(&options))), clock, options }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked elsewhere has failed anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the power and restores it. Requests in flight are lost, each block becomes one of its survivors.
    pub fn cut_power(&self) {
        let mut state = self.state();
        let State { medium, random, moment, jobs, latch, .. } = &mut *state;
        *moment += 1;
        medium.lose_power(*moment, random);
        jobs.iter_mut().for_each(|job| job.is_cut_off = true);
        *latch = None;
    }

    /// Makes the next flush fail.
    pub fn fail_next_flush(&self) {
        self.state().fail_next_flush = true;
    }

    /// Holds the next request that a queue hands over.
    pub fn hold_next_request(&self) {
        self.state().hold_next = true;
    }

    /// Lets all held requests be answered.
    pub fn release_held(&self) {
        let now = self.clock.now();
        for job in &mut self.state().jobs {
            job.due.get_or_insert(now);
        }
    }

    /// Returns the time of the next answer, if one is due.
    pub fn next_answer(&self) -> Option<Nanos> {
        self.state().jobs.iter().filter_map(|job| job.due).min()
    }
}

impl Device for ModelDevice {
    fn info(&self) -> DeviceInfo {
        let ModelOptions { blocks, logical_block, bug, .. } = self.options;
        let mut state = self.state();
        state.looks += 1;
        let cached = self.options.is_cached && bug != Some(Bug::CacheHidden);
        DeviceInfo {
            discard_max: if self.options.discards { logical_block * blocks } else { Bytes(0) },
            discard_zeroes: self.options.discards && self.options.discard_zeroes,
            volatile_cache: if cached { VolatileCache::Enabled } else { VolatileCache::None },
            fua_native: true,
            physical_block: match bug {
                Some(Bug::InfoNonsense) => Bytes(logical_block.0 / 2),
                Some(Bug::GenerationStands) => logical_block * (1 << (state.looks % 3)),
                _ => logical_block,
            },
            dma_alignment: Bytes(1),
            ..DeviceInfo::plain("model", logical_block * blocks, logical_block)
        }
    }

    fn open_queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        let mut state = self.state();
        state.queues += 1;
        let shallow = u32::from(self.options.bug == Some(Bug::QueueTooShallow));
        let depth = options.depth as usize - shallow as usize;
        Ok(Box::new(ModelQueue { device: self.clone(), id: state.queues, depth, waiting: Vec::new() }))
    }

    fn extents(&self, range: LbaRange) -> Result<Vec<Extent>> {
        let mut state = self.state();
        let gap = u64::from(self.options.bug == Some(Bug::ExtentsWithGaps));
        let blocks = range.lba.0 + gap..range.end().0;
        Ok(blocks
            .map(|lba| Extent { range: LbaRange::new(Lba(lba), 1), state: state.medium.state(lba) })
            .collect())
    }

    fn set_wce(&self, _enabled: bool) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "switch the write cache of", "the model"))
    }

    fn latched(&self) -> Option<Latch> {
        let latch = self.state().latch.map(|(latch, _)| latch);
        latch.filter(|_| self.options.bug != Some(Bug::LatchNotReported))
    }
}
