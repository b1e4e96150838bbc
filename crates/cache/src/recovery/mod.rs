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
mod walk;

use std::collections::{BTreeMap, VecDeque};

use plumb_block::{BufferMut, Bytes, ExtentMap, Op, Outcome, Payload};

use crate::action::{Member, Purpose, Wait};
use crate::core::Then;
use crate::format::record::Header;
use crate::format::superblock::{Found, LegState, Superblock};
use crate::index::Entry;
use crate::io::{Io, errno_of};
use crate::log::Log;
use crate::settings::{LOG_BLOCK, Layout, Mode};
use choose::{LegFound, choose};
use walk::{Next, Read, Walk};

/// How many heads are read at the same time.
const HEADS_MAX: usize = 8;
/// How many single blocks are read at the same time; the buffers of the chunk are taken too.
const SINGLE_MAX: usize = 2;

/// What recovery found.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// As it is to be written for the new session.
    pub(crate) superblock: Superblock,
    /// Of each leg, the slot that the next version of the superblock goes to.
    pub(crate) slots: Vec<u64>,
    pub(crate) index: ExtentMap<Entry>,
    pub(crate) log: Log,
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
        leg: usize,
    },
    /// One block of a chunk that could not be read whole.
    Block {
        leg: usize,
        index: u32,
    },
    EqualiseRead,
    EqualiseWrite,
    EqualiseFlush {
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
    Equalise { chosen: Superblock, walk: Box<Walk> },
    Over,
}

/// The walk, and what is being read for it.
#[derive(Debug)]
struct Walking {
    chosen: Superblock,
    walk: Walk,
    read: Read,
    /// Of each leg, as far as it can be read.
    chunk: Vec<(usize, BufferMut)>,
    /// Blocks to be read one by one: the leg, and which of the chunk.
    single: VecDeque<(usize, u32)>,
}

impl Recovery {
    /// Begins: the front of every leg is read.
    pub(crate) fn begin(io: Io) -> Self {
        let found = io.legs.iter().map(|leg| leg.as_ref().map(|_| LegFound::default())).collect();
        let mut this = Self { io, found, stage: Stage::Superblocks, in_flight: 0, result: None };
        for leg in 0..this.found.len() {
            if this.io.legs[leg].as_ref().is_some_and(|info| info.size.0 >= 16 * LOG_BLOCK) {
                this.read_slot(leg, 0);
            }
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
            Step::Chunk { leg } => self.chunk_read(leg, buffer),
            Step::Block { leg, index } => self.block_read(leg, index, buffer.as_deref()),
            Step::EqualiseRead => self.equalise_write(buffer),
            Step::EqualiseWrite => self.equalise_written(outcome),
            Step::EqualiseFlush { leg } => self.equalise_flushed(leg, outcome),
        }
    }

    fn read_slot(&mut self, leg: usize, at: u64) {
        self.read((leg, Purpose::ReadSuperblock), (at, 1), Step::Slot { leg });
    }

