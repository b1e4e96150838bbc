//! A system call as a submission entry.

#![expect(unsafe_code, reason = "entries carry the addresses of buffers")]

use io_uring::{opcode, types};

use super::ring::{OwnFd, Ring};
use crate::file::work::{Call, zeroes};

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    Yes,
    /// The ring has no room; a ring of the right depth always has.
    Full,
    /// io_uring has no such call.
    NotForRings,
}

/// Pushes the entry of a call through the queue's own descriptor. A macro, because the two kinds of descriptor are
/// two types without a trait to name; and each way from building to pushing is straight, because copying an entry
/// once more costs more than building it.
macro_rules! push_through {
    ($ring:expr, $fd:expr, $call:expr, $memory:expr, $user_data:expr) => {
        match $call {
            Call::Read { offset, length, done } => {
                let (at, length) = part($memory, done, length);
                match $ring.buffer_index(at, length as usize) {
                    Some(index) => {
                        let read = opcode::ReadFixed::new($fd, at, length, index);
                        push_entry!($ring, read.offset(offset), $user_data)
                    }
                    None => {
                        let read = opcode::Read::new($fd, at, length);
                        push_entry!($ring, read.offset(offset), $user_data)
                    }
                }
            }
            Call::Write { offset, length, done, dsync } => {
                let (at, length) = part($memory, done, length);
                let flags = if dsync { libc::RWF_DSYNC } else { 0 };
                match $ring.buffer_index(at, length as usize) {
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
            Call::Sync => {
                let sync = opcode::Fsync::new($fd);
                push_entry!($ring, sync.flags(types::FsyncFlags::DATASYNC), $user_data)
            }
            Call::WriteZeroes { offset, length } => {
                let bytes = zeroes(length);
                let write = opcode::Write::new($fd, bytes.as_ptr(), bytes.len() as u32);
                push_entry!($ring, write.offset(offset), $user_data)
            }
            Call::Fallocate { mode, offset, length } => {
                // Through the description that claims a block device.
                let fallocate = opcode::Fallocate::new($ring.claiming_fd(), length);
                push_entry!($ring, fallocate.offset(offset).mode(mode), $user_data)
            }
            Call::Discard { .. } => Pushed::NotForRings,
        }
    };
}

macro_rules! push_entry {
    ($ring:expr, $operation:expr, $user_data:expr) => {{
        let mut entry = $operation.build();
        entry.set_user_data($user_data);
        // SAFETY: what the caller of `push` promises, or memory that lives for ever.
        if unsafe { $ring.push(&entry) } { Pushed::Yes } else { Pushed::Full }
    }};
}

/// Pushes the entry for `call` on the ring's file, with the request's memory at `memory`. `user_data` comes back
/// with the completion.
///
/// # Safety
/// The memory must hold what the call moves and stay valid, and unused by anyone else where the kernel writes it,
/// until the completion was seen.
#[inline]
pub(super) unsafe fn push(ring: &mut Ring, call: Call, memory: *mut u8, user_data: u64) -> Pushed {
    match ring.own_fd() {
        OwnFd::Registered(fd) => push_through!(ring, fd, call, memory, user_data),
        OwnFd::Raw(fd) => push_through!(ring, fd, call, memory, user_data),
    }
}

/// Where the rest of a transfer starts and how long it is: at most what one transfer may have, so it fits.
#[inline]
fn part(memory: *mut u8, done: u64, length: u64) -> (*mut u8, u32) {
    (memory.wrapping_add(done as usize), u32::try_from(length).unwrap_or(1 << 30))
}
