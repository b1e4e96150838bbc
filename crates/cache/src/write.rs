//! Writes, zeroes and discards: queued, combined into records, acknowledged in the order of their sequence
//! numbers.
//!
//! Group commit without a timer: a record contains everything that arrived while the previous one was in
//! flight. Another record is sent concurrently only if there is enough data for it.

use std::collections::{BTreeMap, VecDeque};

use plumb_block::{
    BufferMut, Bytes, Errno, Lba, LbaRange, Nanos, Op, Outcome, Pattern, Payload, Request, VolatileCache,
};

use crate::action::{Command, Member, Purpose, Wait};
use crate::base::Base;
use crate::continuation::Then;
use crate::destage::Destage;
use crate::flush::Flushes;
use crate::format::record::{EXTENTS_MAX, Extent, Header, Kind};
use crate::io::{ClientRequest, errno_of};
use crate::log::Record;
use crate::mark::Marks;
use crate::pace::Load;
use crate::settings::{BUFFER, LOG_BLOCK, Mode};

/// Maximum number of records in flight.
const RECORDS_MAX: usize = 8;
/// Queued bytes from which a record is sent concurrently with others.
const BATCH_MIN: u64 = 64 << 10;

/// Unanswered writes.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// Writes through the log.
    clients: BTreeMap<u64, ClientWrite>,
    /// Writes that bypass the log.
    bypassing: BTreeMap<u64, ClientWrite>,
    next: u64,
    /// Writes with blocks that are not in a record yet, in order.
    queue: VecDeque<u64>,
    queued_bytes: u64,
    /// Time before which nothing is put into a record.
    pub(crate) not_before: Nanos,
}

#[derive(Debug)]
struct ClientWrite {
    request: ClientRequest,
    range: LbaRange,
    kind: Kind,
    is_fua: bool,
    payload: Payload,
    /// Number of its blocks that are in records.
    queued: u64,
    /// Number of records with a part of it that are not in the index yet.
    records: u32,
    /// Reason why the rest of it cannot enter the log.
    error: Option<Errno>,
}

impl ClientWrite {
    /// Returns its blocks that are not in a record.
    fn rest(&self) -> LbaRange {
        LbaRange::new(self.range.lba + self.queued, self.range.nlb - self.queued)
    }

    /// Returns the equivalent operation on the backing device.
    fn op(&self) -> Op {
        match self.kind {
            Kind::Data => Op::Write { fua: self.is_fua },
            Kind::Discard => Op::Discard,
            kind => {
                Op::WriteZeroes { fua: self.is_fua, no_hole: kind == Kind::ZeroesReserved, fast_only: false }
            }
        }
    }

    /// Returns the data of some of its blocks; `None` if `memory` has no buffer for a pattern.
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

    /// Fills `into` with its next `blocks` blocks, and the rest with zeroes.
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

    /// Returns true if a bypassing write in flight changes a block of `range`.
    pub(crate) fn is_bypassing(&self, range: LbaRange) -> bool {
        self.bypassing.values().any(|client| client.range.overlaps(range))
    }

    /// Puts the parts of writes in these withdrawn records at the front of the queue.
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

    /// Returns the time at which the first queued write may proceed.
    pub(crate) fn due(&self) -> Option<Nanos> {
        (!self.queue.is_empty()).then_some(self.not_before)
    }

    /// Accepts a valid write, zeroing or discard.
    pub(crate) fn accept(
        &mut self,
        base: &mut Base,
        marks: &mut Marks,
        client: ClientRequest,
        mut request: Request,
    ) {
        let (kind, is_fua) = match request.op {
            Op::Write { fua } => (Kind::Data, fua),
            Op::WriteZeroes { fua, no_hole: true, .. } => (Kind::ZeroesReserved, fua),
            Op::WriteZeroes { fua, .. } => (Kind::Zeroes, fua),
            Op::Discard | Op::Read | Op::Flush => (Kind::Discard, false),
        };
        let bytes = base.log.geometry.bytes(request.range);
        base.figures.written += Bytes(bytes);
        base.figures.writes += 1;
        let (op, range) = (request.op, request.range);
        let past_log = self.past_log(base, marks, &mut request, bytes);
        let payload = request.payload;
        let client =
            ClientWrite { request: client, range, kind, is_fua, payload, queued: 0, records: 0, error: None };
        let Some(payload) = past_log else { return self.enqueue(base, client) };
        base.figures.bypassed += Bytes(bytes);
        base.figures.bypass_writes += 1;
        base.pace.foreground(base.io.now());
        marks.note_bypass(base, range);
        // Freed segments of the log may keep an older version.
        base.index.forget(&base.log.geometry, range, base.log.tail);
        let id = self.new_id();
        let (member, purpose) = (Member::Backing, Purpose::BypassWrite);
        base.io.issue(Command { member, purpose, op, range, payload }, Then::Bypass { client: id });
        self.bypassing.insert(id, ClientWrite { records: 1, ..client });
    }

