//! [`Contents`]: the commands of a drive as they arrive, are answered and are destaged.

use std::hint::select_unpredictable;
use std::io;

use plumb_block::{Bytes, LbaRange, Op};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::geometry::Geometry;
use super::medium::{Medium, What};
use super::promise::{Backing, BackingError, ContentsError, Data, FlushKept, FuaKept, Promise, Shape};
use super::window::{InFlightFlush, Node, Pending, State, Window};
use crate::command::CommandId;
use crate::rules::planted::{Bug, planted};
use crate::rules::{Atomicity, Moment, Span, flush_covers};

/// Discards and zeroes over more pages than this are kept by their range.
pub(super) const NARROW_PAGES_MAX: u64 = 16;
/// So many commands are made durable together: what a processor can ask of memory at a time.
const TOGETHER: usize = 16;

/// The contents of one drive.
#[derive(Debug)]
pub struct Contents {
    pub(super) geometry: Geometry,
    pub(super) promise: Promise,
    pub(super) medium: Medium,
    pub(super) window: Window,
    pub(super) chance: Xoshiro256PlusPlus,
    /// The last event.
    pub(super) now: Moment,
    /// Commands answered before this were said to be durable by an answered flush, done or not.
    pub(super) promised_until: Moment,
    pub(super) keeps_nothing: bool,
    /// Whether any block was ever made unreadable: if not, nobody has to look for one.
    pub(super) has_unreadable: bool,
}

impl Contents {
    /// Contents of a new drive: all zeroes, or what the backing file holds.
    ///
    /// # Errors
    /// If there can be no such drive.
    pub fn new(shape: Shape, promise: Promise, backing: Backing) -> Result<Self, ContentsError> {
        let geometry = Geometry::of(shape.check()?);
        let (unit, boundary) = (promise.atomic_unit, promise.atomic_boundary);
        let block = shape.logical_block;
        let fits = unit >= block && unit.0.is_multiple_of(block.0) && boundary.0.is_multiple_of(block.0);
        if !fits {
            return Err(ContentsError::Atomic { unit, boundary, logical_block: block });
        }
        let keeps_nothing = matches!(backing, Backing::Nothing);
        Ok(Self {
            geometry,
            promise,
            medium: Medium::new(geometry, backing),
            window: Window::new(),
            chance: Xoshiro256PlusPlus::seed_from_u64(0),
            now: 0,
            promised_until: 0,
            keeps_nothing,
            has_unreadable: false,
        })
    }

