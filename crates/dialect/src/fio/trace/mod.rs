//! Traces of other programs: fio's iologs and binary files of blktrace, read into a [`Trace`].
//!
//! Times are relative to the first event and never decrease. Reading is pure and bounded: files are read
//! piece by piece, lengths in them do not determine allocations, and malformed ones cause no panic. A trace
//! occupies memory for its events, at most [`Trace::EVENTS_MAX`].
//!
//! # Limitations
//! `sync` and `datasync` of an iolog are both a flush. Facts that a trace lacks (content of writes,
//! dependencies between operations) are not invented.

mod blktrace;
mod builder;
mod iolog;

use std::io::{self, BufRead};

pub use plumb_workload::{Skip, Trace, TraceEvent, TraceOp};

use self::builder::unreadable;
use crate::Error;

/// Opens a file of a trace by its name.
pub type OpenFile<'a> = &'a dyn Fn(&str) -> io::Result<Box<dyn BufRead>>;

/// Reads the trace in `file`: an iolog of version 2 or 3, or blktrace's binary form of either byte order,
/// recognised by its beginning.
///
/// # Errors
/// Fails if it is neither, or malformed; names the line or byte.
pub fn read(mut file: impl BufRead) -> Result<Trace, Error> {
    let begin = file.fill_buf().map_err(|error| unreadable("byte 0", &error))?;
    if blktrace::is_one(begin) { blktrace::read(vec![Box::new(file)]) } else { iolog::read(file) }
}

/// Reads the trace `name`: that file, or blktrace's files `name.blktrace.0`, `.1` and so on, one for each
/// processor.
///
/// # Errors
/// Fails if it is missing, unreadable or malformed.
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
        return Err(
            error.remedy("name an iolog, a blktrace file, or the part of its name before .blktrace.0")
        );
    }
    blktrace::read(files).map_err(|error| within(name, error))
}

fn within(name: &str, error: Error) -> Error {
    Error { place: format!("{name}, {}", error.place), ..error }
}

#[cfg(test)]
mod tests;