    /// Queues a write for the log.
    fn enqueue(&mut self, base: &Base, client: ClientWrite) {
        let id = self.new_id();
        self.queue.push_back(id);
        if client.kind == Kind::Data {
            self.queued_bytes += base.log.geometry.bytes(client.range);
        }
        self.clients.insert(id, client);
    }

    /// Returns the payload for a write that bypasses the log; `None` if it must not. Never if the log holds
    /// one of its blocks: replay would restore the older version, and dropping that first could lose flushed
    /// data.
    fn past_log(&self, base: &mut Base, marks: &Marks, request: &mut Request, bytes: u64) -> Option<Payload> {
        let is_wanted = match base.options.mode {
            Mode::WriteThrough => true,
            Mode::Ordered => false,
            Mode::WriteBack | Mode::Protected => {
                let after = base.options.bypass_after.filter(|_| !base.options.destage.rests);
                let is_stream = matches!(request.op, Op::Write { .. })
                    && base.pace.is_stream(request.range, bytes, after);
                is_stream && (base.options.mode == Mode::WriteBack || is_kept_at_once(base, request.op))
            }
        };
        let fits = request.op == Op::Discard || bytes <= base.devices.backing_transfer_max();
        if base.seal.is_some() {
            // The write waits in the queue until the sealed log allows it to bypass.
            return None;
        }
        let is_held =
            self.overlaps_log(base, request.range) || marks.is_witness(base, request.op, request.range);
        if !is_wanted || !fits || !base.condition.is_serving() || !marks.is_marked(base) || is_held {
            return None;
        }
        let Payload::Pattern(pattern) = &request.payload else {
            return Some(std::mem::take(&mut request.payload));
        };
        // Patterns are expanded here, in the cache's own memory rather than a member queue's. Records and
        // superblocks keep their reserve.
        let memory = &base.options.memory;
        let mut buffer = memory.take(Bytes(bytes)).filter(|_| base.has_memory_for_run())?;
        pattern.fill(base.log.geometry.logical_block as usize, &mut buffer);
        Some(Payload::Bytes(buffer.freeze()))
    }

    fn overlaps_log(&self, base: &Base, range: LbaRange) -> bool {
        let is_queued = |client: &ClientWrite| client.range.overlaps(range);
        base.options.waits.hold(Wait::LogBeforeBypass)
            && (base.holds(range) || self.clients.values().any(is_queued))
    }

    /// Returns true if the log received data above a bypassing write that is still in flight. That data is
    /// not destaged meanwhile, because it would be undefined which of the two remains.
    pub(crate) fn is_beneath(&self, base: &Base) -> bool {
        let is_beneath = |client: &ClientWrite| base.holds(client.range);
        self.bypassing.values().any(is_beneath)
    }

    /// Processes the end of a part of a bypassing write. If the backing device failed the write, the log
    /// takes it, unless the log is sealed or has newer data. Returns true if the write failed.
    pub(crate) fn bypass_completed(
        &mut self,
        base: &mut Base,
        flushes: &mut Flushes,
        id: u64,
        outcome: Outcome,
        payload: Payload,
    ) -> bool {
        let Some(client) = self.bypassing.get_mut(&id) else { return false };
        client.records -= 1;
        if !outcome.is_done() {
            client.error = Some(errno_of(outcome));
        }
        if client.records > 0 {
            // The failed part may still land until the device is flushed.
            flushes.note_bypass();
            return false;
        }
        let Some(mut client) = self.bypassing.remove(&id) else { return false };
        let outcome = client.error.filter(|_| outcome.is_done()).map_or(outcome, Outcome::Failed);
        let has_failed = !outcome.is_done();
        if !client.is_fua || has_failed {
            flushes.note_bypass();
        }
        if matches!(client.payload, Payload::None) {
            client.payload = payload;
        }
        if has_failed {
            let has_data = client.kind != Kind::Data || !matches!(client.payload, Payload::None);
            let is_taken = base.options.mode != Mode::WriteThrough
                && base.condition.is_serving()
                && base.seal.is_none()
                && !self.overlaps_log(base, client.range);
            if is_taken && has_data {
                self.enqueue(base, ClientWrite { error: None, ..client });
                return true;
            }
        }
        // The mode may have changed since the write was submitted.
        let is_volatile = base.devices.backing().volatile_cache != VolatileCache::None;
        if base.options.mode == Mode::Protected && !has_failed && !client.is_fua && is_volatile {
            flushes.add(base.options.waits, client.request, client.payload);
        } else {
            base.io.answer(&client.request, outcome, client.payload);
        }
        has_failed
    }

