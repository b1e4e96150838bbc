//! Rules for the versions of a block that a read may return, and that may survive a power cut.
//!
//! This is the contract of [`Device`](crate::Device) for one logical block; blocks do not depend on each
//! other, because a request may tear between them. Every write, discard and write-zeroes of the block is a
//! *version*, with the moment it was submitted and, once its completion was seen as done, the moment of that.
//!
//! 1. Version `a` is **older** than `b` if `a` completed before `b` was submitted. Two versions that were in
//!    flight at the same time have no order; neither is older.
//! 2. A version **displaces** all older ones when it has completed. A discard displaces nothing unless the
//!    device promises that discarded blocks read as zeroes: the block may read as before or as zeroes.
//! 3. **A read** returns any version that was submitted before the read completed, unless it is older than a
//!    version that displaces and had completed before the read was submitted.
//! 4. A version is **durable** when it completed with FUA, or completed before a flush was submitted that
//!    completed since, or completed at all on a device without a volatile cache.
//! 5. **After a power cut** the block is any version that was submitted before the cut, completed or not,
//!    unless it is older than one that displaces and is durable. So uncovered versions survive in any subset,
//!    a block may go back to any version since its last durable one, but never behind that.
//! 6. A version that did not end as done (failed, unanswered, in flight at the cut) has no end: it is older
//!    than nothing, for it may land later. While there is one, the block may be unreadable: by a read when
//!    the version failed or was not answered, after a cut always.
//! 7. After a power cut a block is never a mixture of versions: logical blocks do not tear. Through a page
//!    cache a read may return a mixture of the versions of rule 3, byte by byte, if one of them was in flight
//!    during the read: ext4 copies from a page without a lock against the write that copies into it
//!    (filemap_read, mm/filemap.c).
//!
//! Sources: NVMe Base Specification 2.0, Flush command, FUA, and Dataset Management; SBC-4 SYNCHRONIZE CACHE;
//! the crash rules of `docs/FAULT_MODEL`.
//!
//! What is not modelled: atomic units of more than one block, which only allow less.

/// A point in the order of events that a judge saw: submissions and completions, counted up.
pub type Moment = u64;

/// Content of a block after a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Pattern of this generation.
    Generation(u64),
    /// Zeroes.
    Zeroes,
}

/// One write, discard or write-zeroes of a block, with its content `C`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version<C> {
    /// Content that the version gives to the block.
    pub content: C,
    /// Moment of submission.
    pub submitted: Moment,
    /// Moment at which it was seen as done; `None` while it is in flight, and forever if it failed or was not
    /// answered.
    pub completed: Option<Moment>,
    /// True if it failed or was not answered.
    pub is_lost_track_of: bool,
    /// Rule 4.
    pub is_durable: bool,
    /// True if it displaces older versions when it has completed: rule 2.
    pub displaces: bool,
}

impl<C> Version<C> {
    /// Creates a version just submitted.
    pub const fn submitted(content: C, at: Moment, displaces: bool) -> Self {
        Self {
            content,
            submitted: at,
            completed: None,
            is_lost_track_of: false,
            is_durable: false,
            displaces,
        }
    }

    /// Creates a version that was there, durable, before everything else.
    pub const fn first(content: C) -> Self {
        Self {
            content,
            submitted: 0,
            completed: Some(0),
            is_lost_track_of: false,
            is_durable: true,
            displaces: true,
        }
    }

    fn is_older_than<D>(&self, other: &Version<D>) -> bool {
        self.completed.is_some_and(|completed| completed < other.submitted)
    }
}

/// The versions of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History<C> {
    /// Versions in the order of submission.
    pub versions: Vec<Version<C>>,
}

/// Contents that may be found in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivors {
    /// Indices of versions.
    pub versions: Vec<usize>,
    /// True if the block may be unreadable instead.
    pub may_be_unreadable: bool,
    /// True if the block may be a mixture of these versions where a page cache stands between: rule 7.
    pub may_be_mixed: bool,
}

impl<C> History<C> {
    /// Creates a block that held `content` from the start.
    pub fn starting_with(content: C) -> Self {
        Self { versions: vec![Version::first(content)] }
    }

    /// Returns what a read, submitted and completed at these moments, may return: rule 3.
    pub fn readable(&self, submitted: Moment, completed: Moment) -> Survivors {
        let displaced = |version: &Version<C>| {
            self.versions.iter().any(|newer| {
                newer.displaces
                    && newer.completed.is_some_and(|done| done < submitted)
                    && version.is_older_than(newer)
            })
        };
        let versions = self.indices(|version| version.submitted < completed && !displaced(version));
        let in_flight = |version: &Version<C>| version.completed.is_none_or(|done| done > submitted);
        Survivors {
            may_be_mixed: versions.iter().any(|index| in_flight(&self.versions[*index])),
            versions,
            may_be_unreadable: self.versions.iter().any(|version| version.is_lost_track_of),
        }
    }

