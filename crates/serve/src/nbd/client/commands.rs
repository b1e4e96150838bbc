//! What was asked of the server and is not answered yet, by cookie.
//!
//! A cookie is a place in a table and the number of times that the place was used, so that an answer to nobody, or a
//! second answer, is recognised.

use plumb_block::Errno;

use super::coverage::Coverage;
use crate::nbd::wire::{BlockDescriptor, Command, CommandFlags, Cookie};

/// One command under way.
#[derive(Debug)]
pub(super) struct Asked {
    /// The job that it is a piece of.
    pub(super) job: u32,
    pub(super) command: Command,
    pub(super) flags: CommandFlags,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Which bytes of a read have come.
    pub(super) coverage: Coverage,
    /// The first error that a chunk reported.
    pub(super) failed: Option<Errno>,
    /// What a block status said.
    pub(super) status: Vec<BlockDescriptor>,
}

impl Asked {
    pub(super) fn new(job: u32, command: Command, flags: CommandFlags, offset: u64, length: u32) -> Self {
        let coverage = Coverage::default();
        Self { job, command, flags, offset, length, coverage, failed: None, status: Vec::new() }
    }
}

#[derive(Default)]
struct Place {
    uses: u32,
    asked: Option<Asked>,
}

/// All commands under way on one connection.
#[derive(Default)]
pub(super) struct Commands {
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Commands {
    /// Enters a command.
    pub(super) fn enter(&mut self, asked: Asked) -> Cookie {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[index as usize];
        place.uses = place.uses.wrapping_add(1);
        place.asked = Some(asked);
        Cookie(u64::from(place.uses) << 32 | u64::from(index))
    }

    /// The command with this cookie.
    pub(super) fn get(&mut self, cookie: Cookie) -> Option<&mut Asked> {
        let place = self.places.get_mut(cookie.0 as u32 as usize)?;
        if u64::from(place.uses) == cookie.0 >> 32 { place.asked.as_mut() } else { None }
    }

    /// The command with this cookie is over.
    pub(super) fn finish(&mut self, cookie: Cookie) -> Option<Asked> {
        self.get(cookie)?;
        let index = cookie.0 as u32;
        self.free.push(index);
        self.places[index as usize].asked.take()
    }

    /// Whether nothing is under way.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_under_way_is_found() {
        let mut commands = Commands::default();
        let asked = |job| Asked::new(job, Command::READ, CommandFlags::default(), 0, 512);
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
