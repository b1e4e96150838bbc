//! blktrace's binary files: records of `struct blk_io_trace` (linux/blktrace_api.h), of either byte order.
//!
//! ```text
//!  0 magic 0x65617407   8 time, ns    24 bytes     32 pid      40 cpu
//!  4 sequence          16 sector      28 action    36 device   44 error, length of what follows (16 bits each)
//! ```
//! The low half of `action` says what happened to a request, the high half what kind it is. Requests are taken as they
//! were queued (Q); a trace without any is taken as they completed (C). A write that asks for a flush before it is a
//! flush and a write.

use plumb_block::{Bytes, Nanos};

use super::{Builder, Trace, TraceEvent, TraceOp};
use crate::Error;

/// The magic without the version in its low byte.
const MAGIC: u32 = 0x6561_7400;
/// The only version.
const VERSION: u32 = 7;
/// The length of a record.
const RECORD: usize = 48;
/// The kernel counts in sectors of 512 bytes.
const SECTOR: u64 = 512;

/// What happened: queued, completed.
const QUEUED: u32 = 1;
const COMPLETED: u32 = 8;

/// Kinds, as bits above the low half.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASSTHROUGH: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;

/// Whether `bytes` begin like such a file.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    order_of(bytes).is_some()
}

/// Reads the files of all processors as one trace.
pub(super) fn read(files: &[&[u8]]) -> Result<Trace, Error> {
    let mut records = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let place = |byte: usize| match files.len() {
            1 => format!("byte {byte}"),
            _ => format!("processor {index}, byte {byte}"),
        };
        if !file.is_empty() {
            records_of(file, &place, &mut records)?;
        }
    }
    let action = if records.iter().any(|record| record.happened() == QUEUED) { QUEUED } else { COMPLETED };
    let mut builder = Builder::default();
    for record in records.iter().filter(|record| record.happened() == action) {
        record.put_into(&mut builder);
    }
    Ok(builder.finish())
}

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

fn order_of(bytes: &[u8]) -> Option<Order> {
    let magic = bytes.first_chunk::<4>()?;
    [(u32::from_le_bytes(*magic), Order::Little), (u32::from_be_bytes(*magic), Order::Big)]
        .into_iter()
        .find(|(magic, _)| magic & !0xff == MAGIC)
        .map(|(_, order)| order)
}

/// A record, as far as it matters.
#[derive(Debug, Clone, Copy)]
struct Record {
    time: Nanos,
    offset: u64,
    length: u32,
    action: u32,
    device: u32,
}

fn records_of(file: &[u8], place: &dyn Fn(usize) -> String, records: &mut Vec<Record>) -> Result<(), Error> {
    let order =
        order_of(file).ok_or_else(|| Error::new(place(0), "this is no blktrace file: wrong magic"))?;
    let mut at = 0;
    while at < file.len() {
        let Some(bytes) = file[at..].first_chunk::<RECORD>() else {
            let left = file.len() - at;
            return Err(Error::new(place(at), format!("the trace ends within a record, after {left} bytes")));
        };
        let fields = Fields { bytes, order };
        match fields.u32(0) {
            magic if magic == MAGIC | VERSION => {}
            magic => {
                let problem = format!("a record begins with {magic:#x}: expected {:#x}", MAGIC | VERSION);
                return Err(Error::new(place(at), problem));
            }
        }
        let action = fields.u32(28);
        if action & (NOTIFY | PASSTHROUGH) == 0 {
            records.push(fields.record(action).map_err(|problem| Error::new(place(at), problem))?);
        }
        // A message that the end of the file cut off carries nothing that is missed.
        at = at.saturating_add(RECORD + usize::from(fields.u16(46)));
    }
    Ok(())
}

struct Fields<'a> {
    bytes: &'a [u8; RECORD],
    order: Order,
}

impl Fields<'_> {
    fn record(&self, action: u32) -> Result<Record, String> {
        let (sector, length) = (self.u64(16), self.u32(24));
        let offset = sector.checked_mul(SECTOR).filter(|offset| offset.checked_add(length.into()).is_some());
        let offset = offset.ok_or_else(|| format!("sector {sector} lies beyond 16 EiB"))?;
        Ok(Record { time: Nanos(self.u64(8)), offset, length, action, device: self.u32(36) })
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|index| self.bytes[at + index])
    }

    fn u16(&self, at: usize) -> u16 {
        match self.order {
            Order::Little => u16::from_le_bytes(self.array(at)),
            Order::Big => u16::from_be_bytes(self.array(at)),
        }
    }

    fn u32(&self, at: usize) -> u32 {
        match self.order {
            Order::Little => u32::from_le_bytes(self.array(at)),
            Order::Big => u32::from_be_bytes(self.array(at)),
        }
    }

    fn u64(&self, at: usize) -> u64 {
        match self.order {
            Order::Little => u64::from_le_bytes(self.array(at)),
            Order::Big => u64::from_be_bytes(self.array(at)),
        }
    }
}

impl Record {
    fn happened(&self) -> u32 {
        self.action & 0xffff
    }

    fn put_into(&self, builder: &mut Builder) {
        let is = |kind: u32| self.action & kind != 0;
        let op = match self.length {
            0 => None,
            _ if is(DISCARD) => Some(TraceOp::Trim),
            _ if is(WRITE) => Some(TraceOp::Write { fua: is(FUA) }),
            _ if is(READ) => Some(TraceOp::Read),
            _ => None,
        };
        if !is(FLUSH) && op.is_none() {
            return;
        }
        // The kernel's internal device number: 12 bits of major above 20 of minor.
        let target = builder.target(&format!("/dev/block/{}:{}", self.device >> 20, self.device & 0xf_ffff));
        let event = |op, offset, length| TraceEvent { at: self.time, target, op, offset, length };
        if is(FLUSH) {
            builder.trace.events.push(event(TraceOp::Flush, Bytes(0), Bytes(0)));
        }
        if let Some(op) = op {
            builder.trace.events.push(event(op, Bytes(self.offset), Bytes(self.length.into())));
        }
    }
}
