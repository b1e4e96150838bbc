//! States that a cut at one moment may leave, prepared so that the step from one state to the next is cheap.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use plumb_crash::{Run, Survivor, Window};

use super::coverage::{Coverage, WindowCoverage};
use super::image::{Image, hash_of};
use super::replay::Moment;
use crate::recording::{Command, CommandId, Content, Recording};

/// Unit that survives or is lost as a whole: one block of a command, or all blocks of an atomic command.
pub(super) struct Piece {
    pub(super) command: CommandId,
    /// Indices of the spots that the piece covers.
    pub(super) spots: Vec<usize>,
}

/// Piece that survives only together with another one.
pub(super) struct Dependence {
    pub(super) piece: usize,
    pub(super) needs: usize,
}

/// Block whose content depends on which pieces survive.
pub(super) struct Spot {
    pub(super) lba: u64,
    /// Run of blocks that the same commands cover.
    pub(super) run: usize,
    /// Range of the spot's versions, one for each version of the run.
    versions: Range<usize>,
}

/// Version of a block that may be left in a spot.
pub(super) struct Version {
    /// Piece that the version belongs to; `None` if a cut cannot take it.
    pub(super) piece: Option<usize>,
    /// Change of the hash if this version is left.
    pub(super) change: u128,
}

/// Command that may be lost in part.
pub(super) struct Whole {
    pub(super) pieces: Range<usize>,
    /// Change of the hash in the spots where only this command is at risk, if the whole command survives.
    pub(super) alone: u128,
    /// Spots in which other commands are at risk too.
    pub(super) shared: Vec<usize>,
}

/// Moment at which the power may fail.
pub(super) struct Cut<'a> {
    pub(super) recording: &'a Recording,
    /// Durable image.
    pub(super) image: &'a Image,
    /// Copy of the durable image, created for the first owned state.
    pub(super) owned_image: OnceCell<Arc<Image>>,
    /// Event before which the power fails.
    pub(super) event: usize,
    /// Number of the last acknowledgement.
    pub(super) required: Option<u64>,
    pub(super) runs: Vec<Run>,
    /// Spots in the order of blocks.
    pub(super) spots: Vec<Spot>,
    versions: Vec<Version>,
    /// Pieces that may be lost, in the order of submission, without those that make no difference.
    pub(super) pieces: Vec<Piece>,
    /// Pieces that may be lost, by command.
    pub(super) commands: Vec<Whole>,
    pub(super) dependences: Vec<Dependence>,
}

impl<'a> Cut<'a> {
    /// Prepares a cut at `moment`.
    pub(super) fn at(recording: &'a Recording, moment: &Moment<'a>) -> Self {
        let mut cut = Self {
            recording,
            image: moment.image,
            owned_image: OnceCell::new(),
            event: moment.event,
            required: moment.required,
            runs: moment.windows.iter().flat_map(Window::runs).collect(),
            spots: Vec::new(),
            versions: Vec::new(),
            pieces: Vec::new(),
            commands: Vec::new(),
            dependences: Vec::new(),
        };
        // Each version that may be lost: its command, its block (none for an atomic command), and its spot.
        let mut versions = Vec::new();
        for (number, run) in cut.runs.iter().enumerate() {
            let window = &moment.windows[recording.drive_of(run.range.lba.0)];
            let whole: Vec<bool> =
                run.versions.iter().map(|one| window.is_whole_or_nothing(one.id)).collect();
            for lba in cut.blocks_of(run) {
                let stored = hash_of(lba, moment.image.content(lba));
                let left = |id: u64| hash_of(lba, recording.commands[id as usize].content(lba));
                let first = cut.versions.len();
                let changes = run.versions.iter().map(|one| stored ^ left(one.id));
                cut.versions.extend(changes.map(|change| Version { piece: None, change }));
                if cut.versions[first..].iter().all(|version| version.change == 0) {
                    cut.versions.truncate(first);
                    continue;
                }
                let at_risk = run.versions.iter().enumerate().filter(|(_, one)| !one.is_decisive);
                versions.extend(at_risk.map(|(place, one)| {
                    let block = if whole[place] { 0 } else { lba };
                    let leader = recording.leader(CommandId(one.id as u32));
                    (u64::from(leader.0), block, cut.spots.len(), place)
                }));
                cut.spots.push(Spot { lba, run: number, versions: first..cut.versions.len() });
            }
        }
        versions.sort_unstable();
        for command in versions.chunk_by(|one, other| one.0 == other.0) {
            let mut whole = Whole { pieces: cut.pieces.len()..0, alone: 0, shared: Vec::new() };
            for piece in command.chunk_by(|one, other| one.1 == other.1) {
                for (_, _, spot, place) in piece {
                    let versions = &mut cut.versions[cut.spots[*spot].versions.clone()];
                    versions[*place].piece = Some(cut.pieces.len());
                    match versions {
                        [only] => whole.alone ^= only.change,
                        _ => whole.shared.push(*spot),
                    }
                }
                let spots = piece.iter().map(|(.., spot, _)| *spot).collect();
                cut.pieces.push(Piece { command: CommandId(piece[0].0 as u32), spots });
            }
            whole.pieces.end = cut.pieces.len();
            cut.commands.push(whole);
        }
        cut.dependences = cut.dependences();
        cut
    }

