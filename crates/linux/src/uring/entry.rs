//! Encoding of a system call as a submission entry.

#![expect(unsafe_code, reason = "entries carry the addresses of buffers")]

use io_uring::{opcode, types};

use super::ring::{OwnFd, Ring};
use crate::file::work::{ATOMIC, Call};
use crate::file::zeroes::zeroes;
use crate::sync_file_range::WRITTEN_BACK;
use plumb_block::FlushCall;

/// Outcome of pushing a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PushOutcome {
    Yes,
    /// The ring is full, which cannot happen with the right depth.
    Full,
    /// io_uring does not support the call.
    NotForRings,
}

/// Pushes the entry of a call through the queue's own descriptor. This is a macro because the two kinds of
/// descriptor are types without a common trait. The code is straight-line because copying an entry costs more
/// than building it.
macro_rules! push_through {
    ($ring:expr, $fd:expr, $call:expr, $memory:expr, $user_data:expr) => {
        match $call {
            Call::Read { offset, length, done, flags } => {
                let (at, length) = part($memory, done, length);
                let flags = flags.bits().cast_signed();
                match $ring.buffer_index(at, length as usize) {
                    Some(index) => {
                        let read = opcode::ReadFixed::new($fd, at, length, index);
                        push_entry!($ring, read.offset(offset).rw_flags(flags), $user_data)
                    }
                    None => {
                        let read = opcode::Read::new($fd, at, length);
                        push_entry!($ring, read.offset(offset).rw_flags(flags), $user_data)
                    }
                }
            }
            Call::Write { offset, length, done, flags } => {
                let (at, length) = part($memory, done, length);
                let is_registered = !flags.contains(ATOMIC);
                let flags = flags.bits().cast_signed();
                match $ring.buffer_index(at, length as usize).filter(|_| is_registered) {
                    Some(index) => {
                        let write = opcode::WriteFixed::new($fd, at, length, index);
                        push_entry!($ring, write.offset(offset).rw_flags(flags), $user_data)
                    }
                    None => {
                        let write = opcode::Write::new($fd, at, length);
                        push_entry!($ring, write.offset(offset).rw_flags(flags), $user_data)
                    }
                }
            }
            Call::Flush(FlushCall::Fdatasync) => {
                let sync = opcode::Fsync::new($fd);
                push_entry!($ring, sync.flags(types::FsyncFlags::DATASYNC), $user_data)
            }
            Call::Flush(FlushCall::Fsync) => push_entry!($ring, opcode::Fsync::new($fd), $user_data),
            Call::Flush(FlushCall::Range) => {
                // A length of 0 means up to the end.
                let sync = opcode::SyncFileRange::new($fd, 0);
                push_entry!($ring, sync.flags(WRITTEN_BACK), $user_data)
            }
            Call::WriteZeroes { offset, length, flags } => {
                let bytes = zeroes(length);
                let write = opcode::Write::new($fd, bytes.as_ptr(), bytes.len() as u32);
                push_entry!($ring, write.offset(offset).rw_flags(flags.bits().cast_signed()), $user_data)
            }
            Call::Fallocate { mode, offset, length } => {
                // Uses the description that claims a block device.
                let fallocate = opcode::Fallocate::new($ring.claiming_fd(), length);
                push_entry!($ring, fallocate.offset(offset).mode(mode), $user_data)
            }
            Call::Discard { .. } | Call::Truncate | Call::SyncPages { .. } => PushOutcome::NotForRings,
        }
    };
}

macro_rules! push_entry {
    ($ring:expr, $operation:expr, $user_data:expr) => {{
        let mut entry = $operation.build().flags($ring.entry_flags());
        entry.set_user_data($user_data);
        // SAFETY: guaranteed by the caller of `push`, or the memory is static.
        if unsafe { $ring.push(&entry) } { PushOutcome::Yes } else { PushOutcome::Full }
    }};
}

/// Pushes the entry for `call` on the ring's file, with the request's memory at `memory`. The completion
/// returns `user_data`.
///
/// # Safety
/// The memory must be large enough for the call and stay valid, and otherwise unused if the kernel writes it,
/// until the completion was seen.
#[inline]
pub(super) unsafe fn push(ring: &mut Ring, call: Call, memory: *mut u8, user_data: u64) -> PushOutcome {
    match ring.own_fd() {
        OwnFd::Registered(fd) => push_through!(ring, fd, call, memory, user_data),
        OwnFd::Raw(fd) => push_through!(ring, fd, call, memory, user_data),
    }
}

/// Returns address and length of the rest of a transfer. No transfer exceeds the maximum, so the length fits.
#[inline]
fn part(memory: *mut u8, done: u64, length: u64) -> (*mut u8, u32) {
    (memory.wrapping_add(done as usize), u32::try_from(length).unwrap_or(1 << 30))
}
