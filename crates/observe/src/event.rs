//! Decoded events: progress of block requests, and calls that make files durable.

use plumb_block::{Errno, Nanos};
use plumb_report::document::observation::NO_CALL;

/// A decoded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time by the monotonic clock.
    pub at: Nanos,
    /// Thread that was running. For a completion this is an arbitrary one.
    pub thread: u32,
    /// Content of the event.
    pub what: EventContent,
}

/// Content of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventContent {
    /// A request was put into a queue of the kernel.
    Inserted(Request),
    /// A request was handed to the driver.
    Issued(Request),
    /// The driver returned a request to be issued again.
    Requeued(Request),
    /// A request, or a part of one, completed.
    Completed(Request),
    /// Data was merged into a request.
    Merged(Merge, Request),
    /// A thread began to make data durable.
    SyncBegan(SyncCall, Option<u32>),
    /// Number of the file system of the thread's current sync, as reported by that file system.
    SyncedOn(u32),
    /// The file system finished a sync; true on success.
    Synced(bool),
    /// The call ended; true on success.
    SyncEnded(bool),
    /// Writeback of this file failed, with this error if the kernel reports it: the data is not on the
    /// device.
    WritebackFailed(Inode, Option<Errno>),
    /// The thread received this error, from a call that syncs or closes the file.
    ErrorReported(Inode, Option<Errno>),
    /// The thread created the task with this number and this name, padded with zeroes.
    TaskBegan(u32, [u8; 16]),
    /// The task with this number changed its name to this one, padded with zeroes.
    TaskNamed(u32, [u8; 16]),
    /// The thread ended.
    TaskEnded,
}

/// File by its inode number, as in events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inode {
    /// Device number of the file's file system: 12 bits of major above 20 of minor.
    pub device: u32,
    /// Inode number on that file system.
    pub number: u64,
}

/// A request, or the part of it that an event describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// Device number: 12 bits of major above 20 of minor.
    pub device: u32,
    /// First sector, in sectors of 512 bytes.
    pub sector: u64,
    /// Length in bytes; zero for a flush, and for the end of a flush sequence.
    pub bytes: u64,
    /// Operation of the request.
    pub op: Op,
    /// True if the request is durable when it completes.
    pub fua: bool,
    /// True if the cache is flushed before the request.
    pub preflush: bool,
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Op {
    /// Read of data.
    Read,
    /// Write of data.
    Write,
    /// Discard of data.
    Trim,
    /// Flush of the write cache.
    Flush,
    /// Operation without data: zones, commands of other kinds.
    #[default]
    Other,
}

/// Kind of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// Data was added at the end of a request.
    Back,
    /// Data was added at the start of a request.
    Front,
    /// A whole waiting request was merged.
    Request,
}

/// System call that makes data durable, or none.
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
    /// No call: a write with `O_DSYNC` or `RWF_DSYNC`, io_uring, or the kernel for a loop device or an NFS
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
    /// Sets the flags from the letters of `rwbs` (`blk_fill_rwbs` of kernel/trace/blktrace.c): an F before
    /// the operation is a preceding flush, an F after it force unit access.
    pub(crate) fn with_letters(mut self, letters: &[u8]) -> Self {
        let (preflush, rest) = match letters {
            [b'F', rest @ ..] => (true, rest),
            _ => (false, letters),
        };
        self.preflush = preflush;
        self.op = match rest.first() {
            Some(b'R') => Op::Read,
            Some(b'D') => Op::Trim,
            Some(b'F') => Op::Flush,
            // A write without data and with a preceding flush is a flush.
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

    /// Returns the sector after the request.
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
