//! Individual requests in the format of blktrace, for replay by `plumb load`, fio and `plumb cache advise`.
//!
//! Each is a `struct blk_io_trace` (linux/blktrace_api.h) in the byte order of this machine, with the action
//! "queued". The format is meant for reading back, not for blkparse: sequence numbers and processes are left
//! out.

use std::io::{self, Write};

use plumb_block::Nanos;

use crate::event::{Op, Request};

/// Name of the file in a run directory.
pub const FILE_NAME: &str = "requests.blktrace";

/// Magic number, with the version in its low byte.
const MAGIC: u32 = 0x6561_7407;
/// Action of an event: queued.
const QUEUED: u32 = 1;
/// Kinds of requests, as bits above the low half.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;

/// Writes a request that arrived `at` after the start. Requests without data that are not flushes are left
/// out.
///
/// # Errors
/// Fails as write(2) does.
pub fn write(out: &mut dyn Write, at: Nanos, request: &Request) -> io::Result<()> {
    let kind = match request.op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Trim => DISCARD,
        Op::Flush => WRITE | FLUSH,
        Op::Other => return Ok(()),
    };
    let action = kind | if request.fua { FUA } else { 0 } | if request.preflush { FLUSH } else { 0 } | QUEUED;
    let mut record = [0; 48];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &MAGIC.to_ne_bytes());
    put(8, &at.0.to_ne_bytes());
    put(16, &request.sector.to_ne_bytes());
    put(24, &(request.bytes as u32).to_ne_bytes());
    put(28, &action.to_ne_bytes());
    put(36, &request.device.to_ne_bytes());
    out.write_all(&record)
}