    /// Notes what is in a slot, and reads the next: two at the front, two at the end of what these say to be used. Each by itself,
    /// since a power cut may leave one of them unreadable.
    fn slot_read(&mut self, leg: usize, block: Option<&[u8]>) {
        let size = self.io.legs[leg].as_ref().map_or(0, |info| info.size.0 / LOG_BLOCK);
        let Some(found) = &mut self.found[leg] else { return };
        match block.map_or(Found::Nothing, Superblock::decode) {
            Found::Valid(superblock) => found.superblocks.push((found.slots_read, *superblock)),
            Found::Newer(version) => found.newer = Some(version),
            Found::Nothing => {}
        }
        found.slots_read += 1;
        let end = found.newest().map_or(size, |found| found.geometry.leg_blocks()).min(size);
        match found.slots_read {
            1 => self.read_slot(leg, 1),
            read @ 2..4 => self.read_slot(leg, end - 4 + read),
            _ => {}
        }
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
            let is_here = chosen.geometry.position(place.segment) == position && place.block == 0;
            if is_here && live.contains(&place.segment) {
                *durable = (*durable).max(header.durable);
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
        let keeps_changes = self.io.options.mode == Mode::Ordered;
        let chunk_max = self.io.leg_transfer_max() / LOG_BLOCK;
        let (walk, read) = Walk::new(&chosen, heads, durable, (chunk_max as u32, keeps_changes), self.io.now);
        let (chunk, single) = (Vec::new(), VecDeque::new());
        self.stage = Stage::Walk(Box::new(Walking { chosen, walk, read, chunk, single }));
        self.read_chunk(read);
    }

    /// Reads the same blocks from every leg that has them.
    fn read_chunk(&mut self, next: Read) {
        let Stage::Walk(walking) = &mut self.stage else { return };
        walking.read = next;
        walking.chunk.clear();
        let chosen = &walking.chosen;
        let legs: Vec<_> = chosen.live().filter(|leg| chosen.geometry.is_on(*leg, next.segment)).collect();
        let at = chosen.geometry.leg_block(next.segment, next.block);
        for leg in legs {
            let range = (at, u64::from(next.blocks));
            self.read((leg, Purpose::ReadSegment), range, Step::Chunk { leg });
        }
    }

    /// A chunk was read, or not: a power cut may leave a block unreadable, which is no reason to lose those around it.
    fn chunk_read(&mut self, leg: usize, buffer: Option<BufferMut>) {
        let Stage::Walk(walking) = &mut self.stage else { return };
        let length = Bytes(u64::from(walking.read.blocks) * LOG_BLOCK);
        let buffer = buffer.or_else(|| {
            let mut buffer = self.io.options.memory.take(length)?;
            // Not zeroes, which may be what was written.
            buffer.fill(0xa5);
            walking.single.extend((0..walking.read.blocks).map(|index| (leg, index)));
            Some(buffer)
        });
        let Some(buffer) = buffer else {
            return self.refuse("there is no memory to read the log with".to_owned());
        };
        walking.chunk.push((leg, buffer));
        self.go_on_walking();
    }

    fn block_read(&mut self, leg: usize, index: u32, bytes: Option<&[u8]>) {
        let Stage::Walk(walking) = &mut self.stage else { return };
        let chunk = walking.chunk.iter_mut().find(|(of, _)| *of == leg);
        if let (Some((_, chunk)), Some(bytes)) = (chunk, bytes) {
            let at = index as usize * LOG_BLOCK as usize;
            chunk[at..at + bytes.len()].copy_from_slice(bytes);
        }
        self.go_on_walking();
    }

    fn go_on_walking(&mut self) {
        while self.in_flight < SINGLE_MAX {
            let Stage::Walk(walking) = &mut self.stage else { return };
            let Some((leg, index)) = walking.single.pop_front() else { break };
            let at = walking.chosen.geometry.leg_block(walking.read.segment, walking.read.block + index);
            self.read((leg, Purpose::ReadSegment), (at, 1), Step::Block { leg, index });
        }
        let Stage::Walk(walking) = &mut self.stage else { return };
        if self.in_flight > 0 {
            return;
        }
        walking.chunk.sort_by_key(|(leg, _)| *leg);
        let bytes: Vec<_> = walking.chunk.iter().map(|(leg, buffer)| (*leg, &buffer[..])).collect();
        match walking.walk.take(walking.read, &bytes) {
            Ok(Next::Read(next)) => self.read_chunk(next),
            Ok(Next::End) => self.begin_equalising(),
            Err(because) => self.refuse(because),
        }
    }

    /// Order (f): every leg gets what only another one has, and is flushed, before anything is served or said to be durable.
    fn begin_equalising(&mut self) {
        let Stage::Walk(walking) = std::mem::replace(&mut self.stage, Stage::Over) else { return };
        let Walking { chosen, walk, .. } = *walking;
        let waits = self.io.options.waits.hold(Wait::LegsEqual) && !self.io.options.dry_run;
        self.stage = Stage::Equalise { chosen, walk: Box::new(walk) };
        if waits { self.equalise() } else { self.finish() }
    }

    fn equalise(&mut self) {
        let Stage::Equalise { chosen, walk } = &mut self.stage else { return };
        walk.copies.retain(|copy| chosen.legs[copy.to] == LegState::Live);
        if let Some(copy) = walk.copies.last() {
            let range = (chosen.geometry.leg_block(copy.segment, copy.block), u64::from(copy.blocks));
            let from = (copy.from, Purpose::Equalise);
            return self.read(from, range, Step::EqualiseRead);
        }
        let legs: Vec<_> = chosen.live().collect();
        self.in_flight += legs.len();
        for leg in legs {
            let then = Then::Recovery(Step::EqualiseFlush { leg });
            self.io.flush((Member::Leg(leg), Purpose::EqualiseFlush), then);
        }
    }

    fn equalise_write(&mut self, buffer: Option<BufferMut>) {
        let Stage::Equalise { chosen, walk, .. } = &mut self.stage else { return };
        let Some(copy) = walk.copies.last() else { return };
        let Some(buffer) = buffer else {
            // It was read a moment ago: as if it had not been there, then. What others lack may be in the index by now.
            (self.found[copy.from], self.io.legs[copy.from]) = (None, None);
            return self.choose();
        };
        let at = chosen.geometry.leg_block(copy.segment, copy.block);
        self.in_flight += 1;
        let then = Then::Recovery(Step::EqualiseWrite);
        self.io.write_leg((copy.to, Purpose::Equalise), at, buffer.freeze(), then);
    }

    fn equalise_written(&mut self, outcome: Outcome) {
        let Stage::Equalise { walk, .. } = &mut self.stage else { return };
        let Some(copy) = walk.copies.pop() else { return };
        self.lose_unless_done(copy.to, outcome);
        self.equalise();
    }

    fn equalise_flushed(&mut self, leg: usize, outcome: Outcome) {
        self.lose_unless_done(leg, outcome);
        if self.in_flight == 0 && matches!(self.stage, Stage::Equalise { .. }) {
            self.finish();
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
                "leg {leg} could not be written or flushed ({errno}), and no other leg has what it has"
            ));
        }
        chosen.legs[leg] = LegState::Lost;
        chosen.epoch += 1;
    }

    fn finish(&mut self) {
        let Stage::Equalise { mut chosen, walk, .. } = std::mem::replace(&mut self.stage, Stage::Over) else {
            return;
        };
        let Walk { mut log, index, session, .. } = *walk;
        log.durable = log.complete;
        chosen.session = chosen.session.max(session) + 1;
        chosen.first = log.next_sequence;
        chosen.is_clean = false;
        let slots = self.found.iter().map(|found| found.as_ref().map_or(0, LegFound::next_slot)).collect();
        self.result = Some(Ok(Recovered { superblock: chosen, slots, index, log }));
    }
}
