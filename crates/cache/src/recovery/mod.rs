//! Recovery: from the superblocks of the legs to an index that has every record which has to be there, and legs that are equal.
//!
//! ```text
//!   superblocks ──► heads: the first record of every segment ──► walk: every record from the tail to the first gap
//!                                                                   ──► equalise: each leg gets what only another one has ──► flush
//! ```
//!
//! Nothing is written before the walk is over: a log that is refused stays as it is. Nothing is replayed into the backing device: the cache
//! serves at once, and destages later.

mod choose;
mod findings;
mod walk;

pub use findings::{Findings, LegFindings};

use std::collections::{BTreeMap, VecDeque};

use plumb_block::{BufferMut, Bytes, Op, Outcome, Payload};

use crate::action::{Member, Purpose, Wait};
use crate::core::Then;
use crate::format::record::Header;
use crate::format::superblock::{Found, LegState, Superblock};
use crate::index::Index;
use crate::io::{Io, errno_of};
use crate::log::Log;
use crate::settings::{BUFFERS_MIN, LOG_BLOCK, Layout, Mode};
use choose::{LegFound, choose};
use walk::{Copy, Read, Walk};

/// How many heads are read at the same time.
const HEADS_MAX: usize = 8;
/// How many single blocks are read at the same time; the buffers of the chunks are taken too.
const SINGLE_MAX: usize = 2;
/// How many chunks are read at the same time, while another one is checked; fewer of many legs.
const AHEAD: usize = 4;

/// What recovery found.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// As it is to be written for the new session.
    pub(crate) superblock: Superblock,
    /// Of each leg, the slot that the next version of the superblock goes to.
    pub(crate) slots: Vec<usize>,
    pub(crate) index: Index,
    pub(crate) log: Log,
    pub(crate) findings: Findings,
}

/// What an action of recovery was for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// A slot for a superblock.
    Slot {
        leg: usize,
    },
    Head {
        position: u64,
    },
    Chunk {
        number: u64,
        leg: usize,
    },
    /// One block of the first chunk, which could not be read whole.
    Block {
        leg: usize,
        index: u32,
    },
    EqualiseRead(Copy),
    /// Its write, or a flush.
    Equalised {
        leg: usize,
    },
}

/// A cache that is being recovered.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) io: Io,
    found: Vec<Option<LegFound>>,
    stage: Stage,
    /// How many actions are not completed.
    in_flight: usize,
    result: Option<Result<Recovered, String>>,
}

#[derive(Debug)]
enum Stage {
    Superblocks,
    Heads { chosen: Superblock, left: VecDeque<(usize, u64)>, heads: BTreeMap<u64, (u64, u64)>, durable: u64 },
    Walk(Box<Walking>),
    Equalise { chosen: Superblock, walk: Box<Walk>, is_flushing: bool },
    Over,
}

/// The walk, and what is being read for it.
#[derive(Debug)]
struct Walking {
    chosen: Superblock,
    walk: Walk,
    /// What the walk takes next; nothing once it is over.
    wanted: Option<Read>,
    /// What is read next.
    next: Option<Read>,
    /// In the order in which they were asked for. Those that the walk does not want after all are let go of.
    chunks: VecDeque<Chunk>,
    number: u64,
}

/// Blocks that are being read from every leg that has them.
#[derive(Debug)]
struct Chunk {
    number: u64,
    read: Read,
    /// Of each leg, as far as it can be read.
    legs: Vec<(usize, BufferMut)>,
    /// Blocks to be read one by one: the leg, and which of the chunk.
    single: VecDeque<(usize, u32)>,
    in_flight: usize,
}

impl Walking {
    /// The walk goes on there, or is over.
    fn want(&mut self, wanted: Option<Read>) {
        self.wanted = wanted;
        if !self.chunks.iter().any(|chunk| Some(chunk.read) == wanted) {
            self.next = wanted;
        }
    }
}

impl Recovery {
    /// Begins: the superblocks of every leg are read.
    pub(crate) fn begin(io: Io) -> Self {
        let found = io.legs.iter().map(|leg| leg.as_ref().map(|_| LegFound::default())).collect();
        let mut this = Self { io, found, stage: Stage::Superblocks, in_flight: 0, result: None };
        for leg in 0..this.found.len() {
            this.read_slot(leg);
        }
        if this.in_flight == 0 {
            this.choose();
        }
        this
    }

    /// What came of it, once it is over.
    pub(crate) fn take_result(&mut self) -> Option<Result<Recovered, String>> {
        self.result.take()
    }

