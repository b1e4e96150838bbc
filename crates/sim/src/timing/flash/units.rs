//! Contents of the write buffer: an open unit, full units that wait, and units on their way to the dies.

use std::collections::VecDeque;

use crate::command::CommandId;

/// Data programmed at once, with its commands.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// Number of host bytes.
    pub(super) bytes: u64,
    /// Commands whose last byte is in it.
    pub(super) ids: Vec<CommandId>,
    /// Time at which its first data arrived.
    pub(super) since: u64,
    /// Time at which all of its data has arrived.
    pub(super) arrived: u64,
    /// Earliest time at which the unit leaves the cache: its commands are answered first.
    pub(super) floor: u64,
    /// True if the unit starts with the rest of a command from the previous units.
    pub(super) goes_on: bool,
}

/// All units. Memory is reused, so nothing is allocated in the long run.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// Open unit.
    pub(super) open: Unit,
    /// Full units that wait for more, oldest first.
    pub(super) gathered: VecDeque<u32>,
    /// Time when the last unit sent to a die is programmed, together with earlier units that share a command
    /// with it.
    pub(super) chain: u64,
    /// Units that are waiting or on their way.
    flying: Vec<Unit>,
    free: Vec<u32>,
    /// Number of host bytes in all units.
    pub(super) bytes: u64,
}

impl Units {
    /// Closes the open unit and starts another. Returns the number of the closed one.
    pub(super) fn send(&mut self) -> u32 {
        let number = self.number();
        // The emptied unit in that slot gives its memory to the next open one.
        std::mem::swap(&mut self.flying[number as usize], &mut self.open);
        number
    }

    /// Creates a closed unit with its own data. Returns its number.
    pub(super) fn send_alone(&mut self, bytes: u64, arrived: u64) -> u32 {
        let number = self.number();
        let unit = &mut self.flying[number as usize];
        (unit.bytes, unit.arrived) = (bytes, arrived);
        number
    }

    /// Returns the number of an empty unit.
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

    /// Returns the arrival time of the oldest data that is not yet sent to a die.
    #[inline]
    pub(super) fn oldest(&self) -> Option<u64> {
        match self.gathered.front() {
            Some(number) => Some(self.closed(*number).since),
            None => (self.open.bytes > 0).then_some(self.open.since),
        }
    }

    /// Processes a programmed unit: passes its commands to `each` and frees it.
    pub(super) fn land(&mut self, number: u32, each: impl FnMut(CommandId)) {
        let unit = &mut self.flying[number as usize];
        self.bytes -= unit.bytes;
        unit.ids.drain(..).for_each(each);
        *unit = Unit { ids: std::mem::take(&mut unit.ids), ..Unit::default() };
        self.free.push(number);
    }

    /// Removes everything after a power cut.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
