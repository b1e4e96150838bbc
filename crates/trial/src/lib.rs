//! Runs a scenario: opens its targets, measures the application and the storage side, judges and records.
//!
//! The order is fixed: all targets are checked and opened before anything is written; new files are laid out;
//! the spans run one after another, each between two readings of the storage counters; written data is read
//! back if requested; and the measurements are recorded, even after an early end.

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
