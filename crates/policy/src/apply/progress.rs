//! Progress of an apply, for whoever watches.

use std::path::Path;

use plumb_block::Nanos;

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The snapshot is durable; changes follow.
    Begun {
        /// Number of disks.
        disks: usize,
        /// The journal.
        journal: &'a Path,
    },
    /// A wave begins.
    WaveBegun {
        /// Number of the wave, from 0: the canary.
        wave: usize,
        /// Number of disks that it has.
        disks: usize,
    },
    /// A disk begins.
    DiskBegun {
        /// Name of the disk.
        disk: &'a str,
        /// How many were done before it.
        done: usize,
        /// Number of them.
        total: usize,
        /// Time that the rest will take, if it goes on as until now; unknown for the first.
        remaining: Option<Nanos>,
    },
    /// A step is about to be carried out.
    Step {
        /// The disk's name.
        disk: &'a str,
        /// Number of the step, from 0.
        step: usize,
        /// Number of them.
        steps: usize,
        /// Purpose of the step.
        words: &'a str,
    },
    /// A disk was read back.
    DiskEnded {
        /// Name of the disk.
        disk: &'a str,
        /// True if it is as it should be.
        verified: bool,
        /// Time that the device and the kernel took to agree.
        settled_in: Nanos,
    },
    /// All disks of a wave were read back again.
    WaveEnded {
        /// Number of the wave.
        wave: usize,
    },
}

/// Whoever watches.
pub trait Progress {
    /// Called for everything that happens, in order, between two steps: it must not take long.
    fn event(&self, event: &Event<'_>);
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _: &Event<'_>) {}
}
