//! Writes, zeroes and discards: queued, put into records together, acknowledged in the order of their
//! sequence numbers.
//!
//! Group commit without a timer: a record holds whatever came while the one before was on its way; another
//! one goes out beside it only when there is enough for it.

use std::collections::{BTreeMap, VecDeque};

use plumb_block::{
    BufferMut, Bytes, Errno, Lba, LbaRange, Nanos, Op, Outcome, Pattern, Payload, Request, VolatileCache,
};

use crate::action::{Command, Member, Purpose, Wait};
use crate::core::{Core, LegFailure, Then};
use crate::format::record::{EXTENTS_MAX, Extent, Header, Kind};
use crate::format::superblock::LegState;
use crate::io::{ClientRequest, errno_of};
use crate::legs::LegSet;
use crate::log::Record;
use crate::pace::Load;
use crate::settings::{BUFFER, LOG_BLOCK, Mode};

/// Number of records that may be in flight.
const RECORDS_MAX: usize = 8;
/// A record goes out beside others when this much is queued.
const BATCH_MIN: u64 = 64 << 10;

/// The writes that are not answered.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// Writes that go through the log.
    clients: BTreeMap<u64, ClientWrite>,
    /// Writes that go past the log.
    bypassing: BTreeMap<u64, ClientWrite>,
    next: u64,
    /// Writes with blocks that are in no record yet, in order.
    queue: VecDeque<u64>,
    queued_bytes: u64,
    /// Nothing goes into a record before this.
    pub(crate) not_before: Nanos,
}

#[derive(Debug)]
struct ClientWrite {
    asked: ClientRequest,
    range: LbaRange,
    kind: Kind,
    is_fua: bool,
    payload: Payload,
    /// How many of its blocks are in records.
    queued: u64,
    /// How many records with a part of it are not in the index.
    records: u32,
    /// Why no more of it gets into the log.
    error: Option<Errno>,
}

impl ClientWrite {
    /// Returns its blocks that are in no record.
    fn rest(&self) -> LbaRange {
        LbaRange::new(self.range.lba + self.queued, self.range.nlb - self.queued)
    }

    /// Returns the request to the backing device that does the same.
    fn op(&self) -> Op {
        match self.kind {
            Kind::Data => Op::Write { fua: self.is_fua },
            Kind::Discard => Op::Discard,
            kind => {
                Op::WriteZeroes { fua: self.is_fua, no_hole: kind == Kind::ZeroesReserved, fast_only: false }
            }
        }
    }

    /// Returns the bytes of some of its blocks; `None` if a pattern gets no buffer from `memory`.
    fn piece(
        &self,
        range: LbaRange,
        block: u64,
        memory: impl FnOnce() -> Option<BufferMut>,
    ) -> Option<Payload> {
        let (from, bytes) = ((range.lba.0 - self.range.lba.0) * block, range.nlb * block);
        Some(Payload::Bytes(match &self.payload {
            Payload::Bytes(buffer) => buffer.clone().slice(from as usize..(from + bytes) as usize),
            Payload::Pattern(pattern) => {
                let mut buffer = memory()?;
                Pattern { lba: Lba(pattern.lba.0 + from / block), ..*pattern }
                    .fill(block as usize, &mut buffer);
                buffer.freeze()
            }
            Payload::None | Payload::Into(_) => return None,
        }))
    }

    /// The bytes of its next `blocks` blocks, and zeroes up to the end of `into`.
    fn fill(&self, into: &mut [u8], blocks: usize, logical_block: usize) {
        let (bytes, rest) = into.split_at_mut(blocks * logical_block);
        rest.fill(0);
        match &self.payload {
            Payload::Bytes(buffer) => {
                let from = self.queued as usize * logical_block;
                bytes.copy_from_slice(&buffer[from..from + bytes.len()]);
            }
            Payload::Pattern(pattern) => {
                let pattern = Pattern { lba: Lba(pattern.lba.0 + self.queued), ..*pattern };
                pattern.fill(logical_block, bytes);
            }
            Payload::None | Payload::Into(_) => {}
        }
    }
}

