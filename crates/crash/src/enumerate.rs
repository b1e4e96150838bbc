//! Every cut: what each block may hold, and all combinations of that.

use std::ops::ControlFlow;

use plumb_block::{Lba, LbaRange};

use crate::command::Command;
use crate::window::Window;

/// Content of a block after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Survivor {
    /// The content that the caller has stored: the last durable version.
    Stored,
    /// The version of this command.
    Command(u64),
    /// Nothing that can be read.
    Unreadable,
}

/// Contents that a cut may leave in the blocks of a run, in each of them independently except for what atomic
/// writes forbid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// The blocks.
    pub range: LbaRange,
    /// One of these is left in each.
    pub survivors: Vec<Survivor>,
}

/// Into what commands may tear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Into blocks, but for atomic writes: all legal outcomes.
    Blocks,
    /// Not at all: each command survives whole or not at all. Far fewer outcomes, all of them legal.
    Commands,
}

/// Outcomes that an enumeration is to visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Into what commands may tear.
    pub grain: Grain,
    /// True if outcomes with unreadable blocks are wanted, too.
    pub unreadable: bool,
}

/// A run in which one survivor is chosen, and the survivors to choose from.
type Choice = (LbaRange, Vec<Survivor>);

impl<T: Clone> Window<T> {
    /// Returns the contents that a cut now may leave, for every run over which a command of the window lies.
    /// Everywhere else the cut leaves what the caller has stored.
    pub fn candidates(&self) -> impl Iterator<Item = Candidates> {
        self.runs().map(|run| {
            let mut survivors = Vec::new();
            run.survivors(|_| None, true, &mut survivors);
            Candidates { range: run.range, survivors }
        })
    }

    /// Calls `visit` with every outcome that a cut now may have: for each run (each block, if commands tear
    /// into blocks) over which a command lies, in order, what is left there. Where commands that survive
    /// whole overlap, the same outcome may come more than once. Stops when `visit` says so; nothing is made
    /// in advance, so however many there are, what was visited is all it costs.
    pub fn enumerate(
        &self,
        options: Options,
        visit: &mut impl FnMut(&[(LbaRange, Survivor)]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let whole = self.whole(options.grain);
        // A binary counter: which of those that survive whole do.
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

    /// Returns no fewer than [`enumerate`](Self::enumerate) visits; `u128::MAX` if there are more than that.
    pub fn outcomes_max(&self, options: Options) -> u128 {
        let whole = self.whole(options.grain);
        let subsets = 1_u128.checked_shl(whole.len() as u32).unwrap_or(u128::MAX);
        let mut survivors = Vec::new();
        let runs = self.runs().map(|run| {
            run.survivors(|_| None, options.unreadable, &mut survivors);
            let blocks = if options.grain == Grain::Blocks { run.range.nlb } else { 1 };
            u32::try_from(blocks).map_or(u128::MAX, |blocks| (survivors.len() as u128).saturating_pow(blocks))
        });
        runs.fold(subsets, u128::saturating_mul)
    }

    /// Returns the commands that may survive, and survive whole if they do; in the order of submission.
    fn whole(&self, grain: Grain) -> Vec<u64> {
        let whole = self.commands.iter().filter(|(_, one)| !one.is_durable && self.is_whole(grain, one));
        let mut whole: Vec<_> = whole.map(|(id, command)| (command.span.submitted, *id)).collect();
        whole.sort_unstable();
        whole.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns true if this command of the window survives a cut whole or not at all: it is a single block,
    /// or atomic.
    pub fn is_whole_or_nothing(&self, id: u64) -> bool {
        self.commands.get(&id).is_some_and(|one| one.range.nlb == 1 || self.is_untearable(one))
    }

    fn is_whole(&self, grain: Grain, command: &Command<T>) -> bool {
        grain == Grain::Commands || command.range.nlb > 1 && self.is_untearable(command)
    }

    /// Returns true if no cut can tear or break it: rule 7, but for what failed (rule 9).
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

/// Visits every combination of the choices.
fn visit_all(
    choices: &[Choice],
    visit: &mut impl FnMut(&[(LbaRange, Survivor)]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut places = vec![0; choices.len()];
    let mut outcome: Vec<_> = choices.iter().map(|(range, survivors)| (*range, survivors[0])).collect();
    loop {
        visit(&outcome)?;
        // Like an odometer: the first that is not at its last choice goes on, all before it begin again.
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
