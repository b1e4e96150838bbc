//! Writes, zeroes and discards: queued, put into records together, acknowledged in the order of their sequence numbers.
//!
//! Group commit without a timer: a record holds whatever came while the one before was on its way; another one goes out beside
//! it only when there is enough for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plumb_block::{BufferMut, Bytes, Errno, Lba, LbaRange, Nanos, Op, Outcome, Payload, Request};

use crate::action::{Member, Purpose, Wait};
use crate::core::{Core, Then};
use crate::format::record::{EXTENTS_MAX, Extent, Header, Kind};
use crate::io::Asked;
use crate::log::Record;
use crate::settings::{BUFFER, LOG_BLOCK, Mode};

/// How many records may be in flight.
const RECORDS_MAX: usize = 8;
/// A record goes out beside others when this much is queued.
const BATCH_MIN: u64 = 64 << 10;

/// The writes that are not answered.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    clients: BTreeMap<u64, ClientWrite>,
    next: u64,
    /// Those with blocks that are in no record yet, in order.
    queue: VecDeque<u64>,
    queued_bytes: u64,
    /// Nothing goes into a record before this.
    pub(crate) not_before: Nanos,
}

#[derive(Debug)]
struct ClientWrite {
    asked: Asked,
    range: LbaRange,
    kind: Kind,
    is_fua: bool,
    payload: Payload,
    /// Whether it goes past the log.
    is_bypass: bool,
    /// How many of its blocks are in records.
    queued: u64,
    /// How many records with a part of it are not in the index.
    records: u32,
    /// Why no more of it gets into the log.
    error: Option<Errno>,
}

/// A part of a client's write, on its way into a record.
struct Piece {
    client: u64,
    extent: Extent,
    /// Where its bytes begin in the client's payload.
    offset: u64,
}

impl Writes {
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// When the first one in the queue may go on.
    pub(crate) fn due(&self) -> Option<Nanos> {
        (!self.queue.is_empty()).then_some(self.not_before)
    }
}

impl Core {
    /// Takes a write, zeroing or discard that can be done.
    pub(crate) fn write(&mut self, asked: Asked, request: Request) {
        let (kind, is_fua) = match request.op {
            Op::Write { fua } => (Kind::Data, fua),
            Op::WriteZeroes { fua, no_hole: true, .. } => (Kind::ZeroesReserved, fua),
            Op::WriteZeroes { fua, .. } => (Kind::Zeroes, fua),
            Op::Discard | Op::Read | Op::Flush => (Kind::Discard, false),
        };
        let bytes = self.log.geometry.bytes(request.range);
        self.figures.written += Bytes(bytes);
        self.figures.writes += 1;
        let is_wanted = self.goes_past_log(&request, bytes);
        let pattern = if is_wanted { self.bytes_of_pattern(&request.payload, bytes) } else { None };
        let is_bypass = is_wanted && (pattern.is_some() || !matches!(request.payload, Payload::Pattern(_)));
        let id = self.writes.next;
        self.writes.next += 1;
        let range = request.range;
        let mut client = ClientWrite {
            asked,
            range,
            kind,
            is_fua,
            payload: request.payload,
            is_bypass,
            queued: 0,
            records: 0,
            error: None,
        };
        if is_bypass {
            self.figures.bypassed += Bytes(bytes);
            self.figures.bypass_writes += 1;
            // The bytes of a pattern are made here: the memory of a member's queue is the cache's own.
            let payload = pattern.or_else(|| Some(std::mem::take(&mut client.payload))).unwrap_or_default();
            self.pace.foreground(self.io.now);
            let then = Then::Bypass { client: id };
            self.io.act((Member::Backing, Purpose::BypassWrite), request.op, range, payload, then);
            self.writes.clients.insert(id, client);
        } else {
            self.enqueue(id, client);
        }
    }

    /// Puts a write into the queue for the log.
    fn enqueue(&mut self, id: u64, client: ClientWrite) {
        self.writes.queue.push_back(id);
        if client.kind == Kind::Data {
            self.writes.queued_bytes += self.log.geometry.bytes(client.range);
        }
        self.writes.clients.insert(id, client);
    }

