//! Programs of the user: one that does the work, one that checks, and optionally one that prepares the place.
//!
//! Each is a line for /bin/sh, started in the mount (without a file system: in `/`, with `PLUMB_DEVICE`
//! naming the drive).
//! - The work acknowledges increasing numbers, one per line: `7` or `ACK 7`. By default it writes them to the
//!   file named by `PLUMB_ACK`, and the write returns once the acknowledgement has its place among the
//!   requests of the drive. Acknowledgements through a descriptor or on stdout (`ACK 7`) are read late, which
//!   can hide a loss, so they cannot prove.
//! - The checker gets the last required acknowledgement in `PLUMB_REQUIRED`, empty if there was none, and
//!   exits with 0 (intact), 1 (something acknowledged is lost) or 2 (corrupt). Any other exit means that the
//!   check itself failed.
//!
//! When a program has ended, processes left in its process group are killed. A process left in a session of
//! its own is an error.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;
use plumb_report::document::proof::FailureClass;

use super::process::Process;
use super::{Outcome, Output, Subject, User};
use crate::error::{Error, Result, cannot};

/// Minimum time limit of the preparation.
const SET_UP_MIN: Nanos = Nanos::secs(600);

/// Way in which the work acknowledges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AckBy {
    /// By writing to the control file.
    #[default]
    ControlFile,
    /// By writing to this descriptor, 3 to 9.
    Descriptor(u8),
    /// By lines `ACK n` on stdout.
    Stdout,
}

impl FromStr for AckBy {
    type Err = Error;

    fn from_str(typed: &str) -> Result<Self> {
        let descriptor = || typed.strip_prefix("fd:")?.parse().ok().filter(|number| (3..=9).contains(number));
        match typed {
            "control-file" => Ok(Self::ControlFile),
            "stdout" => Ok(Self::Stdout),
            _ => descriptor().map(Self::Descriptor).ok_or_else(|| {
                let expected = "expected control-file, fd:N with N from 3 to 9, or stdout";
                Error::usage(format!("`{typed}` is not a way to acknowledge: {expected}"))
            }),
        }
    }
}

impl AckBy {
    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ControlFile => "control-file",
            Self::Descriptor(_) => "descriptor",
            Self::Stdout => "stdout",
        }
    }
}

/// Program that does the work of a subject.
#[derive(Debug, Clone)]
pub struct Program {
    /// Line for /bin/sh.
    pub line: String,
    /// Way of acknowledging.
    pub ack: AckBy,
    /// User who runs it; `None` for the user who runs plumb.
    pub user: Option<User>,
}

impl Program {
    /// Returns a program of the user who runs plumb that acknowledges through the control file.
    pub const fn acknowledging(line: String) -> Self {
        Self { line, ack: AckBy::ControlFile, user: None }
    }

    /// Runs the program at `place` to its end, with this control file. Output on another channel of
    /// acknowledgements is passed to `on_output`.
    ///
    /// # Errors
    /// If it cannot be started, fails, exceeds `timeout`, or one of `stop` is set; it is killed then.
    pub fn run(
        &self,
        place: &Path,
        control: &Path,
        on_output: &mut dyn FnMut(&[u8]),
        timeout: Nanos,
        stop: &[&AtomicBool],
    ) -> Result<()> {
        let variable = ("PLUMB_ACK", control.as_os_str());
        let user = self.user.as_ref();
        Process { line: &self.line, place, variable, ack: self.ack, user, timeout, stop }
            .run_successfully(on_output)
    }
}

/// Does the work of `subject`, and writes each acknowledgement as a line to the control file.
///
/// # Errors
/// If the work fails, or the file cannot be written.
pub fn work_by_file(subject: &dyn Subject, place: &Path, control: &Path) -> Result<()> {
    let file = File::options().append(true).open(control);
    let mut file = file.map_err(cannot(format!("open {}", control.display())))?;
    let mut written = Ok(());
    subject.work(place, &mut |number| {
        // A failed acknowledgement does not end the work early, but nothing after it is acknowledged.
        if written.is_ok() {
            written = file.write_all(format!("{number}\n").as_bytes());
        }
    })?;
    written.map_err(cannot(format!("write to {}", control.display())))
}

/// Way in which the states of programs are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckBy {
    /// Checker: a line for /bin/sh.
    Command(String),
    /// Comparison with the moments of the work, of the output of a reader, which is a line for /bin/sh, or of
    /// the files themselves.
    Moments(Option<String>),
}

/// Programs as a subject.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Program that does the work. All programs run as its user.
    pub run: Program,
    /// Check of the result.
    pub check: CheckBy,
    /// Command that recovers the state after a cut before the check, if there is one.
    pub recover: Option<String>,
    /// Command that prepares the place, if there is one.
    pub setup: Option<String>,
    /// Time limit of each.
    pub timeout: Nanos,
    /// Set to stop; running programs are killed.
    pub stop: Arc<AtomicBool>,
}

impl Subject for Programs {
    fn name(&self) -> String {
        self.run.line.clone()
    }

    fn program(&self) -> Option<Program> {
        Some(self.run.clone())
    }

    fn user(&self) -> Option<&User> {
        self.run.user.as_ref()
    }

    fn set_up(&self, place: &Path) -> Result<()> {
        let Some(line) = self.setup.clone() else { return Ok(()) };
        let program = Program { user: self.run.user.clone(), ..Program::acknowledging(line) };
        let timeout = self.timeout.max(SET_UP_MIN);
        program.run(place, Path::new("/dev/null"), &mut |_| {}, timeout, &[&self.stop])
    }

