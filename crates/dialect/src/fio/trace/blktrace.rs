//! Binary files of blktrace: records of `struct blk_io_trace` (linux/blktrace_api.h), in either byte order.
//!
//! ```text
//!  0 magic 0x65617407   8 time, ns    24 bytes     32 pid      40 cpu
//!  4 sequence          16 sector      28 action    36 device   44 error, length of what follows (16 bits each)
//! ```
//!
//! The low half of `action` is the event of a request, the high half its kind. Requests are taken at queueing
//! (Q); in a trace without such events, at completion (C). A write with a preflush counts as a flush and a
//! write.

use std::io::{self, BufRead, Read as _};

use plumb_block::Nanos;
use plumb_workload::{Trace, TraceOp};

use super::builder::{Builder, TraceOperation, unreadable};
use crate::Error;

/// Magic, without the version in its low byte.
const MAGIC: u32 = 0x6561_7400;
/// Supported version.
const VERSION: u32 = 7;
/// Length of a record in bytes.
const RECORD: usize = 48;
/// Unit of `sector` in bytes.
const SECTOR: u64 = 512;

/// Events of a request: queued, completed.
const QUEUED: u32 = 1;
const COMPLETED: u32 = 8;

/// Kinds of requests, as bits of the high half.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASSTHROUGH: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;

/// Returns true if `bytes` begin like a blktrace file.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    order_of(bytes).is_some()
}

/// Reads the files of all processors as one trace.
pub(super) fn read(files: Vec<Box<dyn BufRead + '_>>) -> Result<Trace, Error> {
    let single = files.len() == 1;
    let mut requests = Requests::default();
    for (index, mut file) in files.into_iter().enumerate() {
        let place = |byte: u64| match single {
            true => format!("byte {byte}"),
            false => format!("processor {index}, byte {byte}"),
        };
        records_of(&mut file, &place, &mut requests)?;
    }
    Ok(if requests.any_queued { requests.queued } else { requests.completed }.finish())
}

/// Requests at queueing, and at completion as long as none was seen at queueing.
#[derive(Default)]
struct Requests {
    queued: Builder,
    completed: Builder,
    any_queued: bool,
}

impl Requests {
    fn take(&mut self, record: &Record) -> Result<(), String> {
        match record.happened() {
            QUEUED => {
                if !std::mem::replace(&mut self.any_queued, true) {
                    self.completed = Builder::default();
                }
                record.put_into(&mut self.queued)
            }
            COMPLETED if !self.any_queued => record.put_into(&mut self.completed),
            _ => Ok(()),
        }
    }
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

/// Fields of a record that are used.
#[derive(Debug, Clone, Copy)]
struct Record {
    time: Nanos,
    offset: u64,
    length: u32,
    action: u32,
    device: u32,
}

fn records_of(
    file: &mut dyn BufRead,
    place: &dyn Fn(u64) -> String,
    requests: &mut Requests,
) -> Result<(), Error> {
    let mut bytes = [0; RECORD];
    let mut order = None;
    let mut at = 0;
    loop {
        let broken = |problem: String| Error::new(place(at), problem);
        let length = fill(file, &mut bytes).map_err(|error| unreadable(&place(at), &error))?;
        if length == 0 {
            return Ok(());
        }
        // All records of a file have the byte order of the first.
        let order = match order.or_else(|| order_of(&bytes[..length])) {
            Some(found) => *order.insert(found),
            None => return Err(broken("this is not a blktrace file: wrong magic".into())),
        };
        if length < RECORD {
            return Err(broken(format!("the trace ends within a record, after {length} bytes")));
        }
        let fields = Fields { bytes: &bytes, order };
        let magic = fields.u32(0);
        if magic != MAGIC | VERSION {
            return Err(broken(format!("a record begins with {magic:#x}: expected {:#x}", MAGIC | VERSION)));
        }
        let action = fields.u32(28);
        if action & (NOTIFY | PASSTHROUGH) == 0 {
            let taken = fields.record(action).and_then(|record| requests.take(&record));
            taken.map_err(broken)?;
        }
        // A message truncated by the end of the file contains nothing that is needed.
        let message = u64::from(fields.u16(46));
        io::copy(&mut file.take(message), &mut io::sink()).map_err(|error| unreadable(&place(at), &error))?;
        at += RECORD as u64 + message;
    }
}

/// Fills `bytes` from the file. Returns the number of bytes, fewer at the end of the file.
fn fill(file: &mut dyn BufRead, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
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

    /// Returns the number in `length` bytes at offset `at`.
    fn number(&self, at: usize, length: usize) -> u64 {
        let bytes = self.bytes[at..at + length].iter();
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self.order {
            Order::Little => bytes.rev().fold(0, join),
            Order::Big => bytes.fold(0, join),
        }
    }

    fn u16(&self, at: usize) -> u16 {
        self.number(at, 2) as u16
    }

    fn u32(&self, at: usize) -> u32 {
        self.number(at, 4) as u32
    }

    fn u64(&self, at: usize) -> u64 {
        self.number(at, 8)
    }
}

impl Record {
    fn happened(&self) -> u32 {
        self.action & 0xffff
    }

    fn put_into(&self, builder: &mut Builder) -> Result<(), String> {
        let is = |kind: u32| self.action & kind != 0;
        let op = match self.length {
            0 => None,
            _ if is(DISCARD) => Some(TraceOp::Trim),
            _ if is(WRITE) => Some(TraceOp::Write { fua: is(FUA) }),
            _ if is(READ) => Some(TraceOp::Read),
            _ => None,
        };
        if !is(FLUSH) && op.is_none() {
            return Ok(());
        }
        // Internal device number of the kernel: 12 bits of major above 20 bits of minor.
        let name = format!("/dev/block/{}:{}", self.device >> 20, self.device & 0xf_ffff);
        let target = builder.target(&name)?;
        if is(FLUSH) {
            builder
                .add(target, TraceOperation { at: self.time, op: TraceOp::Flush, offset: 0, length: 0 })?;
        }
        let Some(op) = op else { return Ok(()) };
        builder.add(
            target,
            TraceOperation { at: self.time, op, offset: self.offset, length: self.length.into() },
        )
    }
}
