//! Every state that a power cut may leave, at every moment of a recording at which that matters.
//!
//! What a cut may leave grows as commands are submitted and shrinks only when something becomes durable. So it is enough to look
//! at the moments just before something does, and at the end: a state that a cut may leave at any moment may be left at the
//! next of these as well, where at least as much is acknowledged. Such a moment ends a *window*.
//!
//! Windows with few pieces at risk are explored whole. Of the others come first the states at which software fails most
//! often; each [pass](order::Pass) goes over all windows before the next begins, so that a limit takes from all alike. A state
//! that was seen with the same acknowledgement is not shown again.

mod choice;
mod cursor;
mod cut;
mod image;
mod order;
mod replay;

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::ControlFlow;

use plumb_crash::Promise;
pub use plumb_report::document::proof::Coverage;
use serde::{Deserialize, Serialize};

pub use self::choice::Choice;
pub(crate) use self::choice::reduce;
pub use self::cursor::{OwnedState, State};
pub use self::image::Image;

use self::cut::Cut;
use self::order::Pass;
use crate::recording::Recording;

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// A window with at most this many pieces at risk (blocks that differ, and atomic writes) is explored whole.
    pub pieces: u32,
    /// Of a window with at most this many commands at risk all subsets of commands are explored.
    pub commands: u32,
    /// At most this many states are shown.
    pub states: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { pieces: 12, commands: 12, states: 1_000_000 }
    }
}

/// What was explored of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCoverage {
    /// The event of the recording before which it ends.
    pub event: usize,
    /// What a checker must find: the last acknowledgement.
    pub required: Option<u64>,
    /// How many commands were at risk.
    pub commands: usize,
    /// How many pieces of them: blocks that differ, and atomic writes.
    pub pieces: usize,
    /// How many states were enumerated, some of them more than once.
    pub enumerated: u64,
    /// How many states were shown, each once.
    pub states: u64,
    /// How much that is.
    pub coverage: Coverage,
}

/// What to explore.
#[derive(Debug, Clone, Copy)]
pub struct Explorer<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// The event with which exploring begins: what was durable or at risk before counts, but no cut happens before it.
    pub from: usize,
    /// The event with which it ends: no cut happens after it. [`usize::MAX`]: the whole recording.
    pub until: usize,
    /// What the drive keeps of what it says.
    pub promise: Promise,
    /// How far to go.
    pub limits: Limits,
    /// Of what is drawn.
    pub seed: u64,
}

/// Takes a hash for what it is.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
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
    /// The blocks that do not hold the same in all states.
    pub fn varied(&self) -> HashSet<u64> {
        let mut varied = HashSet::new();
        replay::cuts(self, &mut |moment| {
            varied.extend(Cut::at(self.recording, moment).spots.iter().map(|spot| spot.lba));
            ControlFlow::Continue(())
        })
        .continue_value()
        .unwrap_or_default();
        varied
    }

    /// Shows each state with what must be found in it once, until `show` says that it is enough. What was explored of each
    /// window, in order; a window that was not reached is `Sampled` with 0 states.
    pub fn explore(&self, show: &mut impl FnMut(&State<'_>) -> ControlFlow<()>) -> Vec<WindowCoverage> {
        let mut windows: Vec<WindowCoverage> = Vec::new();
        let mut seen: HashSet<u128, BuildHasherDefault<Mixed>> = HashSet::default();
        let mut left = self.limits.states;
        for pass in Pass::ALL {
            let mut number = 0;
            let ended = replay::cuts(self, &mut |moment| {
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
                    if !seen.insert(state.hash() ^ image::hash_of_number(state.required())) {
                        return ControlFlow::Continue(());
                    }
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                    window.states += 1;
                    show(state)
                };
                let reached = pass.explore(&cut, self, &mut fresh)?;
                window.coverage = window.coverage.max(reached);
                ControlFlow::Continue(())
            });
            if ended.is_break() {
                break;
            }
        }
        windows
    }
}
