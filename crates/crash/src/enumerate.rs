//! Enumeration of all cuts: the possible contents of each block, and all combinations.

use std::ops::ControlFlow;

use plumb_block::{Lba, LbaRange};

use crate::command::Command;
use crate::window::Window;

/// Content of a block after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Survivor {
    /// Content stored by the caller: the last durable version.
    Stored,
    /// Version of this command.
    Command(u64),
    /// Unreadable.
    Unreadable,
}

/// Possible contents of the blocks of a run after a cut. Blocks are independent, except as restricted by
/// atomic writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// The blocks.
    pub range: LbaRange,
    /// Possible contents of each block.
    pub survivors: Vec<Survivor>,
}

/// Granularity at which commands may tear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Blocks, except for atomic writes: all legal outcomes.
    Blocks,
    /// Whole commands: each survives completely or not at all. Far fewer outcomes, all of them legal.
    Commands,
}

/// Options for an enumeration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Pieces into which commands may tear.
    pub grain: Grain,
    /// True if outcomes with unreadable blocks are included.
    pub unreadable: bool,
}

/// A run with the possible survivors, of which one is chosen.
type Choice = (LbaRange, Vec<Survivor>);

impl<T: Clone> Window<T> {
    /// Returns the possible contents after a cut at this moment, for every run covered by a command of the
    /// window. Elsewhere the cut leaves the content stored by the caller.
    pub fn candidates(&self) -> impl Iterator<Item = Candidates> {
        self.runs().map(|run| {
            let mut survivors = Vec::new();
            run.survivors(|_| None, true, &mut survivors);
            Candidates { range: run.range, survivors }
        })
    }

    /// Calls `visit` with every possible outcome of a cut at this moment: the survivors of each run covered
    /// by a command (of each block, if commands tear into blocks), in order. If commands that survive
    /// completely overlap, an outcome may occur more than once. Stops when `visit` breaks. Outcomes are
    /// generated one at a time.
    pub fn enumerate(
        &self,
        options: Options,
        visit: &mut impl FnMut(&[(LbaRange, Survivor)]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let whole = self.whole(options.grain);
        // Binary counter over the commands that survive completely or not at all.
        let mut survives = vec![false; whole.len()];
        loop {
            let absent_or_whole: Vec<(u64, bool)> =
                whole.iter().copied().zip(survives.iter().copied()).collect();
            visit_all(&self.choices(options, &absent_or_whole), visit)?;
            let Some(next) = survives.iter().position(|survives| !survives) else {
                return ControlFlow::Continue(());
            };
            survives[..next].fill(false);
            survives[next] = true;
        }
    }

    /// Returns the commands that may survive, but only completely, in order of submission.
    fn whole(&self, grain: Grain) -> Vec<u64> {
        let whole = self.commands.iter().filter(|(_, one)| !one.is_durable && self.is_whole(grain, one));
        let mut whole: Vec<_> = whole.map(|(id, command)| (command.span.submitted, *id)).collect();
        whole.sort_unstable();
        whole.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns true if this command of the window survives a cut completely or not at all, because it is a
    /// single block or atomic.
    pub fn is_whole_or_nothing(&self, id: u64) -> bool {
        self.commands.get(&id).is_some_and(|one| one.range.nlb == 1 || self.is_untearable(one))
    }

    fn is_whole(&self, grain: Grain, command: &Command<T>) -> bool {
        grain == Grain::Commands || command.range.nlb > 1 && self.is_untearable(command)
    }

    /// Returns true if no cut can tear `command` or make its blocks unreadable: rule 7, except for failed
    /// commands (rule 9).
    pub(crate) fn is_untearable(&self, command: &Command<T>) -> bool {
        self.is_atomic(command) && !command.is_failed
    }

    fn choices(&self, options: Options, whole: &[(u64, bool)]) -> Vec<Choice> {
        let mut choices = Vec::new();
        for run in self.runs() {
            let known = |place: usize| {
                let id = run.versions[place].id;
                whole.iter().find(|(one, _)| *one == id).map(|(_, survives)| *survives)
            };
            let (range, mut survivors) = (run.range, Vec::new());
            run.survivors(known, options.unreadable, &mut survivors);
            match options.grain {
                Grain::Commands => choices.push((range, survivors)),
                Grain::Blocks => {
                    let blocks = (range.lba.0..range.end().0).map(|lba| LbaRange::new(Lba(lba), 1));
                    choices.extend(blocks.map(|block| (block, survivors.clone())));
                }
            }
        }
        choices
    }
}

/// Visits all combinations of the choices.
fn visit_all(
    choices: &[Choice],
    visit: &mut impl FnMut(&[(LbaRange, Survivor)]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut places = vec![0; choices.len()];
    let mut outcome: Vec<_> = choices.iter().map(|(range, survivors)| (*range, survivors[0])).collect();
    loop {
        visit(&outcome)?;
        // Works like an odometer: the first position that is not at its last choice advances, and all before
        // it restart.
        let Some(next) = (0..choices.len()).find(|index| places[*index] + 1 < choices[*index].1.len()) else {
            return ControlFlow::Continue(());
        };
        places[..next].fill(0);
        places[next] += 1;
        for (index, one) in outcome.iter_mut().enumerate().take(next + 1) {
            one.1 = choices[index].1[places[index]];
        }
    }
}
