//! Traces of what others did: fio's iologs and the binary files of blktrace.
//!
//! A [`Trace`] is what an engine needs to do the same again: which targets, and what was asked of which of them when.
//! Times are relative to the first event and never go back. Reading is pure and bounded: no length in a file makes
//! more than its bytes can hold, and nothing panics on a broken one.
//!
//! Limitations: an iolog's `sync` and `datasync` are both a flush; what a trace does not carry (write content, who
//! waited for whom) is not invented.

mod blktrace;
mod iolog;

use std::collections::BTreeMap;
use std::io;

use plumb_block::{Bytes, Nanos};

use crate::Error;

/// What was done to which targets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The names: paths, `/dev/block/8:0` for a device that is known by its number.
    pub targets: Vec<String>,
    /// What was done, in order of time.
    pub events: Vec<TraceEvent>,
}

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// When it was made, since the first one.
    pub at: Nanos,
    /// Of which target: its place in [`Trace::targets`].
    pub target: u32,
    /// What.
    pub op: TraceOp,
    /// Where. The end, `offset + length`, does not overflow.
    pub offset: Bytes,
    /// How much; zero for a flush.
    pub length: Bytes,
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

/// What of a trace is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

impl Skip {
    /// Whether `op` is one of them.
    pub const fn leaves_out(self, op: TraceOp) -> bool {
        match op {
            TraceOp::Read => self.reads,
            TraceOp::Write { .. } => self.writes,
            TraceOp::Trim => self.trims,
            TraceOp::Flush => self.flushes,
        }
    }
}

/// The trace in `bytes`: an iolog of version 2 or 3, or blktrace's binary form of either byte order, told apart by
/// how they begin.
///
/// # Errors
/// If it is neither, or broken: names the line or the byte.
pub fn read(bytes: &[u8]) -> Result<Trace, Error> {
    if blktrace::is_one(bytes) { blktrace::read(&[bytes]) } else { iolog::read(bytes) }
}

/// The trace called `name`: that file, or the files `name.blktrace.0`, `.1` and so on that blktrace left, one for each
/// processor.
///
/// # Errors
/// If there is none, or it cannot be read or is broken.
pub fn read_named(name: &str, read_file: &dyn Fn(&str) -> io::Result<Vec<u8>>) -> Result<Trace, Error> {
    let unreadable = |file: &str, error: &io::Error| Error::new(file, format!("cannot be read: {error}"));
    match read_file(name) {
        Ok(bytes) => return read(&bytes).map_err(|error| within(name, error)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(name, &error)),
        Err(_) => {}
    }
    let mut files = Vec::new();
    for processor in 0_u32..65_536 {
        let file = format!("{name}.blktrace.{processor}");
        match read_file(&file) {
            Ok(bytes) => files.push(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(unreadable(&file, &error)),
        }
    }
    if files.is_empty() {
        let error = Error::new(name, "there is no such trace");
        return Err(error.remedy("name an iolog, a blktrace file, or what stands before .blktrace.0"));
    }
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    blktrace::read(&files).map_err(|error| within(name, error))
}

fn within(name: &str, error: Error) -> Error {
    Error { place: format!("{name}, {}", error.place), ..error }
}

/// A trace in the making. Names are found by a map: a hostile trace may hold as many as it has lines.
#[derive(Default)]
struct Builder {
    trace: Trace,
    places: BTreeMap<String, u32>,
}

impl Builder {
    /// The place of a target, which is added if it is new.
    fn target(&mut self, name: &str) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.trace.targets.len() as u32;
        self.trace.targets.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    /// In order of time, and relative to the first event.
    fn finish(self) -> Trace {
        let mut trace = self.trace;
        trace.events.sort_by_key(|event| event.at);
        let first = trace.events.first().map_or(Nanos::ZERO, |event| event.at);
        for event in &mut trace.events {
            event.at = event.at.since(first);
        }
        trace
    }
}

#[cfg(test)]
mod tests;