    /// Returns what a power cut at `cut` may leave: rule 5.
    pub fn survivors(&self, cut: Moment) -> Survivors {
        let displaced = |version: &Version<C>| {
            self.versions
                .iter()
                .any(|newer| newer.displaces && newer.is_durable && version.is_older_than(newer))
        };
        Survivors {
            versions: self.indices(|version| version.submitted < cut && !displaced(version)),
            may_be_unreadable: self.versions.iter().any(|version| version.completed.is_none()),
            may_be_mixed: false,
        }
    }

    /// Records that a flush submitted at `submitted` has completed: rule 4.
    pub fn flushed(&mut self, submitted: Moment) {
        for version in &mut self.versions {
            version.is_durable |= version.completed.is_some_and(|completed| completed < submitted);
        }
    }

    fn indices(&self, keep: impl Fn(&Version<C>) -> bool) -> Vec<usize> {
        (0..self.versions.len()).filter(|index| keep(&self.versions[*index])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a history of versions `(submitted, completed)`, with version 0 from the start.
    fn history(versions: &[(Moment, Option<Moment>)]) -> History<u64> {
        let mut history = History::starting_with(0);
        for (index, (submitted, completed)) in versions.iter().enumerate() {
            let version = Version::submitted(index as u64 + 1, *submitted, true);
            history.versions.push(Version { completed: *completed, ..version });
        }
        history
    }

    #[test]
    fn a_read_returns_the_last_completed_version_or_a_newer_one() {
        let history = history(&[(1, Some(2)), (3, Some(4)), (5, None)]);
        assert_eq!(history.readable(6, 7).versions, [2, 3]);
        assert_eq!(
            history.readable(4, 5).versions,
            [1, 2],
            "the completion was not seen when the read began"
        );
        assert_eq!(history.readable(6, 5).versions, [2], "version 3 was submitted after the read ended");
    }

    #[test]
    fn only_a_read_during_a_write_may_be_a_mixture() {
        let history = history(&[(1, Some(2)), (4, Some(7))]);
        assert!(!history.readable(3, 4).may_be_mixed, "the write began after the read");
        assert!(history.readable(3, 5).may_be_mixed, "the write began during the read");
        assert!(history.readable(5, 6).may_be_mixed, "the read lies within the write");
        assert!(history.readable(6, 8).may_be_mixed, "the write ended during the read");
        assert!(!history.readable(8, 9).may_be_mixed, "the write ended before the read");
        assert!(!history.survivors(6).may_be_mixed, "a power cut does not tear a logical block");
    }

    #[test]
    fn uncovered_versions_survive_in_any_subset() {
        let history = history(&[(1, Some(2)), (3, Some(4)), (5, None)]);
        assert_eq!(history.survivors(10).versions, [0, 1, 2, 3]);
        assert!(history.survivors(10).may_be_unreadable, "version 3 was in flight");
        assert_eq!(history.survivors(5).versions, [0, 1, 2], "version 3 had not been submitted");
    }

    #[test]
    fn a_flush_covers_what_completed_before_it_was_submitted() {
        let mut history = history(&[(1, Some(2)), (3, Some(6))]);
        history.flushed(5);
        assert_eq!(
            history.survivors(10).versions,
            [1, 2],
            "version 2 completed after the flush was submitted"
        );
        history.flushed(7);
        assert_eq!(history.survivors(10).versions, [2]);
    }

    #[test]
    fn a_durable_version_keeps_what_was_in_flight_beside_it() {
        let mut history = history(&[(1, Some(5)), (2, Some(6))]);
        history.versions[2].is_durable = true;
        assert_eq!(history.survivors(10).versions, [1, 2], "they overlapped: neither is older");
    }

    #[test]
    fn a_discard_without_promise_displaces_nothing() {
        let mut history = history(&[(1, Some(2)), (3, Some(4))]);
        history.versions[2].displaces = false;
        history.flushed(9);
        assert_eq!(history.survivors(10).versions, [1, 2]);
        assert_eq!(history.readable(5, 6).versions, [1, 2]);
    }

    #[test]
    fn a_write_lost_track_of_may_land_at_any_time() {
        let mut history = history(&[(1, None), (3, Some(4))]);
        history.versions[1].is_lost_track_of = true;
        history.flushed(9);
        let readable = Survivors { versions: vec![1, 2], may_be_unreadable: true, may_be_mixed: true };
        assert_eq!(history.readable(10, 11), readable);
        assert_eq!(history.survivors(12).versions, [1, 2]);
    }
}
