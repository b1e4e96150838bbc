//! [`Builder`] of a trace from single events.

use std::collections::BTreeMap;
use std::io;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{Trace, TraceEvent, TraceOp, Workload};

use crate::Error;

/// Creates the error of an unreadable file.
pub(super) fn unreadable(place: &str, error: &io::Error) -> Error {
    Error::new(place, format!("cannot be read: {error}"))
}

/// Operation of a trace, before validation.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceOperation {
    pub(super) at: Nanos,
    pub(super) op: TraceOp,
    /// Offset in bytes.
    pub(super) offset: u64,
    /// Length in bytes; 0 for a flush.
    pub(super) length: u64,
}

/// Trace under construction. Targets are looked up in a map, as a hostile trace may name one on each line.
#[derive(Default)]
pub(super) struct Builder {
    trace: Trace,
    places: BTreeMap<String, u16>,
}

impl Builder {
    /// Returns the index of a target, adding it if new.
    ///
    /// # Errors
    /// Fails if the trace has the maximum number of targets.
    pub(super) fn target(&mut self, name: &str) -> Result<u16, String> {
        if let Some(place) = self.places.get(name) {
            return Ok(*place);
        }
        let place = self.trace.targets.len();
        if place == Trace::TARGETS_MAX {
            return Err(format!("is one target more than the {} that are taken", Trace::TARGETS_MAX));
        }
        self.trace.targets.push(name.to_owned());
        self.places.insert(name.to_owned(), place as u16);
        Ok(place as u16)
    }

    /// Adds an operation on `target`.
    ///
    /// # Errors
    /// Fails if the trace is full, or the length is invalid.
    pub(super) fn add(&mut self, target: u16, done: TraceOperation) -> Result<(), String> {
        if self.trace.events.len() == Trace::EVENTS_MAX {
            return Err(format!(
                "is one event more than the {} that are taken: cut the trace",
                Trace::EVENTS_MAX
            ));
        }
        let TraceOperation { at, op, offset, length } = done;
        let most = if op == TraceOp::Trim { u64::from(u32::MAX) } else { Workload::BLOCK_MAX.0 };
        match length {
            0 if op != TraceOp::Flush => return Err("has no length".into()),
            _ if length > most => return Err(format!("is {length} bytes long: expected at most {most}")),
            _ if offset.checked_add(length).is_none() => return Err("ends beyond 16 EiB".into()),
            _ => {}
        }
        let length_bytes = length as u32;
        self.trace.events.push(TraceEvent { at, offset: Bytes(offset), length_bytes, target, op });
        Ok(())
    }

    /// Returns the trace sorted by time, relative to the first event.
    pub(super) fn finish(self) -> Trace {
        let mut trace = self.trace;
        if !trace.events.is_sorted_by_key(|event| event.at) {
            trace.events.sort_by_key(|event| event.at);
        }
        let first = trace.events.first().map_or(Nanos::ZERO, |event| event.at);
        for event in &mut trace.events {
            event.at = event.at.since(first);
        }
        trace
    }
}
