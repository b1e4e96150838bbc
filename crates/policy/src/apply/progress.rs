//! Progress events of an apply.

use std::path::Path;

use plumb_block::Nanos;

/// A progress event.
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
        /// Number of the wave, from 0, which is the canary.
        wave: usize,
        /// Number of disks in the wave.
        disks: usize,
    },
    /// A disk begins.
    DiskBegun {
        /// Name of the disk.
        disk: &'a str,
        /// Number of disks done before it.
        done: usize,
        /// Total number of disks.
        total: usize,
        /// Estimated remaining time; unknown for the first disk.
        remaining: Option<Nanos>,
    },
    /// A step is about to be executed.
    Step {
        /// Name of the disk.
        disk: &'a str,
        /// Number of the step, from 0.
        step: usize,
        /// Number of steps.
        steps: usize,
        /// Purpose of the step.
        words: &'a str,
    },
    /// A disk was read back.
    DiskEnded {
        /// Name of the disk.
        disk: &'a str,
        /// True if it matches the goal.
        verified: bool,
        /// Time until the device and the kernel agreed.
        settled_in: Nanos,
    },
    /// All disks of a wave were read back again.
    WaveEnded {
        /// Number of the wave.
        wave: usize,
    },
}

/// Callback for everything that happens, in order, between two steps: it must not take long.
pub type Progress<'a> = &'a dyn Fn(&Event<'_>);
