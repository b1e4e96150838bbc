//! Recovery: builds an index of all records from the superblocks of the legs, and makes the legs equal.
//!
//! ```text
//!   superblocks ──► heads: the first record of every segment ──► walk: every record from the tail to the first gap
//!                                                                   ──► equalise: each leg gets what only another one has ──► flush
//! ```
//!
//! Nothing is written before the walk is over: a refused log is not changed. Nothing is replayed to the
//! backing device: the cache serves at once, and destages later.

mod choose;
mod findings;
mod walk;

pub use findings::{Findings, LegFindings};

use std::collections::VecDeque;

use plumb_block::{BufferMut, Bytes, Outcome, Payload};

use crate::action::{ActionId, Command, Member, Purpose, Wait};
use crate::devices::{Devices, LegBlocks};
use crate::format::superblock::{LegState, SlotContent, Superblock};
use crate::index::Index;
use crate::io::{Io, errno_of};
use crate::log::Log;
use crate::settings::{BUFFERS_MIN, LOG_BLOCK, Layout, Options};
use choose::{LegFound, choose};
use walk::{Copy, Read, Walk};

/// Maximum number of concurrent reads of heads.
const HEADS_MAX: usize = 8;
/// Maximum number of concurrent reads of single blocks, which need buffers in addition to those of the
/// chunks.
const SINGLE_MAX: usize = 2;
/// Maximum number of chunks read ahead while another is checked; fewer with many legs.
const AHEAD: usize = 4;

/// Result of recovery.
#[derive(Debug)]
pub(crate) struct RecoveryResult {
    pub(crate) options: Options,
    pub(crate) devices: Devices,
    pub(crate) io: Io<Step>,
    /// Superblock to write for the new session.
    pub(crate) superblock: Superblock,
    /// Session that is durable in the log.
    pub(crate) session: u64,
    /// Reason why the log is sealed; `None` if it is not.
    pub(crate) sealed: Option<String>,
    /// Slot of each leg for the next version of the superblock.
    pub(crate) slots: Vec<usize>,
    pub(crate) index: Index,
    pub(crate) log: Log,
    pub(crate) findings: Findings,
}

/// Purpose of an action of recovery.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// Read of a superblock slot.
    Slot {
        leg: usize,
    },
    Head {
        segment: u64,
    },
    Chunk {
        number: u64,
        leg: usize,
    },
    /// Read of one block of the first chunk, which could not be read as a whole.
    Block {
        leg: usize,
        index: u32,
    },
    EqualiseRead(Copy),
    /// Write of a copy, or a flush.
    Equalised {
        leg: usize,
    },
}

/// A cache during recovery.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) options: Options,
    pub(crate) devices: Devices,
    pub(crate) io: Io<Step>,
    found: Vec<Option<LegFound>>,
    /// Reading state, after the superblock was chosen.
    log: Option<Box<Reading>>,
    /// Number of incomplete actions.
    in_flight: usize,
    /// Result of recovery once it is over; `refusal` is the reason if the cache is not served.
    pub(crate) recovered: Option<RecoveryResult>,
    pub(crate) refusal: Option<String>,
}

/// A log being read, and then made equal on all legs.
#[derive(Debug)]
struct Reading {
    walk: Walk,
    /// Heads to read: leg and segment.
    heads: VecDeque<(usize, u64)>,
    /// Blocks that the walk needs next; `None` once it is over.
    wanted: Option<Read>,
    /// Blocks to read next.
    next: Option<Read>,
    /// Chunks in the order of the reads. Those that the walk turns out not to need are dropped.
    chunks: VecDeque<Chunk>,
    number: u64,
    /// True if the legs are equal and being flushed.
    is_flushing: bool,
    /// States of the legs before any of them failed a write of recovery.
    legs: Vec<LegState>,
    /// Reason why the legs cannot be made equal; `None` if they can.
    sealed: Option<String>,
}

