//! What a read returns: of the answered commands over a block the one that landed last, or else what is durable.

use plumb_block::{Errno, Extent, ExtentState, Lba, LbaRange, Pattern};

use super::drive_side::Contents;
use super::geometry::bits;
use super::medium::{Part, What};
use super::promise::BackingError;
use crate::rules::planted::{Bug, planted};

/// Why a read fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A block cannot be read until it is written again.
    #[error("{0} is unreadable since a write of it was interrupted")]
    Unreadable(Lba),
    /// The backing file failed.
    #[error(transparent)]
    Backing(BackingError),
}

impl ReadError {
    /// What the drive answers.
    pub const fn errno(&self) -> Errno {
        match self {
            Self::Unreadable(_) => Errno::EIO,
            Self::Backing(error) => error.errno,
        }
    }
}

/// Some blocks of which the same is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Which.
    pub range: LbaRange,
    /// What is there.
    pub content: PieceContent<'a>,
}

/// What is visible in some blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceContent<'a> {
    /// Nothing: reads as zeroes.
    Hole,
    /// Zeroes that were written.
    Zeroes,
    /// A pattern; its address is that of the first block of the piece.
    Pattern(Pattern),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Whatever the backing file has there.
    InFile,
    /// Nothing can be read.
    Unreadable,
}

impl Contents {
    /// Puts the visible bytes of `range`, which lies within the drive, into `into`, which is as long.
    ///
    /// # Errors
    /// If a block cannot be read, or the backing file fails. `into` is then filled in part.
    pub fn read(&self, range: LbaRange, into: &mut [u8]) -> Result<(), ReadError> {
        let block_bytes = self.geometry.block_bytes;
        let mut outcome = Ok(());
        self.visit(range, &mut |page, part, run| {
            let first = self.geometry.first_block(page);
            if run.nlb > 0 {
                let from = (run.lba.0 - range.lba.0) as usize * block_bytes;
                let target = into.get_mut(from..from + run.nlb as usize * block_bytes);
                if let Some(Err(error)) = target.map(|target| self.read_run(run, part, target)) {
                    outcome = outcome.and(Err(ReadError::Backing(error)));
                }
            }
            for block in bits(part.mask) {
                let lba = first + block as u64;
                let at = (lba - range.lba.0) as usize * block_bytes;
                let Some(target) = into.get_mut(at..at + block_bytes) else { continue };
                let read = self.medium.bytes(page, block, part, target);
                let failed = match read {
                    Ok(true) => continue,
                    Ok(false) => ReadError::Unreadable(Lba(lba)),
                    Err(error) => ReadError::Backing(error),
                };
                outcome = outcome.and(Err(failed));
            }
        });
        outcome
    }

    /// A run of which nothing else is known: the file, or zeroes.
    fn read_run(&self, run: LbaRange, part: Part, target: &mut [u8]) -> Result<(), BackingError> {
        match &self.medium.file {
            Some(file) if part.what == What::InFile => {
                file.read(run.lba.0 * self.geometry.block_bytes as u64, target)
            }
            _ => {
                target.fill(0);
                Ok(())
            }
        }
    }

    /// Whether `range` can be read: a read whose bytes nobody wants.
    ///
    /// # Errors
    /// As [`read`](Self::read), but for failures of the backing file that only reading it would show.
    pub fn probe(&self, range: LbaRange) -> Result<(), ReadError> {
        let mut outcome = Ok(());
        if !self.has_unreadable {
            return self.backing_failed().map_or(Ok(()), |error| Err(ReadError::Backing(error)));
        }
        self.visit(range, &mut |page, part, _| {
            if part.what == What::Unreadable {
                let lba = self.geometry.first_block(page) + u64::from(part.mask.trailing_zeros());
                outcome = outcome.and(Err(ReadError::Unreadable(Lba(lba))));
            }
        });
        match self.backing_failed() {
            Some(error) => Err(ReadError::Backing(error)),
            None => outcome,
        }
    }

    /// Says what is visible in `range`, without making bytes. The pieces do not overlap and cover the range; they come
    /// in order but for the blocks of one page.
    pub fn look<'a>(&'a self, range: LbaRange, each: &mut impl FnMut(Piece<'a>)) {
        let geometry = self.geometry;
        self.visit(range, &mut |page, part, run| {
            if run.nlb > 0 {
                return each(Piece { range: run, content: self.content(part, 0, run.nlb as usize) });
            }
            let mut left = part.mask;
            while left != 0 {
                let block = left.trailing_zeros() as usize;
                let count = (left >> block).trailing_ones() as usize;
                left &= !(((1_u16 << count) - 1) << block) as u8;
                let blocks = LbaRange::new(Lba(geometry.first_block(page) + block as u64), count as u64);
                each(Piece { range: blocks, content: self.content(part, block, count) });
            }
        });
    }

