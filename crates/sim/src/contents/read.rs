//! Reads: a block returns the answered command that landed last, or else the durable version.

use plumb_block::{Errno, Extent, ExtentState, Lba, LbaRange};

use super::commands::Contents;
use super::content::Content;
use super::medium::MediumContent;
use super::shape::BackingError;

/// Reason of a failed read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The block is unreadable until it is written.
    #[error("{0} is unreadable since a write of it was interrupted")]
    Unreadable(Lba),
    /// The backing file failed.
    #[error(transparent)]
    Backing(BackingError),
}

impl ReadError {
    /// Returns the error number of the drive's answer.
    pub const fn errno(&self) -> Errno {
        match self {
            Self::Unreadable(_) => Errno::EIO,
            Self::Backing(error) => error.errno,
        }
    }
}

impl Contents {
    /// Reads the visible bytes of `range`, which must be within the drive, into `into`, which must have the
    /// same length.
    ///
    /// # Errors
    /// If a block is unreadable or the backing file fails; `into` is then partially filled.
    pub fn read(&self, range: LbaRange, into: &mut [u8]) -> Result<(), ReadError> {
        let mut outcome = Ok(());
        self.visit(range, &mut |run, held| {
            let from = (run.lba.0 - range.lba.0) as usize * self.block_bytes;
            let target = &mut into[from..from + run.nlb as usize * self.block_bytes];
            let read = match held {
                MediumContent::Known(content) if content.fill(run, self.block_bytes, target) => Ok(()),
                MediumContent::Known(_) => Err(ReadError::Unreadable(run.lba)),
                MediumContent::InFile => self.medium.read_file(run, target).map_err(ReadError::Backing),
            };
            outcome = outcome.and(read);
        });
        outcome
    }

    /// Checks that `range` is readable, for a read that discards the data.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does, except for failures of the backing file that only a read reveals.
    pub fn probe(&self, range: LbaRange) -> Result<(), ReadError> {
        if let Some(error) = self.backing_failed() {
            return Err(ReadError::Backing(error));
        }
        let mut outcome = Ok(());
        if self.has_unreadable {
            self.visit(range, &mut |run, held| {
                if matches!(held, MediumContent::Known(Content::Unreadable)) {
                    outcome = outcome.and(Err(ReadError::Unreadable(run.lba)));
                }
            });
        }
        outcome
    }

    /// Calls `each` for the visible contents of `range`, run by run, in order and without gaps.
    pub(super) fn visit<'a>(&'a self, range: LbaRange, each: &mut impl FnMut(LbaRange, MediumContent<'a>)) {
        let mut at = range.lba.0;
        for (run, ids) in self.window.versions(range) {
            self.medium.visit(LbaRange::new(Lba(at), run.lba.0 - at), each);
            match self.window.visible(ids).and_then(|id| self.window.command(id)) {
                Some(command) => each(run, MediumContent::Known(&command.content)),
                None => self.medium.visit(run, each),
            }
            at = run.end().0;
        }
        self.medium.visit(LbaRange::new(Lba(at), range.end().0.saturating_sub(at)), each);
    }

    /// Returns the extents of the part of `range` within the drive: in order, covering it.
    pub fn extents(&self, range: LbaRange) -> Vec<Extent> {
        let end = range.end().0.min(self.blocks);
        let range = LbaRange::new(range.lba, end.saturating_sub(range.lba.0));
        let mut extents: Vec<Extent> = Vec::new();
        let mut push = |range: LbaRange, state| match extents.last_mut() {
            Some(last) if last.state == state => last.range.nlb += range.nlb,
            _ => extents.push(Extent { range, state }),
        };
        self.visit(range, &mut |run, held| match held {
            MediumContent::Known(Content::Hole) => push(run, ExtentState::Hole),
            MediumContent::Known(Content::Zeroes) => push(run, ExtentState::Unwritten),
            MediumContent::Known(_) => push(run, ExtentState::Written),
            MediumContent::InFile => self.extents_of_file(run, &mut push),
        });
        extents
    }

    fn extents_of_file(&self, range: LbaRange, push: &mut impl FnMut(LbaRange, ExtentState)) {
        let block = self.block_bytes as u64;
        let mut lba = range.lba.0;
        while lba < range.end().0 {
            let known = self.medium.file.as_ref().and_then(|file| file.state(lba * block));
            let (state, until) = match known {
                Some((true, until)) => (ExtentState::Written, until.div_ceil(block)),
                Some((false, until)) => (ExtentState::Hole, until / block),
                None => (ExtentState::Unknown, u64::MAX),
            };
            let until = until.clamp(lba + 1, range.end().0.max(lba + 1));
            push(LbaRange::new(Lba(lba), until - lba), state);
            lba = until;
        }
    }
}