/// Blocks being read from every leg that has them.
#[derive(Debug)]
struct Chunk {
    number: u64,
    read: Read,
    /// Bytes of each readable leg.
    legs: Vec<(usize, BufferMut)>,
    /// Blocks to read one by one: leg and index in the chunk.
    single: VecDeque<(usize, u32)>,
    in_flight: usize,
}

impl Reading {
    /// Sets the position where the walk continues; `None` ends it.
    fn want(&mut self, wanted: Option<Read>) {
        self.wanted = wanted;
        if !self.chunks.iter().any(|chunk| Some(chunk.read) == wanted) {
            self.next = wanted;
        }
    }
}

impl Recovery {
    /// Starts recovery by reading the superblocks of every leg.
    pub(crate) fn begin(options: Options, devices: Devices) -> Self {
        let legs = 0..devices.leg_count();
        let found = legs.map(|leg| devices.leg(leg).map(|_| LegFound::default())).collect();
        let io = Io::default();
        let (log, in_flight, recovered, refusal) = (None, 0, None, None);
        let mut this = Self { options, devices, io, found, log, in_flight, recovered, refusal };
        for leg in 0..this.found.len() {
            this.read_slot(leg);
        }
        if this.in_flight == 0 {
            this.choose();
        }
        this
    }

    /// Reads log blocks of a leg. Refuses the log if there is no memory, since nothing else uses the memory
    /// now.
    fn read(&mut self, from: LegBlocks, purpose: Purpose, step: Step) {
        match self.options.memory.take(Bytes(from.blocks * LOG_BLOCK)) {
            Some(buffer) => self.issue(self.devices.read_leg(from, purpose, buffer), step),
            None => self.refuse("there is not enough memory to read the log".to_owned()),
        }
    }

    fn issue(&mut self, command: Command, step: Step) {
        self.in_flight += 1;
        self.io.issue(command, step);
    }

    fn refuse(&mut self, because: String) {
        self.refusal.get_or_insert(because);
        self.log = None;
    }

    /// Processes the completion of an action.
    pub(crate) fn completed(&mut self, id: ActionId, outcome: Outcome, payload: Payload) {
        let Some(step) = self.io.complete(id) else { return };
        self.in_flight -= 1;
        if self.refusal.is_some() {
            return;
        }
        let buffer = match payload {
            Payload::Into(buffer) if outcome.is_done() => Some(buffer),
            _ => None,
        };
        match step {
            Step::Slot { leg } => self.slot_read(leg, buffer.as_deref()),
            Step::Head { segment } => self.head_read(segment, buffer.as_deref()),
            Step::Chunk { number, leg } => self.chunk_read(number, leg, buffer),
            Step::Block { leg, index } => self.block_read(leg, index, buffer.as_deref()),
            Step::EqualiseRead(copy) => self.equalise_write(copy, buffer),
            Step::Equalised { leg } => self.equalised(leg, outcome),
        }
    }

    /// Reads the next superblock of a leg. Each is read separately, because a power cut may leave one of them
    /// unreadable.
    fn read_slot(&mut self, leg: usize) {
        let (Some(found), Some(info)) = (&self.found[leg], self.devices.leg(leg)) else { return };
        let place = Superblock::places(info).get(found.slots_read).copied();
        if let Some(place) = place.filter(|_| info.size.0 >= 16 * LOG_BLOCK) {
            let from = LegBlocks { leg, at: place, blocks: 1 };
            self.read(from, Purpose::ReadSuperblock, Step::Slot { leg });
        }
    }

