//! Results of a run: its document, and its recording with distributions and time series.
//!
//! Every run is a [`RunDocument`]: a write path, spans that followed one another, in each of them jobs that
//! ran at the same time, and for each target of a job what the application and the storage saw. A check is
//! such a run, whose spans are its phases. There are two JSON documents of it: `plumb/load/1` is the run
//! document itself, `plumb/check/1` is the same with two tables made from it ([`CheckDocument`]).
//!
//! [`ProofDocument`] is what `plumb prove app` learnt, [`ComparisonDocument`] what `plumb compare` did,
//! [`StudyDocument`] what `plumb study` did, [`FleetDocument`] what many hosts did, [`ObservationDocument`]
//! what `plumb observe` saw: documents of their own. [`policy`], [`cache`], [`drive`], [`power`] and
//! [`restore`] are documents of how something is, and of what a command did.
//!
//! The types here are plain data: they hold nothing of the crates that run loads, and no function here
//! renders a report. Durations are seconds, sizes bytes, rates per second; what is not known is null, with a
//! sibling that says why.

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
