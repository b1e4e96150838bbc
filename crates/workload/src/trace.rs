//! Recorded traces of the requests of other programs, and options for their replay.
//!
//! A [`Trace`] lists its targets, and the time, target and operation of each event. As it can hold millions
//! of events, an event takes only 24 bytes: ten million of them are 240 MB, and [`Trace::EVENTS_MAX`] is the
//! limit.

use plumb_block::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::invalid::{Invalid, invalid_if};

/// Record of operations on targets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Target names: paths, `/dev/block/8:0` for a device known only by its number.
    pub targets: Vec<String>,
    /// Recorded operations, in order of time.
    pub events: Vec<TraceEvent>,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time since the first request.
    pub at: Nanos,
    /// Offset in bytes. The end, `offset + length`, does not overflow.
    pub offset: Bytes,
    /// Length in bytes; zero only for a flush.
    pub length_bytes: u32,
    /// Index of the target in [`Trace::targets`].
    pub target: u16,
    /// Operation of the event.
    pub op: TraceOp,
}

/// Kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceOp {
    /// A read.
    Read,
    /// A write.
    Write {
        /// True if the write was durable when it completed.
        fua: bool,
    },
    /// A trim.
    Trim,
    /// A flush, which makes all earlier writes durable.
    Flush,
}

/// Kinds of events of a trace that are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// Reads.
    pub reads: bool,
    /// Writes.
    pub writes: bool,
    /// Trims.
    pub trims: bool,
    /// Flushes.
    pub flushes: bool,
}

/// Trace to replay instead of a workload, with options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceUse {
    /// Trace file, or the part of its name before `.blktrace.0`.
    pub path: String,
    /// Speed of the replay.
    pub speed: TraceSpeed,
    /// Divisor of offsets, which are then rounded down to `align`. At least 1.
    pub scale: u64,
    /// Alignment of offsets. At least 1 byte.
    pub align: Bytes,
    /// Events that are left out.
    pub skip: Skip,
}

/// Speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceSpeed {
    /// Every request at its own time, at this percentage of the trace's speed: 200 is twice as fast. At least
    /// 1.
    Percent(u32),
    /// Start each request as soon as the depth allows.
    Unpaced,
}

impl Trace {
    /// Maximum number of events.
    pub const EVENTS_MAX: usize = 16_000_000;
    /// Maximum number of targets.
    pub const TARGETS_MAX: usize = 4096;
}

impl TraceEvent {
    /// Returns the length in bytes.
    pub const fn length(&self) -> Bytes {
        Bytes(self.length_bytes as u64)
    }

    /// Returns the first byte after the request.
    pub const fn end(&self) -> u64 {
        self.offset.0 + self.length_bytes as u64
    }
}

impl Skip {
    /// Returns true if events of kind `op` are skipped.
    pub const fn leaves_out(self, op: TraceOp) -> bool {
        match op {
            TraceOp::Read => self.reads,
            TraceOp::Write { .. } => self.writes,
            TraceOp::Trim => self.trims,
            TraceOp::Flush => self.flushes,
        }
    }
}

impl TraceUse {
    /// Creates options that replay all of the trace at `path` unchanged.
    pub fn new(path: &str) -> Self {
        let speed = TraceSpeed::Percent(100);
        Self { path: path.to_owned(), speed, scale: 1, align: Bytes(1), skip: Skip::default() }
    }

    /// Returns true if requests keep their times.
    pub fn is_paced(&self) -> bool {
        self.speed != TraceSpeed::Unpaced
    }

    /// Checks every field.
    ///
    /// # Errors
    /// Fails at the first invalid field.
    pub fn validate(&self) -> Result<(), Invalid> {
        invalid_if!(self.path.is_empty(), "path", "empty", "the file of a trace");
        invalid_if!(self.speed == TraceSpeed::Percent(0), "speed", 0, "at least 1 percent, or unpaced");
        for (field, value) in [("scale", self.scale), ("align", self.align.0)] {
            invalid_if!(value == 0, field, 0, "at least 1");
        }
        Ok(())
    }

    /// Converts the trace for replay: without skipped events, with new offsets and times.
    #[must_use]
    pub fn apply(&self, mut trace: Trace) -> Trace {
        trace.events.retain(|event| !self.skip.leaves_out(event.op));
        let (scale, align) = (self.scale.max(1), self.align.0.max(1));
        for event in &mut trace.events {
            event.offset.0 = event.offset.0 / scale / align * align;
            if let TraceSpeed::Percent(percent) = self.speed {
                let scaled = u128::from(event.at.0) * 100 / u128::from(percent.max(1));
                event.at = Nanos(u64::try_from(scaled).unwrap_or(u64::MAX));
            }
        }
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_takes_24_bytes() {
        assert_eq!(size_of::<TraceEvent>(), 24);
    }

    #[test]
    fn a_trace_is_scaled_aligned_and_thinned() {
        let event = |at, offset, op| TraceEvent {
            at: Nanos(at),
            offset: Bytes(offset),
            length_bytes: 512,
            target: 0,
            op,
        };
        let events = vec![event(0, 10_000, TraceOp::Read), event(900, 20_000, TraceOp::Write { fua: false })];
        let trace = Trace { targets: vec!["a".into()], events };
        let all = TraceUse { scale: 2, align: Bytes(4096), ..TraceUse::new("t") };
        let halved = all.apply(trace.clone());
        assert_eq!(halved.events.iter().map(|event| event.offset.0).collect::<Vec<_>>(), [4096, 8192]);
        let times = |percent| {
            let speed = TraceSpeed::Percent(percent);
            TraceUse { speed, ..TraceUse::new("t") }.apply(trace.clone()).events[1].at
        };
        assert_eq!((times(200), times(50)), (Nanos(450), Nanos(1800)), "a percentage of the speed");
        let skip = Skip { reads: true, ..Skip::default() };
        let left = TraceUse { skip, ..TraceUse::new("t") }.apply(trace);
        assert_eq!(left.events.len(), 1);
        assert_eq!(left.events[0].at, Nanos(900), "what is left keeps its time");
    }
}