    /// Records the contents of a slot, and reads the next.
    fn slot_read(&mut self, leg: usize, block: Option<&[u8]>) {
        let Some(found) = &mut self.found[leg] else { return };
        let newest = found.newest.as_ref();
        let decoded = block.map_or(SlotContent::Nothing, Superblock::decode);
        found.has_front |= found.slots_read < 2 && decoded != SlotContent::Nothing;
        match decoded {
            // The end may hold superblocks of another cache, which used the device before.
            SlotContent::Valid(superblock)
                if found.slots_read >= 2 && newest.is_some_and(|newest| newest.cache != superblock.cache) => {
            }
            SlotContent::Valid(superblock)
                if newest.is_none_or(|newest| newest.rank() < superblock.rank()) =>
            {
                (found.newest, found.next_slot) = (Some(*superblock), 1 - found.slots_read % 2);
            }
            SlotContent::Newer(version) => found.newer = Some(version),
            SlotContent::Valid(_) | SlotContent::Nothing => {}
        }
        found.slots_read += 1;
        self.read_slot(leg);
        if self.in_flight == 0 {
            self.choose();
        }
    }

    /// Chooses the superblock that counts, and starts to read the heads.
    fn choose(&mut self) {
        let chosen = match choose(&self.found, &self.devices, &self.options) {
            Ok(chosen) => chosen,
            Err(because) => return self.refuse(because),
        };
        let (geometry, tail) = (chosen.geometry, chosen.tail.segment);
        // At most one segment at each position of the ring is live.
        let segments = tail..tail + geometry.count();
        let on_legs = |segment| chosen.live().map(move |leg| (leg, segment));
        let heads = segments.flat_map(on_legs).filter(|(leg, segment)| geometry.is_on(*leg, *segment));
        let heads = heads.collect();
        let (legs, is_sealed) =
            (chosen.legs.clone(), self.options.identity.is_some_and(|identity| identity.marked.is_sealed));
        let walk = Walk::new(chosen, &self.options, self.devices.leg_transfer_max(), self.io.now());
        let log = Reading {
            walk,
            heads,
            wanted: None,
            next: None,
            chunks: VecDeque::new(),
            number: 0,
            is_flushing: false,
            legs,
            sealed: is_sealed
                .then(|| "its mark says that the log failed writes, or was being replaced".to_owned()),
        };
        self.log = Some(Box::new(log));
        self.read_heads();
    }

    fn read_heads(&mut self) {
        while self.in_flight < HEADS_MAX {
            let Some(log) = &mut self.log else { return };
            let Some((leg, segment)) = log.heads.pop_front() else { break };
            let at = log.walk.superblock.geometry.leg_block(segment, 0);
            self.read(LegBlocks { leg, at, blocks: 1 }, Purpose::ReadHead, Step::Head { segment });
        }
        if self.in_flight == 0
            && let Some(log) = &mut self.log
        {
            let first = log.walk.begin();
            log.want(first);
            self.advance_walk();
        }
    }

    fn head_read(&mut self, segment: u64, block: Option<&[u8]>) {
        let Some(log) = &mut self.log else { return };
        block.into_iter().for_each(|block| log.walk.head(segment, block));
        self.read_heads();
    }

    /// Reads the next chunk if another may be read: the same blocks from every leg that has them. Returns
    /// true if it did.
    fn read_chunk(&mut self) -> bool {
        let Some(log) = &mut self.log else { return false };
        let Superblock { legs, geometry, .. } = &log.walk.superblock;
        let ahead = ((BUFFERS_MIN as usize - 2 * SINGLE_MAX) / legs.len()).clamp(1, AHEAD);
        let Some(read) = log.next.filter(|_| log.chunks.len() < ahead) else { return false };
        let (at, blocks) = (geometry.leg_block(read.segment, read.block), u64::from(read.blocks));
        let live = log.walk.superblock.live();
        let legs: Vec<_> = live.filter(|leg| geometry.is_on(*leg, read.segment)).collect();
        let (number, in_flight) = (log.number, legs.len());
        log.chunks.push_back(Chunk { number, read, legs: Vec::new(), single: VecDeque::new(), in_flight });
        log.number += 1;
        log.next = log.walk.after(read);
        for leg in legs {
            let from = LegBlocks { leg, at, blocks };
            self.read(from, Purpose::ReadSegment, Step::Chunk { number, leg });
        }
        true
    }

