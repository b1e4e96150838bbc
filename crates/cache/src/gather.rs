//! Bringing a run of blocks together in one buffer, from the log, the backing device and zeroes: for a
//! client's read, for what is destaged, and for a leg that replaces another.
//!
//! Every log block that is read is checked. One that is not what was written is read from another leg, which
//! then repairs the first; without another leg the whole read fails. It is never answered with what the
//! backing device has in its place.

use std::collections::VecDeque;

use plumb_block::{BufferMut, Bytes, Errno, ExtentMap, LbaRange, Op, Outcome, Payload};

use crate::action::{Command, Member, Purpose};
use crate::core::{Copy, Core, Then};
use crate::destage::Run;
use crate::devices::LegBlocks;
use crate::format::block::has_checksum;
use crate::format::superblock::LegState;
use crate::io::{ClientRequest, errno_of};
use crate::settings::LOG_BLOCK;

/// How many buffers reads leave to records and superblocks.
const BUFFERS_LEFT: usize = 6;
/// How many parts of one gather are read at the same time.
const PARTS_MAX: u32 = 16;

/// The runs of `range` that have nothing of `unreadable`, which is within it.
pub(crate) fn readable(range: LbaRange, unreadable: &[LbaRange]) -> Vec<LbaRange> {
    let mut map = ExtentMap::default();
    map.insert(range, ());
    unreadable.iter().for_each(|range| map.remove(*range));
    map.iter().map(|(range, ())| range).collect()
}

/// Bytes that are being brought together from several parts.
#[derive(Debug)]
pub(crate) struct Gather {
    goal: Goal,
    /// Where it goes; nowhere if nobody wants the bytes, or while the device has the buffer.
    target: Option<BufferMut>,
    parts: VecDeque<Part>,
    in_flight: u32,
    error: Option<Errno>,
    /// Blocks of the parts that no leg has whole.
    unreadable: Vec<LbaRange>,
}

/// Receiver of the bytes.
#[derive(Debug)]
pub(crate) enum Goal {
    Client(ClientRequest),
    Destage(Run),
    /// This leg, which replaces another. The bytes go nowhere else.
    Copy(usize),
}

/// A part that one transfer brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) range: LbaRange,
    /// Where it goes in the target, in bytes.
    pub(crate) offset: u64,
    pub(crate) source: Source,
}

/// Where a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the log, at this address.
    Log(u64),
    Backing,
    Zeroes,
    /// The part was in the log, and can be read on no leg.
    Nowhere,
}

/// A part that is being read.
#[derive(Debug)]
pub(crate) struct PartRead {
    gather: u64,
    part: Part,
    /// True if it is read into the target itself.
    is_direct: bool,
    /// Leg that a part in the log is read from; `failed` has those that did not have it whole.
    leg: usize,
    failed: Vec<usize>,
}

impl Gather {
    pub(crate) fn new(goal: Goal, target: Option<BufferMut>, parts: VecDeque<Part>) -> Self {
        Self { goal, target, parts, in_flight: 0, error: None, unreadable: Vec::new() }
    }
}

impl Core {
    /// Begins to bring something together: what has to be read is left of its parts. The segments that it
    /// reads stay as they are until it has.
    pub(crate) fn gather(&mut self, mut gather: Gather) {
        let Gather { parts, target, unreadable, .. } = &mut gather;
        parts.retain(|part| match part.source {
            Source::Log(address) => {
                self.log.pin(self.log.geometry.locate(address).0);
                true
            }
            Source::Backing => true,
            Source::Zeroes => {
                let (from, bytes) = (part.offset as usize, self.log.geometry.bytes(part.range) as usize);
                target.iter_mut().for_each(|target| target[from..from + bytes].fill(0));
                false
            }
            Source::Nowhere => {
                unreadable.push(part.range);
                false
            }
        });
        self.gathers.insert(self.gathers_next, gather);
        self.gathers_next += 1;
        self.io.step();
    }

