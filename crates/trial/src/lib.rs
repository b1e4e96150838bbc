//! Runs a scenario: opens its targets through the guard, measures the application and the storage, judges and
//! records.
//!
//! The order is always the same: every target is judged and opened before anything is written; files that
//! were made are laid out; then span after span runs between two readings of the storage's counters; what was
//! written is read back if that was asked for; and what was measured is recorded, also when it ended early.

mod attribution;
mod check;
mod check_state;
mod counters;
mod cpu;
mod document;
mod error;
mod interim_record;
mod judge;
mod open_options;
mod outcome;
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
mod span;
mod span_run;
mod spans;
mod target_series;
mod targets;
mod teams;
mod trial;
mod verify;
mod wording;

pub use check::{CheckRequest, check};
pub use document::sides;
pub use error::TrialError;
pub use interim_record::{InterimSender, run_recorded};
pub use outcome::{GOES_ON, Trial, TrialEnded};
pub use preparation::make_folders;
pub use profile::profile_scenario;
pub use record::{begin_recording, environment, histograms, series};
pub use request::{Context, Request, ScheduledSpan};
pub use span_run::{FinishedSpan, Round, SpanEnd, SpanRun};
pub use trial::{Interim, SpanSchedule, run, run_scheduled};