    fn is_judged_by_its_files(&self) -> bool {
        matches!(self.check, CheckBy::Moments(_))
    }

    fn has_reader(&self) -> bool {
        matches!(self.check, CheckBy::Moments(Some(_)))
    }

    fn read(&self, place: &Path) -> Result<Option<Output>> {
        let CheckBy::Moments(Some(line)) = &self.check else { return Ok(None) };
        let mut stdout = Vec::new();
        let process = Process {
            line,
            place,
            variable: ("PLUMB_REQUIRED", "".as_ref()),
            ack: AckBy::Stdout,
            user: self.run.user.as_ref(),
            timeout: self.timeout,
            stop: &[&self.stop],
        };
        let ended = process.run(&mut |bytes| stdout.extend_from_slice(bytes))?;
        Ok(Some(Output { status: ended.status, stdout, stderr: ended.output }))
    }

    fn has_recovery(&self) -> bool {
        self.recover.is_some()
    }

    fn recover(&self, place: &Path, required: Option<u64>) -> Result<Outcome> {
        let recover = self.recover.as_ref();
        recover.map_or(Ok(Outcome::Intact), |line| self.judged("recovery", line, place, required))
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome> {
        let CheckBy::Command(line) = &self.check else {
            return Err(Error::failed(self.name(), "has no checker"));
        };
        self.judged("check", line, place, required)
    }
}

impl Programs {
    /// Runs a line that judges a place by its exit code; `what` is its role in a word.
    fn judged(&self, what: &str, line: &str, place: &Path, required: Option<u64>) -> Result<Outcome> {
        let required = required.map(|number| number.to_string()).unwrap_or_default();
        let process = Process {
            line,
            place,
            variable: ("PLUMB_REQUIRED", required.as_ref()),
            ack: AckBy::ControlFile,
            user: self.run.user.as_ref(),
            timeout: self.timeout,
            stop: &[&self.stop],
        };
        let ended = process.run(&mut |_| {})?;
        let class = match ended.status.code() {
            Some(0) => return Ok(Outcome::Intact),
            Some(1) => FailureClass::LostAcknowledged,
            Some(2) => FailureClass::Corrupt,
            _ => {
                return Err(process.failed(&format!(
                    "{ended}; a {what} exits 0 (intact), 1 (lost) or 2 (corrupt), so the {what} itself failed"
                )));
            }
        };
        let words = if ended.output.is_empty() { ended.status.to_string() } else { ended.output };
        Ok(Outcome::failure(class, words))
    }
}

/// Parser of acknowledgements in the output of a program, one per line.
#[derive(Debug)]
pub(crate) struct Lines {
    /// True if other lines may occur between those that begin with `ACK`.
    is_mixed: bool,
    rest: Vec<u8>,
}

impl Lines {
    /// Creates an empty buffer for this way of acknowledging.
    pub(crate) fn new(ack: AckBy) -> Self {
        Self { is_mixed: ack == AckBy::Stdout, rest: Vec::new() }
    }

    /// Parses the lines that end within `bytes`: returns their numbers, and an error for a line without one.
    pub(crate) fn parse(&mut self, bytes: &[u8]) -> Vec<std::result::Result<u64, String>> {
        let mut found = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' => found.extend(self.end()),
                // No number is this long, so the rest of such a line is dropped.
                _ if self.rest.len() < 64 => self.rest.push(*byte),
                _ => {}
            }
        }
        found
    }

    /// Parses the last line, which may lack a line end, as `parse` does.
    pub(crate) fn end(&mut self) -> Option<std::result::Result<u64, String>> {
        let line = std::mem::take(&mut self.rest);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        let number = match line.strip_prefix("ACK ") {
            Some(number) => number.trim(),
            None if line.is_empty() || self.is_mixed => return None,
            None => line,
        };
        Some(
            number
                .parse()
                .map_err(|_| format!("{line:?} is not an acknowledgement: expected a number, such as `7`")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_line_by_line_whatever_the_pieces() {
        let mut lines = Lines::new(AckBy::Descriptor(3));
        assert_eq!(lines.parse(b"1\nACK 2\n\n3"), [Ok(1), Ok(2)]);
        assert_eq!(lines.parse(b"4\n-1\nseven\n"), [Ok(34), Err(refusal("-1")), Err(refusal("seven"))]);
        lines.parse(b"5");
        assert_eq!((lines.end(), lines.end()), (Some(Ok(5)), None));
        let mut lines = Lines::new(AckBy::Stdout);
        assert_eq!(lines.parse(b"done 7\nACK 7\nACK x\n"), [Ok(7), Err(refusal("ACK x"))]);
    }

    fn refusal(line: &str) -> String {
        format!("{line:?} is not an acknowledgement: expected a number, such as `7`")
    }

    #[test]
    fn ways_to_acknowledge_are_known_by_name() {
        assert_eq!("fd:3".parse::<AckBy>().unwrap(), AckBy::Descriptor(3));
        assert_eq!("stdout".parse::<AckBy>().unwrap(), AckBy::Stdout);
        for typed in ["", "fd:", "fd:2", "fd:10", "stderr"] {
            let error = typed.parse::<AckBy>().unwrap_err().to_string();
            assert!(error.contains("fd:N") && error.contains(&format!("`{typed}`")), "{error}");
        }
    }
}
