//! What is going to happen inside a drive, by time.
//!
//! The answers to reads are given in the order in which they were decided on, and those to writes are: each wait in a
//! ring. The rest is in a heap.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::command::CommandId;

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The cells were read; so many bytes go out over the link.
    ReadDone(CommandId, u32),
    /// A command is answered.
    Answer(CommandId),
    /// A command is answered, and what it wrote is out of the cache.
    AnswerPersisted(CommandId),
    /// A unit was programmed.
    Programmed(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: u64,
    /// Of two things at one time, the one that was decided on first is first.
    order: u64,
    due: Due,
}

impl Entry {
    #[inline]
    const fn key(&self) -> u128 {
        (self.at as u128) << 64 | self.order as u128
    }
}

impl Ord for Entry {
    /// Reversed, because the heap gives the greatest first.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An answer in the ring.
#[derive(Debug, Clone, Copy)]
struct Answer {
    at: u64,
    order: u64,
    id: CommandId,
}

/// Things that are going to happen.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// To reads, and to writes.
    answers: [VecDeque<Answer>; 2],
    others: BinaryHeap<Entry>,
    order: u64,
}

impl Agenda {
    /// Puts `due` down for `at`.
    #[inline]
    pub(super) fn put(&mut self, at: u64, due: Due) {
        self.order += 1;
        self.others.push(Entry { at, order: self.order, due });
    }

    /// Puts an answer to a read or to a write down for `at`, which is rarely before that of the last one.
    #[inline]
    pub(super) fn put_answer(&mut self, at: u64, id: CommandId, write: bool) {
        let ring = &mut self.answers[usize::from(write)];
        if ring.back().is_some_and(|last| last.at > at) {
            return self.put(at, Due::Answer(id));
        }
        self.order += 1;
        ring.push_back(Answer { at, order: self.order, id });
    }

    /// The ring whose first answer comes first, with that answer.
    #[inline]
    fn first_answer(&self) -> Option<(usize, Answer)> {
        match (self.answers[0].front(), self.answers[1].front()) {
            (Some(read), Some(write)) if (write.at, write.order) < (read.at, read.order) => Some((1, *write)),
            (Some(read), _) => Some((0, *read)),
            (None, write) => write.map(|write| (1, *write)),
        }
    }

    /// When something happens next.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        match (self.first_answer(), self.others.peek()) {
            (Some((_, answer)), Some(other)) => Some(answer.at.min(other.at)),
            (Some((_, answer)), None) => Some(answer.at),
            (None, other) => other.map(|entry| entry.at),
        }
    }

    /// Takes what is due at `now`, the earliest first.
    #[inline]
    pub(super) fn take(&mut self, now: u64) -> Option<(u64, Due)> {
        let other = self.others.peek().map_or((u64::MAX, u64::MAX), |entry| (entry.at, entry.order));
        if let Some((ring, answer)) = self.first_answer()
            && (answer.at, answer.order) < other
        {
            if answer.at > now {
                return None;
            }
            self.answers[ring].pop_front();
            return Some((answer.at, Due::Answer(answer.id)));
        }
        if other.0 > now {
            return None;
        }
        self.others.pop().map(|entry| (entry.at, entry.due))
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.answers.iter_mut().for_each(VecDeque::clear);
        self.others.clear();
    }
}
