//! The commands that a drive has not answered.

use std::collections::BTreeMap;

use plumb_block::{LbaRange, Nanos, Op, Payload, Tag};

use super::port::PortNumber;
use crate::command::CommandId;
use crate::fault::Effect;

/// Time after every event.
pub(super) const NEVER: Nanos = Nanos(u64::MAX);

/// Part of a command that the timing is at.
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
    /// Effect that a fault has on the command, when its time has come.
    pub(super) fault: Option<Effect>,
    pub(super) stage: Stage,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// The number that the next command gets.
    next: u64,
    commands: BTreeMap<CommandId, Pending>,
    /// Commands that a fault leaves unanswered.
    held: BTreeMap<CommandId, Pending>,
}

impl InFlight {
    /// Returns the number that the next command gets.
    pub(super) const fn next_id(&self) -> CommandId {
        CommandId(self.next)
    }

    /// Takes a command under [`next_id`](Self::next_id).
    pub(super) fn push(&mut self, pending: Pending) {
        self.commands.insert(self.next_id(), pending);
        self.next += 1;
    }

    /// Returns a number for something that the drive does by itself, which is never in flight.
    pub(super) const fn number_of_own(&mut self) -> CommandId {
        let id = self.next_id();
        self.next += 1;
        id
    }

    /// Returns the command of this number, if it is there and was not put aside.
    #[inline]
    pub(super) fn get_mut(&mut self, id: CommandId) -> Option<&mut Pending> {
        self.commands.get_mut(&id)
    }

    /// Removes and returns the command of this number, if it is still there.
    #[inline]
    pub(super) fn remove(&mut self, id: CommandId) -> Option<Pending> {
        self.commands.remove(&id).or_else(|| self.held.remove(&id))
    }

    /// Puts a command aside that is not going to be answered by itself.
    pub(super) fn hold(&mut self, id: CommandId, pending: Pending) {
        self.held.insert(id, pending);
    }

    /// Returns the commands that were put aside.
    pub(super) fn held(&self) -> Vec<CommandId> {
        self.held.keys().copied().collect()
    }

    /// Returns the commands whose deadline is `now` or before, in the order of their deadlines; and the first
    /// deadline of the others.
    pub(super) fn overdue(&self, now: Nanos) -> (Vec<(Nanos, CommandId)>, Nanos) {
        let (mut overdue, mut first) = (Vec::new(), NEVER);
        for (id, pending) in self.commands.iter().chain(&self.held) {
            if pending.deadline <= now {
                overdue.push((pending.deadline, *id));
            } else {
                first = first.min(pending.deadline);
            }
        }
        overdue.sort_unstable();
        (overdue, first)
    }

    /// Takes out all, oldest first.
    pub(super) fn drain(&mut self) -> Vec<(CommandId, Pending)> {
        let mut all = std::mem::take(&mut self.commands);
        all.append(&mut self.held);
        all.into_iter().collect()
    }

    /// Forgets which queue the commands of `port` came from, and lets go of their memory: what they write is
    /// copied.
    pub(super) fn orphan(&mut self, port: PortNumber) {
        let all = self.commands.values_mut().chain(self.held.values_mut());
        for pending in all.filter(|pending| pending.port == Some(port)) {
            pending.port = None;
            pending.payload = Payload::None;
        }
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> usize {
        self.commands.len() + self.held.len()
    }
}
