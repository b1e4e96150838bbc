//! The memory that the payloads of a connection live in: bounded, and taken only when there is something to
//! carry.
//!
//! Small payloads come from a pool that the connection's queue may have registered; larger ones from a second
//! pool, made at the first of them. Both are taken from the server's budget. Without that the small pool has
//! a few buffers, and large payloads are cut into more pieces from it: slower, not wrong. The stride of both
//! pools is no power of two, so that payloads of equal size do not all fall into the same sets of the
//! processor's caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::{BufferMut, Bytes, DeviceInfo, Pool, PoolShape, Result};

const COLOUR_BYTES: u64 = 4096;
const SMALL: Bytes = Bytes::kib(32);
const SMALL_COUNT: u32 = 72;
/// Number of small buffers of a connection for which the budget has no share.
const SMALL_LEAST: u32 = 8;
const LARGE: Bytes = Bytes::kib(256);
const LARGE_COUNT: u32 = 32;

/// Memory that the pools of all connections of a server may take, but for 288 KiB of each.
pub(super) struct Budget {
    left_bytes: AtomicU64,
}

impl Budget {
    pub(super) fn new(limit: Bytes) -> Arc<Self> {
        Arc::new(Self { left_bytes: AtomicU64::new(limit.0) })
    }

    /// Returns a share of `bytes`, if that much is left; it goes back when dropped.
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
    /// Share of the small pool; none if it has the least number of buffers.
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

    /// Returns how a payload of `length` bytes is to be cut.
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

    /// Returns in how many pieces a read may be that waits for all of them in buffers of the pool: half of
    /// it, so that others get on.
    pub(super) const fn pieces_held_max(&self, cut: Cut) -> u32 {
        if cut.is_large { LARGE_COUNT / 2 } else { self.small_count / 2 }
    }
}
