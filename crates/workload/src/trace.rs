//! Traces of the requests of other programs, and options of their replay.
//!
//! A [`Trace`] says which targets there were and what was asked of which of them when. It can hold millions
//! of events, so an event is kept in 24 bytes: ten million of them are 240 MB, and [`Trace::EVENTS_MAX`] is
//! where it ends.

use plumb_block::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::invalid::{Invalid, invalid_if};

/// Record of operations on targets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The names: paths, `/dev/block/8:0` for a device that is known by its number.
    pub targets: Vec<String>,
    /// Recorded operations, in order of time.
    pub events: Vec<TraceEvent>,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// When it was made, since the first one.
    pub at: Nanos,
    /// Where. The end, `offset + length`, does not overflow.
    pub offset: Bytes,
    /// How much; zero for a flush and for nothing else.
    pub length_bytes: u32,
    /// Target of the event: its place in [`Trace::targets`].
    pub target: u16,
    /// Operation of the event.
    pub op: TraceOp,
}

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceOp {
    /// A read.
    Read,
    /// A write.
    Write {
        /// Durable when it completed.
        fua: bool,
    },
    /// A trim.
    Trim,
    /// Everything written before made durable.
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

/// A trace in place of a workload: which one, and how it is to be replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceUse {
    /// The file of the trace, or what stands before `.blktrace.0`.
    pub path: String,
    /// How fast.
    pub speed: TraceSpeed,
    /// Offsets are divided by this, and rounded down to `align`. At least 1.
    pub scale: u64,
    /// Offsets are multiples of this. At least 1 byte.
    pub align: Bytes,
    /// Events that are left out.
    pub skip: Skip,
}

/// How fast a trace is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceSpeed {
    /// Every request at its own time, at so many percent of the speed of the trace: 200 is twice as fast. At
    /// least 1.
    Percent(u32),
    /// One after the other as fast as the depth allows.
    Unpaced,
}

impl Trace {
    /// The most events that are taken.
    pub const EVENTS_MAX: usize = 16_000_000;
    /// The most targets that are taken.
    pub const TARGETS_MAX: usize = 4096;
}

impl TraceEvent {
    /// Returns how much.
    pub const fn length(&self) -> Bytes {
        Bytes(self.length_bytes as u64)
    }

    /// Returns the first byte after it.
    pub const fn end(&self) -> u64 {
        self.offset.0 + self.length_bytes as u64
    }
}

impl Skip {
    /// Returns true if `op` is one of them.
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
    /// Returns all of the trace at `path`, as it was recorded.
    pub fn new(path: &str) -> Self {
        let speed = TraceSpeed::Percent(100);
        Self { path: path.to_owned(), speed, scale: 1, align: Bytes(1), skip: Skip::default() }
    }

    /// Returns true if requests have times of their own.
    pub fn is_paced(&self) -> bool {
        self.speed != TraceSpeed::Unpaced
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field that makes no sense.
    pub fn validate(&self) -> Result<(), Invalid> {
        invalid_if!(self.path.is_empty(), "path", "empty", "the file of a trace");
        invalid_if!(self.speed == TraceSpeed::Percent(0), "speed", 0, "at least 1 percent, or unpaced");
        for (field, value) in [("scale", self.scale), ("align", self.align.0)] {
            invalid_if!(value == 0, field, 0, "at least 1");
        }
        Ok(())
    }

    /// Returns the trace as it is to be replayed: without what is left out, at its new places and times.
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