    /// Reads `blocks` log blocks of a leg. Without memory, which nobody else uses now, it has failed.
    fn read(&mut self, from: (usize, Purpose), (at, blocks): (u64, u64), step: Step) {
        match self.io.options.memory.take(Bytes(blocks * LOG_BLOCK)) {
            Some(buffer) => {
                self.in_flight += 1;
                let payload = Payload::Into(buffer);
                self.io.act_on_leg(from, Op::Read, (at, blocks), payload, Then::Recovery(step));
            }
            None => self.refuse("there is no memory to read the log with".to_owned()),
        }
    }

    fn refuse(&mut self, because: String) {
        if self.result.is_none() {
            self.result = Some(Err(because));
        }
        self.stage = Stage::Over;
    }

    /// Takes the end of an action.
    pub(crate) fn completed(&mut self, step: Step, outcome: Outcome, payload: Payload) {
        self.in_flight -= 1;
        let buffer = match payload {
            Payload::Into(buffer) if outcome.is_done() => Some(buffer),
            _ => None,
        };
        match step {
            Step::Slot { leg } => self.slot_read(leg, buffer.as_deref()),
            Step::Head { position } => self.head_read(position, buffer.as_deref()),
            Step::Chunk { number, leg } => self.chunk_read((number, leg), buffer),
            Step::Block { leg, index } => self.block_read(leg, index, buffer.as_deref()),
            Step::EqualiseRead(copy) => self.equalise_write(copy, buffer),
            Step::Equalised { leg } => self.equalised(leg, outcome),
        }
    }

    /// Reads the next superblock of a leg. Each by itself, since a power cut may leave one of them unreadable.
    fn read_slot(&mut self, leg: usize) {
        let (Some(found), Some(info)) = (&self.found[leg], &self.io.legs[leg]) else { return };
        let place = Superblock::places(info).get(found.slots_read).copied();
        if let Some(place) = place.filter(|_| info.size.0 >= 16 * LOG_BLOCK) {
            self.read((leg, Purpose::ReadSuperblock), (place, 1), Step::Slot { leg });
        }
    }

    /// Notes what is in a slot, and reads the next.
    fn slot_read(&mut self, leg: usize, block: Option<&[u8]>) {
        let Some(found) = &mut self.found[leg] else { return };
        match block.map_or(Found::Nothing, Superblock::decode) {
            // At the end may be what is left of another cache, where the device was longer once.
            Found::Valid(superblock)
                if found.newest().is_some_and(|newest| newest.cache != superblock.cache)
                    && found.slots_read >= 2 => {}
            Found::Valid(superblock)
                if found.newest().is_none_or(|newest| newest.rank() < superblock.rank()) =>
            {
                found.newest = Some((found.slots_read % 2, *superblock));
            }
            Found::Newer(version) => found.newer = Some(version),
            Found::Valid(_) | Found::Nothing => {}
        }
        found.slots_read += 1;
        self.read_slot(leg);
        if self.in_flight == 0 {
            self.choose();
        }
    }

    /// Decides by the superblocks what the cache is, and begins to read the heads.
    fn choose(&mut self) {
        let chosen = match choose(&self.found, &self.io) {
            Ok(chosen) => chosen,
            Err(because) => return self.refuse(because),
        };
        let mut left = VecDeque::new();
        for position in 0..chosen.geometry.count() {
            // The segment at this position that is live, if any is.
            let rotation = chosen.geometry.position(0);
            let segment = position + chosen.geometry.count() - rotation;
            for leg in chosen.live().filter(|leg| chosen.geometry.is_on(*leg, segment)) {
                left.push_back((leg, segment));
            }
        }
        let durable = chosen.durable;
        self.stage = Stage::Heads { chosen, left, heads: BTreeMap::new(), durable };
        self.read_heads();
    }

    fn read_heads(&mut self) {
        while self.in_flight < HEADS_MAX {
            let Stage::Heads { chosen, left, .. } = &mut self.stage else { return };
            let Some((leg, segment)) = left.pop_front() else { break };
            let (at, position) = (chosen.geometry.leg_block(segment, 0), chosen.geometry.position(segment));
            self.read((leg, Purpose::ReadHead), (at, 1), Step::Head { position });
        }
        if self.in_flight == 0 {
            self.begin_walk();
        }
    }

