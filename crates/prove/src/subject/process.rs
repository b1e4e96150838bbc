//! A line for the shell run to its end, with all that it starts: its output is cut, its time is limited, and
//! it can be stopped.

use std::ffi::OsStr;
use std::io::{self, PipeWriter};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_linux::child::{self, EndedBy, Limits, Pipe, Tail};

use super::AckBy;
use crate::error::{Error, Result};

/// How much of what a program says is kept, in bytes: the end of it.
const SAID_MAX: usize = 4 << 10;

/// A shell that has a pipe as its standard input: when that ends, for plumb was killed, it kills all of its
/// process group. What waits is no child of the program, which may wait for all that it has.
const GUARDED: &str = "exec 9<&0 0</dev/null; ({ read _ <&9; kill -KILL 0; } >/dev/null 2>&1 &); exec 9<&-; exec /bin/sh -c \"$1\"";

/// A line for /bin/sh, and the bounds that it runs within.
pub(super) struct Process<'a> {
    pub(super) line: &'a str,
    /// Where it starts: a directory, or the block device that `PLUMB_DEVICE` names then.
    pub(super) place: &'a Path,
    /// A variable.
    pub(super) variable: (&'a str, &'a OsStr),
    /// Part of the program's output that is handed on.
    pub(super) ack: AckBy,
    pub(super) timeout: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// Exit status of a program, and the end of its output.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The end of what it said and was not handed on.
    pub(super) said: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let colon = if self.said.is_empty() { "" } else { ": " };
        write!(f, "ended with {}{colon}{}", self.status, self.said)
    }
}

impl Process<'_> {
    /// Runs it to its end; then all that it left in its process group is killed. What it acknowledges by is
    /// handed on as it comes.
    pub(super) fn run(&self, hand_on: &mut dyn FnMut(&[u8])) -> Result<Ended> {
        let failed = |error: io::Error| self.failed(&format!("could not be run: {error}"));
        let mut said = Tail::new(SAID_MAX);
        let (command, pipes, _guard) = self.command(&mut said, hand_on).map_err(failed)?;
        let limits = Limits {
            timeout: Some(self.timeout),
            stop: self.stop,
            grace: Duration::ZERO,
            kills_leftovers: true,
        };
        let ended = child::run(command, pipes, limits).map_err(failed)?;
        match ended.by {
            EndedBy::Itself => Ok(Ended { status: ended.status, said: said.text() }),
            EndedBy::Stop => Err(self.failed("was interrupted")),
            EndedBy::Timeout => {
                let after = self.timeout.as_secs_f64();
                Err(self.failed(&format!("has not ended after {after} s and was killed")))
            }
        }
    }

    /// Runs the program, which has to succeed.
    pub(super) fn run_well(&self, hand_on: &mut dyn FnMut(&[u8])) -> Result<()> {
        let ended = self.run(hand_on)?;
        if ended.status.success() { Ok(()) } else { Err(self.failed(&ended.to_string())) }
    }

    /// Returns the command and the pipes that come from it. The writer, if there is one, is to be held for as
    /// long as the program may run.
    fn command<'p>(
        &self,
        said: &'p mut Tail,
        hand_on: &'p mut dyn FnMut(&[u8]),
    ) -> io::Result<(Command, Vec<Pipe<'p>>, Option<PipeWriter>)> {
        let mut command = Command::new("/bin/sh");
        let (pipe, kept) = Pipe::new(|bytes| said.push(bytes))?;
        let (mut pipes, mut guard) = (vec![pipe], None);
        command.stdin(Stdio::null()).stdout(kept.try_clone()?).stderr(kept).arg("-c");
        let hear = || {
            let (pipe, heard) = Pipe::new(hand_on)?;
            pipes.push(pipe);
            io::Result::Ok(heard)
        };
        match self.ack {
            AckBy::ControlFile => {
                let (ends_with_us, held) = io::pipe()?;
                guard = Some(held);
                command.arg(GUARDED).arg("sh").arg(self.line).stdin(ends_with_us)
            }
            AckBy::Stdout => command.arg(self.line).stdout(hear()?),
            // A shell gets the pipe as its standard input, which a child can be given without unsafe code,
            // and moves it.
            AckBy::Descriptor(number) => {
                let moved = format!("exec {number}>&0 0</dev/null; exec /bin/sh -c \"$1\"");
                command.arg(moved).arg("sh").arg(self.line).stdin(hear()?)
            }
        };
        if self.place.is_dir() {
            command.current_dir(self.place);
        } else {
            command.current_dir("/").env("PLUMB_DEVICE", self.place);
        }
        let (name, value) = self.variable;
        command.env(name, value);
        Ok((command, pipes, guard))
    }

    /// Returns an error for the program. The name of a script is its first line.
    pub(super) fn failed(&self, what: &str) -> Error {
        let name = self.line.lines().next().unwrap_or_default().trim_start_matches("# ");
        Error::failed(format!("`{name}`"), what)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn what_a_killed_plumb_leaves_running_is_killed() {
        let process = Process {
            line: "sleep 1000 & exec sleep 1000",
            place: Path::new("/"),
            variable: ("PLUMB_ACK", "".as_ref()),
            ack: AckBy::ControlFile,
            timeout: Duration::ZERO,
            stop: &AtomicBool::new(false),
        };
        let (mut said, mut ignored) = (Tail::new(0), |_: &[u8]| {});
        let (mut command, _pipes, guard) = process.command(&mut said, &mut ignored).unwrap();
        let mut child = command.process_group(0).spawn().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        drop(guard);
        assert_eq!(child.wait().unwrap().to_string(), "signal: 9 (SIGKILL)");
    }
}