    /// Processes the read of a chunk. A power cut may leave a block unreadable, which must not lose its
    /// neighbours.
    fn chunk_read(&mut self, number: u64, leg: usize, buffer: Option<BufferMut>) {
        let Some(log) = &mut self.log else { return };
        let Some(chunk) = log.chunks.iter_mut().find(|chunk| chunk.number == number) else { return };
        let blocks = chunk.read.blocks;
        let buffer = buffer.or_else(|| {
            let mut buffer = self.options.memory.take(Bytes(u64::from(blocks) * LOG_BLOCK))?;
            // Not zeroes, which may be valid contents.
            buffer.fill(0xa5);
            chunk.single.extend((0..blocks).map(|index| (leg, index)));
            Some(buffer)
        });
        let Some(buffer) = buffer else {
            return self.refuse("there is not enough memory to read the log".to_owned());
        };
        chunk.legs.push((leg, buffer));
        chunk.in_flight -= 1;
        self.advance_walk();
    }

    fn block_read(&mut self, leg: usize, index: u32, bytes: Option<&[u8]>) {
        let Some(chunk) = self.log.as_mut().and_then(|log| log.chunks.front_mut()) else { return };
        chunk.in_flight -= 1;
        let found = chunk.legs.iter_mut().find(|(of, _)| *of == leg);
        if let (Some((_, buffer)), Some(bytes)) = (found, bytes) {
            let at = index as usize * LOG_BLOCK as usize;
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
        }
        self.advance_walk();
    }

    /// Walks the chunks that were read, and reads ahead.
    fn advance_walk(&mut self) {
        loop {
            while self.read_chunk() {}
            let Some(log) = &mut self.log else { return };
            let Some(chunk) = log.chunks.front_mut() else { return self.end_walk() };
            let is_wanted = log.wanted == Some(chunk.read);
            if is_wanted
                && chunk.in_flight < SINGLE_MAX
                && let Some((leg, index)) = chunk.single.pop_front()
            {
                chunk.in_flight += 1;
                let geometry = log.walk.superblock.geometry;
                let at = geometry.leg_block(chunk.read.segment, chunk.read.block + index);
                let from = LegBlocks { leg, at, blocks: 1 };
                self.read(from, Purpose::ReadSegment, Step::Block { leg, index });
                continue;
            }
            if chunk.in_flight > 0 {
                return;
            }
            let Some(mut chunk) = log.chunks.pop_front() else { return };
            if !is_wanted {
                continue;
            }
            chunk.legs.sort_by_key(|(leg, _)| *leg);
            let bytes: Vec<_> = chunk.legs.iter().map(|(leg, buffer)| (*leg, &buffer[..])).collect();
            match log.walk.walk(chunk.read, &bytes) {
                Ok(wanted) => log.want(wanted),
                Err(because) => return self.refuse(because),
            }
        }
    }

    /// Checks after the walk that the log extends as far as the mark on the backing device states. An old
    /// copy may be shorter.
    fn end_walk(&mut self) {
        let (Some(log), Some(identity)) = (&self.log, &self.options.identity) else {
            return self.equalise();
        };
        let (marked, complete) = (identity.marked, log.walk.log.complete);
        let is_same = log.walk.superblock.session == marked.session || marked.is_sealed;
        if !log.is_flushing && is_same && complete < marked.durable && !self.options.gives_up_lost {
            return self.refuse(format!(
                "the log ends with record {complete}, but was durable up to record {} when the backing \
                 device was last marked: it is an old copy, or has lost flushed data; bring back the log \
                 that was served last",
                marked.durable
            ));
        }
        self.equalise();
    }

