//! Extents of the blocks, from block status in `base:allocation`.

use std::sync::Arc;

use plumb_block::{Clock as _, Errno, Extent, ExtentState, Lba, LbaRange, Nanos};

use super::link::{Link, Lost};
use super::single;
use crate::nbd::wire::BlockDescriptor;

/// Maximum length of a query: a multiple of any block, and below the 32-bit limit of the field.
const QUESTION_MAX_BYTES: u64 = 1 << 30;

/// Reason why the extents are unknown.
pub(super) enum NoExtents {
    Lost(Lost),
    Failed(Errno),
}

/// Returns the extents of `range`, in order, covering all of it.
pub(super) fn extents(link: &Arc<Link>, range: LbaRange, timeout: Nanos) -> Result<Vec<Extent>, NoExtents> {
    let block = link.export.logical_block();
    if range.nlb == 0 {
        return Ok(Vec::new());
    }
    if link.export.allocation_context.is_none() {
        return Ok(vec![Extent { range, state: ExtentState::Unknown }]);
    }
    let mut found = ExtentRuns { block, cursor: range.lba.0, end: range.end().0, extents: Vec::new() };
    while found.cursor < found.end {
        let offset = found.cursor * block;
        let length = ((found.end - found.cursor) * block).min(QUESTION_MAX_BYTES);
        let until = link.time().now().saturating_add(timeout);
        let descriptors = single::status(link, offset, length as u32, until)
            .map_err(NoExtents::Lost)?
            .map_err(NoExtents::Failed)?;
        found.add(offset, &descriptors);
    }
    Ok(found.extents)
}

/// Conversion of runs of bytes to runs of blocks.
struct ExtentRuns {
    block: u64,
    /// First block whose state is unknown yet.
    cursor: u64,
    end: u64,
    extents: Vec<Extent>,
}

impl ExtentRuns {
    fn add(&mut self, offset: u64, descriptors: &[BlockDescriptor]) {
        let start = self.cursor;
        let mut at = offset;
        for descriptor in descriptors {
            at = at.saturating_add(u64::from(descriptor.length));
            self.push(at / self.block, state_of(descriptor.flags));
            // A block split between two runs counts as written.
            if !at.is_multiple_of(self.block) && at / self.block >= self.cursor {
                self.push(at / self.block + 1, ExtentState::Written);
            }
        }
        if self.cursor == start {
            // An answer of less than a block would make no progress.
            self.push(start + 1, ExtentState::Unknown);
        }
    }

    /// Adds everything up to `end` with `state`.
    fn push(&mut self, end: u64, state: ExtentState) {
        let end = end.min(self.end);
        if end <= self.cursor {
            return;
        }
        let range = LbaRange::new(Lba(self.cursor), end - self.cursor);
        self.cursor = end;
        match self.extents.last_mut() {
            Some(last) if last.state == state => last.range.nlb += range.nlb,
            _ => self.extents.push(Extent { range, state }),
        }
    }
}

/// Returns the state for the flags of `base:allocation`. A hole that is not reported to read as zeroes may
/// have any contents.
fn state_of(flags: u32) -> ExtentState {
    match (flags & BlockDescriptor::HOLE != 0, flags & BlockDescriptor::ZERO != 0) {
        (true, true) => ExtentState::Hole,
        (true, false) => ExtentState::Unknown,
        (false, true) => ExtentState::Unwritten,
        (false, false) => ExtentState::Written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(runs: &[(u32, u32)]) -> Vec<(u64, ExtentState)> {
        let mut found = ExtentRuns { block: 512, cursor: 2, end: 10, extents: Vec::new() };
        let runs: Vec<_> =
            runs.iter().map(|(length, flags)| BlockDescriptor { length: *length, flags: *flags }).collect();
        while found.cursor < found.end {
            found.add(found.cursor * 512, &runs);
        }
        found.extents.iter().map(|extent| (extent.range.nlb, extent.state)).collect()
    }

    #[test]
    fn runs_of_bytes_become_runs_of_blocks() {
        use ExtentState::{Hole, Unknown, Unwritten, Written};
        assert_eq!(gathered(&[(1024, 3), (1 << 31, 0)]), [(2, Hole), (6, Written)]);
        assert_eq!(gathered(&[(700, 3), (100, 2), (1 << 20, 2)]), [(1, Hole), (1, Written), (6, Unwritten)]);
        assert_eq!(gathered(&[(512, 1), (512, 2)]).len(), 8);
        assert_eq!(gathered(&[(1, 0)]), [(8, Written)]);
        assert_eq!(gathered(&[(512, 1)]), [(8, Unknown)]);
        assert_eq!(gathered(&[]), [(8, Unknown)], "no answer at all leads on too");
    }
}