    /// Creates as many records from the queue as may be in flight.
    pub(crate) fn fill_records(
        &mut self,
        base: &mut Base,
        marks: &mut Marks,
        flushes: &mut Flushes,
        destage: &Destage,
    ) {
        if base.seal.is_some() {
            return self.pass_sealed_log(base, marks, flushes, destage);
        }
        while base.condition.is_serving() && self.fill_record(base, marks, flushes, destage) {}
    }

    /// Sends writes past a sealed log, each once nothing in it overlaps. A write that would wait forever
    /// fails.
    fn pass_sealed_log(
        &mut self,
        base: &mut Base,
        marks: &mut Marks,
        flushes: &mut Flushes,
        destage: &Destage,
    ) {
        if !base.condition.is_serving() || !marks.is_marked(base) {
            return;
        }
        let is_stuck = destage.is_stuck(base);
        for id in self.queue.clone() {
            let Some(client) = self.clients.get(&id) else { continue };
            let range = client.rest();
            let is_unreadable = base.index.over(range).any(|(_, entry)| entry.is_unreadable());
            if may_pass_sealed_log(base, marks, client.op(), range) {
                self.send_past_log(base, marks, id);
            } else if is_stuck || is_unreadable {
                self.queue.retain(|queued| *queued != id);
                self.refuse_rest(base, flushes, id);
            }
        }
    }

    /// Sends the rest of a bypassing write in pieces that the backing device accepts.
    fn send_past_log(&mut self, base: &mut Base, marks: &mut Marks, id: u64) {
        let (block, max) = (base.log.geometry.logical_block, base.devices.backing_transfer_max());
        let Some(client) = self.clients.get(&id) else { return };
        let (op, rest, is_data) = (client.op(), client.rest(), client.kind == Kind::Data);
        let most = if op == Op::Discard { base.devices.backing().discard_max.0 } else { max } / block;
        let mut pieces = Vec::new();
        for from in (0..rest.nlb).step_by(most.max(1) as usize) {
            let range = LbaRange::new(rest.lba + from, most.min(rest.nlb - from));
            let payload = if is_data {
                client.piece(range, block, || base.options.memory.take(Bytes(range.nlb * block)))
            } else {
                Some(Payload::None)
            };
            // Without memory it is sent later.
            let Some(payload) = payload else { return };
            pieces.push((range, payload));
        }
        let Some(mut client) = self.clients.remove(&id) else { return };
        self.queue.retain(|queued| *queued != id);
        if is_data {
            self.queued_bytes -= rest.nlb * block;
        }
        (client.queued, client.records) = (client.range.nlb, 0);
        base.figures.bypassed += Bytes(rest.nlb * block);
        base.figures.bypass_writes += 1;
        base.pace.foreground(base.io.now());
        if may_ignore(base, marks, op, rest) {
            base.io.answer(&client.request, Outcome::Done, client.payload);
            return;
        }
        marks.note_bypass(base, rest);
        client.records = pieces.len() as u32;
        self.bypassing.insert(id, client);
        for (range, payload) in pieces {
            let (member, purpose) = (Member::Backing, Purpose::BypassWrite);
            base.io.issue(Command { member, purpose, op, range, payload }, Then::Bypass { client: id });
        }
    }

