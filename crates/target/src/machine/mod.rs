//! What the machine knows of its block devices and of who uses what.
//!
//! /proc and /sys are read through a [`Tree`], so that the rules can be tried on trees that were put together by hand;
//! the files themselves, and what they are behind, are looked at directly.

mod block;
mod disks;
mod family;
mod identity;
mod tables;

use plumb_linux::probe::Probe;
use plumb_linux::tree::Tree;

pub(crate) use block::Block;
pub(crate) use tables::{FileId, Tables};

/// A machine: its files and its drives.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// /proc, /sys and /dev.
    pub tree: &'a dyn Tree,
    /// The drives, when asked.
    pub probe: &'a dyn Probe,
}

impl<'a> Machine<'a> {
    /// The machine that `tree` and `probe` show.
    pub fn new(tree: &'a dyn Tree, probe: &'a dyn Probe) -> Self {
        Self { tree, probe }
    }
}

#[cfg(test)]
mod tests;
