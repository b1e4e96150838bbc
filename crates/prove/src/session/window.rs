//! Part of the work to which cuts are restricted: `EVENT..EVENT`.

use std::ops::Range;
use std::str::FromStr;

use plumb_sim::cut::{CutWhen, Edge, Mark};

use super::recorded::RecordedWork;
use crate::error::{Error, Result};
use crate::recording::{CommandId, Event};

/// Two events of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    typed: String,
    from: End,
    to: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// An acknowledgement, by its number.
    Acknowledged(u64),
    /// A submission or completion, counted from the beginning of the work.
    Command(Mark),
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.typed)
    }
}

impl FromStr for Window {
    type Err = Error;

    fn from_str(typed: &str) -> Result<Self> {
        let ends = typed.split_once("..").and_then(|(from, to)| Some((End::parse(from)?, End::parse(to)?)));
        let (from, to) = ends.ok_or_else(|| {
            Error::usage(
                "expected EVENT..EVENT, where an event is ack:N, or KIND:N:submitted or KIND:N:completed with the kinds write, \
                 flush, discard and any, such as ack:3..flush:9:completed",
            )
        })?;
        Ok(Self { typed: typed.to_owned(), from, to })
    }
}

impl End {
    fn parse(typed: &str) -> Option<Self> {
        if let Some(number) = typed.strip_prefix("ack:") {
            return number.parse().ok().map(Self::Acknowledged);
        }
        match typed.parse() {
            Ok(CutWhen::At(mark)) if !typed.contains('=') => Some(Self::Command(mark)),
            _ => None,
        }
    }

    /// Returns the number of events of the recording up to and including this one; `None` if it does not
    /// happen.
    fn after(self, recorded: &RecordedWork) -> Option<usize> {
        let recording = &recorded.recording;
        let mut left = if let Self::Command(mark) = self { mark.number } else { 1 };
        let work = recording.events.iter().enumerate().take(recorded.until).skip(recorded.from);
        for (number, (_, event)) in work {
            let is = |mark: Mark, edge, id: CommandId| {
                mark.edge == edge && mark.kind.is(recording.commands[id.0 as usize].op)
            };
            let is_it = match (self, event) {
                (Self::Acknowledged(wanted), Event::Acknowledged(found)) => wanted == *found,
                (Self::Command(mark), Event::Submitted(id)) => is(mark, Edge::Submitted, *id),
                (Self::Command(mark), Event::Completed(id)) => is(mark, Edge::Completed, *id),
                _ => false,
            };
            left -= u64::from(is_it);
            if left == 0 {
                return Some(number + 1);
            }
        }
        None
    }
}

impl Window {
    /// Returns the events of the recording between which the window lies.
    ///
    /// # Errors
    /// If the two do not happen during the work in this order.
    pub fn within(&self, recorded: &RecordedWork) -> Result<Range<usize>> {
        match (self.from.after(recorded), self.to.after(recorded)) {
            (Some(from), Some(to)) if from <= to => Ok(from..to),
            (Some(_), Some(_)) => {
                Err(Error::usage(format!("--target {self}: the second event happened before the first")))
            }
            _ => Err(Error::usage(format!(
                "--target {self}: the work has no such events; it was recorded all the same"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_and_anything_else_is_told() {
        for typed in ["ack:3..ack:4", "ack:0..flush:9:completed", "write:1:submitted..any:2:completed"] {
            assert_eq!(typed.parse::<Window>().unwrap().to_string(), typed);
        }
        for typed in [
            "",
            "ack:3",
            "ack:3..",
            "ack:x..ack:4",
            "now..ack:4",
            "write=3..ack:4",
            "ack:1..write:0:submitted",
        ] {
            assert!(typed.parse::<Window>().unwrap_err().to_string().contains("EVENT..EVENT"), "{typed}");
        }
    }
}
