//! fio's iolog, versions 2 and 3, with an action on each line (fio(1), "Trace file format").
//!
//! In version 3 lines begin with the microseconds since the start; version 2 has `wait` lines in
//! microseconds.

use std::io::{BufRead, Read as _};

use plumb_block::Nanos;
use plumb_workload::{Trace, TraceOp};

use super::builder::{Builder, TraceOperation, unreadable};
use crate::Error;

/// Maximum length of a line in bytes: a path of 4096 bytes, and the other words.
const LINE_MAX: u64 = 8192;

/// Reads an iolog.
pub(super) fn read(file: impl BufRead) -> Result<Trace, Error> {
    let mut lines = Lines { file, number: 0, line: Vec::new() };
    let stamped = match lines.next()? {
        Some("fio version 2 iolog") => false,
        Some("fio version 3 iolog") => true,
        _ => {
            let problem =
                "this is not a trace: expected `fio version 2 iolog`, `fio version 3 iolog` or blktrace";
            return Err(Error::new("line 1", problem));
        }
    };
    let mut reader = Reader { builder: Builder::default(), stamped, now: Nanos::ZERO };
    loop {
        let number = lines.number + 1;
        let Some(line) = lines.next()? else { break };
        let mut words = [""; 6];
        let mut count = 0;
        // A line with more than six words is not an action; the rest is ignored.
        for (place, word) in words.iter_mut().zip(line.split_whitespace()) {
            *place = word;
            count += 1;
        }
        if count > 0 {
            let done = reader.line(&words[..count]);
            done.map_err(|problem| {
                Error::new(format!("line {number}"), format!("`{}` {problem}", shown(line)))
            })?;
        }
    }
    Ok(reader.builder.finish())
}

/// Returns the line, shortened for messages.
fn shown(line: &str) -> String {
    line.chars().take(80).collect()
}

/// Lines of a file, read one at a time.
struct Lines<R> {
    file: R,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Returns the next line, trimmed; `None` at the end.
    fn next(&mut self) -> Result<Option<&str>, Error> {
        self.number += 1;
        let place = || format!("line {}", self.number);
        self.line.clear();
        let mut limited = (&mut self.file).take(LINE_MAX);
        let length =
            limited.read_until(b'\n', &mut self.line).map_err(|error| unreadable(&place(), &error))?;
        if length == 0 {
            return Ok(None);
        }
        let text = match str::from_utf8(&self.line) {
            Ok(text) => text.trim(),
            Err(_) => return Err(Error::new(place(), "this is not a trace: expected text")),
        };
        if length as u64 == LINE_MAX && !self.line.ends_with(b"\n") {
            let problem = format!("`{}...` is longer than {LINE_MAX} bytes", shown(text));
            return Err(Error::new(place(), problem));
        }
        Ok(Some(text))
    }
}

struct Reader {
    builder: Builder,
    stamped: bool,
    now: Nanos,
}

impl Reader {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let words = match (self.stamped, words) {
            (true, [stamp, rest @ ..]) => {
                self.now = micros(stamp)?;
                rest
            }
            _ => words,
        };
        match *words {
            [file, "add" | "open" | "close"] => self.builder.target(file).map(|_| ()),
            [_, "wait", time, ..] if !self.stamped => {
                self.now = self.now.saturating_add(micros(time)?);
                Ok(())
            }
            [file, action, offset, length] => self.event(file, action, number(offset)?, number(length)?),
            _ => Err("is not an action: expected FILE ACTION OFFSET LENGTH".into()),
        }
    }

    fn event(&mut self, file: &str, action: &str, offset: u64, length: u64) -> Result<(), String> {
        let op = match action {
            "read" => TraceOp::Read,
            "write" => TraceOp::Write { fua: false },
            "trim" => TraceOp::Trim,
            "sync" | "datasync" => TraceOp::Flush,
            "wait" => return Err("waits, which version 3 has no more".into()),
            _ => return Err(format!("is not an action: `{action}` is not known")),
        };
        let (offset, length) = if op == TraceOp::Flush { (0, 0) } else { (offset, length) };
        let target = self.builder.target(file)?;
        self.builder.add(target, TraceOperation { at: self.now, op, offset, length })
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("has `{text}` where a number of bytes was expected"))
}

fn micros(text: &str) -> Result<Nanos, String> {
    let micros: u64 = text.parse().map_err(|_| format!("has `{text}` where microseconds were expected"))?;
    micros.checked_mul(1000).map(Nanos).ok_or_else(|| format!("has a time of more than 584 years, {text} us"))
}
