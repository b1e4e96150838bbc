//! The write buffer's content: a unit that fills up, full ones that are gathered, and those on their way to
//! the dies.

use std::collections::VecDeque;

use crate::command::CommandId;

/// Data that is programmed at once, and the commands that it belongs to.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// Host bytes in it.
    pub(super) bytes: u64,
    /// The commands whose last byte is in it.
    pub(super) ids: Vec<CommandId>,
    /// When the first of it arrived.
    pub(super) since: u64,
    /// When all in it has arrived.
    pub(super) arrived: u64,
    /// Time before which the unit is not out of the cache: its commands are answered first.
    pub(super) floor: u64,
    /// True if the unit begins with the rest of a command whose earlier parts are in the units before it.
    pub(super) goes_on: bool,
}

/// All units. Memory is reused: nothing is allocated in the long run.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// The one that fills up.
    pub(super) open: Unit,
    /// Full ones that wait for more, oldest first.
    pub(super) gathered: VecDeque<u32>,
    /// When the last unit that was sent to a die is programmed, with those before it that share a command
    /// with it.
    pub(super) chain: u64,
    /// Units that are gathered or on their way.
    flying: Vec<Unit>,
    free: Vec<u32>,
    /// Host bytes in all of them.
    pub(super) bytes: u64,
}

impl Units {
    /// Closes the open unit and begins another; returns its number.
    pub(super) fn send(&mut self) -> u32 {
        let number = self.number();
        // The emptied unit in that place gives its memory to the next open one.
        std::mem::swap(&mut self.flying[number as usize], &mut self.open);
        number
    }

    /// Makes a unit that nothing is added to; returns its number.
    pub(super) fn send_alone(&mut self, bytes: u64, arrived: u64) -> u32 {
        let number = self.number();
        let unit = &mut self.flying[number as usize];
        (unit.bytes, unit.arrived) = (bytes, arrived);
        number
    }

    /// Returns the number of a unit that is empty.
    fn number(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.flying.push(Unit::default());
            (self.flying.len() - 1) as u32
        })
    }

    /// Returns a unit that is closed and not programmed.
    pub(super) fn closed(&self, number: u32) -> &Unit {
        &self.flying[number as usize]
    }

    /// Since when the oldest of what waits to be sent to a die has been there.
    #[inline]
    pub(super) fn oldest(&self) -> Option<u64> {
        match self.gathered.front() {
            Some(number) => Some(self.closed(*number).since),
            None => (self.open.bytes > 0).then_some(self.open.since),
        }
    }

    /// Notes that the unit `number` is programmed: hands its commands to `each`, and forgets it.
    pub(super) fn land(&mut self, number: u32, each: impl FnMut(CommandId)) {
        let unit = &mut self.flying[number as usize];
        self.bytes -= unit.bytes;
        unit.ids.drain(..).for_each(each);
        *unit = Unit { ids: std::mem::take(&mut unit.ids), ..Unit::default() };
        self.free.push(number);
    }

    /// Notes that the power is gone: everything is.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
