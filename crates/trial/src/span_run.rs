//! Span that was run: its measurements by round, and its end.

use plumb_block::Nanos;
use plumb_load::{Fault, SpanResult};
use plumb_report::document::Sides;

use crate::target_series::TargetSeries;

/// End of a span.
#[derive(Debug)]
pub enum SpanEnd {
    /// The span ended as the workload specifies.
    Complete,
    /// The span was stopped early. The measurements until then are valid.
    Interrupted,
    /// Something failed. The measurements until then are included.
    Failed(Fault),
}

/// Run of a span.
#[derive(Debug)]
pub struct FinishedSpan {
    /// Measurements of the span.
    pub result: SpanResult,
    /// End of the span.
    pub ended: SpanEnd,
    /// True if the rate had settled when the measurement began, or that was not required.
    pub settled: bool,
    /// True if all written data was read back; `None` if not requested.
    pub read_back: Option<bool>,
    /// Series of each target, in consecutive windows.
    pub(crate) series: Vec<(Nanos, Vec<TargetSeries>)>,
}

/// Span with all its rounds.
#[derive(Debug)]
pub struct SpanRun {
    /// Run that counts: the only round, the steady ones together, or the one at the depth that was found.
    pub ran: FinishedSpan,
    /// Rounds, if the span was repeated until it was steady or to find a depth.
    pub rounds: Vec<Round>,
    /// Depth that meets the latency, if it was searched for; 0 if not even a depth of 1 does.
    pub depth_found: Option<u32>,
    /// Both sides of everything that counts; empty until the span has ended.
    pub total: Sides,
    /// Both sides of each target; empty until the span has ended.
    pub targets: Vec<Sides>,
}

/// Round of a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Length of the measurement.
    pub window: Nanos,
    /// Reads, writes and trims per second.
    pub iops: f64,
    /// Bytes moved per second.
    pub bytes_per_second: f64,
    /// Depth, if rounds differ by it.
    pub depth: Option<u32>,
    /// Latency at the percentile of the latency target; `None` without a target, or if nothing completed.
    pub latency: Option<Nanos>,
}

impl SpanRun {
    /// Creates the run of a span in which `ran` counts.
    pub(crate) fn new(ran: FinishedSpan, rounds: Vec<Round>, depth_found: Option<u32>) -> Self {
        Self { ran, rounds, depth_found, total: Sides::default(), targets: Vec::new() }
    }

    pub(crate) fn once(ran: FinishedSpan) -> Self {
        Self::new(ran, Vec::new(), None)
    }
}

impl Round {
    pub(crate) fn from_result(result: &SpanResult) -> Self {
        let application = result.total().application();
        let (iops, bytes_per_second) = (application.iops, application.bytes_per_second);
        Self { window: result.window, iops, bytes_per_second, depth: None, latency: None }
    }
}

/// Joins several rounds into one window: times and counts are added.
pub(crate) fn together(rounds: Vec<SpanResult>) -> SpanResult {
    let mut rounds = rounds.into_iter();
    let Some(mut whole) = rounds.next() else {
        return SpanResult {
            warmup: Nanos::ZERO,
            window: Nanos::ZERO,
            threads: Vec::new(),
            targets: Vec::new(),
            processors: Vec::new(),
        };
    };
    for round in rounds {
        whole.append(round);
    }
    whole
}
