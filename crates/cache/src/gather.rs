//! Gathering a run of blocks into one buffer from the log, the backing device and zeroes: for client reads,
//! for destaging, and for a replacement leg.
//!
//! Every log block read is checked. A damaged one is read from another leg, and the first is then repaired;
//! without another leg the whole read fails. It is never answered with the backing device's data instead.

use std::collections::{BTreeMap, VecDeque};

use plumb_block::{BufferMut, Bytes, Errno, ExtentMap, LbaRange, Op, Outcome, Payload};

use crate::action::{Command, Member, Purpose};
use crate::base::{BUFFERS_LEFT, Base};
use crate::continuation::{Copy, Part, PartRead, Run, Source, Then};
use crate::devices::LegBlocks;
use crate::format::block::has_checksum;
use crate::format::record::Kind;
use crate::format::superblock::LegState;
use crate::index::{Entry, with_gaps};
use crate::io::{ClientRequest, errno_of};
use crate::settings::LOG_BLOCK;

/// Maximum number of concurrent reads of one gather.
const PARTS_MAX: u32 = 16;

/// Returns `range` without `unreadable`, which must be inside it.
pub(crate) fn readable(range: LbaRange, unreadable: &[LbaRange]) -> Vec<LbaRange> {
    let mut map = ExtentMap::default();
    map.insert(range, ());
    unreadable.iter().for_each(|range| map.remove(*range));
    map.iter().map(|(range, ())| range).collect()
}

/// Gathers in progress.
#[derive(Debug, Default)]
pub(crate) struct Gathers {
    by_id: BTreeMap<u64, Gather>,
    next: u64,
}

/// Bytes being assembled from several parts.
#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) goal: Goal,
    /// Destination; none if the data is not wanted, or while a device uses the buffer.
    pub(crate) target: Option<BufferMut>,
    parts: VecDeque<Part>,
    in_flight: u32,
    pub(crate) error: Option<Errno>,
    /// Blocks that no leg has intact.
    pub(crate) unreadable: Vec<LbaRange>,
}

/// Recipient of the data.
#[derive(Debug)]
pub(crate) enum Goal {
    Client(ClientRequest),
    Destage(Run),
    /// Replacement leg with this number. The data goes nowhere else.
    Copy(usize),
}

impl Gather {
    pub(crate) fn new(goal: Goal, target: Option<BufferMut>, parts: VecDeque<Part>) -> Self {
        Self { goal, target, parts, in_flight: 0, error: None, unreadable: Vec::new() }
    }
}

/// Splits `range` into parts of at most one transfer each; `found` must cover it.
pub(crate) fn parts(base: &Base, range: LbaRange, found: Vec<(LbaRange, Option<Entry>)>) -> VecDeque<Part> {
    let geometry = &base.log.geometry;
    let logical_block = geometry.logical_block;
    // A part in the log may start and end inside log blocks, which are read as a whole.
    let log_max =
        (base.devices.leg_transfer_max() / logical_block).saturating_sub(2 * geometry.per_block()).max(1);
    let backing_max = base.devices.backing_transfer_max() / logical_block;
    let mut parts = VecDeque::new();
    for (run, entry) in found {
        let is_kept = entry.is_some_and(|entry| !base.log.is_live(entry, run.lba));
        let source_of = |at| match entry {
            Some(entry) if entry.kind() == Kind::Data => (Source::Log(entry.address(at)), log_max),
            Some(entry) if entry.is_unreadable() => (Source::Nowhere, u64::MAX),
            Some(_) => (Source::Zeroes, u64::MAX),
            None => (Source::Backing, backing_max),
        };
        let mut at = run.lba;
        while at < run.end() {
            let (source, most) = source_of(at);
            let nlb = (run.end().0 - at.0).min(most);
            let offset = (at.0 - range.lba.0) * logical_block;
            parts.push_back(Part { range: LbaRange::new(at, nlb), offset, source, is_kept });
            at = at + nlb;
        }
    }
    parts
}

impl Gathers {
    /// Starts a gather. Only the parts that need a read remain in it, and their segments stay pinned until
    /// they are read.
    pub(crate) fn begin(&mut self, base: &mut Base, mut gather: Gather) {
        let Gather { parts, target, unreadable, .. } = &mut gather;
        parts.retain(|part| match part.source {
            Source::Log(address) => {
                base.log.pin(base.log.geometry.locate(address).0);
                true
            }
            Source::Backing => true,
            Source::Zeroes => {
                let (from, bytes) = (part.offset as usize, base.log.geometry.bytes(part.range) as usize);
                target.iter_mut().for_each(|target| target[from..from + bytes].fill(0));
                false
            }
            Source::Nowhere => {
                unreadable.push(part.range);
                false
            }
        });
        self.by_id.insert(self.next, gather);
        self.next += 1;
        base.io.step();
    }

