//! Unanswered commands of a drive.

use std::collections::BTreeMap;

use plumb_block::{LbaRange, Nanos, Op, Payload, Tag};

use super::port::PortNumber;
use crate::command::CommandId;
use crate::fault::Effect;

/// Time after every event.
pub(super) const NEVER: Nanos = Nanos(u64::MAX);

/// Part of a command that is being timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The command itself.
    Whole,
    /// Flush that implements FUA on a drive without native FUA.
    FlushAfterWrite {
        /// Completion time of the write.
        since: Nanos,
        /// Number of the write.
        write: CommandId,
    },
}

/// An unanswered command: 128 bytes, copied without a call.
#[derive(Debug)]
pub(super) struct Pending {
    /// Port of the command; `None` if its queue is gone.
    pub(super) port: Option<PortNumber>,
    pub(super) tag: Tag,
    pub(super) op: Op,
    pub(super) range: LbaRange,
    pub(super) payload: Payload,
    pub(super) submitted_at: Nanos,
    /// Time at which it is given up, not before its submission; [`NEVER`] without a deadline.
    pub(super) deadline: Nanos,
    /// Effect of a fault on the command at its completion.
    pub(super) fault: Option<Effect>,
    pub(super) stage: Stage,
}

/// All unanswered commands.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Number of the next command.
    next: u64,
    commands: BTreeMap<CommandId, Pending>,
    /// Commands that a fault leaves unanswered.
    held: BTreeMap<CommandId, Pending>,
}

impl InFlight {
    /// Returns the number of the next command.
    pub(super) const fn next_id(&self) -> CommandId {
        CommandId(self.next)
    }

    /// Adds a command with the number [`next_id`](Self::next_id).
    pub(super) fn push(&mut self, pending: Pending) {
        self.commands.insert(self.next_id(), pending);
        self.next += 1;
    }

    /// Returns a number for an internal operation of the drive, which is never in flight.
    pub(super) const fn number_of_own(&mut self) -> CommandId {
        let id = self.next_id();
        self.next += 1;
        id
    }

    /// Returns the command with this number, unless it is gone or held.
    #[inline]
    pub(super) fn get_mut(&mut self, id: CommandId) -> Option<&mut Pending> {
        self.commands.get_mut(&id)
    }

    /// Removes and returns the command with this number, if it is still there.
    #[inline]
    pub(super) fn remove(&mut self, id: CommandId) -> Option<Pending> {
        self.commands.remove(&id).or_else(|| self.held.remove(&id))
    }

    /// Holds a command that will not be answered by itself.
    pub(super) fn hold(&mut self, id: CommandId, pending: Pending) {
        self.held.insert(id, pending);
    }

    /// Returns the held commands.
    pub(super) fn held(&self) -> Vec<CommandId> {
        self.held.keys().copied().collect()
    }

    /// Returns the commands with a deadline at or before `now`, in order of deadlines, and the earliest
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

    /// Removes and returns all commands, oldest first.
    pub(super) fn drain(&mut self) -> Vec<(CommandId, Pending)> {
        let mut all = std::mem::take(&mut self.commands);
        all.append(&mut self.held);
        all.into_iter().collect()
    }

    /// Detaches the commands of `port` and releases their memory; data to write was copied.
    pub(super) fn orphan(&mut self, port: PortNumber) {
        let all = self.commands.values_mut().chain(self.held.values_mut());
        for pending in all.filter(|pending| pending.port == Some(port)) {
            pending.port = None;
            pending.payload = Payload::None;
        }
    }

    /// Returns the number of commands.
    pub(super) fn count(&self) -> usize {
        self.commands.len() + self.held.len()
    }
}