    /// Finds the pieces that depend on others. Only listed pieces can be lost, so others are always
    /// satisfied.
    fn dependences(&self) -> Vec<Dependence> {
        let mut found = Vec::new();
        let number = |id| self.pieces.binary_search_by_key(&id, |piece| piece.command).ok();
        for spot in 0..self.spots.len() {
            let versions = self.runs[self.spots[spot].run].versions.iter().zip(self.versions(spot));
            for (one, version) in versions {
                let needs = self.command(one.id).needs.iter().filter_map(|id| number(*id));
                let Some(piece) = version.piece else { continue };
                found.extend(needs.filter(|needs| *needs != piece).map(|needs| Dependence { piece, needs }));
            }
        }
        found
    }

    /// Returns the pieces in groups: pieces that lie in one spot only are grouped by the spot; a piece that
    /// lies in several spots, or that others depend on, is a group of its own. In one spot the last survivor
    /// decides, so it is enough that at most one piece of a group survives.
    pub(super) fn alternatives(&self) -> Vec<Vec<usize>> {
        let mut by_spot: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut alternatives = Vec::new();
        let is_needed = |number| self.dependences.iter().any(|one| one.needs == number);
        for (number, piece) in self.pieces.iter().enumerate() {
            match piece.spots[..] {
                [only] if !is_needed(number) => by_spot.entry(only).or_default().push(number),
                _ => alternatives.push(vec![number]),
            }
        }
        alternatives.extend(by_spot.into_values());
        alternatives
    }

    /// Returns the blocks of a run. If only zeroes may be left in addition to the stored contents, blocks
    /// that are zeroes already are left out, since a discard may be as long as the device.
    fn blocks_of(&self, run: &Run) -> Vec<u64> {
        if run.versions.iter().all(|one| self.command(one.id).contents.is_empty()) {
            self.image.blocks_in(run.range).map(|(lba, _)| lba).collect()
        } else {
            (run.range.lba.0..run.range.end().0).collect()
        }
    }

    pub(super) fn command(&self, id: u64) -> &'a Command {
        &self.recording.commands[id as usize]
    }

    /// Returns the content of a block if `survivor` is left there.
    pub(super) fn content(&self, lba: u64, survivor: Survivor) -> Content {
        match survivor {
            Survivor::Command(id) => self.command(id).content(lba),
            Survivor::Stored | Survivor::Unreadable => self.image.content(lba),
        }
    }

    /// Returns the versions that may be left in a spot in addition to the stored content.
    pub(super) fn versions(&self, spot: usize) -> &[Version] {
        &self.versions[self.spots[spot].versions.clone()]
    }

    /// Returns the change of the hash if `survivor` is left in the spot.
    pub(super) fn change(&self, spot: usize, survivor: Survivor) -> u128 {
        let mut versions = self.runs[self.spots[spot].run].versions.iter();
        let place = versions.position(|one| Survivor::Command(one.id) == survivor);
        place.map_or(0, |place| self.versions(spot)[place].change)
    }

    /// Returns the coverage of the window before any of its states is shown.
    pub(super) fn coverage(&self) -> WindowCoverage {
        WindowCoverage {
            event: self.event,
            required: self.required,
            commands: self.commands.len(),
            pieces: self.pieces.len(),
            enumerated: 0,
            states: 0,
            coverage: Coverage::Sampled,
        }
    }
}
