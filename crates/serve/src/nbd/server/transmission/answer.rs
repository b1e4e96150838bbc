//! Replies for ended pieces.

use plumb_block::{LbaRange, Op, Payload};

use super::command::{Command, Piece, Read};
use super::plan::Refusal;
use super::{Transmission, TransmissionFault};
use crate::nbd::wire::{
    ChunkHeader, ChunkKind, Cookie, ErrorChunk, SimpleReply, WireErrno, encode_error_chunk,
};
use crate::requests::{Failure, FinishedRequest};

impl Transmission {
    /// Processes the end of a piece.
    pub(super) fn ended(&mut self, ended: FinishedRequest<Piece>) -> Result<(), TransmissionFault> {
        let FinishedRequest { asked: Piece { command: id, number }, result, payload } = ended;
        let failure = match result {
            Ok(()) => None,
            Err(Failure::Errno(errno)) => Some(errno),
            Err(Failure::Unanswered) => return Err(TransmissionFault::Unanswered),
        };
        let Some(command) = self.commands.get(id) else { return Ok(()) };
        command.pieces_out = command.pieces_out.saturating_sub(1);
        command.failure = command.failure.or(failure);
        if let (Payload::Into(buffer), Some(read)) = (payload, &mut command.read)
            && let Some(place) = read.buffers.get_mut(number as usize)
        {
            *place = Some(buffer);
        }
        let is_over = command.is_whole && command.pieces_out == 0;
        if self.streamed == Some(id) {
            self.send_pieces(id);
        }
        if is_over { self.finish(id) } else { Ok(()) }
    }

    /// Processes the end of all pieces.
    fn finish(&mut self, id: u32) -> Result<(), TransmissionFault> {
        let Some(command) = self.commands.get(id) else { return Ok(()) };
        if command.flush_after && command.failure.is_none() {
            // FUA on a device without it: a flush, submitted after the completion, makes the data durable
            // before the answer.
            command.flush_after = false;
            command.pieces_out = 1;
            let flush = Piece { command: id, number: 0 };
            self.submit(flush, Op::Flush, LbaRange::EMPTY, Payload::None);
            return Ok(());
        }
        let Some(Command { cookie, offset, length, failure, read, .. }) = self.commands.remove(id) else {
            return Ok(());
        };
        let is_streamed = self.streamed.take_if(|streamed| *streamed == id).is_some();
        match (failure, read) {
            (Some(_), Some(Read { in_chunks: false, sent: 1.., .. })) => {
                return Err(TransmissionFault::HalfSent);
            }
            (Some(errno), _) => {
                let why = "the device failed";
                self.refuse(cookie, Refusal { errno: WireErrno::from_errno(errno), why });
            }
            (None, Some(Read { in_chunks: true, .. })) => {
                let end = ChunkHeader { is_last: true, kind: ChunkKind::NONE, cookie, length: 0 };
                self.output.head(&end.encode());
            }
            (None, Some(_)) if is_streamed => {}
            (None, Some(Read { buffers, .. })) => {
                self.begin_read(cookie, offset, length);
                buffers.into_iter().flatten().for_each(|buffer| self.output.buffer(buffer.freeze(), 0));
            }
            (None, None) => self.output.head(&SimpleReply { errno: WireErrno::NONE, cookie }.encode()),
        }
        Ok(())
    }

    /// Sends the available data, in order, of a read larger than the pools.
    fn send_pieces(&mut self, id: u32) {
        while let Some(command) = self.commands.get(id)
            && let Some(read) = &mut command.read
        {
            if command.failure.is_some() {
                // The data is not sent, and outstanding pieces need the memory.
                return read.buffers.iter_mut().for_each(|place| *place = None);
            }
            let Some(buffer) = read.buffers.get_mut(read.sent as usize).and_then(Option::take) else {
                return;
            };
            let (cookie, offset) = (command.cookie, command.offset);
            let at = offset + u64::from(read.sent) * u64::from(read.piece_bytes);
            let (in_chunks, is_first, length) = (read.in_chunks, read.sent == 0, command.length);
            read.sent += 1;
            if in_chunks {
                let head = ChunkHeader::encode_offset_data(cookie, at, buffer.len() as u32, false);
                self.output.head(&head);
            } else if is_first {
                self.begin_read(cookie, offset, length);
            }
            self.output.buffer(buffer.freeze(), 0);
        }
    }

    /// Queues the header of a read that is sent as a whole.
    fn begin_read(&mut self, cookie: Cookie, offset: u64, length: u32) {
        if self.session.is_structured {
            self.output.head(&ChunkHeader::encode_offset_data(cookie, offset, length, true));
        } else {
            self.output.head(&SimpleReply { errno: WireErrno::NONE, cookie }.encode());
        }
    }

    /// Sends an error reply; with structured replies it includes a message.
    pub(super) fn refuse(&mut self, cookie: Cookie, refusal: Refusal) {
        let Refusal { errno, why } = refusal;
        if self.session.is_structured {
            let error = ErrorChunk { errno, message: why.to_owned(), offset: None };
            self.output.bytes(encode_error_chunk(cookie, &error));
        } else {
            self.output.head(&SimpleReply { errno, cookie }.encode());
        }
    }
}
