//! FUSE over io_uring (Linux 6.14, fs/fuse/dev_uring.c): requests of a connection arrive as completions of
//! commands on `/dev/fuse`, and the command that answers one fetches the next.
//!
//! ```text
//! struct fuse_uring_req_header, 288   0 the request's header, or the reply's, 128 | 128 the first argument, 128
//!                                     256 flags u64 | 264 commit_id u64 | 272 payload bytes u32 | 276 padding u32 | 280 reserved u64
//! struct fuse_uring_cmd_req           0 flags u64 | 8 commit_id u64 | 16 queue u16 | 18 padding
//! memory of an entry                  0 payload | header | the two iovecs that name both when it is registered
//! ```
//! The kernel has a queue for each possible processor, and uses none before an entry of every queue is
//! registered. The kernel owns an entry's memory, except from the completion of its command to the next
//! command.
//!
//! A command holds the connection's file. When the process is killed, this file must be released, which
//! aborts the connection. But a ring lives as long as its memory is mapped, and a killed process keeps that
//! until its last thread has ended, which may itself wait for the connection. When a thread ends, the kernel
//! cancels all of its commands, but only if one of them refers to a ring (io_uring_cancel_generic in
//! io_uring/cancel.c). Therefore each thread has such a command: a poll of a ring in which nothing ever
//! happens.

#![expect(unsafe_code, reason = "the kernel gets the addresses of memory")]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use io_uring::IoUring;
use io_uring::opcode::UringCmd80;
use io_uring::squeue::Entry128;
use io_uring::types::Fd;
use plumb_block::{BufferMut, Bytes, Pool};

use crate::command_ring::{CommandRing, Patience};
use crate::tree::{LiveTree, possible_processors};

/// Bytes after the payload in an entry's memory.
pub const TAIL_BYTES: Bytes = Bytes(HEADER_BYTES as u64 + 32);
const HEADER_BYTES: usize = 288;
const ARGUMENT_AT: usize = 128;
const COMMIT_ID_AT: usize = 264;
const PAYLOAD_LENGTH_AT: usize = 272;
/// `FUSE_IO_URING_CMD_REGISTER` and `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`.
const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;

/// User data of the poll that never completes, which no entry has.
const IDLE: u64 = u64::MAX - 1;

/// Returns the number of queues of a connection; `None` if the kernel does not report it.
pub fn queues() -> Option<u16> {
    possible_processors(&LiveTree)?.try_into().ok()
}

/// Shape of the entries of a ring.
#[derive(Debug, Clone)]
pub struct RingShape {
    /// Numbers of the queues that the ring serves.
    pub queues: Vec<u16>,
    /// Number of entries for each queue, which limits its requests in progress.
    pub depth: u16,
    /// Space for the payload of an entry: the negotiated maximum.
    pub payload: Bytes,
}

/// A request from the kernel.
#[derive(Debug)]
pub struct RingRequest<'a> {
    /// `struct fuse_in_header` with padding.
    pub header: &'a [u8],
    /// First argument of the operation, with padding.
    pub argument: &'a [u8],
    /// Bytes after the first argument.
    pub payload: &'a [u8],
}

/// An entry of a queue.
struct RingEntry {
    queue: u16,
    memory: BufferMut,
    is_lent: bool,
}

/// The entries of some queues, used only by the thread that creates them.
pub struct FuseRing {
    ring: CommandRing<Entry128>,
    connection: OwnedFd,
    /// Ring that is polled so that commands are cancelled when their thread ends.
    _idle: IoUring,
    payload_max: usize,
    entries: Vec<RingEntry>,
    lent: usize,
    /// Error of the first entry that ended: the connection is gone, or the registration was refused.
    ended: Option<i32>,
}

