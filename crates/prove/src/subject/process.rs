//! Shell line run to its end, with all processes that it starts: its output is truncated, its time is
//! limited, and it can be stopped.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_block::Nanos;
use plumb_linux::child::{self, EndedBy, Limits, Pipe, Tail};

use super::{AckBy, User};
use crate::error::{Error, Result};

/// Number of bytes kept from the end of a program's output.
const OUTPUT_MAX: usize = 4 << 10;

/// Line for /bin/sh, and its limits.
pub(super) struct Process<'a> {
    pub(super) line: &'a str,
    /// Working directory, or the block device passed in `PLUMB_DEVICE`.
    pub(super) place: &'a Path,
    /// Name and value of an environment variable.
    pub(super) variable: (&'a str, &'a OsStr),
    /// Way of acknowledging, which determines the output passed to `on_output`.
    pub(super) ack: AckBy,
    /// User who runs it; `None` for the user who runs plumb.
    pub(super) user: Option<&'a User>,
    pub(super) timeout: Nanos,
    /// Flags, any of which ends it.
    pub(super) stop: &'a [&'a AtomicBool],
}

/// Exit status of a program, and the end of its output.
#[derive(Debug)]
pub(super) struct ProcessEnd {
    pub(super) status: ExitStatus,
    /// End of the output, without acknowledgements.
    pub(super) output: String,
}

impl std::fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let colon = if self.output.is_empty() { "" } else { ": " };
        write!(f, "ended with {}{colon}{}", self.status, self.output)
    }
}

impl Process<'_> {
    /// Runs the line to its end, and kills all processes left in its process group. Acknowledgements are
    /// passed to `on_output` as they arrive.
    ///
    /// # Errors
    /// If it cannot be run, does not end in time, or leaves a process outside its group, which is killed.
    pub(super) fn run(&self, on_output: &mut dyn FnMut(&[u8])) -> Result<ProcessEnd> {
        let failed = |error: io::Error| self.failed(&format!("could not be run: {error}"));
        let mut output = Tail::new(OUTPUT_MAX);
        let (command, pipes) = self.command(&mut output, on_output).map_err(failed)?;
        let limits = Limits {
            timeout: Some(self.timeout.into()),
            stop: self.stop,
            grace: Duration::ZERO,
            kills_leftovers: true,
        };
        let ended = child::run(command, pipes, limits).map_err(failed)?;
        match ended.by {
            EndedBy::Itself if !ended.left.is_empty() => Err(self.failed(&left_running(&ended.left))),
            EndedBy::Itself => Ok(ProcessEnd { status: ended.status, output: output.text() }),
            EndedBy::Stop => Err(self.failed("was interrupted")),
            EndedBy::Timeout => {
                let after = self.timeout.as_secs_f64();
                Err(self.failed(&format!("has not ended after {after} s and was killed")))
            }
        }
    }

    /// Runs the program, and fails if it does not succeed.
    pub(super) fn run_successfully(&self, on_output: &mut dyn FnMut(&[u8])) -> Result<()> {
        let ended = self.run(on_output)?;
        if ended.status.success() { Ok(()) } else { Err(self.failed(&ended.to_string())) }
    }

    /// Returns the command, and the read ends of its pipes.
    fn command<'p>(
        &self,
        output: &'p mut Tail,
        on_output: &'p mut dyn FnMut(&[u8]),
    ) -> io::Result<(Command, Vec<Pipe<'p>>)> {
        let mut command = Command::new("/bin/sh");
        let (pipe, kept) = Pipe::new(|bytes| output.push(bytes))?;
        let mut pipes = vec![pipe];
        command.stdin(Stdio::null()).stdout(kept.try_clone()?).stderr(kept).arg("-c");
        let hear = || {
            let (pipe, heard) = Pipe::new(on_output)?;
            pipes.push(pipe);
            io::Result::Ok(heard)
        };
        match self.ack {
            AckBy::ControlFile => command.arg(self.line),
            AckBy::Stdout => command.arg(self.line).stdout(hear()?),
            // A shell gets the pipe as its standard input, since that needs no unsafe code, and moves it to
            // the descriptor.
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
        if let Some(user) = self.user {
            user.apply(&mut command);
        }
        Ok((command, pipes))
    }

    pub(super) fn failed(&self, what: &str) -> Error {
        Error::failed(shown(self.line), what)
    }
}

/// Returns the name of a shell line in messages: its first line.
pub(crate) fn shown(line: &str) -> String {
    format!("`{}`", line.lines().next().unwrap_or_default().trim_start_matches("# "))
}

/// Returns the sentence about processes with these names that a program has left running.
pub(crate) fn left_running(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let (names, it) = (names.join(", "), if names.len() == 1 { "it was" } else { "they were" });
    format!("left {names} running when it ended, and {it} killed: end all that it starts before it ends")
}
