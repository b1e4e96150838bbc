//! The examined machine: its /proc, /sys and drives, and the numbers of its disks.
//!
//! /proc and /sys are read through a [`Tree`], so that tests can build machines. [`plumb_linux::inventory`]
//! determines which devices and file systems use which.

mod disks;

use std::cell::OnceCell;

use plumb_linux::inventory::{Inventory, InventoryError};
use plumb_linux::probe::Probe;
use plumb_linux::tree::Tree;

pub(crate) use disks::numbered;

/// A machine, with its inventory cached at first use.
pub struct Machine<'a> {
    /// /proc, /sys and /dev.
    pub tree: &'a dyn Tree,
    /// Access to the drives.
    pub probe: &'a dyn Probe,
    inventory: OnceCell<Result<Inventory, InventoryError>>,
}

impl<'a> Machine<'a> {
    /// Creates the machine seen through `tree` and `probe`.
    pub fn new(tree: &'a dyn Tree, probe: &'a dyn Probe) -> Self {
        Self { tree, probe, inventory: OnceCell::new() }
    }

    /// Returns the machine without the cached inventory, for another look after claiming a device.
    pub fn now(&self) -> Self {
        Self::new(self.tree, self.probe)
    }

    /// Returns the block devices and their uses, as of the first call.
    ///
    /// # Errors
    /// Fails if a use may have been missed.
    pub(crate) fn inventory(&self) -> Result<&Inventory, InventoryError> {
        self.inventory.get_or_init(|| Inventory::read(self.tree, self.probe)).as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests;
