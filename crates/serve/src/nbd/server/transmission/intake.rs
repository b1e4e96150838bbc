//! Intake of requests: parsing, splitting into pieces, submission.

use plumb_block::{BufferMut, Bytes, Lba, LbaRange, Op, Payload};

use super::command::{Command, Piece, Read};
use super::plan::{Plan, Refusal};
use super::{BlockReason, LARGE_BYTES, Transmission, TransmissionFault};
use crate::nbd::server::buffers::Cut;
use crate::nbd::wire::{self, Cookie, RequestHeader, WireErrno};

/// Maximum size of a piece of zeroes, so that none occupies a device for long.
const ZEROES_PIECE: Bytes = Bytes::mib(64);

/// Progress of a request's intake.
pub(super) enum Intake {
    /// Waiting for a header.
    Head,
    /// Skipping the payload of a refused write.
    Skip { left: u32, cookie: Cookie, refusal: Refusal },
    /// Receiving the payload of a write.
    Payload(PayloadIntake),
    /// Complete, with pieces to submit.
    Pieces(PiecesIntake),
    /// A read that waits until nothing else is in flight.
    Large(ReadIntake),
}

/// A read.
pub(super) struct ReadIntake {
    cookie: Cookie,
    range: LbaRange,
    offset: u64,
    length: u32,
    /// True if the answer may consist of several chunks.
    in_chunks: bool,
}

/// A write whose payload is being received.
pub(super) struct PayloadIntake {
    id: u32,
    cut: Cut,
    fua: bool,
    /// Address of the next piece, and the number of bytes not yet in a submitted piece.
    lba: Lba,
    left: u32,
    piece: u32,
    /// Piece being filled, and its fill level.
    buffer: Option<(BufferMut, usize)>,
}

/// A request without payload that is being split.
pub(super) struct PiecesIntake {
    id: u32,
    op: Op,
    /// Division for a read, which needs a buffer for each piece.
    cut: Option<Cut>,
    lba: Lba,
    left_nlb: u64,
    piece_nlb: u64,
    piece: u32,
}

impl Intake {
    /// Returns the space for direct reception of payload, and whether the write ends in it. Empty unless all
    /// earlier input was processed.
    pub(super) fn payload_space(&mut self, is_input_empty: bool) -> (&mut [u8], bool) {
        match self {
            Self::Payload(PayloadIntake { buffer: Some((buffer, filled)), left, .. }) if is_input_empty => {
                let is_last = buffer.len() as u64 == u64::from(*left);
                (&mut buffer[*filled..], is_last)
            }
            _ => (&mut [], true),
        }
    }

    /// Records that `count` bytes were received into the [space](Self::payload_space).
    pub(super) fn payload_received(&mut self, count: usize) {
        if let Self::Payload(PayloadIntake { buffer: Some((_, filled)), .. }) = self {
            *filled += count;
        }
    }
}

impl Transmission {
    /// Processes as much input as there is room for.
    pub(super) fn take_in(&mut self) -> Result<BlockReason, TransmissionFault> {
        loop {
            if !self.has_room() || self.output.is_full() {
                return Ok(BlockReason::Room);
            }
            if self.is_leaving {
                return Ok(BlockReason::Input);
            }
            let blocked = match std::mem::replace(&mut self.intake, Intake::Head) {
                Intake::Head => self.take_head()?,
                Intake::Skip { left, cookie, refusal } => self.skip(left, cookie, refusal),
                Intake::Payload(payload) => self.take_payload(payload),
                Intake::Pieces(pieces) => self.submit_pieces(pieces),
                Intake::Large(read) => self.read(read),
            };
            if let Some(blocked) = blocked {
                return Ok(blocked);
            }
        }
    }

    fn take_head(&mut self) -> Result<Option<BlockReason>, TransmissionFault> {
        if self.streamed.is_some() {
            return Ok(Some(BlockReason::Room));
        }
        let Some(bytes) = self.input.bytes().first_chunk() else { return Ok(Some(BlockReason::Input)) };
        let header = RequestHeader::decode(bytes)?;
        self.input.consume(RequestHeader::BYTES);
        Ok(self.begin(&header))
    }