    /// Equalises the legs, order (f): every leg gets what only another one has, and is flushed, before
    /// anything is served or reported as durable. Copies run one after another; then all legs are flushed.
    fn equalise(&mut self) {
        let waits = self.options.waits.hold(Wait::LegsEqual) && !self.options.dry_run;
        let Some(log) = &mut self.log else { return };
        if log.is_flushing || log.sealed.is_some() || !waits {
            return self.finish();
        }
        let Walk { superblock, copies, .. } = &mut log.walk;
        copies.retain(|copy| superblock.legs[copy.to] == LegState::Live);
        if let Some(copy) = copies.pop() {
            let at = superblock.geometry.leg_block(copy.segment, copy.block);
            let from = LegBlocks { leg: copy.from, at, blocks: u64::from(copy.blocks) };
            return self.read(from, Purpose::Equalise, Step::EqualiseRead(copy));
        }
        log.is_flushing = true;
        for leg in superblock.live() {
            self.in_flight += 1;
            let command = Command::flush(Member::Leg(leg), Purpose::EqualiseFlush);
            self.io.issue(command, Step::Equalised { leg });
        }
    }

    fn equalise_write(&mut self, copy: Copy, buffer: Option<BufferMut>) {
        let Some(log) = &self.log else { return };
        let Some(buffer) = buffer else {
            // The leg was readable a moment ago and now fails: recovery starts over as if it were missing.
            // The index may contain data that the other legs lack.
            self.found[copy.from] = None;
            self.devices.set_leg(copy.from, None);
            return self.choose();
        };
        let at = log.walk.superblock.geometry.leg_block(copy.segment, copy.block);
        let command = self.devices.write_leg(copy.to, at, Purpose::Equalise, buffer.freeze());
        self.issue(command, Step::Equalised { leg: copy.to });
    }

    /// Processes the write or flush of a leg; after a failure continues without it. The epoch that excludes
    /// it becomes durable with the session, before anything is served.
    fn equalised(&mut self, leg: usize, outcome: Outcome) {
        let Some(log) = &mut self.log else { return };
        let chosen = &mut log.walk.superblock;
        if !outcome.is_done() && chosen.legs[leg] != LegState::Lost {
            let errno = errno_of(outcome);
            let is_last = chosen.live().count() == 1 || chosen.geometry.layout == Layout::Stripe;
            let because = format!(
                "device {leg} of the log could not be written or flushed ({errno}), and no other device has \
                 its data"
            );
            match self.options.identity {
                _ if !is_last => chosen.lose(leg),
                // All data that any leg has is readable, so it suffices that the mark states where the log
                // ends.
                Some(_) => {
                    chosen.legs.clone_from(&log.legs);
                    log.sealed.get_or_insert(because);
                }
                None => return self.refuse(format!("{because}: fix that, then try again")),
            }
        }
        if self.in_flight == 0 {
            self.equalise();
        }
    }

    fn finish(&mut self) {
        let Some(log) = self.log.take() else { return };
        let sealed = log.sealed;
        let Walk { mut superblock, mut log, index, session, mut findings, .. } = log.walk;
        log.durable = log.complete;
        // A session begins with a segment of its own.
        log.close();
        // The mode of earlier destaging is unknown.
        log.ordered_at = if log.ordered_from == 0 { log.next_segment } else { u64::MAX };
        let durable_session = superblock.session;
        superblock.session = superblock.session.max(session) + 1;
        superblock.first = log.next_sequence;
        for leg in superblock.live() {
            findings.legs[leg].front_lost = self.found[leg].as_ref().is_some_and(|found| !found.has_front);
        }
        let slots =
            self.found.iter().map(|found| found.as_ref().map_or(0, |found| found.next_slot)).collect();
        let (options, devices) = (self.options.clone(), self.devices.clone());
        let io = std::mem::take(&mut self.io);
        self.recovered = Some(RecoveryResult {
            options,
            devices,
            io,
            superblock,
            session: durable_session,
            sealed,
            slots,
            index,
            log,
            findings,
        });
    }
}