    /// Whether a write goes to the backing device at once. Never where the log holds a block of it: replay would put the older
    /// version back, and dropping that first could lose what was flushed.
    fn goes_past_log(&mut self, request: &Request, bytes: u64) -> bool {
        let is_wanted = match self.io.options.mode {
            Mode::WriteThrough => true,
            Mode::Ordered => false,
            Mode::WriteBack | Mode::Protected => {
                let after = self.io.options.bypass_after;
                matches!(request.op, Op::Write { .. }) && self.pace.is_stream(request.range, bytes, after)
            }
        };
        let fits = request.op == Op::Discard || bytes <= self.io.backing_transfer_max();
        is_wanted && fits && self.is_serving() && !self.overlaps_log(request.range)
    }

    /// The bytes of a pattern, if it is one, and records and superblocks have memory left.
    fn bytes_of_pattern(&self, payload: &Payload, bytes: u64) -> Option<Payload> {
        let Payload::Pattern(pattern) = payload else { return None };
        let memory = &self.io.options.memory;
        let mut buffer = memory.take(Bytes(bytes)).filter(|_| self.has_memory_for_run())?;
        pattern.fill(self.log.geometry.logical_block as usize, &mut buffer);
        Some(Payload::Bytes(buffer.freeze()))
    }

    fn overlaps_log(&self, range: LbaRange) -> bool {
        let is_queued = |client: &ClientWrite| !client.is_bypass && client.range.overlaps(range);
        self.io.options.waits.hold(Wait::LogBeforeBypass)
            && (self.index.over(range).next().is_some() || self.writes.clients.values().any(is_queued))
    }

    /// Whether a write past the log is in flight where something came into the log since: that is not destaged meanwhile, which of the
    /// two stays would be open.
    pub(crate) fn is_bypass_beneath(&self) -> bool {
        let mut bypassing = self.writes.clients.values().filter(|client| client.is_bypass);
        bypassing.any(|client| self.index.over(client.range).next().is_some())
    }

    /// A write past the log has ended. The log takes one that the backing device has failed, unless it is to have none, or has something newer.
    pub(crate) fn bypass_completed(&mut self, id: u64, outcome: Outcome, payload: Payload) {
        let Some(mut client) = self.writes.clients.remove(&id) else { return };
        self.flushes.bypassed |= !(client.is_fua && outcome.is_done());
        if matches!(client.payload, Payload::None) {
            client.payload = payload;
        }
        if !outcome.is_done() {
            self.unsettle();
            let has_data = client.kind != Kind::Data || !matches!(client.payload, Payload::None);
            let may_take = self.io.options.mode != Mode::WriteThrough && self.is_serving();
            if may_take && has_data && !self.overlaps_log(client.range) {
                return self.enqueue(id, ClientWrite { is_bypass: false, ..client });
            }
        }
        self.io.answer(&client.asked, outcome, client.payload);
    }

    /// Makes records of what is queued, as many as may be in flight.
    pub(crate) fn fill_records(&mut self) {
        while self.is_serving() && self.fill_record() {}
    }

    fn fill_record(&mut self) -> bool {
        let in_flight = self.log.in_flight.len();
        let is_due = self.writes.due().is_some_and(|due| due <= self.io.now);
        let is_worth = in_flight == 0 || self.writes.queued_bytes >= BATCH_MIN;
        let may_go = in_flight < RECORDS_MAX && !self.is_shut();
        // With a leg that replaces another a session begins: no record of it before it is durable.
        if !is_due || !is_worth || !may_go || !self.may_acknowledge() {
            return false;
        }
        let room = self.log.room(self.waits_for_reads());
        self.figures.is_full = room < 2;
        if room == 0 {
            return self.refuse_first();
        }
        // Before anything is taken from the queue: other queues share this memory.
        let Some(buffer) = self.io.options.memory.take(BUFFER) else { return false };
        let largest = (self.io.options.record_max.0).min(self.io.leg_transfer_max() - LOG_BLOCK) / LOG_BLOCK;
        let (pieces, blocks) = self.take_pieces(u64::from(room - 1).min(largest.max(1)));
        if pieces.is_empty() {
            // There is room for a header alone.
            return self.refuse_first();
        }
        self.put_record(&pieces, blocks, buffer);
        let pressure = self.pressure();
        let (bytes, writes) = ((u64::from(blocks) + 1) * LOG_BLOCK, pieces.len() as u32);
        let delay = self.pace.delay(self.io.now, (bytes, writes), pressure);
        self.writes.not_before = self.io.now + delay;
        self.figures.delayed += delay;
        true
    }

