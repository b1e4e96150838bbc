//! The commands that a drive has not answered.
//!
//! Numbers are given in order and most commands end in about that order, so they stand in a ring from the oldest on. A
//! command that is never answered is put aside, lest the ring grow behind it.

use std::collections::VecDeque;

use plumb_block::{Errno, LbaRange, Nanos, Op, Payload, Tag};

use super::PortNumber;
use crate::command::CommandId;

/// After everything.
pub(super) const NEVER: Nanos = Nanos(u64::MAX);

/// What a fault has in store for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing.
    Done,
    /// It fails when its time has come.
    Fail(Errno),
    /// It is answered so much later.
    Slow(Nanos),
    /// It is not answered.
    Timeout,
}

/// Which part of a command the timing is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The command itself.
    Whole,
    /// The flush that stands for FUA on a drive without it.
    FlushAfterWrite {
        /// When the write was done.
        since: Nanos,
        /// The write.
        write: CommandId,
    },
}

/// A command that is not answered: 128 bytes, which are copied without a call.
#[derive(Debug)]
pub(super) struct Pending {
    /// `None` when its queue is gone.
    pub(super) port: Option<PortNumber>,
    pub(super) tag: Tag,
    pub(super) op: Op,
    pub(super) range: LbaRange,
    pub(super) payload: Payload,
    pub(super) submitted_at: Nanos,
    /// When it is given up, which is not before its submission; [`NEVER`] if it has no deadline.
    pub(super) deadline: Nanos,
    pub(super) fate: Fate,
    pub(super) stage: Stage,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// The number of the front of the ring.
    first: u64,
    ring: VecDeque<Option<Pending>>,
    /// Those that a fault leaves unanswered.
    held: Vec<(CommandId, Pending)>,
    count: usize,
}

impl InFlight {
    /// The number that the next command gets.
    pub(super) fn next_id(&self) -> CommandId {
        CommandId(self.first + self.ring.len() as u64)
    }

    /// Takes a command under [`next_id`](Self::next_id).
    pub(super) fn push(&mut self, pending: Pending) {
        self.ring.push_back(Some(pending));
        self.count += 1;
    }

    /// A number for something that the drive does by itself, which is never in flight.
    pub(super) fn number_of_own(&mut self) -> CommandId {
        let id = self.next_id();
        self.ring.push_back(None);
        id
    }

    /// The command of this number, if it is there and was not put aside.
    #[inline]
    pub(super) fn get_mut(&mut self, id: CommandId) -> Option<&mut Pending> {
        let place = id.0.checked_sub(self.first)?;
        self.ring.get_mut(place as usize)?.as_mut()
    }

    /// Takes out the command of this number, if it is still there.
    #[inline]
    pub(super) fn take(&mut self, id: CommandId) -> Option<Pending> {
        let place = id.0.wrapping_sub(self.first) as usize;
        let Some(taken) = self.ring.get_mut(place).and_then(Option::take) else {
            return self.take_held(id);
        };
        self.count -= 1;
        if place == 0 {
            self.drop_front();
        }
        Some(taken)
    }

    /// The ring begins with a command that is not answered.
    #[inline]
    fn drop_front(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first += 1;
        }
    }

    #[cold]
    fn take_held(&mut self, id: CommandId) -> Option<Pending> {
        self.drop_front();
        let place = self.held.iter().position(|(held, _)| *held == id)?;
        self.count -= 1;
        Some(self.held.swap_remove(place).1)
    }

    /// Puts a command aside that is not going to be answered by itself.
    pub(super) fn hold(&mut self, id: CommandId, pending: Pending) {
        self.held.push((id, pending));
        self.count += 1;
    }

    /// The commands that were put aside.
    pub(super) fn held(&self) -> Vec<CommandId> {
        self.held.iter().map(|(id, _)| *id).collect()
    }

    /// The commands whose deadline is `now` or before, in the order of their deadlines; and the first deadline of the
    /// others.
    pub(super) fn overdue(&self, now: Nanos) -> (Vec<(Nanos, CommandId)>, Nanos) {
        let in_ring = (self.first..).map(CommandId).zip(&self.ring);
        let in_ring = in_ring.filter_map(|(id, pending)| Some((id, pending.as_ref()?)));
        let all = in_ring.chain(self.held.iter().map(|(id, pending)| (*id, pending)));
        let (mut overdue, mut first) = (Vec::new(), NEVER);
        for (id, deadline) in all.map(|(id, pending)| (id, pending.deadline)) {
            if deadline <= now {
                overdue.push((deadline, id));
            } else {
                first = first.min(deadline);
            }
        }
        overdue.sort_unstable();
        (overdue, first)
    }

    /// Takes out all, oldest first.
    pub(super) fn drain(&mut self) -> Vec<(CommandId, Pending)> {
        let first = self.first;
        let ring = self.ring.drain(..).enumerate();
        let mut all: Vec<_> =
            ring.filter_map(|(place, pending)| Some((CommandId(first + place as u64), pending?))).collect();
        let passed = all.last().map_or(first, |(id, _)| id.0 + 1);
        self.first = self.first.max(passed);
        all.append(&mut self.held);
        all.sort_by_key(|(id, _)| *id);
        self.count = 0;
        all
    }

    /// Forgets which queue the commands of `port` came from, and lets go of their memory: what they write is copied.
    pub(super) fn orphan(&mut self, port: PortNumber) {
        let held = self.held.iter_mut().map(|(_, pending)| pending);
        for pending in self.ring.iter_mut().flatten().chain(held).filter(|pending| pending.port == Some(port))
        {
            pending.port = None;
            pending.payload = Payload::None;
        }
    }

    /// How many there are.
    pub(super) const fn count(&self) -> usize {
        self.count
    }
}