impl Writes {
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.bypassing.is_empty()
    }

    /// Returns true if a write past the log is in flight that changes a block of `range`.
    pub(crate) fn is_bypassing(&self, range: LbaRange) -> bool {
        self.bypassing.values().any(|client| client.range.overlaps(range))
    }

    /// Puts the parts of writes that these records hold back into the queue, before all others.
    pub(crate) fn requeue(&mut self, records: Vec<Record>, logical_block: u64) {
        for Record { header, clients, .. } in records.into_iter().rev() {
            for (extent, id) in header.extents.iter().zip(clients).rev() {
                let Some(client) = self.clients.get_mut(&id) else { continue };
                if client.queued == client.range.nlb {
                    self.queue.push_front(id);
                }
                client.records -= 1;
                client.queued = extent.range.lba.0 - client.range.lba.0;
                if client.kind == Kind::Data {
                    self.queued_bytes += extent.range.nlb * logical_block;
                }
            }
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns when the first one in the queue may go on.
    pub(crate) fn due(&self) -> Option<Nanos> {
        (!self.queue.is_empty()).then_some(self.not_before)
    }
}

impl Core {
    /// Takes a write, zeroing or discard that can be done.
    pub(crate) fn write(&mut self, asked: ClientRequest, mut request: Request) {
        let (kind, is_fua) = match request.op {
            Op::Write { fua } => (Kind::Data, fua),
            Op::WriteZeroes { fua, no_hole: true, .. } => (Kind::ZeroesReserved, fua),
            Op::WriteZeroes { fua, .. } => (Kind::Zeroes, fua),
            Op::Discard | Op::Read | Op::Flush => (Kind::Discard, false),
        };
        let bytes = self.log.geometry.bytes(request.range);
        self.figures.written += Bytes(bytes);
        self.figures.writes += 1;
        let (op, range) = (request.op, request.range);
        let past_log = self.past_log(&mut request, bytes);
        let payload = request.payload;
        let client = ClientWrite { asked, range, kind, is_fua, payload, queued: 0, records: 0, error: None };
        let Some(payload) = past_log else { return self.enqueue(client) };
        self.figures.bypassed += Bytes(bytes);
        self.figures.bypass_writes += 1;
        self.pace.foreground(self.io.now());
        self.note_bypass(range);
        let id = self.writes.new_id();
        let (member, purpose) = (Member::Backing, Purpose::BypassWrite);
        self.io.issue(Command { member, purpose, op, range, payload }, Then::Bypass { client: id });
        self.writes.bypassing.insert(id, ClientWrite { records: 1, ..client });
    }

    /// Puts a write into the queue for the log.
    fn enqueue(&mut self, client: ClientWrite) {
        let id = self.writes.new_id();
        self.writes.queue.push_back(id);
        if client.kind == Kind::Data {
            self.writes.queued_bytes += self.log.geometry.bytes(client.range);
        }
        self.writes.clients.insert(id, client);
    }

    /// Returns the payload for the backing device of a write that goes there at once; `None` if it does not.
    /// Never where the log holds a block of it: replay would put the older version back, and dropping that
    /// first could lose what was flushed.
    fn past_log(&mut self, request: &mut Request, bytes: u64) -> Option<Payload> {
        let is_wanted = match self.options.mode {
            Mode::WriteThrough => true,
            Mode::Ordered => false,
            Mode::WriteBack | Mode::Protected => {
                let after = self.options.bypass_after;
                let is_stream = matches!(request.op, Op::Write { .. })
                    && self.pace.is_stream(request.range, bytes, after);
                is_stream && (self.options.mode == Mode::WriteBack || self.is_kept_at_once(request.op))
            }
        };
        let fits = request.op == Op::Discard || bytes <= self.devices.backing_transfer_max();
        if self.seal.is_some() {
            // From the queue, where it waits for what the log holds.
            return None;
        }
        let is_held = self.overlaps_log(request.range) || self.is_witness(request.op, request.range);
        if !is_wanted || !fits || !self.is_serving() || !self.is_marked() || is_held {
            return None;
        }
        let Payload::Pattern(pattern) = &request.payload else {
            return Some(std::mem::take(&mut request.payload));
        };
        // The bytes of a pattern are made here: the memory of a member's queue is the cache's own. Records
        // and superblocks keep theirs.
        let memory = &self.options.memory;
        let mut buffer = memory.take(Bytes(bytes)).filter(|_| self.has_memory_for_run())?;
        pattern.fill(self.log.geometry.logical_block as usize, &mut buffer);
        Some(Payload::Bytes(buffer.freeze()))
    }

    /// Returns true if the backing device keeps what it has answered of this, without a flush.
    fn is_kept_at_once(&self, op: Op) -> bool {
        let is_fua = matches!(op, Op::Write { fua: true } | Op::WriteZeroes { fua: true, .. });
        is_fua || self.devices.backing().volatile_cache == VolatileCache::None
    }

    fn overlaps_log(&self, range: LbaRange) -> bool {
        let is_queued = |client: &ClientWrite| client.range.overlaps(range);
        self.options.waits.hold(Wait::LogBeforeBypass)
            && (self.index.over(range).next().is_some() || self.writes.clients.values().any(is_queued))
    }

    /// Returns true if a write past the log is in flight where something came into the log since: that is not
    /// destaged meanwhile, which of the two stays would be open.
    pub(crate) fn is_bypass_beneath(&self) -> bool {
        let is_beneath = |client: &ClientWrite| self.index.over(client.range).next().is_some();
        self.writes.bypassing.values().any(is_beneath)
    }

    /// A write past the log has ended. The log takes one that the backing device has failed, unless it is to
    /// have none, or has something newer.
    pub(crate) fn bypass_completed(&mut self, id: u64, outcome: Outcome, payload: Payload) {
        let Some(client) = self.writes.bypassing.get_mut(&id) else { return };
        client.records -= 1;
        if !outcome.is_done() {
            client.error = Some(errno_of(outcome));
        }
        if client.records > 0 {
            // The piece may have failed, and land until that is flushed.
            self.flushes.note_bypass();
            return;
        }
        let Some(mut client) = self.writes.bypassing.remove(&id) else { return };
        let outcome = client.error.filter(|_| outcome.is_done()).map_or(outcome, Outcome::Failed);
        if !client.is_fua || !outcome.is_done() {
            self.flushes.note_bypass();
        }
        if matches!(client.payload, Payload::None) {
            client.payload = payload;
        }
        if !outcome.is_done() {
            self.unsettle();
            let has_data = client.kind != Kind::Data || !matches!(client.payload, Payload::None);
            let may_take =
                self.options.mode != Mode::WriteThrough && self.is_serving() && self.seal.is_none();
            if may_take && has_data && !self.overlaps_log(client.range) {
                return self.enqueue(ClientWrite { error: None, ..client });
            }
        }
        // The write may have been submitted in another mode.
        let is_volatile = self.devices.backing().volatile_cache != VolatileCache::None;
        if self.options.mode == Mode::Protected && outcome.is_done() && !client.is_fua && is_volatile {
            return self.ask_flush(client.asked, client.payload);
        }
        self.io.answer(&client.asked, outcome, client.payload);
    }

    /// Makes records of what is queued, as many as may be in flight.
    pub(crate) fn fill_records(&mut self) {
        if self.seal.is_some() {
            return self.pass_sealed_log();
        }
        while self.is_serving() && self.fill_record() {}
    }

    /// Sends writes past a sealed log, each once nothing in it overlaps. One that would wait for ever fails.
    fn pass_sealed_log(&mut self) {
        if !self.is_serving() || !self.is_marked() {
            return;
        }
        let is_stuck = self.is_destaging_stuck();
        for id in self.writes.queue.clone() {
            let Some(client) = self.writes.clients.get(&id) else { continue };
            let range = client.rest();
            let is_unreadable = self.index.over(range).any(|(_, entry)| entry.is_unreadable());
            if self.may_pass_sealed_log(client.op(), range) {
                self.send_past_log(id);
            } else if is_stuck || is_unreadable {
                self.writes.queue.retain(|queued| *queued != id);
                self.refuse_rest(id);
            }
        }
    }

    /// Returns true if recovery of a sealed log would put nothing over a write of `range`. In the mode
    /// `ordered` nothing may come before anything in the log.
    fn may_pass_sealed_log(&self, op: Op, range: LbaRange) -> bool {
        let is_behind = self.options.mode != Mode::Ordered || self.log.used() == 0;
        let is_free = self.may_ignore(op, range) || !self.is_witness(op, range);
        is_behind && is_free && self.index.over(range).next().is_none()
    }

    /// Returns true for a discard of a block of which the mark could not state the contents afterwards. A
    /// device that promises nothing about discards may ignore one, and so does the cache.
    fn may_ignore(&self, op: Op, range: LbaRange) -> bool {
        op == Op::Discard && !self.devices.backing().discard_zeroes && self.is_witness(op, range)
    }

    /// Sends what is left of a write past the log, in pieces that the backing device takes.
    fn send_past_log(&mut self, id: u64) {
        let (block, max) = (self.log.geometry.logical_block, self.devices.backing_transfer_max());
        let Some(client) = self.writes.clients.get(&id) else { return };
        let (op, rest, is_data) = (client.op(), client.rest(), client.kind == Kind::Data);
        let most = if op == Op::Discard { self.devices.backing().discard_max.0 } else { max } / block;
        let mut pieces = Vec::new();
        for from in (0..rest.nlb).step_by(most.max(1) as usize) {
            let range = LbaRange::new(rest.lba + from, most.min(rest.nlb - from));
            let payload = if is_data {
                client.piece(range, block, || self.options.memory.take(Bytes(range.nlb * block)))
            } else {
                Some(Payload::None)
            };
            // Without memory now, it is sent later.
            let Some(payload) = payload else { return };
            pieces.push((range, payload));
        }
        let Some(mut client) = self.writes.clients.remove(&id) else { return };
        self.writes.queue.retain(|queued| *queued != id);
        if is_data {
            self.writes.queued_bytes -= rest.nlb * block;
        }
        (client.queued, client.records) = (client.range.nlb, 0);
        self.figures.bypassed += Bytes(rest.nlb * block);
        self.figures.bypass_writes += 1;
        self.pace.foreground(self.io.now());
        if self.may_ignore(op, rest) {
            self.io.answer(&client.asked, Outcome::Done, client.payload);
            return;
        }
        self.note_bypass(rest);
        client.records = pieces.len() as u32;
        self.writes.bypassing.insert(id, client);
        for (range, payload) in pieces {
            let (member, purpose) = (Member::Backing, Purpose::BypassWrite);
            self.io.issue(Command { member, purpose, op, range, payload }, Then::Bypass { client: id });
        }
    }

    fn fill_record(&mut self) -> bool {
        let in_flight = self.log.in_flight.len();
        let is_due = self.writes.due().is_some_and(|due| due <= self.io.now());
        let is_worth = in_flight == 0 || self.writes.queued_bytes >= BATCH_MIN;
        let may_go = in_flight < RECORDS_MAX && !self.is_shut();
        // With a leg that replaces another a session begins: no record of it before it is durable.
        if !is_due || !is_worth || !may_go || !self.may_acknowledge() {
            return false;
        }
        let room = self.log.room(self.options.waits.hold(Wait::SegmentUnread));
        self.figures.is_full = room < 2;
        if room == 0 {
            return self.refuse_first();
        }
        // Before anything is taken from the queue: other queues share this memory.
        let Some(mut buffer) = self.options.memory.take(BUFFER) else { return false };
        let largest =
            (self.options.record_max.0).min(self.devices.leg_transfer_max() - LOG_BLOCK) / LOG_BLOCK;
        let payload_max = u64::from(room - 1).min(largest.max(1));
        let (extents, clients) = self.take_queued(payload_max, &mut buffer[LOG_BLOCK as usize..]);
        if extents.is_empty() {
            // There is room for a header alone.
            return self.refuse_first();
        }
        let writes = clients.len() as u32;
        let bytes = self.put_record(extents, clients, buffer);
        let pressure = self.pressure();
        let delay = self.pace.delay(self.io.now(), Load { bytes, writes }, pressure);
        self.writes.not_before = self.io.now() + delay;
        self.figures.delayed += delay;
        true
    }

    /// Returns true if nothing more comes in until something is destaged: a batch frees its segments at its
    /// end only. What cannot be destaged now is no reason to wait.
    fn is_shut(&self) -> bool {
        self.pace.is_shut(self.pressure()) && self.destage.failing.is_none()
    }

    /// Fails the first write in the queue if the log is full and cannot be destaged: it would wait for ever.
    /// Whether it did.
    fn refuse_first(&mut self) -> bool {
        let Some(id) = self.writes.queue.front().copied().filter(|_| self.is_destaging_stuck()) else {
            return false;
        };
        self.writes.queue.pop_front();
        self.refuse_rest(id);
        true
    }

    /// Fails a write of which no more gets into the log.
    fn refuse_rest(&mut self, id: u64) {
        let geometry = self.log.geometry;
        let Some(client) = self.writes.clients.get_mut(&id) else { return };
        if client.kind == Kind::Data {
            self.writes.queued_bytes -= geometry.bytes(client.rest());
        }
        client.error = Some(Errno::EIO);
        client.range.nlb = client.queued;
        self.answer_if_written(id);
    }

    /// Takes the changes of the next record from the queue, with the writes they belong to: the first of the
    /// queue, with no more than `blocks_max` blocks of payload, which goes into `payload`.
    fn take_queued(&mut self, blocks_max: u64, payload: &mut [u8]) -> (Vec<Extent>, Vec<u64>) {
        let logical_block = self.log.geometry.logical_block;
        let (mut extents, mut clients, mut blocks) = (Vec::new(), Vec::new(), 0);
        while let Some(id) = self.writes.queue.front().copied() {
            let Some(client) = self.writes.clients.get_mut(&id) else { break };
            let left = client.range.nlb - client.queued;
            let nlb = match client.kind {
                Kind::Data => left.min((blocks_max - blocks) * self.log.geometry.per_block()),
                _ => left.min(u64::from(u32::MAX)),
            };
            if nlb == 0 || extents.len() == EXTENTS_MAX {
                break;
            }
            let range = LbaRange::new(client.range.lba + client.queued, nlb);
            let extent = Extent { range, kind: client.kind };
            if client.kind == Kind::Data {
                let from = (blocks * LOG_BLOCK) as usize;
                blocks += extent.payload_blocks(logical_block);
                let into = &mut payload[from..(blocks * LOG_BLOCK) as usize];
                client.fill(into, nlb as usize, logical_block as usize);
                self.writes.queued_bytes -= nlb * logical_block;
                self.figures.logged += Bytes(nlb * logical_block);
            }
            extents.push(extent);
            clients.push(id);
            client.queued += nlb;
            client.records += 1;
            if client.queued == client.range.nlb {
                self.writes.queue.pop_front();
            }
        }
        (extents, clients)
    }

    /// Writes a record to all legs of its segment, with its payload from the second block of `whole` on; how
    /// many bytes that is.
    fn put_record(&mut self, extents: Vec<Extent>, clients: Vec<u64>, mut whole: BufferMut) -> u64 {
        let (geometry, logical_block) = (self.log.geometry, self.log.geometry.logical_block);
        let blocks = 1 + extents.iter().map(|extent| extent.payload_blocks(logical_block)).sum::<u64>();
        let length = Bytes(blocks * LOG_BLOCK);
        let (head, payload) = whole[..length.0 as usize].split_at_mut(LOG_BLOCK as usize);
        let place = self.log.next_place(blocks as u32, self.superblock.session);
        let header = Header {
            place,
            durable: self.log.durable,
            flush_epoch: self.log.flush_epoch,
            extents,
            checksums: payload.chunks_exact(LOG_BLOCK as usize).map(crc32c::crc32c).collect(),
        };
        let crc = header.encode(self.superblock.cache, head);
        self.log.append(&header, crc, self.io.now());
        let legs = self.legs_of(place.segment);
        let bytes = whole.freeze().slice(0..length.0 as usize);
        let at = geometry.leg_block(place.segment, place.block);
        for leg in legs.iter() {
            let then = Then::Record { sequence: place.sequence, leg };
            self.io.issue(self.devices.write_leg(leg, at, Purpose::LogRecord, bytes.clone()), then);
            self.figures.leg_written += length;
        }
        self.figures.records += 1;
        self.log.in_flight.insert(place.sequence, Record { header, clients, legs, has_failed: false });
        length.0
    }

    pub(crate) fn record_completed(&mut self, sequence: u64, leg: usize, outcome: Outcome) {
        let has_failed =
            !outcome.is_done() && self.superblock.legs[leg] != LegState::Lost && self.is_last(leg);
        if let Some(record) = self.log.in_flight.get_mut(&sequence) {
            record.legs = record.legs.without(LegSet::one(leg));
            record.has_failed |= has_failed;
        }
        if !outcome.is_done() {
            self.lose_leg(leg, LegFailure::Record, outcome);
        }
    }

    /// Puts records that are complete into the index, and acknowledges their writes. Order (a): only when
    /// every record before is complete, since replay stops at a gap.
    pub(crate) fn apply_records(&mut self) {
        // The records of a log that is being sealed are taken back.
        while self.seal.is_none() && self.may_acknowledge() {
            let in_order = self.options.waits.hold(Wait::LowerSequences);
            let mut candidates = self.log.in_flight.iter().take(if in_order { 1 } else { usize::MAX });
            let complete = candidates
                .find(|(_, record)| record.legs.is_empty() && !record.has_failed)
                .map(|(sequence, _)| *sequence);
            let Some(record) = complete.and_then(|sequence| self.log.in_flight.remove(&sequence)) else {
                return;
            };
            self.io.step();
            self.log.complete = self.log.complete.max(record.header.place.sequence);
            self.log.retried = self.log.retried.filter(|retried| *retried > self.log.complete);
            let absorbed = self.log.apply(&mut self.index, &record.header);
            self.figures.absorbed += Bytes(absorbed * self.log.geometry.logical_block);
            for id in record.clients {
                self.writes.clients.get_mut(&id).into_iter().for_each(|client| client.records -= 1);
                self.answer_if_written(id);
            }
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
            None if client.is_fua => self.ask_flush(client.asked, client.payload),
            None => self.io.answer(&client.asked, Outcome::Done, client.payload),
        }
    }

    /// Fails all writes that are to go through the log.
    pub(crate) fn fail_writes(&mut self) {
        self.log.in_flight.clear();
        self.writes.queue.clear();
        self.writes.queued_bytes = 0;
        for client in std::mem::take(&mut self.writes.clients).into_values() {
            self.io.refuse(&client.asked, Errno::EIO, client.payload);
        }
    }
}
