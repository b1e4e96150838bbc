//! A recorded run of commands, and what each of them is to a cut at a given moment: for whoever enumerates what a cut may
//! leave. Slow and plain; a drive itself keeps the same account as it goes.

use plumb_block::{Lba, LbaRange};

use super::span::{Moment, Span, flush_covers};

/// What a recorded command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Writes blocks (or zeroes); durable when answered if `fua`.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// Discards blocks; `zeroes` if the drive promises that they read as zeroes then.
    Discard {
        /// The promise.
        zeroes: bool,
    },
    /// Makes durable what rule 2 says.
    Flush,
}

/// A recorded command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it does.
    pub kind: Kind,
    /// Where; empty for a flush.
    pub range: LbaRange,
    /// When.
    pub span: Span,
}

/// What a command is to a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its blocks are there, unless something that is not older is.
    Must,
    /// Each of its blocks may be there.
    May,
    /// It was not submitted yet, or is a flush.
    Absent,
}

/// The commands up to a cut.
#[derive(Debug, Clone)]
pub struct Window {
    entries: Vec<Entry>,
    standing: Vec<Standing>,
}

impl Window {
    /// What each of `entries` is to a cut at `cut`, on a drive with a volatile cache or without (rules 2 to 5). Answers
    /// at or after `cut` have not happened.
    pub fn at_cut(entries: &[Entry], cut: Moment, is_volatile: bool) -> Self {
        let seen = entries.iter().map(|entry| Entry { span: seen_at(entry.span, cut), ..*entry });
        let entries: Vec<_> = seen.collect();
        let answered = entries.iter().filter(|entry| entry.kind == Kind::Flush && entry.span.is_completed());
        // Of the answered flushes the one that was submitted last covers all that the others do.
        let flush = answered.map(|entry| entry.span.submitted).max();
        let standing = entries.iter().map(|entry| standing(entry, cut, is_volatile, flush)).collect();
        Self { entries, standing }
    }

    /// What the command is.
    pub fn standing(&self, index: usize) -> Standing {
        self.standing[index]
    }

    /// What a block may be after the cut: the commands whose version it may hold, and `None` for what was there before
    /// all of them (rule 6).
    pub fn candidates(&self, block: Lba) -> Vec<Option<usize>> {
        let touching =
            |index: &usize| self.standing[*index] != Standing::Absent && self.touches(*index, block);
        let indices: Vec<_> = (0..self.entries.len()).filter(touching).collect();
        let durable: Vec<_> = indices.iter().copied().filter(|index| self.displaces(*index)).collect();
        let is_displaced =
            |span: Span| durable.iter().any(|newer| span.is_older_than(self.entries[*newer].span));
        let before = durable.is_empty().then_some(None);
        let kept = indices.iter().copied().filter(|index| !is_displaced(self.entries[*index].span));
        before.into_iter().chain(kept.map(Some)).collect()
    }

    fn touches(&self, index: usize, block: Lba) -> bool {
        self.entries[index].range.overlaps(LbaRange::new(block, 1))
    }

    fn displaces(&self, index: usize) -> bool {
        let is_promised = self.entries[index].kind != Kind::Discard { zeroes: false };
        self.standing[index] == Standing::Must && is_promised
    }
}

fn seen_at(span: Span, cut: Moment) -> Span {
    if span.completed < cut { span } else { Span::in_flight(span.submitted) }
}

fn standing(entry: &Entry, cut: Moment, is_volatile: bool, flush: Option<Moment>) -> Standing {
    if entry.kind == Kind::Flush || entry.span.submitted >= cut {
        return Standing::Absent;
    }
    let is_fua = entry.kind == Kind::Write { fua: true };
    let is_covered = flush.is_some_and(|submitted| flush_covers(submitted, entry.span));
    let is_durable = entry.span.is_completed() && (is_fua || !is_volatile || is_covered);
    if is_durable { Standing::Must } else { Standing::May }
}
