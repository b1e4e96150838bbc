//! Conversion of operations to requests: block sizes, payloads, and checks that all of it fits the device.

use plumb_block::{Bytes, DeviceInfo, Lba, LbaRange, Op, Pool, PoolShape, Request, Tag, VolatileCache};
use plumb_workload::{Operation, Workload, common_unit};

use crate::content::{Maker, STAMP, stamp_seed};
use crate::fault::{Error, UnsupportedRequest};
use crate::in_flight::Kind;
use crate::ledger::Ledger;

/// Common properties of all requests of a worker.
#[derive(Debug)]
pub(crate) struct Shape {
    logical_block: u64,
    /// Binary logarithm of the logical block, if it is a power of two: a shift is much cheaper than a
    /// division.
    shift: Option<u32>,
    maker: Maker,
    /// Buffers of the requests.
    pub(crate) pool: Pool,
    /// True if the bytes of reads are kept.
    keeps_bytes: bool,
}

/// Smallest alignment of buffers, so that no transfer uses more pages than necessary.
const PAGE: u64 = 4096;

impl Shape {
    /// Returns the shape of the requests of `workload` on a device with `info`, with the pool for their
    /// bytes.
    pub(crate) fn new(workload: &Workload, info: &DeviceInfo) -> Result<Self, Error> {
        check(workload, info)?;
        let alignment = Bytes(info.dma_alignment.0.max(PAGE));
        // One buffer for each request in flight. If some requests bring their own, the queue keeps one more
        // for each of its places.
        let maker = Maker::new(workload, info.logical_block, alignment)?;
        let brings_own = workload.verify || !maker.is_pattern();
        let count = if brings_own { workload.depth.saturating_mul(2) } else { workload.depth };
        let pool = Pool::new(PoolShape { buffer: workload.blocks.max(), count, alignment })?;
        let logical_block = info.logical_block.0;
        Ok(Self {
            logical_block,
            shift: logical_block.is_power_of_two().then(|| logical_block.trailing_zeros()),
            maker,
            pool,
            keeps_bytes: workload.verify,
        })
    }

    /// Returns the kind of `operation`, its blocks, and the version that it gives them.
    #[inline]
    pub(crate) fn place(&self, operation: Operation) -> (Kind, LbaRange, u64) {
        match operation {
            Operation::Read { offset, length } => (Kind::Read, self.range_of(offset, length), 0),
            Operation::Write { offset, length, generation, .. } => {
                (Kind::Write, self.range_of(offset, length), generation)
            }
            Operation::Trim { offset, length } => (Kind::Trim, self.range_of(offset, length), 0),
            Operation::Flush => (Kind::Flush, LbaRange::EMPTY, 0),
        }
    }

    /// Returns the request for `operation` on `range`; `None` if there is no free buffer, which cannot happen
    /// while at most `depth` are in flight.
    #[inline]
    pub(crate) fn request(&self, tag: Tag, operation: Operation, range: LbaRange) -> Option<Request> {
        Some(match operation {
            Operation::Read { length, .. } if self.keeps_bytes => {
                Request::read_into(tag, range, self.pool.take(length)?)
            }
            Operation::Read { .. } => Request::read(tag, range),
            Operation::Write { length, generation, fua, .. } => {
                let payload = self.maker.payload(range.lba, generation, length, &self.pool)?;
                Request { op: Op::Write { fua }, ..Request::write(tag, range, payload) }
            }
            Operation::Trim { .. } => Request::discard(tag, range),
            Operation::Flush => Request::flush(tag),
        })
    }

    /// Returns the length of `range` in bytes.
    #[inline]
    pub(crate) fn bytes_of(&self, range: LbaRange) -> Bytes {
        Bytes(range.nlb * self.logical_block)
    }

    /// Returns a ledger of the whole range of `workload`.
    pub(crate) fn ledger(&self, workload: &Workload, info: &DeviceInfo) -> Result<Ledger, Error> {
        let range =
            self.range_of(workload.range.offset, workload.range.length.round_down(info.logical_block));
        let grain = grain_of(workload, self.logical_block);
        let maker = Maker::new(workload, info.logical_block, Bytes(PAGE))?;
        let seed = stamp_seed(workload.seed, info.logical_block);
        let is_durable_at_once = info.volatile_cache == VolatileCache::None;
        Ok(Ledger::new(range, grain, seed, info.logical_block, maker).durable_at_once(is_durable_at_once))
    }

    #[inline]
    fn range_of(&self, offset: Bytes, length: Bytes) -> LbaRange {
        match self.shift {
            Some(shift) => LbaRange::new(Lba(offset.0 >> shift), length.0 >> shift),
            None => LbaRange::new(Lba(offset.0 / self.logical_block), length.0 / self.logical_block),
        }
    }
}

/// Returns the largest number of logical blocks that divides all lengths and all alignments.
fn grain_of(workload: &Workload, logical_block: u64) -> u64 {
    common_unit(workload.steps().into_iter().map(|(_, step)| step)).0 / logical_block
}

/// Checks that a device supports `workload`. A worker also checks this; callers use it to check before they
/// prepare anything.
///
/// # Errors
/// Fails with the part that the device does not support.
pub fn check(workload: &Workload, info: &DeviceInfo) -> Result<(), Error> {
    fits(workload, info).map_err(|refused| Error::Unfit { device: info.name.clone(), refused })
}

fn fits(workload: &Workload, info: &DeviceInfo) -> Result<(), UnsupportedRequest> {
    let logical_block = info.logical_block;
    for (field, value) in workload.steps().into_iter().chain([("offset", workload.range.offset)]) {
        if !value.0.is_multiple_of(logical_block.0) {
            return Err(UnsupportedRequest::OffGrid { field, value, logical_block });
        }
    }
    if workload.verify && logical_block < STAMP {
        return Err(UnsupportedRequest::BlockTooSmall { logical_block, least: STAMP });
    }
    if workload.trim_percent > 0 && info.discard_max == Bytes(0) {
        return Err(UnsupportedRequest::NoDiscard);
    }
    let end = workload.range.offset.0.saturating_add(workload.range.length.0);
    if end > info.size.0 {
        return Err(UnsupportedRequest::PastTheEnd { end, size: info.size });
    }
    Ok(())
}