    /// Reads `range` for a client.
    pub(crate) fn read(&mut self, base: &mut Base, client: ClientRequest, range: LbaRange, payload: Payload) {
        base.figures.reads += 1;
        base.figures.read += Bytes(base.log.geometry.bytes(range));
        let found = with_gaps(&base.index, range)
            .map(|(range, entry)| (range, entry.filter(|entry| base.log.has(*entry, range.lba))));
        let parts = parts(base, range, found.collect());
        for kept in parts.iter().filter(|part| part.is_kept) {
            base.figures.kept_reads += 1;
            base.figures.kept_read += Bytes(base.log.geometry.bytes(kept.range));
        }
        let target = match payload {
            Payload::Into(buffer) => Some(buffer),
            Payload::None | Payload::Bytes(_) | Payload::Pattern(_) => None,
        };
        self.begin(base, Gather::new(Goal::Client(client), target, parts));
    }

    /// Returns the identifiers of all gathers, oldest first.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.by_id.keys().copied().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Starts possible reads of a gather. Returns it once it has ended: all parts have arrived, or one is
    /// unobtainable.
    pub(crate) fn advance(&mut self, base: &mut Base, id: u64) -> Option<Gather> {
        while self.read_part(base, id) {}
        let is_over = |gather: &Gather| gather.parts.is_empty() && gather.in_flight == 0;
        if self.by_id.get(&id).is_some_and(is_over) { self.by_id.remove(&id) } else { None }
    }

    /// Starts to read the next part of a gather. Returns true if there may be another.
    fn read_part(&mut self, base: &mut Base, id: u64) -> bool {
        let memory = base.options.memory.clone();
        let geometry = base.log.geometry;
        let Some(gather) = self.by_id.get_mut(&id) else { return false };
        let Some(part) = gather.parts.front().copied().filter(|_| gather.in_flight < PARTS_MAX) else {
            return false;
        };
        let bytes = geometry.bytes(part.range);
        let covering = match part.source {
            Source::Log(address) => (geometry.locate(address).2 + bytes).next_multiple_of(LOG_BLOCK),
            _ => bytes,
        };
        let is_whole = |target: &BufferMut| target.len() as u64 == covering && bytes == covering;
        let is_direct = gather.in_flight == 0 && gather.target.as_ref().is_some_and(is_whole);
        let buffer = if is_direct {
            gather.target.take()
        } else if memory.available() > BUFFERS_LEFT {
            memory.take(Bytes(covering))
        } else {
            None
        };
        let Some(buffer) = buffer else { return false };
        gather.parts.pop_front();
        gather.in_flight += 1;
        // A leg being copied to does not have the part.
        let failed = if let Goal::Copy(leg) = gather.goal { vec![leg] } else { Vec::new() };
        self.send_part(base, PartRead { gather: id, part, is_direct, leg: 0, failed }, buffer);
        true
    }

    /// Reads a part from a leg that has not failed to deliver it.
    fn send_part(&mut self, base: &mut Base, mut read: PartRead, buffer: BufferMut) {
        let Source::Log(address) = read.part.source else {
            base.pace.foreground(base.io.now());
            base.figures.backing_reads += 1;
            base.figures.backing_read += Bytes(buffer.len() as u64);
            let (member, purpose) = (Member::Backing, Purpose::BackingRead);
            let (op, range, payload) = (Op::Read, read.part.range, Payload::Into(buffer));
            let command = Command { member, purpose, op, range, payload };
            base.io.issue(command, Then::Part(Box::new(read)));
            return;
        };
        let blocks = buffer.len() as u64 / LOG_BLOCK;
        let (segment, block, _) = base.log.geometry.locate(address);
        match base.source(segment, &read.failed, read.gather) {
            Some(leg) => {
                read.leg = leg;
                let purpose = match self.by_id.get(&read.gather).map(|gather| &gather.goal) {
                    Some(Goal::Destage(_)) => Purpose::DestageRead,
                    Some(Goal::Copy(_)) => Purpose::ResilverRead,
                    _ => Purpose::LogRead,
                };
                let from = LegBlocks { leg, at: base.log.geometry.leg_block(segment, block), blocks };
                base.io.issue(base.devices.read_leg(from, purpose, buffer), Then::Part(Box::new(read)));
            }
            None => {
                if read.part.is_kept {
                    self.read_backing(base, &read);
                } else {
                    self.block_by_block(base, &read, address, blocks);
                }
                self.part_ended(base, &read, Ok(()), Some(buffer));
            }
        }
    }

    /// Reads a part from the backing device because no leg has it intact.
    fn read_backing(&mut self, base: &Base, read: &PartRead) {
        let Part { range, offset, .. } = read.part;
        let parts = parts(base, range, vec![(range, None)]);
        let parts = parts.into_iter().map(|part| Part { offset: offset + part.offset, ..part });
        self.by_id.get_mut(&read.gather).into_iter().for_each(|gather| gather.parts.extend(parts.clone()));
    }

