//! Commands inside a drive in numbered slots, like the tags of NCQ.

use crate::command::Command;

pub(super) type Slot = u32;

/// Commands by slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    commands: Vec<Command>,
    free: Vec<Slot>,
}

impl Slots {
    pub(super) fn put(&mut self, command: Command) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.commands[slot as usize] = command;
            return slot;
        }
        self.commands.push(command);
        (self.commands.len() - 1) as Slot
    }

    pub(super) fn get(&self, slot: Slot) -> Command {
        self.commands[slot as usize]
    }

    /// Frees `slot` and returns its command.
    pub(super) fn remove(&mut self, slot: Slot) -> Command {
        self.free.push(slot);
        self.commands[slot as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.commands.len() - self.free.len()
    }

    pub(super) fn clear(&mut self) {
        self.commands.clear();
        self.free.clear();
    }
}