    fn begin(&mut self, header: &RequestHeader) -> Option<BlockReason> {
        let cookie = header.cookie;
        let has_payload = header.command == wire::Command::WRITE;
        self.expects_large = false;
        let plan = self.rules.plan(header).and_then(|plan| match plan {
            Plan::Leave | Plan::Status { .. } => Ok(plan),
            // The first request that needs the device opens it.
            _ => match self.lane() {
                Ok(_) => Ok(plan),
                Err(errno) => {
                    let why = "the device cannot be opened";
                    Err(Refusal { errno: WireErrno::from_errno(errno), why })
                }
            },
        });
        match plan {
            Err(refusal) if has_payload => self.skip(header.length, cookie, refusal),
            Err(refusal) => {
                self.refuse(cookie, refusal);
                None
            }
            Ok(Plan::Leave) => {
                self.is_leaving = true;
                None
            }
            Ok(Plan::Read(range)) => {
                let RequestHeader { offset, length, flags, .. } = *header;
                let in_chunks = self.session.is_structured && !flags.has(wire::CommandFlags::DF);
                self.read(ReadIntake { cookie, range, offset, length, in_chunks })
            }
            Ok(Plan::Write { range, fua }) => self.write(header, range, fua),
            Ok(Plan::Flush) => {
                self.flush(cookie);
                None
            }
            Ok(Plan::Status { range, is_one }) => {
                self.tell_status(cookie, range, is_one);
                None
            }
            Ok(Plan::Trim { range, fua }) => self.ranged(cookie, range, Op::Discard, fua),
            Ok(Plan::Zeroes { range, fua, no_hole, fast_only }) => {
                let op = Op::WriteZeroes { fua, no_hole, fast_only };
                self.ranged(cookie, range, op, false)
            }
        }
    }

    fn skip(&mut self, left: u32, cookie: Cookie, refusal: Refusal) -> Option<BlockReason> {
        let skipped = self.input.bytes().len().min(left as usize);
        self.input.consume(skipped);
        let left = left - skipped as u32;
        if left > 0 {
            self.intake = Intake::Skip { left, cookie, refusal };
            return Some(BlockReason::Input);
        }
        self.refuse(cookie, refusal);
        None
    }

    /// Starts a read. Its pieces are collected in their buffers; if there are too many, they are sent one by
    /// one while nothing else is in flight, since the data of a reply must not be interrupted and needs all
    /// buffers.
    fn read(&mut self, read: ReadIntake) -> Option<BlockReason> {
        let lane = self.lane.as_mut()?;
        let cut = lane.buffers.cut(read.length);
        let is_large = read.length.div_ceil(cut.piece_bytes.max(1)) > lane.buffers.pieces_held_max(cut);
        if is_large && lane.requests.in_flight() > 0 {
            self.intake = Intake::Large(read);
            return Some(BlockReason::Room);
        }
        let ReadIntake { cookie, range, offset, length, in_chunks } = read;
        let piece_bytes = cut.piece_bytes;
        let bytes = Read { piece_bytes, in_chunks: is_large && in_chunks, ..Read::default() };
        let id =
            self.commands.insert(Command { cookie, offset, length, read: Some(bytes), ..Command::default() });
        if is_large {
            self.streamed = Some(id);
        }
        let piece_nlb = u64::from(piece_bytes) / self.rules.info.logical_block.0;
        let (lba, left_nlb) = (range.lba, range.nlb);
        let cut = Some(cut);
        self.submit_pieces(PiecesIntake { id, op: Op::Read, cut, lba, left_nlb, piece_nlb, piece: 0 })
    }

    /// Starts a trim or write of zeroes.
    fn ranged(&mut self, cookie: Cookie, range: LbaRange, op: Op, flush_after: bool) -> Option<BlockReason> {
        let id = self.commands.insert(Command { cookie, flush_after, ..Command::default() });
        let info = &self.rules.info;
        let limit = if op == Op::Discard { info.discard_max } else { ZEROES_PIECE };
        let piece_nlb = (limit.0 / info.logical_block.0).max(1);
        let (lba, left_nlb) = (range.lba, range.nlb);
        self.submit_pieces(PiecesIntake { id, op, cut: None, lba, left_nlb, piece_nlb, piece: 0 })
    }

