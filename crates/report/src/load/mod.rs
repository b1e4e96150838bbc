//! What a load learnt: its document, and its recording with distributions and time series.
//!
//! The types here hold nothing of the crates that run loads; whoever runs one fills them in. Durations are seconds,
//! sizes bytes, rates per second; what is not known is null, with a sibling that says why.

pub mod document;
mod headline;
pub mod recording;
pub(crate) mod sentences;
pub mod sides;
pub mod span;

pub use document::{CallLatency, DeviceFacts, LoadDocument, LoadEnvironment, LoadTarget, Transactions};
pub use recording::{LoadRecording, Part, histogram_tag, series_name};
pub use sides::{
    CpuSeconds, DirectionResult, ErrorCount, FoundStamp, ScheduleResult, Sides, Verified, WrongBlock,
    WrongKind,
};
pub use span::{
    DepthTried, FlushMethod, LatencyTargetResult, LoadJob, LoadSpan, ProcessorSeconds, Round, SteadyState,
};
