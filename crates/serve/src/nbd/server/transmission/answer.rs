//! From pieces that have ended to replies.

use plumb_block::{BufferMut, LbaRange, Op, Payload};

use super::command::{Command, CommandId, Kind, Piece};
use super::plan::Refusal;
use super::{Broken, Transmission};
use crate::nbd::wire::{ChunkHeader, Cookie, ErrorChunk, SimpleReply, WireErrno, encode_error_chunk};
use crate::requests::{Ended, Failure};

impl Transmission {
    /// A piece has ended.
    pub(super) fn ended(&mut self, ended: Ended<Piece>) -> Result<(), Broken> {
        let Ended { asked: Piece { command: id, number }, result, payload } = ended;
        let failure = match result {
            Ok(()) => None,
            Err(Failure::Errno(errno)) => Some(errno),
            Err(Failure::Unanswered) => return Err(Broken::Unanswered),
        };
        let Some(command) = self.commands.get(id) else { return Ok(()) };
        command.pieces_out = command.pieces_out.saturating_sub(1);
        command.failure = command.failure.or(failure);
        if let Payload::Into(buffer) = payload {
            keep(command, number, buffer, failure.is_none());
        }
        if command.is_whole && command.pieces_out == 0 {
            self.finish(id);
        }
        Ok(())
    }

    /// All pieces have ended.
    fn finish(&mut self, id: CommandId) {
        let Some(command) = self.commands.get(id) else { return };
        if command.flush_after && command.failure.is_none() {
            // FUA where the device has none: what was just done becomes durable by a flush, submitted after it
            // completed, and only then it is answered.
            command.flush_after = false;
            command.pieces_out = 1;
            let flush = Piece { command: id, number: 0 };
            return self.submit(flush, Op::Flush, LbaRange::EMPTY, Payload::None);
        }
        let Command { cookie, kind, failure, .. } = *command;
        match failure {
            Some(errno) => {
                let why = "the device failed";
                self.refuse(cookie, Refusal { errno: WireErrno::from_errno(errno), why });
            }
            None if kind == Kind::Read => self.answer_read(id),
            None => self.output.head(&SimpleReply { errno: WireErrno::NONE, cookie }.encode()),
        }
        self.commands.remove(id);
    }

    /// The answer to a command that is not done. Where chunks were negotiated it says why in words.
    pub(super) fn refuse(&mut self, cookie: Cookie, refusal: Refusal) {
        let Refusal { errno, why } = refusal;
        if self.session.is_structured {
            let error = ErrorChunk { errno, message: why.to_owned(), offset: None };
            self.output.bytes(encode_error_chunk(cookie, &error));
        } else {
            self.output.head(&SimpleReply { errno, cookie }.encode());
        }
    }

    /// The answer to a read that is done. One chunk always: so DF is kept without being looked at.
    fn answer_read(&mut self, id: CommandId) {
        let Some(command) = self.commands.get(id) else { return };
        let (cookie, offset, length) = (command.cookie, command.offset, command.length);
        let mut buffers = std::mem::take(&mut command.buffers);
        let gathered = command.gathered.take();
        if self.session.is_structured {
            self.output.head(&ChunkHeader::encode_offset_data(cookie, offset, length, true));
        } else {
            self.output.head(&SimpleReply { errno: WireErrno::NONE, cookie }.encode());
        }
        if let Some(gathered) = gathered {
            self.output.shared_bytes(gathered.bytes, gathered.share);
        }
        for buffer in buffers.drain(..).flatten() {
            self.output.buffer(buffer);
        }
        if let Some(command) = self.commands.get(id) {
            command.buffers = buffers;
        }
    }
}

/// Keeps the bytes of a piece of a read.
fn keep(command: &mut Command, piece: u32, buffer: BufferMut, is_done: bool) {
    if let Some(gathered) = &mut command.gathered {
        let start = piece as usize * command.piece_bytes as usize;
        if let Some(into) = gathered.bytes.get_mut(start..start + buffer.len()).filter(|_| is_done) {
            into.copy_from_slice(&buffer);
        }
    } else if let Some(place) = command.buffers.get_mut(piece as usize) {
        *place = Some(buffer);
    }
}
