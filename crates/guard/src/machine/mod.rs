//! The machine that the guard looks at, and how its disks are numbered.
//!
//! /proc and /sys are read through a [`Tree`], so that the rules can be tried on trees that were put together
//! by hand. What uses what is [`plumb_linux::inventory`]'s.

mod disks;

use std::cell::OnceCell;

use plumb_linux::inventory::{Inventory, InventoryError};
use plumb_linux::probe::Probe;
use plumb_linux::tree::Tree;

pub(crate) use disks::numbered;

/// A machine: its files, its drives, and what used what when that was first asked.
pub struct Machine<'a> {
    /// /proc, /sys and /dev.
    pub tree: &'a dyn Tree,
    /// The drives, when asked.
    pub probe: &'a dyn Probe,
    inventory: OnceCell<Result<Inventory, InventoryError>>,
}

impl<'a> Machine<'a> {
    /// Returns the machine that `tree` and `probe` show.
    pub fn new(tree: &'a dyn Tree, probe: &'a dyn Probe) -> Self {
        Self { tree, probe, inventory: OnceCell::new() }
    }

    /// Returns the machine as it is from now on, for whoever has claimed something since it was looked at.
    pub fn now(&self) -> Self {
        Self::new(self.tree, self.probe)
    }

    /// Returns the machine's block devices and what uses them, as they were when first asked for.
    ///
    /// # Errors
    /// If a use may have been missed.
    pub(crate) fn inventory(&self) -> Result<&Inventory, InventoryError> {
        self.inventory.get_or_init(|| Inventory::read(self.tree, self.probe)).as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests;
