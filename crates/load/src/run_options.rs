//! How a run goes, apart from what its workers do.

use std::sync::atomic::AtomicBool;

use plumb_block::{Nanos, Time};
use plumb_workload::Warmup;

/// Options of a run, apart from what its workers do.
pub struct RunOptions<'a> {
    /// Time with which the devices' queues stamp completions.
    pub time: Time,
    /// Becomes true when the run shall end early.
    pub stop: &'a AtomicBool,
    /// How long the teams run before they are measured.
    pub warmup: Warmup,
    /// How long they are measured, if time ends it; workers have their own end in their workloads.
    pub duration: Option<Nanos>,
    /// How long they go on after that.
    pub cooldown: Nanos,
}

impl<'a> RunOptions<'a> {
    /// Teams are measured from the start to the end of their workloads.
    pub const fn whole(time: Time, stop: &'a AtomicBool) -> Self {
        Self { time, stop, warmup: Warmup::For(Nanos::ZERO), duration: None, cooldown: Nanos::ZERO }
    }
}
