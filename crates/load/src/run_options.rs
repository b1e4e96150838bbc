//! Options of a run that do not concern its workers.

use std::sync::atomic::AtomicBool;

use plumb_block::{Nanos, Time};
use plumb_workload::Warmup;

/// Options of a run, apart from what its workers do.
pub struct RunOptions<'a> {
    /// Time with which the devices' queues stamp completions.
    pub time: Time,
    /// Becomes true when the run must end early.
    pub stop: &'a AtomicBool,
    /// Length of the warm-up, which is not measured.
    pub warmup: Warmup,
    /// Length of the measurement, if time ends it; workers have their own end in their workloads.
    pub duration: Option<Nanos>,
    /// Length of the cool-down after the measurement.
    pub cooldown: Nanos,
}

impl<'a> RunOptions<'a> {
    /// Teams are measured from the start to the end of their workloads.
    pub const fn whole(time: Time, stop: &'a AtomicBool) -> Self {
        Self { time, stop, warmup: Warmup::For(Nanos::ZERO), duration: None, cooldown: Nanos::ZERO }
    }
}
