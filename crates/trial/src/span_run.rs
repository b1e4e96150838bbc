//! A span that was run: what it measured, round by round, and how it ended.

use plumb_block::Nanos;
use plumb_load::{Fault, SpanResult};
use plumb_report::document::Sides;

use crate::target_series::TargetSeries;

/// End of a span.
#[derive(Debug)]
pub enum SpanEnd {
    /// The span ended as the workload says.
    Complete,
    /// The span was told to stop earlier; what it measured until then is as good as any.
    Interrupted,
    /// Something failed; what was measured until then is there.
    Failed(Fault),
}

/// A span that was run.
#[derive(Debug)]
pub struct FinishedSpan {
    /// Measurements of the span.
    pub result: SpanResult,
    /// End of the span.
    pub ended: SpanEnd,
    /// True if the rate had settled when measuring began, if that was waited for.
    pub settled: bool,
    /// True if all that was written was read back; `None` if that was not requested.
    pub read_back: Option<bool>,
    /// Series of each target, in windows that followed one another.
    pub(crate) series: Vec<(Nanos, Vec<TargetSeries>)>,
}

/// A span as it was run, rounds and all.
#[derive(Debug)]
pub struct SpanRun {
    /// Run that counts: the only round, the steady ones together, or the one at the depth that was found.
    pub ran: FinishedSpan,
    /// Every round, if it was repeated until it is steady or to find a depth.
    pub rounds: Vec<Round>,
    /// The depth at which the latency is kept, if it was looked for; 0 if not even a depth of 1 keeps it.
    pub depth_found: Option<u32>,
    /// Both sides of all that counts; empty until the span has ended.
    pub total: Sides,
    /// Both sides of each target; empty until the span has ended.
    pub targets: Vec<Sides>,
}

/// One round of a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Length of the measurement.
    pub window: Nanos,
    /// Reads, writes and trims per second.
    pub iops: f64,
    /// Bytes moved per second.
    pub bytes_per_second: f64,
    /// The depth, if that is what rounds differ by.
    pub depth: Option<u32>,
    /// The latency that was to be kept; `None` if there is no such target, or nothing completed.
    pub latency: Option<Nanos>,
}

impl SpanRun {
    /// Returns a span of which `ran` counts.
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

/// Joins several rounds as one window: the times add up, and so does everything else.
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