    fn content(&self, part: Part, block: usize, count: usize) -> PieceContent<'_> {
        match part.what.shifted(block as u64) {
            What::Hole => PieceContent::Hole,
            What::Zeroes => PieceContent::Zeroes,
            What::Pattern(pattern) => PieceContent::Pattern(pattern),
            What::Unreadable => PieceContent::Unreadable,
            What::InFile => PieceContent::InFile,
            What::Bytes => {
                let bytes =
                    self.geometry.bytes_of(block).start..self.geometry.bytes_of(block + count - 1).end;
                PieceContent::Bytes(&self.medium.slots.bytes(part.slot)[bytes])
            }
        }
    }

    /// Visits what is visible: parts of a page, or a run of blocks over pages of which nothing else is known (then the
    /// run is not empty, and nothing, zeroes or the file are there).
    fn visit(&self, range: LbaRange, each: &mut impl FnMut(u64, Part, LbaRange)) {
        if range.nlb == 0 {
            return;
        }
        let geometry = self.geometry;
        let pages = geometry.pages(range);
        let crowded = self.window.heads.within(pages.clone());
        let mut crowded = crowded.into_iter().peekable();
        let mut page = pages.start;
        while page < pages.end {
            let is_crowded = crowded.next_if_eq(&page).is_some();
            let end = crowded.peek().map_or(pages.end, |next| *next);
            let run = if is_crowded { 1 } else { self.medium.map.run(page, end - page) };
            let run = self.plain_run(page, run);
            if run > 1 {
                let from = range.lba.0.max(geometry.first_block(page));
                let to = range.end().0.min(geometry.first_block(page + run));
                let blocks = LbaRange::new(Lba(from), to - from);
                let mut part = None;
                self.visible_parts(page, 1, &mut |found| part = Some(found));
                if let Some(part) = part {
                    self.visit_run(page, part, blocks, each);
                }
            } else {
                self.visible_parts(page, geometry.mask(page, range), &mut |part| {
                    each(page, part, LbaRange::EMPTY);
                });
            }
            page += run;
        }
    }

    /// A run is handed on as a run to those that can, and what is in it has no slot.
    fn visit_run(&self, page: u64, part: Part, run: LbaRange, each: &mut impl FnMut(u64, Part, LbaRange)) {
        each(page, Part { mask: 0, ..part }, run);
    }

    /// For how many of `run` pages that have no entry the same wide commands are over them.
    fn plain_run(&self, page: u64, run: u64) -> u64 {
        if run == 1 || self.window.wide.is_empty() {
            return run;
        }
        let edge = self.window.wide.next_edge(self.geometry.first_block(page));
        // The page in which one begins or ends is looked at by itself.
        (self.geometry.page_of(edge) - page).clamp(1, run)
    }

    /// What is visible of the blocks in `wanted` of a page.
    pub(super) fn visible_parts(&self, page: u64, wanted: u8, found: &mut impl FnMut(Part)) {
        let head = self.window.heads.get(page);
        if (head == 0 && self.window.wide.is_empty()) || planted(Bug::ReadsMedium) {
            self.medium.parts(page, wanted, found);
            return;
        }
        let winners = self.winners(page, head, wanted);
        let mut left = wanted;
        while left != 0 {
            let winner = winners[left.trailing_zeros() as usize];
            let mask =
                bits(left).filter(|block| winners[*block] == winner).fold(0, |mask, block| mask | 1 << block);
            left &= !mask;
            if winner.0 == 0 {
                self.medium.parts(page, mask, found);
            } else {
                let what = self.what_in(&self.window.pendings[winner.0], page);
                found(Part { what, slot: winner.1, mask, gives_slot: false });
            }
        }
    }

    /// Of each block: the command and the slot of what is visible; 0 if it is what is durable.
    pub(super) fn winners(&self, page: u64, head: u32, wanted: u8) -> [(u32, u32); 8] {
        let mut winners = [(0, 0); 8];
        let mut landed = [0; 8];
        let mut consider = |number: u32, slot: u32, mask: u8| {
            let pending = &self.window.pendings[number];
            if !pending.span.is_completed() {
                return;
            }
            for block in bits(mask & wanted) {
                if pending.landed >= landed[block] {
                    winners[block] = (number, slot);
                    landed[block] = pending.landed;
                }
            }
        };
        for (_, node) in self.window.chain(head) {
            consider(node.pending, node.slot, node.mask);
        }
        for number in self.window.wide.over(self.geometry.page_range(page)) {
            consider(number, 0, self.geometry.mask(page, self.window.pendings[number].range));
        }
        winners
    }

    /// What is behind the blocks of `range`, as far as it is within the drive: in order, covering it.
    pub fn extents(&self, range: LbaRange) -> Vec<Extent> {
        let mut states = Vec::new();
        let end = range.end().0.min(self.geometry.blocks);
        let range = LbaRange::new(range.lba, end.saturating_sub(range.lba.0));
        if planted(Bug::ExtentsOfMedium) {
            return vec![Extent { range, state: ExtentState::Hole }];
        }
        self.look(range, &mut |piece| match piece.content {
            PieceContent::Hole => states.push(Extent { range: piece.range, state: ExtentState::Hole }),
            PieceContent::Zeroes => states.push(Extent { range: piece.range, state: ExtentState::Unwritten }),
            PieceContent::InFile => self.extents_of_file(piece.range, &mut states),
            _ => states.push(Extent { range: piece.range, state: ExtentState::Written }),
        });
        states.sort_by_key(|extent| extent.range.lba);
        states.dedup_by(|next, extent| {
            let is_same = next.state == extent.state;
            if is_same {
                extent.range.nlb += next.range.nlb;
            }
            is_same
        });
        states
    }

    fn extents_of_file(&self, range: LbaRange, states: &mut Vec<Extent>) {
        let block = self.geometry.block_bytes as u64;
        let mut lba = range.lba.0;
        while lba < range.end().0 {
            let known = self.medium.file.as_ref().and_then(|file| file.state(lba * block));
            let (state, until) = match known {
                Some((true, until)) => (ExtentState::Written, until.div_ceil(block)),
                Some((false, until)) => (ExtentState::Hole, until / block),
                None => (ExtentState::Unknown, u64::MAX),
            };
            let until = until.clamp(lba + 1, range.end().0.max(lba + 1));
            states.push(Extent { range: LbaRange::new(Lba(lba), until - lba), state });
            lba = until;
        }
    }
}
