//! The machine that the guard looks at, and how its disks are numbered.
//!
//! /proc and /sys are read through a [`Tree`], so that the rules can be tried on trees that were put together
//! by hand. What uses what is [`plumb_linux::inventory`]'s.

mod disks;

use plumb_linux::inventory::{Inventory, InventoryError};
use plumb_linux::probe::Probe;
use plumb_linux::tree::Tree;

pub(crate) use disks::numbered;

/// A machine: its files and its drives.
#[derive(Clone, Copy)]
pub(crate) struct Machine<'a> {
    /// /proc, /sys and /dev.
    pub(crate) tree: &'a dyn Tree,
    /// The drives, when asked.
    pub(crate) probe: &'a dyn Probe,
}

impl<'a> Machine<'a> {
    /// Returns the machine that `tree` and `probe` show.
    pub(crate) fn new(tree: &'a dyn Tree, probe: &'a dyn Probe) -> Self {
        Self { tree, probe }
    }

    /// Reads the machine's block devices and what uses them, as of now.
    ///
    /// # Errors
    /// If a use may have been missed.
    pub(crate) fn inventory(&self) -> Result<Inventory, InventoryError> {
        Inventory::read(self.tree, self.probe)
    }
}

#[cfg(test)]
mod tests;