impl FuseRing {
    /// Registers entries with `connection`, a file of `/dev/fuse` whose connection has negotiated the use of
    /// rings. Their memory comes from `pool`, whose buffers must hold a payload and [`TAIL_BYTES`]. `watched`
    /// is an additional descriptor to [watch](Self::watch).
    ///
    /// # Errors
    /// Fails as io_uring_setup(2) does, or with the kernel's refusal of the registration.
    pub fn register(
        connection: OwnedFd,
        shape: &RingShape,
        pool: &Pool,
        watched: Option<OwnedFd>,
    ) -> io::Result<Self> {
        let payload_max = shape.payload.0 as usize;
        let queues = shape.queues.iter().flat_map(|queue| std::iter::repeat_n(*queue, shape.depth.into()));
        let entries: Option<Vec<_>> = queues
            .map(|queue| {
                let memory = pool.take(shape.payload + TAIL_BYTES)?;
                Some(RingEntry { queue, memory, is_lent: false })
            })
            .collect();
        let entries = entries.ok_or(io::ErrorKind::OutOfMemory)?;
        let mut ring = CommandRing::new(entries.len() as u32, watched)?;
        let idle = IoUring::builder().dontfork().build(1)?;
        ring.poll(idle.as_raw_fd(), IDLE)?;
        let mut ring = Self { ring, connection, _idle: idle, payload_max, entries, lent: 0, ended: None };
        for entry in 0..ring.entries.len() {
            ring.push(entry, REGISTER, 0)?;
        }
        // A refused registration completes at once.
        ring.wait(Patience::None, &mut Vec::new())?;
        ring.ended.map_or(Ok(ring), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    /// Returns the request of `entry`; `None` if the kernel owns the entry, or the request is longer than its
    /// memory.
    pub fn request(&self, entry: usize) -> Option<RingRequest<'_>> {
        let RingEntry { memory, .. } = self.entries.get(entry).filter(|entry| !entry.is_lent)?;
        let (payload, tail) = memory.split_at(self.payload_max);
        let length = tail[PAYLOAD_LENGTH_AT..].first_chunk().copied().map(u32::from_ne_bytes)?;
        Some(RingRequest {
            header: &tail[..ARGUMENT_AT],
            argument: &tail[ARGUMENT_AT..2 * ARGUMENT_AT],
            payload: payload.get(..length as usize)?,
        })
    }

    /// Answers the request of `entry` with `header`, a `struct fuse_out_header`, and `body`, and offers the
    /// entry for the next request. Takes effect at the next wait for events.
    ///
    /// # Errors
    /// EINVAL if the kernel owns the entry or the body is too long; otherwise fails as io_uring_enter(2)
    /// does.
    pub fn commit(&mut self, entry: usize, header: &[u8; 16], body: &[u8]) -> io::Result<()> {
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        let found = self.entries.get_mut(entry).filter(|entry| !entry.is_lent).ok_or_else(invalid)?;
        let (payload, tail) = found.memory.split_at_mut(self.payload_max);
        payload.get_mut(..body.len()).ok_or_else(invalid)?.copy_from_slice(body);
        tail[..header.len()].copy_from_slice(header);
        tail[PAYLOAD_LENGTH_AT..][..4].copy_from_slice(&(body.len() as u32).to_ne_bytes());
        let id = tail[COMMIT_ID_AT..].first_chunk().copied().map(u64::from_ne_bytes);
        self.push(entry, COMMIT_AND_FETCH, id.unwrap_or_default())
    }

    fn push(&mut self, entry: usize, operation: u32, commit_id: u64) -> io::Result<()> {
        let RingEntry { queue, memory, is_lent } = &mut self.entries[entry];
        let start = memory.as_mut_ptr().expose_provenance();
        let mut bytes = [0; 80];
        bytes[8..16].copy_from_slice(&commit_id.to_ne_bytes());
        bytes[16..18].copy_from_slice(&queue.to_ne_bytes());
        let command = UringCmd80::new(Fd(self.connection.as_raw_fd()), operation).cmd(bytes);
        let command = if operation == REGISTER {
            let (header, iovecs) = (start + self.payload_max, self.payload_max + HEADER_BYTES);
            let words = [header, HEADER_BYTES, start, self.payload_max];
            for (word, at) in words.iter().zip(memory[iovecs..].chunks_exact_mut(size_of::<usize>())) {
                at.copy_from_slice(&word.to_ne_bytes());
            }
            with_length(command.addr(Some((start + iovecs) as u64)).build(), 2)
        } else {
            command.build()
        };
        *is_lent = true;
        self.lent += 1;
        // SAFETY: the commands of an entry name its memory alone, iovecs, header and payload, which lie
        // within it. Nobody uses it while it is lent, and it is not given up before the command has come
        // back.
        unsafe { self.ring.push(&command.user_data(entry as u64)) }
    }

    /// Starts to watch the descriptor for readability. Has no effect without a descriptor, or while it is
    /// being watched.
    ///
    /// # Errors
    /// Fails as io_uring_enter(2) does.
    pub fn watch(&mut self) -> io::Result<()> {
        self.ring.watch()
    }

    /// Submits answers and the watch, waits for an event, and appends the entries that have a request.
    ///
    /// # Errors
    /// The error of the first entry that ended, once the kernel has returned all entries: ENOTCONN when the
    /// connection is gone. Otherwise fails as io_uring_enter(2) does.
    pub fn wait(&mut self, patience: Patience, ready: &mut impl Extend<usize>) -> io::Result<()> {
        if let (Some(errno), 0) = (self.ended, self.lent) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let Self { ring, entries, lent, ended, .. } = self;
        ring.wait(patience, |number, result| {
            let Some(entry) = entries.get_mut(number as usize).filter(|entry| entry.is_lent) else { return };
            entry.is_lent = false;
            *lent -= 1;
            if result < 0 {
                ended.get_or_insert(-result);
            } else {
                ready.extend([number as usize]);
            }
        })
    }
}

impl Drop for FuseRing {
    fn drop(&mut self) {
        // The kernel tears a ring down some time after it is closed, and may write to its entries until then.
        for RingEntry { memory, .. } in self.entries.drain(..).filter(|entry| entry.is_lent) {
            std::mem::forget(memory);
        }
    }
}

/// Sets the number of iovecs in `command`, for which the crate has no method in such commands.
fn with_length(mut command: Entry128, length: u32) -> Entry128 {
    const LENGTH_AT: usize = 24;
    const { assert!(size_of::<Entry128>() == 128) };
    // SAFETY: an entry is the kernel's `struct io_uring_sqe`, of 128 bytes, whose `len` is the u32 at 24.
    unsafe { (&raw mut command).cast::<u8>().add(LENGTH_AT).cast::<u32>().write_unaligned(length) };
    command
}

#[cfg(test)]
mod tests {
    use io_uring::opcode::Readv;
    use plumb_block::PoolShape;

    use super::*;

    #[test]
    fn the_length_of_a_command_lies_where_the_crate_has_that_of_a_read() {
        let bytes = |entry: Entry128| {
            // SAFETY: both types are plain bytes of the same size.
            unsafe { std::mem::transmute::<Entry128, [u8; 128]>(entry) }
        };
        let read = |length| Entry128::from(Readv::new(Fd(3), std::ptr::null(), length).build());
        assert_eq!(bytes(with_length(read(0), 0x0102_0304)), bytes(read(0x0102_0304)));
    }
    #[test]
    fn a_file_without_a_connection_is_refused_with_the_error_of_the_kernel() {
        let Ok(file) = crate::fuse_connection::open(crate::fuse_connection::WhenIdle::Return) else {
            return plumb_testkit::skip("no FUSE here");
        };
        let pool = PoolShape { buffer: Bytes::kib(8), count: 4, alignment: Bytes::kib(4) };
        let shape = RingShape { queues: vec![0, 1], depth: 2, payload: Bytes::kib(4) };
        let refused = FuseRing::register(file, &shape, &Pool::new(pool).unwrap(), None).err().unwrap();
        assert!(refused.raw_os_error().is_some(), "{refused}");
    }
}
