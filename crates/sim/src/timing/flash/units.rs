//! The write buffer's content: a unit that fills up, and those on their way to the dies.

use crate::command::CommandId;

/// What is programmed at once, and whose it is.
#[derive(Debug, Default)]
pub(super) struct Unit {
    /// Host bytes in it.
    pub(super) bytes: u64,
    /// The commands whose last byte is in it.
    pub(super) ids: Vec<CommandId>,
    /// When all in it has arrived.
    pub(super) arrived: u64,
    /// It is not out of the cache before: earlier parts of its commands are on other dies.
    pub(super) floor: u64,
}

/// All units. Memory is reused: nothing is allocated in the long run.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// The one that fills up.
    pub(super) open: Unit,
    flying: Vec<Unit>,
    free: Vec<u32>,
    /// Host bytes in all of them.
    pub(super) bytes: u64,
}

impl Units {
    /// Sends the open unit off and begins another; returns its number.
    pub(super) fn send(&mut self) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.flying.push(Unit::default());
            (self.flying.len() - 1) as u32
        });
        // The emptied unit in that place gives its memory to the next open one.
        std::mem::swap(&mut self.flying[number as usize], &mut self.open);
        number
    }

    /// The unit `number` is programmed: hands its commands to `each`, and forgets it.
    pub(super) fn land(&mut self, number: u32, each: impl FnMut(CommandId)) {
        let unit = &mut self.flying[number as usize];
        self.bytes -= unit.bytes;
        unit.ids.drain(..).for_each(each);
        *unit = Unit { ids: std::mem::take(&mut unit.ids), ..Unit::default() };
        self.free.push(number);
    }

    /// The power is gone: everything is.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
