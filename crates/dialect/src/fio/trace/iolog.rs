//! fio's iolog, versions 2 and 3: a line for each action (fio(1), "Trace file format").
//!
//! Version 3 begins each line with the microseconds since the start; version 2 has `wait` lines of microseconds.

use plumb_block::{Bytes, Nanos};

use super::{Builder, Trace, TraceEvent, TraceOp};
use crate::Error;

/// Reads an iolog.
pub(super) fn read(bytes: &[u8]) -> Result<Trace, Error> {
    let text = str::from_utf8(bytes).map_err(|error| {
        Error::new(format!("byte {}", error.valid_up_to()), "this is no trace: expected text")
    })?;
    let mut lines = text.lines().enumerate();
    let stamped = match lines.next().map(|(_, line)| line.trim()) {
        Some("fio version 2 iolog") => false,
        Some("fio version 3 iolog") => true,
        _ => {
            let problem =
                "this is no trace: expected `fio version 2 iolog`, `fio version 3 iolog` or blktrace";
            return Err(Error::new("line 1", problem));
        }
    };
    let mut reader = Reader { builder: Builder::default(), stamped, now: Nanos::ZERO };
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        reader.line(&words).map_err(|problem| {
            Error::new(format!("line {}", index + 1), format!("`{}` {problem}", line.trim()))
        })?;
    }
    Ok(reader.builder.finish())
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
            [file, "add" | "open" | "close"] => {
                self.builder.target(file);
                Ok(())
            }
            [_, "wait", time, ..] if !self.stamped => {
                self.now = self.now.saturating_add(micros(time)?);
                Ok(())
            }
            [file, action, offset, length] => self.event(file, action, number(offset)?, number(length)?),
            _ => Err("is no action: expected a file, what was done, and where".into()),
        }
    }

    fn event(&mut self, file: &str, action: &str, offset: u64, length: u64) -> Result<(), String> {
        let op = match action {
            "read" => TraceOp::Read,
            "write" => TraceOp::Write { fua: false },
            "trim" => TraceOp::Trim,
            "sync" | "datasync" => TraceOp::Flush,
            "wait" => return Err("waits, which version 3 has no more".into()),
            _ => return Err(format!("is no action: `{action}` is not known")),
        };
        let (offset, length) = if op == TraceOp::Flush { (0, 0) } else { (offset, length) };
        if offset.checked_add(length).is_none() {
            return Err("ends beyond 16 EiB".into());
        }
        let target = self.builder.target(file);
        self.builder.trace.events.push(TraceEvent {
            at: self.now,
            target,
            op,
            offset: Bytes(offset),
            length: Bytes(length),
        });
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("has `{text}` where a number of bytes was expected"))
}

fn micros(text: &str) -> Result<Nanos, String> {
    let micros: u64 = text.parse().map_err(|_| format!("has `{text}` where microseconds were expected"))?;
    micros.checked_mul(1000).map(Nanos).ok_or_else(|| format!("has a time of more than 584 years, {text} us"))
}