    /// Reads the blocks of a part one by one, because no leg has all of them intact; a single unreadable
    /// block then fails alone.
    fn block_by_block(&mut self, base: &mut Base, read: &PartRead, address: u64, blocks: u64) {
        let Some(gather) = self.by_id.get_mut(&read.gather) else { return };
        if blocks == 1 {
            return gather.unreadable.push(read.part.range);
        }
        let (range, geometry) = (read.part.range, base.log.geometry);
        let mut done = 0;
        while done < range.nlb {
            let at = address + done;
            let nlb = (geometry.per_block() - at % geometry.per_block()).min(range.nlb - done);
            let offset = read.part.offset + done * geometry.logical_block;
            let range = LbaRange::new(range.lba + done, nlb);
            gather.parts.push_back(Part { range, offset, source: Source::Log(at), is_kept: false });
            base.log.pin(geometry.locate(at).0);
            done += nlb;
        }
    }

    /// Processes the end of the read of a part.
    pub(crate) fn part_completed(
        &mut self,
        base: &mut Base,
        mut read: PartRead,
        outcome: Outcome,
        payload: Payload,
    ) {
        let buffer = match payload {
            Payload::Into(buffer) => Some(buffer),
            Payload::None | Payload::Bytes(_) | Payload::Pattern(_) => None,
        };
        let Source::Log(address) = read.part.source else {
            let result = if outcome.is_done() { Ok(()) } else { Err(errno_of(outcome)) };
            self.part_ended(base, &read, result, buffer);
            return;
        };
        // Without an answer the queue keeps the memory, so the buffer is lost.
        let Some(buffer) = buffer else {
            self.part_ended(base, &read, Err(errno_of(outcome)), None);
            return;
        };
        if outcome.is_done() && is_as_written(base, address, &buffer) {
            self.part_is_whole(base, read, address, buffer);
            return;
        }
        base.figures.checksum_errors += u64::from(outcome.is_done());
        base.figures.leg_read_errors += u64::from(!outcome.is_done());
        read.failed.push(read.leg);
        self.send_part(base, read, buffer);
    }

    /// Accepts intact blocks of the log, and writes them to legs that lack them.
    fn part_is_whole(&mut self, base: &mut Base, mut read: PartRead, address: u64, buffer: BufferMut) {
        let (segment, block, _) = base.log.geometry.locate(address);
        let mut failed = std::mem::take(&mut read.failed);
        let at = base.log.geometry.leg_block(segment, block);
        failed.retain(|leg| base.superblock.legs[*leg] != LegState::Lost);
        let goal = self.by_id.get(&read.gather).map(|gather| &gather.goal);
        let copied_to = if let Some(Goal::Copy(leg)) = goal { Some(*leg) } else { None };
        for leg in failed.iter().filter(|leg| Some(**leg) != copied_to) {
            // Without memory the next read does the repair.
            if let Some(mut copy) = base.options.memory.take(Bytes(buffer.len() as u64)) {
                copy.copy_from_slice(&buffer);
                let command = base.devices.write_leg(*leg, at, Purpose::ReadRepair, copy.freeze());
                base.copy_to(Copy { leg: *leg, segment, part: None }, command);
            }
        }
        match copied_to.filter(|leg| failed.contains(leg)) {
            Some(leg) => {
                base.figures.resilvered += Bytes(buffer.len() as u64);
                let command = base.devices.write_leg(leg, at, Purpose::Resilver, buffer.freeze());
                base.copy_to(Copy { leg, segment, part: Some(Box::new(read)) }, command);
            }
            None => self.part_ended(base, &read, Ok(()), Some(buffer)),
        }
    }

    /// Delivers the data of a part.
    pub(crate) fn part_ended(
        &mut self,
        base: &mut Base,
        read: &PartRead,
        result: Result<(), Errno>,
        buffer: Option<BufferMut>,
    ) {
        base.io.step();
        // Skip the bytes of log blocks before the part.
        let mut skip = 0;
        if let Source::Log(address) = read.part.source {
            let (segment, _, before) = base.log.geometry.locate(address);
            base.log.unpin(segment);
            skip = before as usize;
        }
        let offset = read.part.offset as usize;
        let bytes = base.log.geometry.bytes(read.part.range) as usize;
        let Some(gather) = self.by_id.get_mut(&read.gather) else { return };
        gather.in_flight -= 1;
        if let Err(errno) = result {
            gather.error = Some(errno);
        }
        match buffer {
            Some(buffer) if read.is_direct => gather.target = Some(buffer),
            Some(buffer) => {
                if let Some(target) = gather.target.as_mut().filter(|_| result.is_ok()) {
                    target[offset..offset + bytes].copy_from_slice(&buffer[skip..skip + bytes]);
                }
            }
            None => {}
        }
    }
}

/// Returns true if these bytes match the checksums of the log from `address` on.
fn is_as_written(base: &Base, address: u64, bytes: &[u8]) -> bool {
    let (segment, block, _) = base.log.geometry.locate(address);
    let mut blocks = bytes.chunks_exact(LOG_BLOCK as usize);
    let range = block as usize..block as usize + blocks.len();
    let checksums = base.log.segments.get(&segment).and_then(|segment| segment.checksums.get(range));
    let is_right = |checksum: &u32| blocks.next().is_some_and(|block| has_checksum(block, *checksum));
    checksums.is_some_and(|checksums| checksums.iter().all(is_right))
}
