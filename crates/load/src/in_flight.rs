//! Requests that a worker has in flight, in a table of fixed size.
//!
//! A tag is the index in the table, so a completed request is found with one access. Invariant: an entry is
//! either free (and exactly once on the free list) or holds a request.

use std::fmt;

use plumb_block::{LbaRange, Nanos, Tag};

/// Kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A trim (discard).
    Trim,
    /// A flush.
    Flush,
}

impl Kind {
    /// Number of kinds.
    pub(crate) const COUNT: usize = 4;
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
        })
    }
}

/// State kept for a request until it completes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    pub(crate) kind: Kind,
    pub(crate) range: LbaRange,
    /// Version that a write gives its blocks.
    pub(crate) generation: u64,
    /// True if the request is durable when it completes.
    pub(crate) fua: bool,
    /// Intended start; without a schedule the time of submission.
    pub(crate) intended_at: Nanos,
    /// Time of submission, by the clock of the step.
    pub(crate) handed_at: Nanos,
}

/// Table of the requests in flight.
#[derive(Debug)]
pub(crate) struct Table {
    places: Vec<Option<InFlight>>,
    free: Vec<u32>,
}

impl Table {
    pub(crate) fn new(depth: u32) -> Self {
        Self { places: vec![None; depth as usize], free: (0..depth).rev().collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns the largest number of requests.
    pub(crate) fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Takes a free entry; `None` if the table is full.
    pub(crate) fn put(&mut self, request: InFlight) -> Option<Tag> {
        let place = self.free.pop()?;
        self.places[place as usize] = Some(request);
        Some(Tag(u64::from(place)))
    }

    /// Frees the entry of `tag`; `None` if no such request is in flight.
    pub(crate) fn take(&mut self, tag: Tag) -> Option<InFlight> {
        let request = self.places.get_mut(usize::try_from(tag.0).ok()?)?.take()?;
        self.free.push(tag.0 as u32);
        Some(request)
    }

    /// Returns true if a request in flight overlaps `range`.
    pub(crate) fn touches(&self, range: LbaRange) -> bool {
        self.places.iter().flatten().any(|request| request.range.overlaps(range))
    }

    /// Returns the request that was submitted first.
    pub(crate) fn oldest(&self) -> Option<&InFlight> {
        self.places.iter().flatten().min_by_key(|request| request.handed_at)
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::Lba;

    use super::*;

    #[test]
    fn places_are_taken_once_and_come_back() {
        let request = |at| InFlight {
            kind: Kind::Read,
            range: LbaRange::new(Lba(at), 2),
            generation: 0,
            fua: false,
            intended_at: Nanos(at),
            handed_at: Nanos(at),
        };
        let mut table = Table::new(2);
        let first = table.put(request(9)).unwrap();
        let second = table.put(request(3)).unwrap();
        assert!(table.put(request(1)).is_none(), "it is full");
        assert_ne!(first, second);
        assert_eq!(table.oldest().unwrap().handed_at, Nanos(3));
        assert!(table.touches(LbaRange::new(Lba(4), 1)) && !table.touches(LbaRange::new(Lba(5), 4)));
        assert_eq!(table.take(second).unwrap().range.lba, Lba(3));
        assert!(!table.touches(LbaRange::new(Lba(4), 1)));
        assert!(table.take(second).is_none(), "a request completed twice");
        assert!(table.take(Tag(99)).is_none() && table.take(Tag(u64::MAX)).is_none());
        assert_eq!(table.len(), 1);
        assert_eq!(table.put(request(4)), Some(second));
    }
}