    /// Whether nothing more comes in until something is destaged: a batch frees its segments at its end only. What cannot be destaged now
    /// is no reason to wait.
    fn is_shut(&self) -> bool {
        self.pace.is_shut(self.pressure()) && self.destage.error.is_none()
    }

    /// Fails the first write in the queue if the log is full and cannot be destaged: it would wait for ever. Whether it did.
    fn refuse_first(&mut self) -> bool {
        let Some(id) = self.writes.queue.front().copied().filter(|_| self.is_destaging_stuck()) else {
            return false;
        };
        self.writes.queue.pop_front();
        let geometry = self.log.geometry;
        let Some(client) = self.writes.clients.get_mut(&id) else { return true };
        let left = LbaRange::new(client.range.lba + client.queued, client.range.nlb - client.queued);
        if client.kind == Kind::Data {
            self.writes.queued_bytes -= geometry.bytes(left);
        }
        client.error = Some(Errno::EIO);
        client.range.nlb = client.queued;
        self.answer_if_written(id);
        true
    }

    /// The next parts from the queue, with no more than `blocks_max` blocks of payload; and how many blocks that is.
    fn take_pieces(&mut self, blocks_max: u64) -> (Vec<Piece>, u32) {
        let per_block = self.log.geometry.per_block();
        let (mut pieces, mut blocks) = (Vec::new(), 0);
        while let Some(id) = self.writes.queue.front().copied() {
            let Some(client) = self.writes.clients.get(&id) else { break };
            let left = client.range.nlb - client.queued;
            let nlb = match client.kind {
                Kind::Data => left.min((blocks_max - blocks) * per_block),
                _ => left.min(u64::from(u32::MAX)),
            };
            if nlb == 0 || pieces.len() == EXTENTS_MAX {
                break;
            }
            let range = LbaRange::new(client.range.lba + client.queued, nlb);
            let extent = Extent { range, kind: client.kind };
            let logical_block = u64::from(self.log.geometry.logical_block);
            blocks += extent.payload_blocks(logical_block);
            pieces.push(Piece { client: id, extent, offset: client.queued * logical_block });
            let Some(client) = self.writes.clients.get_mut(&id) else { break };
            client.queued += nlb;
            client.records += 1;
            if client.kind == Kind::Data {
                self.writes.queued_bytes -= nlb * logical_block;
                self.figures.logged += Bytes(nlb * logical_block);
            }
            if client.queued == client.range.nlb {
                self.writes.queue.pop_front();
            }
        }
        (pieces, blocks as u32)
    }

    /// Writes a record of these pieces, with `blocks` blocks of payload, to all legs of its segment.
    fn put_record(&mut self, pieces: &[Piece], blocks: u32, mut whole: BufferMut) {
        let length = Bytes(u64::from(blocks + 1) * LOG_BLOCK);
        let buffer = &mut whole[..length.0 as usize];
        let place = self.log.place(blocks + 1, self.superblock.session, self.io.now);
        let geometry = self.log.geometry;
        let (mut at, mut extents, mut clients) = (1_u32, Vec::new(), Vec::new());
        for piece in pieces {
            extents.push((piece.extent, place.block + at));
            let taken = piece.extent.payload_blocks(u64::from(geometry.logical_block)) as u32;
            let from = at as usize * LOG_BLOCK as usize;
            let into = &mut buffer[from..from + taken as usize * LOG_BLOCK as usize];
            if let Some(client) = self.writes.clients.get(&piece.client) {
                fill(into, client, piece, geometry.logical_block as usize);
            }
            clients.push(piece.client);
            at += taken;
        }
        let payload = buffer[LOG_BLOCK as usize..].chunks_exact(LOG_BLOCK as usize);
        let header = Header {
            place,
            durable: self.log.durable,
            flush_epoch: self.log.flush_epoch,
            extents: extents.iter().map(|(extent, _)| *extent).collect(),
            checksums: payload.map(crc32c::crc32c).collect(),
        };
        self.log.previous = header.encode(self.superblock.cache, &mut buffer[..LOG_BLOCK as usize]);
        if let Some(segment) = self.log.segments.get_mut(&place.segment) {
            segment.checksums.push(self.log.previous);
            segment.checksums.extend(&header.checksums);
        }
        let legs: BTreeSet<_> = self.legs_of(place.segment).into_iter().collect();
        let bytes = whole.freeze().slice(0..length.0 as usize);
        let at = geometry.leg_block(place.segment, place.block);
        for leg in &legs {
            let then = Then::Record { sequence: place.sequence, leg: *leg };
            self.io.write_leg((*leg, Purpose::LogRecord), at, bytes.clone(), then);
            self.figures.leg_written += length;
        }
        self.figures.records += 1;
        let flush_epoch = self.log.flush_epoch;
        self.log.in_flight.insert(place.sequence, Record { place, flush_epoch, extents, clients, legs });
    }

