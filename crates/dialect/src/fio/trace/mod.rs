//! Traces of what others did: fio's iologs and the binary files of blktrace, read into a [`Trace`].
//!
//! Times are relative to the first event and never go back. Reading is pure and bounded: a file is read piece
//! by piece, no length in it makes more than its bytes can hold, and nothing panics on a broken one. What a
//! trace takes in memory is its events, of which there may be [`Trace::EVENTS_MAX`].
//!
//! Limitations: an iolog's `sync` and `datasync` are both a flush; what a trace does not carry (write
//! content, who waited for whom) is not invented.

mod blktrace;
mod iolog;

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use plumb_block::{Bytes, Nanos};
use plumb_workload::Workload;
pub use plumb_workload::{Skip, Trace, TraceEvent, TraceOp};

use crate::Error;

/// Opens the files of a trace by their names.
pub type OpenFile<'a> = &'a dyn Fn(&str) -> io::Result<Box<dyn BufRead>>;

/// The trace in `file`: an iolog of version 2 or 3, or blktrace's binary form of either byte order, told
/// apart by how they begin.
///
/// # Errors
/// If it is neither, or broken: names the line or the byte.
pub fn read(mut file: impl BufRead) -> Result<Trace, Error> {
    let begin = file.fill_buf().map_err(|error| unreadable("byte 0", &error))?;
    if blktrace::is_one(begin) { blktrace::read(vec![Box::new(file)]) } else { iolog::read(file) }
}

/// The trace called `name`: that file, or the files `name.blktrace.0`, `.1` and so on that blktrace left, one
/// for each processor.
///
/// # Errors
/// If there is none, or it cannot be read or is broken.
pub fn read_named(name: &str, open: OpenFile<'_>) -> Result<Trace, Error> {
    match open(name) {
        Ok(file) => return read(file).map_err(|error| within(name, error)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(name, &error)),
        Err(_) => {}
    }
    let mut files: Vec<Box<dyn BufRead>> = Vec::new();
    for processor in 0_u32..65_536 {
        let file = format!("{name}.blktrace.{processor}");
        match open(&file) {
            Ok(file) => files.push(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(unreadable(&file, &error)),
        }
    }
    if files.is_empty() {
        let error = Error::new(name, "there is no such trace");
        return Err(error.remedy("name an iolog, a blktrace file, or what stands before .blktrace.0"));
    }
    blktrace::read(files).map_err(|error| within(name, error))
}

fn unreadable(place: &str, error: &io::Error) -> Error {
    Error::new(place, format!("cannot be read: {error}"))
}

fn within(name: &str, error: Error) -> Error {
    Error { place: format!("{name}, {}", error.place), ..error }
}

/// Operation of a trace, before it is known to fit an event.
#[derive(Debug, Clone, Copy)]
struct Done {
    at: Nanos,
    op: TraceOp,
    offset: u64,
    length: u64,
}

/// A trace in the making. Names are found by a map: a hostile trace may hold as many as it has lines.
#[derive(Default)]
struct Builder {
    trace: Trace,
    places: BTreeMap<String, u16>,
}

impl Builder {
    /// The place of a target, which is added if it is new.
    fn target(&mut self, name: &str) -> Result<u16, String> {
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

    /// Adds what was done to `target`.
    fn add(&mut self, target: u16, done: Done) -> Result<(), String> {
        if self.trace.events.len() == Trace::EVENTS_MAX {
            return Err(format!(
                "is one event more than the {} that are taken: cut the trace",
                Trace::EVENTS_MAX
            ));
        }
        let Done { at, op, offset, length } = done;
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

    /// In order of time, and relative to the first event.
    fn finish(self) -> Trace {
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

#[cfg(test)]
mod tests;
