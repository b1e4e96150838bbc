//! From operations to requests: block sizes, payloads, and whether all of it fits the device.

use plumb_block::{
    Buffer, Bytes, DeviceInfo, Lba, LbaRange, Op, Pattern, Payload, Pool, PoolShape, Request, Tag,
};
use plumb_workload::{Content, Operation, Workload};

use crate::fault::{Error, Refused};
use crate::in_flight::Kind;

/// What all requests of a worker have in common.
#[derive(Debug)]
pub(crate) struct Shape {
    logical_block: u64,
    /// The binary logarithm of the logical block, where it is a power of two: a shift is much cheaper than a division.
    shift: Option<u32>,
    block: Bytes,
    nlb: u64,
    fua: bool,
    seed: u64,
    /// The bytes of every write, unless each write has its own.
    repeated: Option<Buffer>,
}

/// The least that a block must hold to be stamped: see [`Pattern`].
const STAMP: Bytes = Bytes(32);
/// Buffers begin at least at a page, so that no transfer touches more pages than it must.
const PAGE: u64 = 4096;

impl Shape {
    /// The requests of `workload` on a device that says `info`, and the pool for their bytes.
    pub(crate) fn new(workload: &Workload, info: &DeviceInfo) -> Result<(Self, Pool), Error> {
        fits(workload, info).map_err(|refused| Error::Unfit { device: info.name.clone(), refused })?;
        // One buffer for each request in flight, and one for the bytes of repeated writes.
        let pool = Pool::new(PoolShape {
            buffer: workload.block,
            count: workload.depth + 1,
            alignment: Bytes(info.dma_alignment.0.max(PAGE)),
        })?;
        let logical_block = info.logical_block.0;
        let shape = Self {
            logical_block,
            shift: logical_block.is_power_of_two().then(|| logical_block.trailing_zeros()),
            block: workload.block,
            nlb: workload.block.0 / logical_block,
            fua: workload.fua,
            seed: workload.seed,
            repeated: repeated(workload, info, &pool),
        };
        Ok((shape, pool))
    }

    /// What `operation` is and where it goes.
    pub(crate) fn place(&self, operation: Operation) -> (Kind, Lba) {
        match operation {
            Operation::Read { offset } => (Kind::Read, self.lba_of(offset)),
            Operation::Write { offset, .. } => (Kind::Write, self.lba_of(offset)),
            Operation::Flush => (Kind::Flush, Lba(0)),
        }
    }

    /// The request of `operation`.
    pub(crate) fn request(&self, tag: Tag, operation: Operation) -> Request {
        match operation {
            Operation::Read { offset } => Request::read(tag, self.range_of(Kind::Read, self.lba_of(offset))),
            Operation::Write { offset, generation } => {
                let lba = self.lba_of(offset);
                let payload = match &self.repeated {
                    Some(bytes) => Payload::Bytes(bytes.clone()),
                    None => Payload::Pattern(Pattern { seed: self.seed, lba, generation }),
                };
                let write = Request::write(tag, self.range_of(Kind::Write, lba), payload);
                Request { op: Op::Write { fua: self.fua }, ..write }
            }
            Operation::Flush => Request::flush(tag),
        }
    }

    /// The blocks of a request.
    pub(crate) fn range_of(&self, kind: Kind, lba: Lba) -> LbaRange {
        match kind {
            Kind::Read | Kind::Write => LbaRange::new(lba, self.nlb),
            Kind::Flush => LbaRange::EMPTY,
        }
    }

    /// What a request moves.
    pub(crate) fn bytes_of(&self, kind: Kind) -> Bytes {
        match kind {
            Kind::Read | Kind::Write => self.block,
            Kind::Flush => Bytes(0),
        }
    }

    fn lba_of(&self, offset: Bytes) -> Lba {
        Lba(match self.shift {
            Some(shift) => offset.0 >> shift,
            None => offset.0 / self.logical_block,
        })
    }
}

fn fits(workload: &Workload, info: &DeviceInfo) -> Result<(), Refused> {
    let logical_block = info.logical_block;
    let range = workload.range;
    for (field, value) in [("block", workload.block), ("range.offset", range.offset)] {
        if !value.0.is_multiple_of(logical_block.0) {
            return Err(Refused::OffGrid { field, value, logical_block });
        }
    }
    if workload.writes() && workload.content != Content::Zeroes && logical_block < STAMP {
        return Err(Refused::BlockTooSmall { logical_block, least: STAMP });
    }
    let end = range.offset.0 + workload.block.0 * workload.blocks();
    if end > info.size.0 {
        return Err(Refused::PastTheEnd { end, size: info.size });
    }
    Ok(())
}

/// The bytes of every write, if all writes have the same.
fn repeated(workload: &Workload, info: &DeviceInfo, pool: &Pool) -> Option<Buffer> {
    let mut buffer = pool.take(workload.block).filter(|_| workload.content != Content::Pattern)?;
    match workload.content {
        Content::Pattern | Content::Zeroes => buffer.fill(0),
        Content::Repeated => {
            let pattern = Pattern { seed: workload.seed, lba: Lba(0), generation: 0 };
            pattern.fill(info.logical_block.0 as usize, &mut buffer);
        }
    }
    Some(buffer.freeze())
}
