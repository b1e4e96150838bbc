//! Marking of the backing device as the cache requests: reads the witnesses, then writes the mark, each at
//! some moment; and judges after an opening whether others have written to a witness.

use plumb_block::{Lba, LbaRange, Nanos};
use plumb_cache::{Cache, Identity, Mark, Purpose, State, Uuid};
use plumb_crash::{Strategy, Survival, below};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::World;
use crate::buffers::Buffers;
use crate::medium::Medium;
use crate::setup::{LeftOut, Setup};
use plumb_block::conformance::Content;
use plumb_block::conformance::oracle::Oracle;

/// A mark, with the content of each witness that the mark states.
#[derive(Debug, Clone, Default)]
struct Written {
    mark: Mark,
    contents: Vec<Option<Vec<u8>>>,
}

/// Mark of the backing device.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marking {
    durable: Written,
    /// Mark that is being written: a crash leaves it or the previous one.
    writing: Option<Written>,
    /// True if the witnesses were judged since the cache was opened.
    is_judged: bool,
}

impl Marking {
    pub(crate) fn mark(&self) -> Mark {
        self.durable.mark
    }

    pub(super) fn identity(&self, setup: &Setup) -> Identity {
        Identity { cache: Uuid([setup.cache; 16]), backing: Uuid([2; 16]), marked: self.durable.mark }
    }

    /// Records a crash.
    pub(super) fn crash(&mut self, chance: &mut Xoshiro256PlusPlus) {
        if let Some(written) = self.writing.take().filter(|_| below(chance, 2) == 0) {
            self.durable = written;
        }
        self.is_judged = false;
    }
}

/// Returns the blocks whose contents the mark states: some that are written often, and some that are not.
pub(crate) fn witnesses(setup: &Setup) -> Vec<LbaRange> {
    let lbas = [0, 2, 5, setup.hot, setup.blocks() / 2, setup.blocks() - 1];
    lbas.into_iter().map(|lba| LbaRange::new(Lba(lba.min(setup.blocks() - 1)), 1)).collect()
}

impl World {
    /// Returns the members as they are if nothing is lost.
    pub(crate) fn members_after_kill(&self) -> Vec<Medium> {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut members = self.members.clone();
        for medium in &mut members {
            medium.cut(&mut chance, Survival::By(Strategy::AllSurvive));
            medium.notes_reads = true;
        }
        members
    }

    /// Returns a new, empty cache that serves, with a marked backing device.
    pub(crate) fn marked(setup: &Setup, left_out: LeftOut) -> Result<Self, String> {
        let oracle = Oracle::new(setup.block as usize, setup.discard_zeroes, Content::Generation(0));
        let marking = Some(Marking::default());
        let mut world = Self::with(setup, left_out, (setup.members()?, marking), oracle, false)?;
        world.settle(&mut Xoshiro256PlusPlus::seed_from_u64(0))?;
        Ok(world)
    }

    /// Takes one step towards the mark that the cache requests. Returns true if there was one.
    pub(super) fn advance_mark(&mut self) -> Result<bool, String> {
        let Some(mark) = self.cache().to_mark() else { return Ok(false) };
        let Some(mut marking) = self.marking.take() else { return Ok(false) };
        if !std::mem::replace(&mut marking.is_judged, true) {
            let foreign = self.written_by_others(&marking.durable);
            if !foreign.is_empty() {
                return Err(format!("the witnesses {foreign:?} are said to be written by somebody else"));
            }
        }
        match marking.writing.take() {
            None => {
                let contents = self.contents(mark, &marking.durable);
                marking.writing = Some(Written { mark, contents });
                self.marking = Some(marking);
            }
            Some(written) => {
                marking.durable = written;
                self.marking = Some(marking);
                let now = self.now;
                self.cache().marked(mark, Ok(()), now);
                self.pump()?;
            }
        }
        Ok(true)
    }