    /// Notes which segment begins here, in which session and with which record, and what it says to be durable.
    fn head_read(&mut self, position: u64, block: Option<&[u8]>) {
        let Stage::Heads { chosen, heads, durable, .. } = &mut self.stage else { return };
        let logical_block = u64::from(chosen.geometry.logical_block);
        let blocks = chosen.backing_size.0 / logical_block;
        let found = block.and_then(|block| Header::decode(block, chosen.cache, logical_block, blocks));
        if let Some((header, _)) = found {
            let place = header.place;
            let live = chosen.tail.segment..chosen.tail.segment + chosen.geometry.count();
            let is_live = live.contains(&place.segment) && place.block == 0;
            if is_live && chosen.geometry.position(place.segment) == position {
                // What was given up, durable or not, says nothing any more.
                if place.session >= chosen.session || place.sequence < chosen.first {
                    *durable = (*durable).max(header.durable);
                }
                let head = heads.entry(place.segment).or_insert((0, 0));
                *head = (*head).max((place.session, place.sequence));
            }
        }
        self.read_heads();
    }

    fn begin_walk(&mut self) {
        let Stage::Heads { chosen, heads, durable, .. } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            return;
        };
        let options = &self.io.options;
        let allowed = (options.mode == Mode::Ordered, options.gives_up_lost);
        let chunk_max = self.io.leg_transfer_max() / LOG_BLOCK;
        let (walk, read) = Walk::new(&chosen, heads, durable, (chunk_max as u32, allowed), self.io.now);
        let (wanted, next, chunks) = (Some(read), Some(read), VecDeque::new());
        self.stage = Stage::Walk(Box::new(Walking { chosen, walk, wanted, next, chunks, number: 0 }));
        self.go_on_walking();
    }

    /// Reads the next chunk, if one more may be read: the same blocks from every leg that has them. Whether it did.
    fn read_chunk(&mut self) -> bool {
        let Stage::Walk(walking) = &mut self.stage else { return false };
        let chosen = &walking.chosen;
        let ahead = ((BUFFERS_MIN as usize - 2 * SINGLE_MAX) / chosen.legs.len()).clamp(1, AHEAD);
        let Some(read) = walking.next.filter(|_| walking.chunks.len() < ahead) else { return false };
        let legs: Vec<_> = chosen.live().filter(|leg| chosen.geometry.is_on(*leg, read.segment)).collect();
        let range = (chosen.geometry.leg_block(read.segment, read.block), u64::from(read.blocks));
        let (number, in_flight) = (walking.number, legs.len());
        let chunk = Chunk { number, read, legs: Vec::new(), single: VecDeque::new(), in_flight };
        walking.chunks.push_back(chunk);
        walking.number += 1;
        walking.next = walking.walk.after(read);
        for leg in legs {
            self.read((leg, Purpose::ReadSegment), range, Step::Chunk { number, leg });
        }
        true
    }

    /// A chunk was read, or not: a power cut may leave a block unreadable, which is no reason to lose those around it.
    fn chunk_read(&mut self, (number, leg): (u64, usize), buffer: Option<BufferMut>) {
        let Stage::Walk(walking) = &mut self.stage else { return };
        let Some(chunk) = walking.chunks.iter_mut().find(|chunk| chunk.number == number) else { return };
        let blocks = chunk.read.blocks;
        let buffer = buffer.or_else(|| {
            let mut buffer = self.io.options.memory.take(Bytes(u64::from(blocks) * LOG_BLOCK))?;
            // Not zeroes, which may be what was written.
            buffer.fill(0xa5);
            chunk.single.extend((0..blocks).map(|index| (leg, index)));
            Some(buffer)
        });
        let Some(buffer) = buffer else {
            return self.refuse("there is no memory to read the log with".to_owned());
        };
        chunk.legs.push((leg, buffer));
        chunk.in_flight -= 1;
        self.go_on_walking();
    }

    fn block_read(&mut self, leg: usize, index: u32, bytes: Option<&[u8]>) {
        let Stage::Walk(walking) = &mut self.stage else { return };
        let Some(chunk) = walking.chunks.front_mut() else { return };
        chunk.in_flight -= 1;
        let found = chunk.legs.iter_mut().find(|(of, _)| *of == leg);
        if let (Some((_, buffer)), Some(bytes)) = (found, bytes) {
            let at = index as usize * LOG_BLOCK as usize;
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
        }
        self.go_on_walking();
    }

    /// Has the walk take what was read, chunk by chunk, and reads ahead of it.
    fn go_on_walking(&mut self) {
        loop {
            while self.read_chunk() {}
            let Stage::Walk(walking) = &mut self.stage else { return };
            let Some(chunk) = walking.chunks.front_mut() else { return self.begin_equalising() };
            let is_wanted = walking.wanted == Some(chunk.read);
            if is_wanted
                && chunk.in_flight < SINGLE_MAX
                && let Some((leg, index)) = chunk.single.pop_front()
            {
                chunk.in_flight += 1;
                let at = walking.chosen.geometry.leg_block(chunk.read.segment, chunk.read.block + index);
                self.read((leg, Purpose::ReadSegment), (at, 1), Step::Block { leg, index });
                continue;
            }
            if chunk.in_flight > 0 {
                return;
            }
            let Some(mut chunk) = walking.chunks.pop_front() else { return };
            if !is_wanted {
                continue;
            }
            chunk.legs.sort_by_key(|(leg, _)| *leg);
            let bytes: Vec<_> = chunk.legs.iter().map(|(leg, buffer)| (*leg, &buffer[..])).collect();
            match walking.walk.take(chunk.read, &bytes) {
                Ok(wanted) => walking.want(wanted),
                Err(because) => return self.refuse(because),
            }
        }
    }

    /// Order (f): every leg gets what only another one has, and is flushed, before anything is served or said to be durable.
    fn begin_equalising(&mut self) {
        let Stage::Walk(walking) = std::mem::replace(&mut self.stage, Stage::Over) else { return };
        let Walking { chosen, walk, .. } = *walking;
        let waits = self.io.options.waits.hold(Wait::LegsEqual) && !self.io.options.dry_run;
        self.stage = Stage::Equalise { chosen, walk: Box::new(walk), is_flushing: false };
        if waits { self.equalise() } else { self.finish() }
    }

    /// One after another; then all are flushed.
    fn equalise(&mut self) {
        let Stage::Equalise { chosen, walk, is_flushing } = &mut self.stage else { return };
        if *is_flushing {
            return self.finish();
        }
        walk.copies.retain(|copy| chosen.legs[copy.to] == LegState::Live);
        if let Some(copy) = walk.copies.pop() {
            let range = (chosen.geometry.leg_block(copy.segment, copy.block), u64::from(copy.blocks));
            return self.read((copy.from, Purpose::Equalise), range, Step::EqualiseRead(copy));
        }
        *is_flushing = true;
        for leg in chosen.live() {
            self.in_flight += 1;
            let then = Then::Recovery(Step::Equalised { leg });
            self.io.flush((Member::Leg(leg), Purpose::EqualiseFlush), then);
        }
    }

    fn equalise_write(&mut self, copy: Copy, buffer: Option<BufferMut>) {
        let Stage::Equalise { chosen, .. } = &mut self.stage else { return };
        let Some(buffer) = buffer else {
            // It was read a moment ago: as if it had not been there, then. What others lack may be in the index by now.
            (self.found[copy.from], self.io.legs[copy.from]) = (None, None);
            return self.choose();
        };
        let at = chosen.geometry.leg_block(copy.segment, copy.block);
        self.in_flight += 1;
        let then = Then::Recovery(Step::Equalised { leg: copy.to });
        self.io.write_leg((copy.to, Purpose::Equalise), at, buffer.freeze(), then);
    }

    fn equalised(&mut self, leg: usize, outcome: Outcome) {
        self.lose_unless_done(leg, outcome);
        if self.in_flight == 0 {
            self.equalise();
        }
    }

    /// Goes on without a leg that failed. The epoch that excludes it becomes durable with the session, before anything is served.
    fn lose_unless_done(&mut self, leg: usize, outcome: Outcome) {
        let Stage::Equalise { chosen, .. } = &mut self.stage else { return };
        if outcome.is_done() || chosen.legs[leg] == LegState::Lost {
            return;
        }
        let errno = errno_of(outcome);
        if chosen.live().count() == 1 || chosen.geometry.layout == Layout::Stripe {
            return self.refuse(format!(
                "device {leg} of the log could not be written or flushed ({errno}), and no other has what it has: see to it, and do it again"
            ));
        }
        chosen.legs[leg] = LegState::Lost;
        chosen.epoch += 1;
    }

    fn finish(&mut self) {
        let Stage::Equalise { mut chosen, walk, .. } = std::mem::replace(&mut self.stage, Stage::Over) else {
            return;
        };
        let Walk { mut log, index, session, findings, .. } = *walk;
        log.durable = log.complete;
        // Nobody knows in which mode it was destaged before.
        log.ordered_at = if log.ordered_from == 0 { log.next_segment } else { u64::MAX };
        chosen.session = chosen.session.max(session) + 1;
        chosen.first = log.next_sequence;
        let slots = self.found.iter().map(|found| found.as_ref().map_or(0, LegFound::next_slot)).collect();
        self.result = Some(Ok(Recovered { superblock: chosen, slots, index, log, findings }));
    }
}