    /// Reads what can be read now.
    pub(crate) fn go_on_with_gathers(&mut self) {
        let ids: Vec<_> = self.gathers.keys().copied().collect();
        for id in ids {
            while self.read_part(id) {}
            let is_over = |gather: &Gather| gather.parts.is_empty() && gather.in_flight == 0;
            if self.gathers.get(&id).is_some_and(is_over)
                && let Some(gather) = self.gathers.remove(&id)
            {
                self.gathered(gather);
            }
        }
    }

    /// Begins to read the next part of a gather; whether there may be another.
    fn read_part(&mut self, id: u64) -> bool {
        let memory = self.options.memory.clone();
        let geometry = self.log.geometry;
        let Some(gather) = self.gathers.get_mut(&id) else { return false };
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
        // A leg that is copied to has nothing of it.
        let failed = if let Goal::Copy(leg) = gather.goal { vec![leg] } else { Vec::new() };
        self.send_part(PartRead { gather: id, part, is_direct, leg: 0, failed }, buffer);
        true
    }

    /// Reads a part, from a leg that has not failed to give it.
    fn send_part(&mut self, mut read: PartRead, buffer: BufferMut) {
        let Source::Log(address) = read.part.source else {
            self.pace.foreground(self.io.now());
            self.figures.backing_reads += 1;
            self.figures.backing_read += Bytes(buffer.len() as u64);
            let (member, purpose) = (Member::Backing, Purpose::BackingRead);
            let (op, range, payload) = (Op::Read, read.part.range, Payload::Into(buffer));
            let command = Command { member, purpose, op, range, payload };
            self.io.issue(command, Then::Part(Box::new(read)));
            return;
        };
        let blocks = buffer.len() as u64 / LOG_BLOCK;
        let (segment, block, _) = self.log.geometry.locate(address);
        match self.source(segment, &read.failed, read.gather) {
            Some(leg) => {
                read.leg = leg;
                let purpose = match self.gathers.get(&read.gather).map(|gather| &gather.goal) {
                    Some(Goal::Destage(_)) => Purpose::DestageRead,
                    Some(Goal::Copy(_)) => Purpose::ResilverRead,
                    _ => Purpose::LogRead,
                };
                let from = LegBlocks { leg, at: self.log.geometry.leg_block(segment, block), blocks };
                self.io.issue(self.devices.read_leg(from, purpose, buffer), Then::Part(Box::new(read)));
            }
            None => {
                self.block_by_block(&read, address, blocks);
                self.part_ended(&read, Ok(()), Some(buffer));
            }
        }
    }

    /// No leg has all of a part whole: its blocks are read one by one, and a single one is unreadable.
    fn block_by_block(&mut self, read: &PartRead, address: u64, blocks: u64) {
        let Some(gather) = self.gathers.get_mut(&read.gather) else { return };
        if blocks == 1 {
            return gather.unreadable.push(read.part.range);
        }
        let (range, geometry) = (read.part.range, self.log.geometry);
        let mut done = 0;
        while done < range.nlb {
            let at = address + done;
            let nlb = (geometry.per_block() - at % geometry.per_block()).min(range.nlb - done);
            let offset = read.part.offset + done * geometry.logical_block;
            let range = LbaRange::new(range.lba + done, nlb);
            gather.parts.push_back(Part { range, offset, source: Source::Log(at) });
            self.log.pin(geometry.locate(at).0);
            done += nlb;
        }
    }

    /// A part was read, or not.
    pub(crate) fn part_completed(&mut self, mut read: PartRead, outcome: Outcome, payload: Payload) {
        let buffer = match payload {
            Payload::Into(buffer) => Some(buffer),
            Payload::None | Payload::Bytes(_) | Payload::Pattern(_) => None,
        };
        let Source::Log(address) = read.part.source else {
            let result = if outcome.is_done() { Ok(()) } else { Err(errno_of(outcome)) };
            self.part_ended(&read, result, buffer);
            return;
        };
        // Without an answer the queue keeps the memory: what it was read into is gone.
        let Some(buffer) = buffer else {
            self.part_ended(&read, Err(errno_of(outcome)), None);
            return;
        };
        if outcome.is_done() && self.is_as_written(address, &buffer) {
            self.part_is_whole(read, address, buffer);
            return;
        }
        self.figures.checksum_errors += u64::from(outcome.is_done());
        self.figures.leg_read_errors += u64::from(!outcome.is_done());
        read.failed.push(read.leg);
        self.send_part(read, buffer);
    }