    /// Lets time pass without completions, and marks the backing device as the cache requests, with the flush
    /// for that.
    pub(crate) fn mark_after(&mut self, time: Nanos) -> Result<(), String> {
        self.now = self.now.saturating_add(time);
        let now = self.now;
        self.cache().advance(now);
        self.pump()?;
        let for_mark = |(purpose, _): &(Purpose, _)| *purpose == Purpose::BackingFlushBeforeMark;
        if let Some(flush) = self.in_flight().iter().position(for_mark) {
            self.complete(flush, &mut Xoshiro256PlusPlus::seed_from_u64(0))?;
        }
        while self.advance_mark()? {}
        Ok(())
    }

    /// Marks a backing device whose cache has stopped.
    pub(super) fn mark_stopped(&mut self) {
        let Some(mark) = self.cache().mark_at_stop() else { return };
        let Some(mut marking) = self.marking.take() else { return };
        let contents = self.contents(mark, &marking.durable);
        marking.durable = Written { mark, contents };
        (marking.writing, marking.is_judged) = (None, false);
        self.marking = Some(marking);
    }

    /// Returns what a mark states after `before`.
    fn contents(&mut self, mark: Mark, before: &Written) -> Vec<Option<Vec<u8>>> {
        let ranges = witnesses(&self.setup).into_iter().enumerate();
        let content = |(index, range): (usize, LbaRange)| {
            let has = |mark: Mark| mark.witnesses & 1 << index != 0;
            let known = before.contents.get(index).cloned().flatten().filter(|_| has(before.mark));
            if has(mark) { known.or_else(|| self.on_backing(range)) } else { None }
        };
        ranges.map(content).collect()
    }

    fn on_backing(&mut self, range: LbaRange) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.setup.block as usize];
        let backing = self.setup.legs();
        self.members[backing].read(range, &mut bytes).then_some(bytes)
    }

    /// Returns the witnesses whose content differs from the stated one.
    fn written_by_others(&mut self, stated: &Written) -> Vec<usize> {
        let ranges = witnesses(&self.setup).into_iter().enumerate();
        let is_other = |(index, range): &(usize, LbaRange)| {
            let Some(stated) = stated.contents.get(*index).and_then(Option::as_ref) else { return false };
            self.on_backing(*range).is_some_and(|found| found != *stated)
        };
        ranges.filter(is_other).map(|(index, _)| index).collect()
    }

    /// Writes to the backing device of a stopped cache, where the mark states the contents. Returns true if
    /// that is noticed after opening; `None` if the log holds everything that the mark states.
    pub(crate) fn is_write_beside_noticed(&mut self, chance: &mut Xoshiro256PlusPlus) -> Option<bool> {
        while self.state() == State::Recovering && self.advance(Nanos(u64::MAX), chance).ok()? {}
        let marking = self.marking.clone().filter(|marking| !marking.is_judged)?;
        let ranges = witnesses(&self.setup).into_iter().enumerate();
        let stated = |(index, _): &(usize, LbaRange)| {
            marking.durable.contents.get(*index).is_some_and(Option::is_some)
        };
        let (index, range) = { ranges }.find(stated)?;
        let mut bytes = self.on_backing(range)?;
        bytes[100] ^= 1;
        let backing = self.setup.legs();
        self.members[backing].overwrite(range, &bytes);
        Some(self.written_by_others(&marking.durable).contains(&index))
    }
}

/// Opens a cache over these members, with the mark if there is one.
pub(super) fn open(
    setup: &Setup,
    left_out: LeftOut,
    buffers: &Buffers,
    (members, marking): (&[Medium], Option<&Marking>),
    degraded: bool,
) -> Result<Cache, String> {
    let mut options = setup.options(buffers.for_cache(), left_out, degraded);
    if let Some(marking) = marking {
        (options.identity, options.witnesses) = (Some(marking.identity(setup)), witnesses(setup));
    }
    let (backing, legs) = members.split_last().ok_or("no members")?;
    let legs = legs.iter().map(|medium| (!medium.is_dead).then(|| medium.info.clone())).collect();
    Cache::open(options, legs, backing.info.clone()).map_err(|error| format!("not opened: {error}"))
}
