//! Options of a run apart from its workers.

use std::sync::atomic::AtomicBool;

use plumb_block::{Nanos, Time};
use plumb_workload::Warmup;

/// Options of a run apart from its workers.
pub struct RunOptions<'a> {
    /// Time with which the queues of the devices stamp completions.
    pub time: Time,
    /// Flag that becomes true when the run must end early.
    pub stop: &'a AtomicBool,
    /// Length of the warm-up, which is not measured.
    pub warmup: Warmup,
    /// Length of the measurement, if time ends it; workers have their own end in their workloads.
    pub duration: Option<Nanos>,
    /// Length of the cool-down after the measurement.
    pub cooldown: Nanos,
}

impl<'a> RunOptions<'a> {
    /// Returns options that measure teams from the start to the end of their workloads.
    pub const fn whole(time: Time, stop: &'a AtomicBool) -> Self {
        Self { time, stop, warmup: Warmup::For(Nanos::ZERO), duration: None, cooldown: Nanos::ZERO }
    }
}
