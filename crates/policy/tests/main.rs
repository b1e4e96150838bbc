//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod apply_of_a_thousand;
mod apply_refusals;
mod apply_states;
mod crash_everywhere;
mod device_recordings;
mod device_views;
mod mock_mechanisms;
mod persist_over_a_power_cycle;
mod plan_refusals;
mod schemas;
mod shared_caches;
mod watch_drift;
mod wire_fuzz;
