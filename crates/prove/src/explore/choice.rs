//! A state by what the cut took: to be said, kept, shown again, and made smaller.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use plumb_crash::Window;
use serde::{Deserialize, Serialize};

use super::cursor::{Cursor, State};
use super::cut::Cut;
use super::{Explorer, replay};
use crate::recording::CommandId;

/// What a cut took of the commands that it might have taken. Where several were in flight together over a block, the one that was
/// submitted last is the one that landed last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The event of the recording before which the power goes.
    pub event: usize,
    /// The blocks that were lost of each command, where that makes a difference; all others survive.
    pub lost: BTreeMap<CommandId, Vec<u64>>,
}

impl Explorer<'_> {
    /// Shows the state of a choice. `None` if no cut may leave it there: the choice is of another recording.
    pub fn show<R>(&self, choice: &Choice, show: &mut impl FnMut(&State<'_>) -> R) -> Option<R> {
        let mut shown = None;
        let ended = replay::cuts(self, &mut |moment| {
            if moment.event != choice.event {
                return ControlFlow::Continue(());
            }
            let cut = Cut::at(self.recording, moment);
            let mut cursor = Cursor::new(&cut);
            for (number, piece) in cut.pieces.iter().enumerate() {
                let lost = choice.lost.get(&piece.command);
                let is_lost =
                    |spot: &usize| lost.is_some_and(|blocks| blocks.contains(&cut.spots[*spot].lba));
                cursor.set(number, !piece.spots.iter().any(is_lost));
            }
            cursor.show(&mut |state| {
                shown = Some(show(state));
                ControlFlow::Continue(())
            })?;
            ControlFlow::Break(())
        });
        if ended.is_break() { shown } else { None }
    }

    /// The commands that a cut before `event` may take; none if that is no moment at which to cut.
    pub fn at_risk(&self, event: usize) -> BTreeSet<CommandId> {
        let mut at_risk = BTreeSet::new();
        let ended = replay::cuts(self, &mut |moment| {
            if moment.event != event {
                return ControlFlow::Continue(());
            }
            let versions = moment.windows.iter().flat_map(Window::runs).flat_map(|run| run.versions);
            at_risk.extend(versions.filter(|one| !one.is_decisive).map(|one| CommandId(one.id as u32)));
            ControlFlow::Break(())
        });
        debug_assert!(ended.is_break() || at_risk.is_empty());
        at_risk
    }

    /// Takes from the choice whatever is not needed for the state to fail: whole commands first, then blocks, then halves of
    /// what is left (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002). `fails` is asked of each
    /// state that is tried. `None` if the choice itself does not fail, or is of another recording.
    pub fn minimise(&self, choice: &Choice, fails: &mut impl FnMut(&State<'_>) -> bool) -> Option<Choice> {
        let mut failing =
            |choice: &Choice| self.show(choice, &mut |state| fails(state).then(|| state.choice())).flatten();
        let mut minimal = failing(choice)?;
        let commands: Vec<CommandId> = choice.lost.keys().copied().collect();
        reduce(commands, &mut |some| {
            let mut smaller = minimal.clone();
            smaller.lost.retain(|command, _| !some.contains(command));
            failing(&smaller).map(|found| minimal = found).is_some()
        });
        for (command, blocks) in minimal.lost.clone() {
            reduce(blocks, &mut |some| {
                let mut smaller = minimal.clone();
                let left = smaller.lost.entry(command).or_default();
                left.retain(|block| !some.contains(block));
                failing(&smaller).map(|found| minimal = found).is_some()
            });
        }
        Some(minimal)
    }
}

/// Takes parts of `all` away, large ones first, wherever `take` says that it could be done; until no single one can.
pub(crate) fn reduce<T: Copy>(mut all: Vec<T>, take: &mut impl FnMut(&[T]) -> bool) {
    let mut size = all.len();
    while size > 0 {
        let mut start = 0;
        while start < all.len() {
            let end = (start + size).min(all.len());
            if take(&all[start..end]) {
                all.drain(start..end);
            } else {
                start = end;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
}
