//! Payload memory of a connection: bounded, and allocated only when needed.
//!
//! Small payloads use a pool that the connection's queue may have registered; larger ones use a second pool,
//! created at first use. Both count against the server's budget. If it is exhausted, the small pool has only
//! a few buffers, and large payloads are split into more pieces: slower, but correct. The stride of the pools
//! is not a power of two, so that payloads of equal size do not share the same sets of the processor's
//! caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::{BufferMut, Bytes, DeviceInfo, Pool, PoolShape, Result};

const COLOUR_BYTES: u64 = 4096;
const SMALL: Bytes = Bytes::kib(32);
const SMALL_COUNT: u32 = 72;
/// Number of small buffers of a connection without a share of the budget.
const SMALL_LEAST: u32 = 8;
const LARGE: Bytes = Bytes::kib(256);
const LARGE_COUNT: u32 = 32;

/// Memory limit for the pools of all connections of a server, in addition to 288 KiB for each.
pub(super) struct Budget {
    left_bytes: AtomicU64,
}

impl Budget {
    pub(super) fn new(limit: Bytes) -> Arc<Self> {
        Arc::new(Self { left_bytes: AtomicU64::new(limit.0) })
    }

    /// Returns a share of `bytes` if available; dropping it returns it to the budget.
    pub(super) fn take(self: &Arc<Self>, bytes: u64) -> Option<Share> {
        self.left_bytes
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes))
            .ok()
            .map(|_| Share { budget: Arc::clone(self), bytes })
    }
}

/// A part of a budget.
pub(super) struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.left_bytes.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// Pool and size of a request's pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) piece_bytes: u32,
    is_large: bool,
}

/// The pools of one connection.
pub(super) struct Buffers {
    pub(super) small: Pool,
    small_count: u32,
    /// Share for the small pool; `None` if it has the minimum number of buffers.
    _small: Option<Share>,
    large: Option<(Pool, Share)>,
    budget: Arc<Budget>,
    logical_block: Bytes,
    transfer_max: Bytes,
    alignment: Bytes,
}

impl Buffers {
    pub(super) fn new(info: &DeviceInfo, budget: &Arc<Budget>) -> Result<Self> {
        let alignment = info.dma_alignment.max(Bytes::kib(4));
        let buffer = SMALL.max(info.logical_block) + Bytes(COLOUR_BYTES);
        let share = budget.take(buffer.0 * u64::from(SMALL_COUNT));
        let small_count = if share.is_some() { SMALL_COUNT } else { SMALL_LEAST };
        let small = Pool::new(PoolShape { buffer, count: small_count, alignment })?;
        Ok(Self {
            small,
            small_count,
            _small: share,
            large: None,
            budget: Arc::clone(budget),
            logical_block: info.logical_block,
            transfer_max: info.transfer_max,
            alignment,
        })
    }

    /// Returns the division of a payload of `length` bytes.
    pub(super) fn cut(&mut self, length: u32) -> Cut {
        let is_large = u64::from(length) > SMALL.0 && self.transfer_max > SMALL && self.has_large();
        let limit = if is_large { LARGE } else { SMALL };
        let limit = limit.min(self.transfer_max).max(self.logical_block).round_down(self.logical_block);
        Cut { piece_bytes: u32::try_from(limit.0).unwrap_or(u32::MAX), is_large }
    }

    fn has_large(&mut self) -> bool {
        if self.large.is_none() && self.logical_block <= LARGE {
            let buffer = LARGE + Bytes(COLOUR_BYTES);
            self.large = self.budget.take((buffer * u64::from(LARGE_COUNT)).0).and_then(|share| {
                let shape = PoolShape { buffer, count: LARGE_COUNT, alignment: self.alignment };
                Some((Pool::new(shape).ok()?, share))
            });
        }
        self.large.is_some()
    }

    /// Returns a buffer for a piece of `length` bytes; `None` while all are in use.
    pub(super) fn take(&self, cut: Cut, length: u32) -> Option<BufferMut> {
        let pool = match &self.large {
            Some((large, _)) if cut.is_large => large,
            _ => &self.small,
        };
        pool.take(Bytes(u64::from(length)))
    }

    /// Returns the maximum number of pieces for a read that collects all of them in pool buffers: half of the
    /// pool, so that other requests can proceed.
    pub(super) const fn pieces_held_max(&self, cut: Cut) -> u32 {
        if cut.is_large { LARGE_COUNT / 2 } else { self.small_count / 2 }
    }
}
