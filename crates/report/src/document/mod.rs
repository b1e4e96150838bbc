//! Results of a run: its document, and its recording with distributions and time series.
//!
//! Every run is a [`RunDocument`]: a write path, consecutive spans with jobs that run at the same time, and
//! for each target of a job the application side and the storage side. A check is such a run, with its phases
//! as spans. A run has one of two JSON documents: `plumb/load/1` is the run document itself, and
//! `plumb/check/1` adds two tables made from it ([`CheckDocument`]).
//!
//! Separate documents: [`ProofDocument`] of `plumb prove app`, [`ComparisonDocument`] of `plumb compare`,
//! [`StudyDocument`] of `plumb study`, [`FleetDocument`] of `plumb fleet`, [`ObservationDocument`] of `plumb
//! observe`. [`policy`], [`cache`], [`drive`], [`power`] and [`restore`] hold documents of a status, and of
//! the results of commands.
//!
//! The types here are plain data, independent of the crates that run loads, and no function here renders a
//! report. Durations are in seconds, sizes in bytes, rates per second. An unknown value is null, and a
//! related field states the reason.

pub mod cache;
pub mod check;
pub mod comparison;
pub mod drive;
pub mod fleet;
pub mod json;
mod labels;
pub mod live;
pub mod observation;
mod observed_run;
pub mod policy;
pub mod power;
pub mod proof;
mod recorded_check;
pub mod recording;
pub mod restore;
pub mod run;
pub mod sides;
pub mod span;
pub mod study;

pub use check::CheckDocument;
pub use comparison::ComparisonDocument;
pub use fleet::FleetDocument;
pub use observation::ObservationDocument;
pub use proof::ProofDocument;
pub use recording::{
    FleetRecording, OpenError, Part, RunContents, RunRecording, TargetRecording, series_name, tag,
};
pub use run::{
    Account, AtomicResult, CallLatency, DeviceFacts, Environment, RunDocument, RunKind, RunTarget,
    TargetPath, Transactions,
};
pub use sides::{CpuSeconds, DirectionResult, ErrorCount, ScheduleResult, Sides};
pub use span::{
    DepthTried, FlushMethod, LatencyTargetResult, ProcessorSeconds, Round, RunJob, RunSpan, SteadyState,
};
pub use study::StudyDocument;