    /// With another seed for what is drawn between cuts: which of two writes in flight together is visible, what
    /// becomes of a failed one, whether a discard without promise does anything.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        self
    }

    /// Takes a write, a discard, a write of zeroes or a flush: it is in flight from now on and may land. Reads, empty
    /// ranges and ranges outside the drive are ignored, as are writes whose data does not have the length of the range.
    /// Visible: no. Durable: no.
    pub fn submit(&mut self, id: CommandId, op: Op, range: LbaRange, data: Data<'_>) {
        self.now += 1;
        if self.keeps_nothing || op == Op::Read {
            return;
        }
        if op == Op::Flush {
            return self.window.flushes.push(InFlightFlush { id, submitted: self.now });
        }
        self.land_late_ones();
        let is_inside = range.lba.0.checked_add(range.nlb).is_some_and(|end| end <= self.geometry.blocks);
        let Some((what, mut state)) = self.what(op, data, range).filter(|_| is_inside && range.nlb > 0)
        else {
            return;
        };
        let span = Span::in_flight(self.now);
        state.is_wide = !state.is_write && self.pages_of(range) > NARROW_PAGES_MAX;
        let pending = Pending { id, range, what, span, landed: self.now, live: 0, state };
        let number = self.window.pendings.insert(pending);
        self.window.ids.set(id.0, number);
        if state.is_wide {
            return self.window.wide.insert(range, number);
        }
        if !state.is_idle {
            self.add_nodes(number, range, data);
        }
    }

    fn pages_of(&self, range: LbaRange) -> u64 {
        let pages = self.geometry.pages(range);
        pages.end - pages.start
    }

    /// What the command makes of its blocks; `None` if its data does not fit.
    #[inline]
    fn what(&mut self, op: Op, data: Data<'_>, range: LbaRange) -> Option<(What, State)> {
        let fua = |asked: bool| {
            let is_kept = self.promise.fua == FuaKept::Honoured && !planted(Bug::FuaIsPlain);
            let is_noted = is_kept || !planted(Bug::IgnoredFuaUnaccounted);
            State { asked_fua: asked && is_noted, is_fua: asked && is_kept, ..State::default() }
        };
        match (op, data) {
            (Op::Write { fua: asked }, Data::Pattern(pattern)) => {
                Some((What::Pattern(pattern), State { is_write: true, ..fua(asked) }))
            }
            (Op::Write { fua: asked }, Data::Bytes(bytes)) => {
                let length = range.nlb.checked_mul(self.geometry.block_bytes as u64);
                let fits = length == Some(bytes.len() as u64);
                fits.then_some((What::Bytes, State { is_write: true, ..fua(asked) }))
            }
            (Op::WriteZeroes { fua: asked, no_hole, .. }, _) => {
                let is_idle = planted(Bug::ZeroesIgnored);
                Some((if no_hole { What::Zeroes } else { What::Hole }, State { is_idle, ..fua(asked) }))
            }
            (Op::Discard, _) => {
                let is_idle = !self.promise.discard_zeroes && self.chance.next_u64().is_multiple_of(4);
                Some((What::Hole, State { is_idle, is_discard: true, ..State::default() }))
            }
            _ => None,
        }
    }

    /// Links the command into the chain of each of its pages.
    #[inline]
    fn add_nodes(&mut self, number: u32, range: LbaRange, data: Data<'_>) {
        let geometry = self.geometry;
        let pages = geometry.pages(range);
        self.window.pendings[number].live = (pages.end - pages.start) as u32;
        for page in pages {
            let mask = geometry.mask(page, range);
            let slot = if let Data::Bytes(bytes) = data { self.slot_of(bytes, page, range) } else { 0 };
            self.window.link(page, Node { next: 0, pending: number, slot, mask });
        }
    }

    /// Copies the bytes that go to one page.
    fn slot_of(&mut self, bytes: &[u8], page: u64, range: LbaRange) -> u32 {
        let first = self.geometry.first_block(page);
        let from = range.lba.0.max(first);
        let to = range.end().0.min(first + self.geometry.blocks_per_page());
        let block = self.geometry.block_bytes;
        let source = (from - range.lba.0) as usize * block..(to - range.lba.0) as usize * block;
        let target = (from - first) as usize * block..(to - first) as usize * block;
        let slot = self.medium.slots.take();
        self.medium.slots.bytes_mut(slot)[target].copy_from_slice(&bytes[source]);
        slot
    }

    /// The command is answered as done. Visible from now on; durable if it is FUA or the promise is not volatile. For a
    /// flush: what completed before it was submitted is durable from now on, if flushes are kept.
    ///
    /// # Errors
    /// If the backing file failed: the command must be answered with an error instead.
    pub fn complete(&mut self, id: CommandId) -> Result<(), BackingError> {
        self.now += 1;
        if self.keeps_nothing {
            return Ok(());
        }
        let number = self.window.ids.get(id.0);
        if number != 0 {
            self.land(number);
        } else if let Some(place) = self.window.flushes.iter().position(|flush| flush.id == id) {
            let flush = self.window.flushes.swap_remove(place);
            self.flushed(flush.submitted);
        }
        self.medium.drain();
        self.medium.failed().map_or(Ok(()), Err)
    }

    /// A command takes effect now.
    #[inline]
    pub(super) fn land(&mut self, number: u32) {
        let chance = self.chance.next_u64();
        let now = self.now;
        let Some(pending) = self.window.pendings.get_mut(number) else { return };
        if pending.span.is_completed() {
            return;
        }
        if pending.state.is_idle {
            return self.withdraw(number);
        }
        pending.span.completed = now;
        // Whichever of two in flight together lands last is visible: at its submission or at its answer, so that each
        // may be the one.
        pending.landed = select_unpredictable(chance >> 63 == 0, pending.span.submitted, now);
        let state = pending.state;
        let is_durable = !self.promise.volatile
            || state.is_fua && !state.is_given_up
            || state.was_destaged
            || state.is_discard && planted(Bug::DiscardDurableEarly);
        if is_durable {
            self.be_durable(number);
        } else {
            self.window.put_at_risk(number);
        }
        if state.is_fua && planted(Bug::FuaIsBarrier) {
            self.cover(now);
        }
    }

    /// A flush that was submitted at `submitted` is answered.
    fn flushed(&mut self, submitted: Moment) {
        if self.promise.flush != FlushKept::Never || !planted(Bug::IgnoredFlushUnaccounted) {
            self.promised_until = self.promised_until.max(submitted);
        }
        if planted(Bug::FlushCoversNothing) {
            return;
        }
        let submitted = if planted(Bug::FlushCoversUntilItsAnswer) { self.now } else { submitted };
        match self.promise.flush {
            FlushKept::Always => self.cover(submitted),
            FlushKept::Never => {}
            FlushKept::AllButLast(last) => {
                self.window.unkept.push_back(submitted);
                let last = last as usize - usize::from(planted(Bug::LyingOneTooFew) && last > 0);
                while self.window.unkept.len() > last {
                    let Some(kept) = self.window.unkept.pop_front() else { break };
                    self.cover(kept);
                }
            }
        }
    }

    /// A flush that was submitted at `submitted` takes effect.
    fn cover(&mut self, submitted: Moment) {
        if planted(Bug::FlushCoversLatestOnly) {
            while self.window.answered.len() > 2 {
                self.window.answered.pop_front();
            }
        }
        while let Some((number, since)) = self.window.answered.front().copied() {
            let pending = self.window.pendings.get(number).filter(|one| one.span.submitted == since);
            if let Some(pending) = pending.filter(|one| one.is_at_risk()) {
                if !flush_covers(submitted, pending.span) {
                    break;
                }
                self.make_durable(number);
            }
            self.window.answered.pop_front();
        }
    }

    /// The drive has destaged all that an answered command carried: it is durable. Of a command that is not answered
    /// yet: durable when it is. Nothing happens if it is durable already.
    ///
    /// A failure of the backing file stays and comes with the next [`complete`](Self::complete).
    pub fn persist(&mut self, id: CommandId) {
        self.persist_all(&[id]);
    }

    /// The same for several commands, one after the other.
    pub fn persist_all(&mut self, ids: &[CommandId]) {
        for ids in ids.chunks(TOGETHER) {
            let mut numbers = [0; TOGETHER];
            for (number, id) in numbers.iter_mut().zip(ids) {
                *number = self.window.ids.get(id.0);
            }
            self.approach(&numbers[..ids.len()]);
            for number in &numbers[..ids.len()] {
                self.persist_one(*number);
            }
        }
        self.medium.drain();
    }

    /// Asks for all that several commands need at once, as none of it depends on another: memory answers together.
    #[inline]
    fn approach(&self, numbers: &[u32]) {
        let geometry = self.geometry;
        for number in numbers {
            self.window.approach(*number, |lba| geometry.page_of(lba));
        }
    }

    #[inline]
    fn persist_one(&mut self, number: u32) {
        let Some(pending) = self.window.pendings.get_mut(number) else { return };
        if !pending.span.is_completed() {
            pending.state.was_destaged = true;
        } else if pending.is_at_risk() {
            self.make_durable(number);
        }
    }

    /// Changes what is kept from now on. What is at risk stays so until it is persisted or flushed: a drive that turns
    /// its cache off destages first.
    pub const fn set_promise(&mut self, promise: Promise) {
        self.promise = promise;
    }

    /// What is kept.
    pub const fn promise(&self) -> Promise {
        self.promise
    }

    /// How much was answered and is not durable; what was written twice counts twice.
    pub const fn at_risk(&self) -> Bytes {
        Bytes(self.window.at_risk_blocks * self.geometry.block_bytes as u64)
    }

    /// How many commands are remembered because they may still change what a cut leaves.
    pub const fn remembered(&self) -> usize {
        self.window.pendings.len()
    }

    /// Waits until the backing file is durable on the host; nothing without one.
    ///
    /// # Errors
    /// The first failure of the file, now and ever after.
    pub fn sync_backing(&mut self) -> io::Result<()> {
        self.medium.file.as_mut().map_or(Ok(()), super::file::BackingFile::sync)
    }

    /// The first failure of the backing file.
    pub fn backing_failed(&self) -> Option<BackingError> {
        self.medium.failed()
    }

    /// The atomic unit in blocks.
    pub(super) const fn atomicity(&self) -> Atomicity {
        let block = self.geometry.block_bytes as u64;
        let unit = self.promise.atomic_unit.0 / block;
        Atomicity { unit: if unit == 0 { 1 } else { unit }, boundary: self.promise.atomic_boundary.0 / block }
    }

    /// What a command makes of a page: for its first block.
    pub(super) const fn what_in(&self, pending: &Pending, page: u64) -> What {
        pending.what.shifted(self.geometry.first_block(page).wrapping_sub(pending.range.lba.0))
    }
}
