//! Traces of what others did: fio's iologs and the binary files of blktrace, read into a [`Trace`].
//!
//! Times are relative to the first event and never go back. Reading is pure and bounded: a file is read piece
//! by piece, no length in it makes more than its bytes can hold, and nothing panics on a broken one. What a
//! trace takes in memory is its events, of which there may be [`Trace::EVENTS_MAX`].
//!
//! Limitations: an iolog's `sync` and `datasync` are both a flush; what a trace does not carry (write
//! content, who waited for whom) is not invented.

mod blktrace;
mod builder;
mod iolog;

use std::io::{self, BufRead};

pub use plumb_workload::{Skip, Trace, TraceEvent, TraceOp};

use self::builder::unreadable;
use crate::Error;

/// Opens the files of a trace by their names.
pub type OpenFile<'a> = &'a dyn Fn(&str) -> io::Result<Box<dyn BufRead>>;

/// Returns the trace in `file`: an iolog of version 2 or 3, or blktrace's binary form of either byte order,
/// told apart by how they begin.
///
/// # Errors
/// If it is neither, or broken: names the line or the byte.
pub fn read(mut file: impl BufRead) -> Result<Trace, Error> {
    let begin = file.fill_buf().map_err(|error| unreadable("byte 0", &error))?;
    if blktrace::is_one(begin) { blktrace::read(vec![Box::new(file)]) } else { iolog::read(file) }
}

/// Returns the trace called `name`: that file, or the files `name.blktrace.0`, `.1` and so on that blktrace
/// left, one for each processor.
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
