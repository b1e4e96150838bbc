//! Exploration of a recording: all states in the order of the passes, or one state named by its choice.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::ControlFlow;

use plumb_crash::{Promise, Window};

use super::choice::Choice;
use super::coverage::{Coverage, Limits, WindowCoverage};
use super::cursor::{Cursor, State};
use super::cut::Cut;
use super::image::hash_of_number;
use super::order::Pass;
use super::reduce::reduce;
use super::replay::Replay;
use crate::recording::{CommandId, Recording};

/// Recording to explore, the drive profile, and the limits.
#[derive(Debug, Clone, Copy)]
pub struct Explorer<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// First event before which a cut may happen. Earlier commands count as well.
    pub from: usize,
    /// Event after which no cut happens; [`usize::MAX`] for the whole recording.
    pub until: usize,
    /// Guarantees of the drive.
    pub promise: Promise,
    /// Guarantees of the further drives, in order. A drive without an entry has those of the first.
    pub further: &'a [Promise],
    /// Limits of the exploration.
    pub limits: Limits,
    /// Seed of randomly drawn states.
    pub seed: u64,
}

/// Hasher for keys that are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

impl Explorer<'_> {
    /// Returns the blocks whose contents differ between states.
    pub fn varied(&self) -> HashSet<u64> {
        let mut varied = HashSet::new();
        self.replay()
            .cuts(&mut |moment| {
                varied.extend(Cut::at(self.recording, moment).spots.iter().map(|spot| spot.lba));
                ControlFlow::Continue(())
            })
            .continue_value()
            .unwrap_or_default();
        varied
    }

    /// Shows each state with the required acknowledgement until `show` breaks off: once, and again when the
    /// reads of its check are needed ([`State::is_new`]). Returns the coverage of each window, in order. A
    /// window that was not reached is `Sampled` with 0 states.
    pub fn explore(&self, show: &mut impl FnMut(&State<'_>) -> ControlFlow<()>) -> Vec<WindowCoverage> {
        let mut windows: Vec<WindowCoverage> = Vec::new();
        let mut seen: HashSet<u128, BuildHasherDefault<IdentityHasher>> = HashSet::default();
        let mut left = self.limits.states;
        for pass in Pass::ALL {
            let mut number = 0;
            let ended = self.replay().cuts(&mut |moment| {
                if windows.get(number).is_some_and(|window| window.coverage == Coverage::Exhaustive) {
                    number += 1;
                    return ControlFlow::Continue(());
                }
                let cut = Cut::at(self.recording, moment);
                if windows.len() == number {
                    windows.push(cut.coverage());
                }
                let window = &mut windows[number];
                number += 1;
                let mut fresh = |state: &State<'_>| {
                    window.enumerated += 1;
                    if !seen.insert(state.hash() ^ hash_of_number(state.required())) {
                        return if state.wants_reads() {
                            show(&state.again())
                        } else {
                            ControlFlow::Continue(())
                        };
                    }
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                    window.states += 1;
                    show(state)
                };
                let reached = pass.explore(&cut, self.limits, self.seed, &mut fresh)?;
                window.coverage = window.coverage.max(reached);
                ControlFlow::Continue(())
            });
            if ended.is_break() {
                break;
            }
        }
        windows
    }

    /// Shows the state of a choice. Returns `None` if no cut can leave it, as for a choice of another
    /// recording.
    pub fn show<R>(&self, choice: &Choice, show: &mut impl FnMut(&State<'_>) -> R) -> Option<R> {
        let mut shown = None;
        let ended = self.replay().cuts(&mut |moment| {
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

    /// Returns the commands that a cut before `event` may take; empty if no cut happens there.
    pub fn at_risk(&self, event: usize) -> BTreeSet<CommandId> {
        let mut at_risk = BTreeSet::new();
        let ended = self.replay().cuts(&mut |moment| {
            if moment.event != event {
                return ControlFlow::Continue(());
            }
            let versions = moment.windows.iter().flat_map(Window::runs).flat_map(|run| run.versions);
            let at_risk_now = versions.filter(|one| !one.is_decisive);
            at_risk.extend(at_risk_now.map(|one| self.recording.leader(CommandId(one.id as u32))));
            ControlFlow::Break(())
        });
        debug_assert!(ended.is_break() || at_risk.is_empty());
        at_risk
    }

    /// Reduces a choice to the losses that the failure needs: first by whole commands, then by blocks.
    /// `fails` judges each state that is tried. If it breaks off with a verdict, the smallest choice that
    /// failed so far is returned. Returns `None` if the choice itself does not fail, or belongs to another
    /// recording.
    pub fn minimise(
        &self,
        choice: &Choice,
        fails: &mut impl FnMut(&State<'_>) -> ControlFlow<bool, bool>,
    ) -> Option<Choice> {
        let mut is_over = false;
        let mut failing = |choice: &Choice| {
            if is_over {
                return None;
            }
            let judged = self.show(choice, &mut |state| (fails(state), state.choice()));
            let (verdict, choice) = judged?;
            is_over = verdict.is_break();
            let (ControlFlow::Continue(fails) | ControlFlow::Break(fails)) = verdict;
            fails.then_some(choice)
        };
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

    /// Returns the part of the recording in which cuts happen.
    const fn replay(&self) -> Replay<'_> {
        let Self { recording, promise, further, from, until, .. } = *self;
        Replay { recording, promise, further, from, until }
    }
}
