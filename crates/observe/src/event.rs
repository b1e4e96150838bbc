//! Decoded events: requests of block devices on their way, and calls that make files durable.

use plumb_block::{Errno, Nanos};
use plumb_report::document::observation::NO_CALL;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, by the monotonic clock.
    pub at: Nanos,
    /// The thread that ran. Of a completion it is any.
    pub thread: u32,
    /// Content of the event.
    pub what: EventContent,
}

/// Content of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventContent {
    /// A request went into a queue of the kernel, where it waits.
    Inserted(Request),
    /// A request was handed to the driver.
    Issued(Request),
    /// A request came back from the driver to be issued again.
    Requeued(Request),
    /// A request, or a part of one, is done.
    Completed(Request),
    /// This was merged into a request.
    Merged(Merge, Request),
    /// A thread began to make something durable.
    SyncBegan(SyncCall, Option<u32>),
    /// The data that the thread makes durable is on the file system with this number, as its file system
    /// says.
    SyncedOn(u32),
    /// The file system of a sync has done it, with success or without.
    Synced(bool),
    /// The call is done, with success or without.
    SyncEnded(bool),
    /// Writeback of this file failed, with this error where the kernel says it: what was to be written is not
    /// on the device.
    WritebackFailed(Inode, Option<Errno>),
    /// The thread was told of this error, by a call that syncs the file or closes it.
    ErrorReported(Inode, Option<Errno>),
    /// The thread made this task, which is called this; zeroes follow.
    TaskBegan(u32, [u8; 16]),
    /// This task changed its name, and is called this from then on; zeroes follow.
    TaskNamed(u32, [u8; 16]),
    /// The thread ended.
    TaskEnded,
}

/// File by its number, as events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inode {
    /// The number of the device of its file system: 12 bits of major above 20 of minor.
    pub device: u32,
    /// Number of the file there.
    pub number: u64,
}

/// A request, or the part of it that an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// The number of the device: 12 bits of major above 20 of minor.
    pub device: u32,
    /// Where it begins, in sectors of 512 bytes.
    pub sector: u64,
    /// How long it is; zero of a flush, and of what ends a sequence of flushes.
    pub bytes: u64,
    /// Operation of the request.
    pub op: Op,
    /// True if it is durable when it completes.
    pub fua: bool,
    /// True if the cache is flushed before it.
    pub preflush: bool,
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Op {
    /// Data.
    Read,
    /// Write of data.
    Write,
    /// Discard of data.
    Trim,
    /// Flush of the write cache.
    Flush,
    /// Something that moves no data: zones, commands of other kinds.
    #[default]
    Other,
}

/// Kind of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// More data behind a request.
    Back,
    /// More data in front of a request.
    Front,
    /// A whole request that waited.
    Request,
}

/// A system call that makes data durable, or that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SyncCall {
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// sync_file_range(2), which flushes no device.
    SyncFileRange,
    /// msync(2) with `MS_SYNC`.
    Msync,
    /// syncfs(2).
    Syncfs,
    /// sync(2).
    Sync,
    /// None: a write with `O_DSYNC` or `RWF_DSYNC`, io_uring, or the kernel for a loop device or an NFS
    /// client.
    None,
}

impl SyncCall {
    /// All calls.
    pub const ALL: [Self; 6] =
        [Self::Fsync, Self::Fdatasync, Self::SyncFileRange, Self::Msync, Self::Syncfs, Self::Sync];

    /// Returns the name of the call.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::SyncFileRange => "sync_file_range",
            Self::Msync => "msync",
            Self::Syncfs => "syncfs",
            Self::Sync => "sync",
            Self::None => NO_CALL,
        }
    }
}

impl Request {
    /// Sets what the letters of `rwbs` say (`blk_fill_rwbs` of kernel/trace/blktrace.c): an F before the
    /// operation is a flush before it, an F behind it force unit access.
    pub fn with_letters(mut self, letters: &[u8]) -> Self {
        let (preflush, rest) = match letters {
            [b'F', rest @ ..] => (true, rest),
            _ => (false, letters),
        };
        self.preflush = preflush;
        self.op = match rest.first() {
            Some(b'R') => Op::Read,
            Some(b'D') => Op::Trim,
            Some(b'F') => Op::Flush,
            // Without data and with a flush before it, a write is a flush.
            Some(b'W') if preflush && self.bytes == 0 => Op::Flush,
            Some(b'W') => Op::Write,
            _ => Op::Other,
        };
        self.fua = self.op == Op::Write && rest.get(1) == Some(&b'F');
        self
    }

    /// Returns the offset of the request's first byte.
    pub const fn offset(&self) -> u64 {
        self.sector.saturating_mul(512)
    }

    /// Returns the sector behind it.
    pub const fn end(&self) -> u64 {
        self.sector.saturating_add(self.bytes / 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_say_what_a_request_asks_for() {
        let of = |letters: &str, bytes| {
            let request = Request { bytes, ..Request::default() }.with_letters(letters.as_bytes());
            (request.op, request.preflush, request.fua)
        };
        assert_eq!(of("R", 512), (Op::Read, false, false));
        assert_eq!(of("RAM", 512), (Op::Read, false, false));
        assert_eq!(of("WS", 512), (Op::Write, false, false));
        assert_eq!(of("WFSM", 512), (Op::Write, false, true));
        assert_eq!(of("FWFS", 512), (Op::Write, true, true));
        assert_eq!(of("FWS", 0), (Op::Flush, true, false));
        assert_eq!(of("FF", 0), (Op::Flush, true, false));
        assert_eq!(of("DS", 4096), (Op::Trim, false, false));
        assert_eq!(of("N", 0).0, Op::Other);
        assert_eq!(of("", 0).0, Op::Other);
    }
}