    /// Returns true if these are the blocks that the log has from `address` on.
    fn is_as_written(&self, address: u64, bytes: &[u8]) -> bool {
        let (segment, block, _) = self.log.geometry.locate(address);
        let mut blocks = bytes.chunks_exact(LOG_BLOCK as usize);
        let range = block as usize..block as usize + blocks.len();
        let checksums = self.log.segments.get(&segment).and_then(|segment| segment.checksums.get(range));
        let is_right = |checksum: &u32| blocks.next().is_some_and(|block| has_checksum(block, *checksum));
        checksums.is_some_and(|checksums| checksums.iter().all(is_right))
    }

    /// Blocks of the log were read whole: legs that have not got them are given them.
    fn part_is_whole(&mut self, mut read: PartRead, address: u64, buffer: BufferMut) {
        let (segment, block, _) = self.log.geometry.locate(address);
        let mut failed = std::mem::take(&mut read.failed);
        let at = self.log.geometry.leg_block(segment, block);
        failed.retain(|leg| self.superblock.legs[*leg] != LegState::Lost);
        let goal = self.gathers.get(&read.gather).map(|gather| &gather.goal);
        let copied_to = if let Some(Goal::Copy(leg)) = goal { Some(*leg) } else { None };
        for leg in failed.iter().filter(|leg| Some(**leg) != copied_to) {
            // Without memory now, the next read repairs.
            if let Some(mut copy) = self.options.memory.take(Bytes(buffer.len() as u64)) {
                copy.copy_from_slice(&buffer);
                let command = self.devices.write_leg(*leg, at, Purpose::ReadRepair, copy.freeze());
                self.copy_to(Copy { leg: *leg, segment, part: None }, command);
            }
        }
        match copied_to.filter(|leg| failed.contains(leg)) {
            Some(leg) => {
                self.figures.resilvered += Bytes(buffer.len() as u64);
                let command = self.devices.write_leg(leg, at, Purpose::Resilver, buffer.freeze());
                self.copy_to(Copy { leg, segment, part: Some(Box::new(read)) }, command);
            }
            None => self.part_ended(&read, Ok(()), Some(buffer)),
        }
    }

    /// Puts what was read where it goes.
    pub(crate) fn part_ended(
        &mut self,
        read: &PartRead,
        result: Result<(), Errno>,
        buffer: Option<BufferMut>,
    ) {
        self.io.step();
        // In blocks of the log, the bytes before the part are not wanted.
        let mut skip = 0;
        if let Source::Log(address) = read.part.source {
            let (segment, _, before) = self.log.geometry.locate(address);
            self.log.unpin(segment);
            skip = before as usize;
        }
        let offset = read.part.offset as usize;
        let bytes = self.log.geometry.bytes(read.part.range) as usize;
        let Some(gather) = self.gathers.get_mut(&read.gather) else { return };
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

    /// All parts are there, or one is not to be had.
    fn gathered(&mut self, gather: Gather) {
        let Gather { goal, target, error, unreadable, .. } = gather;
        match goal {
            Goal::Client(asked) => {
                let payload = target.map_or(Payload::None, Payload::Into);
                let error = error.or((!unreadable.is_empty()).then_some(Errno::EIO));
                self.io.answer(&asked, error.map_or(Outcome::Done, Outcome::Failed), payload);
            }
            Goal::Destage(run) => {
                let bytes = target.filter(|_| error.is_none()).map(BufferMut::freeze);
                self.write_run(&run, bytes, &unreadable);
            }
            Goal::Copy(leg) => self.copied(leg, error),
        }
    }

    /// Returns true if reads leave enough buffers for one more run to be destaged.
    pub(crate) fn has_memory_for_run(&self) -> bool {
        self.options.memory.available() > BUFFERS_LEFT + 2
    }
}
