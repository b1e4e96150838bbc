//! Runs a scenario: opens its targets through the guard, measures the application and the storage, judges and
//! records.
//!
//! The order is always the same: every target is judged and opened before anything is written; files that
//! were made are laid out; then span after span runs between two readings of the storage's counters; what was
//! written is read back if that was asked for; and what was measured is recorded, also when it ended early.

mod check;
mod check_state;
mod counters;
mod cpu;
mod document;
mod ending;
mod error;
mod judge;
mod looks;
mod opening;
mod page_cache;
mod preparation;
mod profile;
mod program;
mod record;
mod replayed;
mod request;
mod rounds;
mod session;
mod sharing;
mod so_far;
mod span;
mod span_run;
mod spans;
mod staff;
mod targets;
mod trial;
mod verify;
mod whose;
mod words;

pub use check::{CheckRequest, check};
pub use document::sides;
pub use ending::{GOES_ON, Trial, TrialEnded};
pub use error::TrialError;
pub use preparation::{forget_cached, make_folders};
pub use profile::profile_scenario;
pub use record::{begin_recording, environment, histograms, series};
pub use request::{Context, Request, Turn};
pub use so_far::{Outlet, recorded};
pub use span_run::{FinishedSpan, Round, SpanEnd, SpanRun};
pub use trial::{Course, Interim, run, run_turns};