    fn fill_record(
        &mut self,
        base: &mut Base,
        marks: &Marks,
        flushes: &mut Flushes,
        destage: &Destage,
    ) -> bool {
        let in_flight = base.log.in_flight.len();
        let is_due = self.due().is_some_and(|due| due <= base.io.now());
        let is_worth = in_flight == 0 || self.queued_bytes >= BATCH_MIN;
        let pressure = destage.pressure(base);
        // Nothing is admitted until something is destaged, since a batch frees its segments only at its end.
        // Data that cannot be destaged is not worth waiting for.
        let is_shut = base.pace.is_shut(pressure) && destage.failing.is_none();
        let may_go = in_flight < RECORDS_MAX && !is_shut;
        // A replacement leg starts a new session, which must be durable before its records.
        if !is_due || !is_worth || !may_go || !marks.may_acknowledge(base) {
            return false;
        }
        let room = base.log.room(base.options.waits.hold(Wait::SegmentUnread));
        base.figures.is_full = room < 2;
        if room == 0 {
            return self.refuse_first(base, flushes, destage);
        }
        // Take a buffer before anything leaves the queue, since other queues share this memory.
        let Some(mut buffer) = base.options.memory.take(BUFFER) else { return false };
        let largest =
            (base.options.record_max.0).min(base.devices.leg_transfer_max() - LOG_BLOCK) / LOG_BLOCK;
        let payload_max = u64::from(room - 1).min(largest.max(1));
        let (extents, clients) = self.take_queued(base, payload_max, &mut buffer[LOG_BLOCK as usize..]);
        if extents.is_empty() {
            // There is room only for a header.
            return self.refuse_first(base, flushes, destage);
        }
        let writes = clients.len() as u32;
        let bytes = put_record(base, extents, clients, buffer);
        let pressure = destage.pressure(base);
        let delay = base.pace.delay(base.io.now(), Load { bytes, writes }, pressure);
        self.not_before = base.io.now() + delay;
        base.figures.delayed += delay;
        true
    }

    /// Fails the first queued write if the log is full and cannot be destaged, since it would wait forever.
    /// Returns true if it did.
    fn refuse_first(&mut self, base: &mut Base, flushes: &mut Flushes, destage: &Destage) -> bool {
        let Some(id) = self.queue.front().copied().filter(|_| destage.is_stuck(base)) else {
            return false;
        };
        self.queue.pop_front();
        self.refuse_rest(base, flushes, id);
        true
    }

    /// Fails a write whose remaining parts cannot enter the log.
    fn refuse_rest(&mut self, base: &mut Base, flushes: &mut Flushes, id: u64) {
        let geometry = base.log.geometry;
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.kind == Kind::Data {
            self.queued_bytes -= geometry.bytes(client.rest());
        }
        client.error = Some(Errno::EIO);
        client.range.nlb = client.queued;
        self.answer_if_written(base, flushes, id);
    }

    /// Takes the changes of the next record from the front of the queue, with their writes; at most
    /// `blocks_max` blocks of payload, which go into `payload`.
    fn take_queued(
        &mut self,
        base: &mut Base,
        blocks_max: u64,
        payload: &mut [u8],
    ) -> (Vec<Extent>, Vec<u64>) {
        let logical_block = base.log.geometry.logical_block;
        let (mut extents, mut clients, mut blocks) = (Vec::new(), Vec::new(), 0);
        while let Some(id) = self.queue.front().copied() {
            let Some(client) = self.clients.get_mut(&id) else { break };
            let left = client.range.nlb - client.queued;
            let nlb = match client.kind {
                Kind::Data => left.min((blocks_max - blocks) * base.log.geometry.per_block()),
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
                self.queued_bytes -= nlb * logical_block;
                base.figures.logged += Bytes(nlb * logical_block);
            }
            extents.push(extent);
            clients.push(id);
            client.queued += nlb;
            client.records += 1;
            if client.queued == client.range.nlb {
                self.queue.pop_front();
            }
        }
        (extents, clients)
    }

    /// Adds complete records to the index, and acknowledges their writes. Order (a): only if every earlier
    /// record is complete, since replay stops at a gap.
    pub(crate) fn apply_records(&mut self, base: &mut Base, marks: &Marks, flushes: &mut Flushes) {
        // The records of a log that is being sealed are withdrawn.
        while base.seal.is_none() && marks.may_acknowledge(base) {
            let in_order = base.options.waits.hold(Wait::LowerSequences);
            let mut candidates = base.log.in_flight.iter().take(if in_order { 1 } else { usize::MAX });
            let complete = candidates
                .find(|(_, record)| record.legs.is_empty() && !record.has_failed)
                .map(|(sequence, _)| *sequence);
            let Some(record) = complete.and_then(|sequence| base.log.in_flight.remove(&sequence)) else {
                return;
            };
            base.io.step();
            base.log.complete = base.log.complete.max(record.header.place.sequence);
            base.log.retried = base.log.retried.filter(|retried| *retried > base.log.complete);
            let absorbed = base.log.apply(&mut base.index, &record.header);
            base.figures.absorbed += Bytes(absorbed * base.log.geometry.logical_block);
            for id in record.clients {
                self.clients.get_mut(&id).into_iter().for_each(|client| client.records -= 1);
                self.answer_if_written(base, flushes, id);
            }
        }
    }

