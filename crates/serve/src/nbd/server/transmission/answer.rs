//! From completions to replies.

use plumb_block::{BufferMut, Bytes, Completion, Errno, Op, Outcome, Payload, Request};

use super::command::{Command, Kind, Place};
use super::plan::Refusal;
use super::{Broken, Transmission};
use crate::nbd::server::planted::Bug;
use crate::nbd::wire::{ChunkHeader, Cookie, ErrorChunk, SimpleReply, WireErrno, encode_error_chunk};

impl Transmission {
    /// A piece came back.
    pub(super) fn completed(&mut self, completion: Completion) -> Result<(), Broken> {
        let (place, piece) = Place::of(completion.tag);
        let planted = self.manner.planted;
        let failure = match completion.outcome {
            Outcome::Done => None,
            Outcome::Failed(errno) => Some(errno),
            Outcome::Unknown | Outcome::PowerLost if planted.is(Bug::UnknownAnsweredAsDone) => None,
            Outcome::Unknown | Outcome::PowerLost => return Err(Broken::Unanswered),
        };
        let Some(command) = self.commands.get(place) else { return Ok(()) };
        command.pieces_out = command.pieces_out.saturating_sub(1);
        if !(planted.is(Bug::SplitErrorForgotten) && piece > 0) {
            command.failure = command.failure.or(failure);
        }
        if let Payload::Into(buffer) = completion.payload {
            keep(command, piece, buffer, failure.is_none());
        }
        if planted.is(Bug::SplitAnsweredAtFirstPiece) && command.kind == Kind::Plain && !command.flush_after {
            self.answer_early(place);
        }
        let Some(command) = self.commands.get(place) else { return Ok(()) };
        if command.is_whole && command.pieces_out == 0 {
            self.finish(place);
        }
        Ok(())
    }

    /// All pieces are back.
    pub(super) fn finish(&mut self, place: Place) {
        let Some(command) = self.commands.get(place) else { return };
        if command.flush_after && command.failure.is_none() {
            // FUA where the device has none: what was just done becomes durable by a flush, submitted after it
            // completed, and only then it is answered. If the flush fails the export is latched like by any other.
            command.flush_after = false;
            command.kind = Kind::Flush;
            command.pieces_out = 1;
            return self.submit(Request { op: Op::Flush, ..Request::flush(place.tag(0)) });
        }
        let Command { cookie, kind, is_answered, failure, .. } = *command;
        let failure = self.judged(kind, failure);
        if is_answered {
            return self.commands.remove(place);
        }
        match failure {
            Some(errno) => {
                let why = "the device failed";
                self.refuse(cookie, Refusal { errno: WireErrno::from_errno(errno), why });
            }
            None if kind == Kind::Read => self.answer_read(place),
            None => self.acknowledge(cookie),
        }
        self.commands.remove(place);
    }

    /// The failure of a command, after what it means for the export: a failed flush latches it, and a flush that was
    /// under way meanwhile is no better.
    fn judged(&self, kind: Kind, failure: Option<Errno>) -> Option<Errno> {
        if kind != Kind::Flush {
            return failure;
        }
        let planted = self.manner.planted;
        if failure.is_some() && !planted.is(Bug::LatchForgotten) {
            self.session.served.latch();
        }
        if planted.is(Bug::FlushErrorSwallowed) {
            return None;
        }
        let latched = self.session.served.is_latched() && !planted.is(Bug::LatchForgotten);
        failure.or_else(|| latched.then_some(Errno::EIO))
    }

    /// The answer to a command that is done, without bytes.
    fn acknowledge(&mut self, cookie: Cookie) {
        let cookie = self.cookie(cookie);
        self.output.head(&SimpleReply { errno: WireErrno::NONE, cookie }.encode());
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
    fn answer_read(&mut self, place: Place) {
        let Some(command) = self.commands.get(place) else { return };
        let (cookie, offset, length) = (command.cookie, command.offset, command.length);
        let mut buffers = std::mem::take(&mut command.buffers);
        let gathered = command.gathered.take();
        let cookie = self.cookie(cookie);
        if self.session.is_structured {
            self.output.head(&ChunkHeader::encode_offset_data(cookie, offset, length, true));
        } else {
            self.output.head(&SimpleReply { errno: WireErrno::NONE, cookie }.encode());
        }
        if let Some(gathered) = gathered {
            self.output.shared_bytes(gathered.bytes, gathered.share);
        }
        for buffer in buffers.drain(..).flatten() {
            let buffer =
                if self.manner.planted.is(Bug::ReadFromStaleBuffer) { other(buffer) } else { buffer };
            self.output.buffer(buffer);
        }
        if let Some(command) = self.commands.get(place) {
            command.buffers = buffers;
        }
    }

    /// Says "done" now: what planted bugs do.
    pub(super) fn answer_early(&mut self, place: Place) {
        let Some(command) = self.commands.get(place) else { return };
        if !std::mem::replace(&mut command.is_answered, true) {
            let cookie = command.cookie;
            self.acknowledge(cookie);
        }
    }

    /// The cookie of a reply.
    fn cookie(&mut self, cookie: Cookie) -> Cookie {
        self.replies = self.replies.wrapping_add(1);
        let is_wrong = self.manner.planted.is(Bug::CookieWrong) && self.replies.is_multiple_of(16);
        if is_wrong { Cookie(cookie.0 ^ 1) } else { cookie }
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

/// Another buffer of the same length, with whatever is in it.
fn other(buffer: BufferMut) -> BufferMut {
    buffer.pool().take(Bytes(buffer.len() as u64)).unwrap_or(buffer)
}
