//! Parser of the server's replies: data in, answers out. Independent of sockets and clocks.
//!
//! The data of a read is copied from the receive buffer to its destination, unless much is still to come:
//! that is received in place.
//!
//! After a protocol violation by the server (an unexpected answer, data outside of the request, an impossible
//! length) nothing more is read, because the start of the next reply is unknown.

use std::io::{self, IoSliceMut};

use plumb_block::Errno;

use super::commands::{Commands, PendingCommand};
use crate::nbd::input::Input;
use crate::nbd::transport::Transport;
use crate::nbd::wire::{
    Chunk, ChunkHeader, ChunkKind, Command, Cookie, OffsetHole, ReplyHead, SimpleReply, WireError,
};

/// Size of the receive buffer: about thirty 4 KiB reads.
const INPUT_BYTES: usize = 160 << 10;
/// Minimum amount of outstanding read data that is received in place.
const IN_PLACE_MIN_BYTES: u32 = 16 << 10;
/// Maximum content of a chunk other than read data: the longest error message, or a reasonable number of
/// runs.
const BODY_MAX_BYTES: u32 = 1 << 20;
/// Length of the offset before read data.
const OFFSET_BYTES: usize = 8;

/// Destination of read data.
pub(super) trait Landing {
    /// Returns the memory for `length` bytes of `job` at `offset` of the export; `None` if the data is not
    /// wanted.
    fn memory(&mut self, job: u32, offset: u64, length: usize) -> Option<&mut [u8]>;
}

/// Answer to a command.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) asked: PendingCommand,
    pub(super) outcome: Result<(), Errno>,
}

