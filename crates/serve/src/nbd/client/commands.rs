//! Unanswered commands at the server, by cookie.
//!
//! A cookie combines a table index and a command count, so that an unexpected or duplicate answer is
//! recognised.

use plumb_block::Errno;

use super::coverage::Coverage;
use crate::nbd::wire::{BlockDescriptor, Command, CommandFlags, Cookie};
use crate::slab::Slab;

/// An unanswered command.
#[derive(Debug)]
pub(super) struct PendingCommand {
    /// Job to which it belongs.
    pub(super) job: u32,
    pub(super) command: Command,
    pub(super) flags: CommandFlags,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Received bytes of a read.
    pub(super) coverage: Coverage,
    /// First error reported by a chunk.
    pub(super) failed: Option<Errno>,
    /// Received block status.
    pub(super) status: Vec<BlockDescriptor>,
}

impl PendingCommand {
    pub(super) fn new(job: u32, command: Command, flags: CommandFlags, offset: u64, length: u32) -> Self {
        let coverage = Coverage::default();
        Self { job, command, flags, offset, length, coverage, failed: None, status: Vec::new() }
    }
}

/// All unanswered commands of a connection.
#[derive(Default)]
pub(super) struct Commands {
    asked: Slab<(u32, PendingCommand)>,
    count: u32,
}

impl Commands {
    /// Adds a command.
    pub(super) fn enter(&mut self, asked: PendingCommand) -> Cookie {
        self.count = self.count.wrapping_add(1);
        let number = self.asked.insert((self.count, asked));
        Cookie(u64::from(self.count) << 32 | u64::from(number))
    }

    /// Returns the command with this cookie.
    pub(super) fn get(&mut self, cookie: Cookie) -> Option<&mut PendingCommand> {
        let (count, asked) = self.asked.get(cookie.0 as u32)?;
        (u64::from(*count) == cookie.0 >> 32).then_some(asked)
    }

    /// Removes the command with this cookie.
    pub(super) fn finish(&mut self, cookie: Cookie) -> Option<PendingCommand> {
        self.get(cookie)?;
        self.asked.remove(cookie.0 as u32).map(|(_, asked)| asked)
    }

    /// Returns true if there are no unanswered commands.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.asked.numbers(|_| true).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_under_way_is_found() {
        let mut commands = Commands::default();
        let asked = |job| PendingCommand::new(job, Command::READ, CommandFlags::default(), 0, 512);
        let (first, second) = (commands.enter(asked(1)), commands.enter(asked(2)));
        assert_eq!(commands.finish(first).map(|asked| asked.job), Some(1));
        assert!(commands.finish(first).is_none(), "a second answer");
        let third = commands.enter(asked(3));
        assert!(commands.get(first).is_none(), "the place is used again, the cookie is not");
        assert_eq!(commands.get(third).map(|asked| asked.job), Some(3));
        assert!(commands.get(Cookie(77)).is_none() && !commands.is_empty());
        assert!(commands.finish(second).is_some() && commands.finish(third).is_some());
        assert!(commands.is_empty());
    }
}