    /// Answers a write that is completely in the index; with FUA after a flush.
    fn answer_if_written(&mut self, base: &mut Base, flushes: &mut Flushes, id: u64) {
        let is_written = |client: &ClientWrite| client.records == 0 && client.queued == client.range.nlb;
        if !self.clients.get(&id).is_some_and(is_written) {
            return;
        }
        let Some(client) = self.clients.remove(&id) else { return };
        match client.error {
            Some(errno) => base.io.refuse(&client.request, errno, client.payload),
            None if client.is_fua => flushes.add(base.options.waits, client.request, client.payload),
            None => base.io.answer(&client.request, Outcome::Done, client.payload),
        }
    }

    /// Completes with an error all writes that wait for the log.
    pub(crate) fn fail(&mut self, base: &mut Base) {
        base.log.in_flight.clear();
        self.queue.clear();
        self.queued_bytes = 0;
        for client in std::mem::take(&mut self.clients).into_values() {
            base.io.refuse(&client.request, Errno::EIO, client.payload);
        }
    }
}

/// Returns true if the backing device keeps this operation without a flush once it has answered.
fn is_kept_at_once(base: &Base, op: Op) -> bool {
    op.is_fua() || base.devices.backing().volatile_cache == VolatileCache::None
}

/// Returns true if recovery of a sealed log would not overwrite a bypassing write of `range`. In ordered mode
/// nothing may overtake data in the log.
fn may_pass_sealed_log(base: &Base, marks: &Marks, op: Op, range: LbaRange) -> bool {
    let is_behind = base.options.mode != Mode::Ordered || base.log.used() == 0;
    let is_free = may_ignore(base, marks, op, range) || !marks.is_witness(base, op, range);
    is_behind && is_free && !base.holds(range)
}

/// Returns true if the discard includes a block whose later contents the mark could not state. A device that
/// guarantees nothing about discards may ignore one, and so does the cache.
fn may_ignore(base: &Base, marks: &Marks, op: Op, range: LbaRange) -> bool {
    op == Op::Discard && !base.devices.backing().discard_zeroes && marks.is_witness(base, op, range)
}

/// Writes a record to all legs of its segment; its payload starts at the second block of `whole`. Returns its
/// length in bytes.
fn put_record(base: &mut Base, extents: Vec<Extent>, clients: Vec<u64>, mut whole: BufferMut) -> u64 {
    let (geometry, logical_block) = (base.log.geometry, base.log.geometry.logical_block);
    let blocks = 1 + extents.iter().map(|extent| extent.payload_blocks(logical_block)).sum::<u64>();
    let length = Bytes(blocks * LOG_BLOCK);
    let (head, payload) = whole[..length.0 as usize].split_at_mut(LOG_BLOCK as usize);
    let place = base.log.next_place(blocks as u32, base.superblock.session);
    let header = Header {
        place,
        durable: base.log.durable,
        flush_epoch: base.log.flush_epoch,
        extents,
        checksums: payload.chunks_exact(LOG_BLOCK as usize).map(crc32c::crc32c).collect(),
    };
    let crc = header.encode(base.superblock.cache, head);
    base.log.append(&header, crc, base.io.now());
    let legs = base.legs_of(place.segment);
    let bytes = whole.freeze().slice(0..length.0 as usize);
    let at = geometry.leg_block(place.segment, place.block);
    for leg in legs.iter() {
        let then = Then::Record { sequence: place.sequence, leg };
        base.io.issue(base.devices.write_leg(leg, at, Purpose::LogRecord, bytes.clone()), then);
        base.figures.leg_written += length;
    }
    base.figures.records += 1;
    base.log.in_flight.insert(place.sequence, Record { header, clients, legs, has_failed: false });
    length.0
}
