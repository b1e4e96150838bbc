//! What a cut at one moment may leave, prepared for going from one state to the next at little cost.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_block::{Lba, LbaRange};
use plumb_crash::{Grain, Run, Survivor};

use super::image::Image;
use super::replay::Moment;
use super::{Coverage, WindowCoverage};
use crate::recording::{Command, CommandId, Content, Recording};

/// What survives or not, as a whole: a command, or one block of it.
pub(super) struct Piece {
    /// The command.
    pub(super) command: CommandId,
    /// The block; `None`: all blocks of the command.
    pub(super) block: Option<u64>,
    /// Whether a part of it may survive, too.
    pub(super) may_tear: bool,
    /// What the hash changes by in the spots where nothing else is at risk.
    pub(super) alone: u128,
    /// Those spots.
    pub(super) alone_in: Vec<usize>,
    /// The other spots that it lies over.
    pub(super) shared_in: Vec<usize>,
}

/// A spot, and the place of a version among those of its run.
type Version = (usize, usize);

/// Blocks over which the same pieces lie.
pub(super) struct Spot {
    pub(super) run: Run,
    /// For each version of the run: the piece that it belongs to; `None` if a cut cannot take it.
    pub(super) pieces: Vec<Option<usize>>,
    /// For each version of the run: what the hash changes by if that is what is left.
    pub(super) changes: Vec<u128>,
}

/// A moment at which the power may go.
pub(super) struct Cut<'a> {
    pub(super) recording: &'a Recording,
    /// What is durable.
    pub(super) image: &'a Image,
    /// The same, copied if somebody wanted to keep it.
    pub(super) owned_image: OnceCell<Arc<Image>>,
    /// The event before which it is.
    pub(super) event: usize,
    /// The last acknowledgement.
    pub(super) required: Option<u64>,
    /// What may be lost, in the order of submission. What makes no difference is left out.
    pub(super) pieces: Vec<Piece>,
    pub(super) spots: Vec<Spot>,
    /// In what commands are divided here.
    pub(super) grain: Grain,
}

impl<'a> Cut<'a> {
    /// Prepares for a cut at `moment`: in blocks if these are at most so many pieces, else in commands.
    pub(super) fn at(recording: &'a Recording, moment: &Moment<'a>, pieces_max: usize) -> Self {
        let runs: Vec<Run> = moment.window.runs().collect();
        let mut cut = Self {
            recording,
            image: moment.image,
            owned_image: OnceCell::new(),
            event: moment.event,
            required: moment.required,
            pieces: Vec::new(),
            spots: Vec::new(),
            grain: Grain::Blocks,
        };
        // A command that tears into more blocks than that needs as many pieces.
        let is_untearable = |id: u64| moment.window.is_whole_or_nothing(id);
        let (mut blocks, mut pieces) = (Vec::new(), 0);
        for run in &runs {
            let tear = run.versions.iter().filter(|one| !(one.is_decisive || is_untearable(one.id))).count();
            for lba in cut.blocks_that_differ(run) {
                pieces += tear;
                if pieces > pieces_max {
                    break;
                }
                blocks.push((lba, run));
            }
        }
        if pieces <= pieces_max {
            let blocks = blocks.iter().map(|(lba, run)| Run { range: block(*lba), ..(*run).clone() });
            cut.divide(blocks, &is_untearable);
        }
        if pieces.max(cut.pieces.len()) > pieces_max {
            cut.grain = Grain::Commands;
            cut.divide(runs.into_iter(), &is_untearable);
        }
        cut
    }

    /// The blocks of a run in which it matters what is left.
    pub(super) fn blocks_that_differ(&self, run: &Run) -> impl Iterator<Item = u64> {
        let commands: Vec<&Command> = run.versions.iter().map(|one| self.command(one.id)).collect();
        self.blocks_of(run).into_iter().filter(move |lba| {
            let stored = self.image.content(*lba);
            commands.iter().any(|command| command.content(*lba) != stored)
        })
    }

    /// The blocks of a run; where nothing but zeroes may be left beside what is stored, those that are not zeroes yet, for a
    /// discard may be as long as the device.
    pub(super) fn blocks_of(&self, run: &Run) -> Vec<u64> {
        if run.versions.iter().all(|one| self.command(one.id).contents.is_empty()) {
            self.image.blocks_in(run.range).map(|(lba, _)| lba).collect()
        } else {
            (run.range.lba.0..run.range.end().0).collect()
        }
    }

    /// Makes spots of the runs, and pieces of the commands that lie over them.
    fn divide(&mut self, runs: impl Iterator<Item = Run>, is_untearable: &dyn Fn(u64) -> bool) {
        self.spots.clear();
        let mut keys: BTreeMap<(u64, Option<u64>), Vec<Version>> = BTreeMap::new();
        for run in runs {
            let changes: Vec<u128> =
                run.versions.iter().map(|one| self.image.change(run.range, self.command(one.id))).collect();
            if changes.iter().all(|change| *change == 0) {
                continue;
            }
            let spot = self.spots.len();
            for (place, version) in run.versions.iter().enumerate().filter(|(_, one)| !one.is_decisive) {
                let is_one = self.grain == Grain::Commands || is_untearable(version.id);
                let key = (version.id, (!is_one).then_some(run.range.lba.0));
                keys.entry(key).or_default().push((spot, place));
            }
            self.spots.push(Spot { pieces: vec![None; run.versions.len()], run, changes });
        }
        self.pieces = Vec::with_capacity(keys.len());
        for ((id, block), spots) in keys {
            let mut piece = Piece {
                command: CommandId(id as u32),
                block,
                may_tear: self.grain == Grain::Commands && !is_untearable(id),
                alone: 0,
                alone_in: Vec::new(),
                shared_in: Vec::new(),
            };
            for (spot, place) in spots {
                self.spots[spot].pieces[place] = Some(self.pieces.len());
                if self.spots[spot].run.versions.len() == 1 {
                    piece.alone ^= self.spots[spot].changes[place];
                    piece.alone_in.push(spot);
                } else {
                    piece.shared_in.push(spot);
                }
            }
            self.pieces.push(piece);
        }
    }

    pub(super) fn command(&self, id: u64) -> &'a Command {
        &self.recording.commands[id as usize]
    }

    /// What a block holds if this is left there.
    pub(super) fn content(&self, lba: u64, survivor: Survivor) -> Content {
        match survivor {
            Survivor::Command(id) => self.command(id).content(lba),
            Survivor::Stored | Survivor::Unreadable => self.image.content(lba),
        }
    }

    /// What is known of the window before any state of it was shown.
    pub(super) fn coverage(&self) -> WindowCoverage {
        let mut commands: Vec<CommandId> = self.pieces.iter().map(|piece| piece.command).collect();
        commands.dedup();
        WindowCoverage {
            event: self.event,
            required: self.required,
            commands: commands.len(),
            pieces: self.pieces.len(),
            enumerated: 0,
            states: 0,
            coverage: Coverage::Sampled,
        }
    }
}

const fn block(lba: u64) -> LbaRange {
    LbaRange::new(Lba(lba), 1)
}