    fn submit_pieces(&mut self, mut pieces: PiecesIntake) -> Option<BlockReason> {
        while pieces.left_nlb > 0 {
            if !self.has_room() {
                self.intake = Intake::Pieces(pieces);
                return Some(BlockReason::Room);
            }
            let nlb = pieces.left_nlb.min(pieces.piece_nlb);
            let range = LbaRange::new(pieces.lba, nlb);
            let payload = match pieces.cut {
                None => Payload::None,
                Some(cut) => {
                    let length = self.rules.info.length_of(range).0 as u32;
                    let Some(buffer) = self.lane.as_ref().and_then(|lane| lane.buffers.take(cut, length))
                    else {
                        self.intake = Intake::Pieces(pieces);
                        return Some(BlockReason::Room);
                    };
                    Payload::Into(buffer)
                }
            };
            pieces.lba = range.end();
            pieces.left_nlb -= nlb;
            let piece = self.piece(pieces.id, &mut pieces.piece, pieces.left_nlb == 0);
            self.submit(piece, pieces.op, range, payload);
        }
        None
    }

    /// Returns the next piece of the command for submission.
    fn piece(&mut self, id: u32, next: &mut u32, is_last: bool) -> Piece {
        let piece = Piece { command: id, number: *next };
        *next += 1;
        if let Some(command) = self.commands.get(id) {
            command.pieces_out += 1;
            command.is_whole = is_last;
            if let Some(read) = &mut command.read {
                read.buffers.push(None);
            }
        }
        piece
    }

    fn write(&mut self, header: &RequestHeader, range: LbaRange, fua: bool) -> Option<BlockReason> {
        self.expects_large = header.length >= LARGE_BYTES;
        let lane = self.lane.as_mut()?;
        let cut = lane.buffers.cut(header.length);
        let id = self.commands.insert(Command { cookie: header.cookie, ..Command::default() });
        let (lba, left) = (range.lba, header.length);
        self.take_payload(PayloadIntake { id, cut, fua, lba, left, piece: 0, buffer: None })
    }

    fn take_payload(&mut self, mut payload: PayloadIntake) -> Option<BlockReason> {
        while payload.left > 0 {
            if !self.has_room() {
                self.intake = Intake::Payload(payload);
                return Some(BlockReason::Room);
            }
            let length = payload.left.min(payload.cut.piece_bytes);
            let taken = payload
                .buffer
                .take()
                .or_else(|| Some((self.lane.as_ref()?.buffers.take(payload.cut, length)?, 0)));
            let Some((mut buffer, mut filled)) = taken else {
                self.intake = Intake::Payload(payload);
                return Some(BlockReason::Room);
            };
            let there = self.input.bytes();
            let count = there.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&there[..count]);
            self.input.consume(count);
            filled += count;
            if filled < buffer.len() {
                payload.buffer = Some((buffer, filled));
                self.intake = Intake::Payload(payload);
                return Some(BlockReason::Input);
            }
            self.submit_written(&mut payload, buffer);
        }
        None
    }

    /// Submits a complete piece of the payload.
    fn submit_written(&mut self, payload: &mut PayloadIntake, buffer: BufferMut) {
        let nlb = buffer.len() as u64 / self.rules.info.logical_block.0;
        let range = LbaRange::new(payload.lba, nlb);
        payload.lba = range.end();
        payload.left -= buffer.len() as u32;
        let piece = self.piece(payload.id, &mut payload.piece, payload.left == 0);
        let op = Op::Write { fua: payload.fua };
        self.submit(piece, op, range, Payload::Bytes(buffer.freeze()));
    }

    fn flush(&mut self, cookie: Cookie) {
        let id = self.commands.insert(Command { cookie, ..Command::default() });
        let piece = self.piece(id, &mut 0, true);
        self.submit(piece, Op::Flush, LbaRange::EMPTY, Payload::None);
    }
}