/// Reason for ending communication with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReplyFault {
    #[error(transparent)]
    Malformed(#[from] WireError),
    #[error("the server answers cookie {0:#x}, which no request in flight has")]
    Nobody(u64),
    #[error("the server sends {length} bytes at {offset}, which were not asked for or came before")]
    Outside { offset: u64, length: u64 },
    #[error("the server answers {0}")]
    Unfitting(&'static str),
}

#[derive(Debug)]
enum State {
    /// Start of a reply.
    Head,
    /// Read data.
    Bytes { cookie: Cookie, at: u64, left: u32, is_last: bool },
    /// Content of a chunk.
    Body { header: ChunkHeader, bytes: Vec<u8> },
}

/// Received but unprocessed data, and the expected next part.
pub(super) struct Replies {
    input: Input,
    state: State,
    is_structured: bool,
}

impl Replies {
    pub(super) fn new(is_structured: bool) -> Self {
        Self { input: Input::new(INPUT_BYTES), state: State::Head, is_structured }
    }

    /// Receives once, for `advance` to process. Returns whether more may be available; `None` at the end of
    /// the stream.
    pub(super) fn receive(
        &mut self,
        transport: &mut dyn Transport,
        commands: &mut Commands,
        landing: &mut impl Landing,
    ) -> io::Result<Option<bool>> {
        if let State::Bytes { cookie, at, left, .. } = &mut self.state
            && self.input.is_empty()
            && *left >= IN_PLACE_MIN_BYTES
            && let Some(asked) = commands.get(*cookie)
            && let Some(memory) = landing.memory(asked.job, *at, *left as usize)
        {
            let behind = self.input.space(usize::MAX);
            let room = memory.len() + behind.len();
            let mut both = [IoSliceMut::new(memory), IoSliceMut::new(behind)];
            let received = transport.receive(&mut both)?;
            let placed = received.min(*left as usize);
            *at += placed as u64;
            *left -= placed as u32;
            self.input.received(received - placed);
            return Ok((received > 0).then(|| transport.may_have_more(received, room)));
        }
        // The space is never empty, since `advance` leaves at most a header.
        let space = self.input.space(usize::MAX);
        let room = space.len();
        let received = transport.receive(&mut [IoSliceMut::new(space)])?;
        self.input.received(received);
        Ok((received > 0).then(|| transport.may_have_more(received, room)))
    }

    /// Returns true if a reply is incomplete: the rest is probably being sent.
    pub(super) fn is_midway(&self) -> bool {
        !self.input.is_empty() || !matches!(self.state, State::Head)
    }

    /// Processes available data, and appends answers.
    ///
    /// # Errors
    /// If the server violated the protocol. Earlier answers remain valid.
    pub(super) fn advance(
        &mut self,
        commands: &mut Commands,
        landing: &mut impl Landing,
        answers: &mut Vec<Answer>,
    ) -> Result<(), ReplyFault> {
        loop {
            let goes_on = match &self.state {
                State::Head => self.head(commands, answers)?,
                State::Bytes { .. } => self.bytes(commands, landing, answers)?,
                State::Body { .. } => self.body(commands, landing, answers)?,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Processes the start of a reply; `false` if it is incomplete.
    #[inline]
    fn head(&mut self, commands: &mut Commands, answers: &mut Vec<Answer>) -> Result<bool, ReplyFault> {
        let bytes = self.input.bytes();
        let Some((head, taken)) = ReplyHead::decode(bytes)? else { return Ok(false) };
        match head {
            ReplyHead::Simple(reply) => {
                self.input.consume(taken);
                self.simple(reply, commands, answers)?;
            }
            ReplyHead::Chunk(_) if !self.is_structured => {
                return Err(ReplyFault::Unfitting("in chunks, which were not negotiated"));
            }
            ReplyHead::Chunk(header) if header.kind == ChunkKind::OFFSET_DATA => {
                let Some(offset) = bytes.get(taken..).and_then(<[u8]>::first_chunk::<OFFSET_BYTES>) else {
                    return Ok(false);
                };
                let offset = u64::from_be_bytes(*offset);
                self.input.consume(taken + OFFSET_BYTES);
                self.data_chunk(&header, offset, commands)?;
            }
            ReplyHead::Chunk(header) => {
                self.input.consume(taken);
                commands.get(header.cookie).ok_or(ReplyFault::Nobody(header.cookie.0))?;
                if header.length > BODY_MAX_BYTES {
                    return Err(ReplyFault::Unfitting(
                        "with a chunk of more than 1 MiB that is not of a read",
                    ));
                }
                self.state = State::Body { header, bytes: Vec::new() };
            }
        }
        Ok(true)
    }

    fn simple(
        &mut self,
        reply: SimpleReply,
        commands: &mut Commands,
        answers: &mut Vec<Answer>,
    ) -> Result<(), ReplyFault> {
        let asked = commands.get(reply.cookie).ok_or(ReplyFault::Nobody(reply.cookie.0))?;
        let needs_chunks =
            asked.command == Command::BLOCK_STATUS || self.is_structured && asked.command == Command::READ;
        match reply.errno.to_errno() {
            None if needs_chunks => Err(ReplyFault::Unfitting("simply what has to be answered in chunks")),
            Some(_) if self.is_structured && asked.command == Command::READ => {
                Err(ReplyFault::Unfitting("a read simply, though chunks were negotiated"))
            }
            None if asked.command == Command::READ => {
                // Read data follows and ends the reply.
                let covered = asked.coverage.add(0, asked.length);
                debug_assert!(covered, "nothing of it can have come");
                self.state = State::Bytes {
                    cookie: reply.cookie,
                    at: asked.offset,
                    left: asked.length,
                    is_last: true,
                };
                Ok(())
            }
            error => {
                asked.failed = asked.failed.or(error);
                conclude(reply.cookie, commands, answers)
            }
        }
    }

    fn data_chunk(
        &mut self,
        header: &ChunkHeader,
        offset: u64,
        commands: &mut Commands,
    ) -> Result<(), ReplyFault> {
        let asked = commands.get(header.cookie).ok_or(ReplyFault::Nobody(header.cookie.0))?;
        let length = header.length.checked_sub(OFFSET_BYTES as u32).filter(|length| *length > 0);
        let length = length.ok_or(ReplyFault::Unfitting("a read with a chunk of no bytes"))?;
        cover(asked, offset, length)?;
        self.state =
            State::Bytes { cookie: header.cookie, at: offset, left: length, is_last: header.is_last };
        Ok(())
    }

    /// Copies read data to its destination; `false` if more is to come.
    fn bytes(
        &mut self,
        commands: &mut Commands,
        landing: &mut impl Landing,
        answers: &mut Vec<Answer>,
    ) -> Result<bool, ReplyFault> {
        let State::Bytes { cookie, at, left, is_last } = &mut self.state else { return Ok(true) };
        let there = self.input.bytes();
        let part = &there[..there.len().min(*left as usize)];
        let asked = commands.get(*cookie).ok_or(ReplyFault::Nobody(cookie.0))?;
        if let Some(memory) = landing.memory(asked.job, *at, part.len()) {
            memory.copy_from_slice(part);
        }
        let count = part.len();
        *at += count as u64;
        *left -= count as u32;
        self.input.consume(count);
        if *left > 0 {
            return Ok(false);
        }
        let (cookie, is_last) = (*cookie, *is_last);
        self.state = State::Head;
        if is_last {
            conclude(cookie, commands, answers)?;
        }
        Ok(true)
    }

    /// Collects the content of a chunk, and processes it when complete.
    fn body(
        &mut self,
        commands: &mut Commands,
        landing: &mut impl Landing,
        answers: &mut Vec<Answer>,
    ) -> Result<bool, ReplyFault> {
        let State::Body { header, bytes } = &mut self.state else { return Ok(true) };
        let there = self.input.bytes();
        let part = &there[..there.len().min(header.length as usize - bytes.len())];
        bytes.extend_from_slice(part);
        let count = part.len();
        self.input.consume(count);
        if bytes.len() < header.length as usize {
            return Ok(false);
        }
        let chunk = Chunk::decode(header.kind, bytes)?;
        let (cookie, is_last) = (header.cookie, header.is_last);
        self.state = State::Head;
        let asked = commands.get(cookie).ok_or(ReplyFault::Nobody(cookie.0))?;
        understand(asked, chunk, is_last, landing)?;
        if is_last {
            conclude(cookie, commands, answers)?;
        }
        Ok(true)
    }
}

fn understand(
    asked: &mut PendingCommand,
    chunk: Chunk,
    is_last: bool,
    landing: &mut impl Landing,
) -> Result<(), ReplyFault> {
    match chunk {
        Chunk::None if is_last => Ok(()),
        Chunk::None => Err(ReplyFault::Unfitting("with an empty chunk that is not the last")),
        Chunk::Hole(OffsetHole { offset, length }) => {
            if length == 0 {
                return Err(ReplyFault::Unfitting("a read with a hole of no bytes"));
            }
            cover(asked, offset, length)?;
            if let Some(memory) = landing.memory(asked.job, offset, length as usize) {
                memory.fill(0);
            }
            Ok(())
        }
        Chunk::Status(status) => {
            if asked.command != Command::BLOCK_STATUS {
                return Err(ReplyFault::Unfitting("with a block status that was not asked for"));
            }
            // One context is negotiated, so the first chunk is the answer.
            if asked.status.is_empty() {
                asked.status = status.descriptors;
            }
            Ok(())
        }
        Chunk::Error(error) => {
            let errno = error.errno.to_errno().unwrap_or(Errno::EIO);
            asked.failed.get_or_insert(errno);
            Ok(())
        }
    }
}

/// Records that `length` bytes at `offset` arrive.
fn cover(asked: &mut PendingCommand, offset: u64, length: u32) -> Result<(), ReplyFault> {
    let outside = ReplyFault::Outside { offset, length: u64::from(length) };
    let start =
        offset.checked_sub(asked.offset).and_then(|start| u32::try_from(start).ok()).ok_or(outside)?;
    let end = start.checked_add(length).filter(|end| *end <= asked.length).ok_or(outside)?;
    if asked.command == Command::READ && asked.coverage.add(start, end) { Ok(()) } else { Err(outside) }
}

/// Completes the reply.
fn conclude(cookie: Cookie, commands: &mut Commands, answers: &mut Vec<Answer>) -> Result<(), ReplyFault> {
    let asked = commands.finish(cookie).ok_or(ReplyFault::Nobody(cookie.0))?;
    let outcome = match asked.failed {
        Some(errno) => Err(errno),
        None if asked.command == Command::READ && !asked.coverage.is_whole(asked.length) => {
            return Err(ReplyFault::Unfitting("a read with fewer bytes than were asked for"));
        }
        None if asked.command == Command::BLOCK_STATUS && asked.status.is_empty() => {
            return Err(ReplyFault::Unfitting("a question for block status without any"));
        }
        None => Ok(()),
    };
    answers.push(Answer { asked, outcome });
    Ok(())
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