    pub(crate) fn record_completed(&mut self, sequence: u64, leg: usize, outcome: Outcome) {
        if !outcome.is_done() {
            self.lose_leg(leg, "could not write a record", outcome);
        }
        if let Some(record) = self.log.in_flight.get_mut(&sequence) {
            record.legs.remove(&leg);
        }
    }

    /// Puts records that are complete into the index, and acknowledges their writes. Order (a): only when every record before is
    /// complete, since replay stops at a gap.
    pub(crate) fn apply_records(&mut self) {
        while self.may_acknowledge() {
            let in_order = self.io.options.waits.hold(Wait::LowerSequences);
            let mut candidates = self.log.in_flight.iter().take(if in_order { 1 } else { usize::MAX });
            let complete =
                candidates.find(|(_, record)| record.legs.is_empty()).map(|(sequence, _)| *sequence);
            let Some(record) = complete.and_then(|sequence| self.log.in_flight.remove(&sequence)) else {
                return;
            };
            self.io.steps += 1;
            self.log.complete = self.log.complete.max(record.place.sequence);
            let absorbed = self.log.apply(&mut self.index, &record);
            self.figures.absorbed += Bytes(absorbed * u64::from(self.log.geometry.logical_block));
            record.clients.iter().for_each(|client| self.part_written(*client));
        }
    }

    fn part_written(&mut self, id: u64) {
        if let Some(client) = self.writes.clients.get_mut(&id) {
            client.records -= 1;
            self.answer_if_written(id);
        }
    }

    /// Answers a write of which every part is in the index; one with FUA after a flush.
    fn answer_if_written(&mut self, id: u64) {
        let is_written = |client: &ClientWrite| client.records == 0 && client.queued == client.range.nlb;
        if !self.writes.clients.get(&id).is_some_and(is_written) {
            return;
        }
        let Some(client) = self.writes.clients.remove(&id) else { return };
        match client.error {
            Some(errno) => self.io.refuse(&client.asked, errno, client.payload),
            None if client.is_fua => {
                self.flushes.ask(client.asked, client.payload, self.io.options.waits);
            }
            None => self.io.answer(&client.asked, Outcome::Done, client.payload),
        }
    }

    /// Fails all writes that are to go through the log.
    pub(crate) fn fail_writes(&mut self) {
        self.log.in_flight.clear();
        self.writes.queue.clear();
        self.writes.queued_bytes = 0;
        let (bypassing, failed) =
            std::mem::take(&mut self.writes.clients).into_iter().partition(|(_, client)| client.is_bypass);
        self.writes.clients = bypassing;
        let failed: BTreeMap<u64, ClientWrite> = failed;
        for client in failed.into_values() {
            self.io.refuse(&client.asked, Errno::EIO, client.payload);
        }
    }
}

/// The bytes of a piece, and zeroes up to the end of its last log block.
fn fill(into: &mut [u8], client: &ClientWrite, piece: &Piece, logical_block: usize) {
    let length = piece.extent.range.nlb as usize * logical_block;
    if piece.extent.kind != Kind::Data {
        return;
    }
    let (bytes, rest) = into.split_at_mut(length);
    rest.fill(0);
    match &client.payload {
        Payload::Bytes(buffer) => {
            bytes.copy_from_slice(&buffer[piece.offset as usize..piece.offset as usize + length]);
        }
        Payload::Pattern(pattern) => {
            let blocks = piece.offset / logical_block as u64;
            let pattern = plumb_block::Pattern { lba: Lba(pattern.lba.0 + blocks), ..*pattern };
            pattern.fill(logical_block, bytes);
        }
        Payload::None | Payload::Into(_) => {}
    }
}
