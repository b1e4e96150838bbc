//! A line for the shell run to its end, with all that it starts: its output is cut, its time is limited, and it can be stopped.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::AckBy;
use crate::error::{Error, Result};

/// How much of what a program says is kept: the end of it.
const SAID_MAX: usize = 4 << 10;
/// How often the wish to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often a pipe is read in one go: whoever writes without end does not keep others from being heard.
const READS_MAX: usize = 16;

/// A shell that has a pipe as its standard input: when that ends, for plumb was killed, it kills all of its process group. What waits
/// is no child of the program, which may wait for all that it has.
const GUARDED: &str = "exec 9<&0 0</dev/null; ({ read _ <&9; kill -KILL 0; } >/dev/null 2>&1 &); exec 9<&-; exec /bin/sh -c \"$1\"";

/// A line for /bin/sh, and the bounds that it runs within.
pub(super) struct Process<'a> {
    pub(super) line: &'a str,
    /// Where it starts: a directory, or the block device that `PLUMB_DEVICE` names then.
    pub(super) place: &'a Path,
    /// A variable.
    pub(super) variable: (&'a str, &'a OsStr),
    /// What of its output is handed on.
    pub(super) ack: AckBy,
    pub(super) timeout: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// What became of a program.
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

/// A pipe from the program.
struct Pipe {
    file: File,
    /// Whether what comes is handed on, rather than kept.
    is_handed_on: bool,
}

impl Pipe {
    /// One that is read without waiting, and the program's end.
    fn new(is_handed_on: bool) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer): (PipeReader, _) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        Ok((Self { file: OwnedFd::from(reader).into(), is_handed_on }, writer))
    }

    /// Takes what has come. Whether more may come.
    fn read(&mut self, take: &mut dyn FnMut(bool, &[u8])) -> bool {
        let mut bytes = vec![0; 64 << 10];
        for _ in 0..READS_MAX {
            match self.file.read(&mut bytes) {
                Ok(0) => return false,
                Ok(read) => take(self.is_handed_on, &bytes[..read]),
                Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
            }
        }
        true
    }
}

impl Process<'_> {
    /// Runs it to its end; then all that it left in its process group is killed. What it acknowledges by is handed on as it
    /// comes.
    pub(super) fn run(&self, hand_on: &mut dyn FnMut(&[u8])) -> Result<Ended> {
        let failed = |error: io::Error| self.failed(&format!("could not be run: {error}"));
        let (mut child, mut pipes, _guard) = self.start().map_err(failed)?;
        let mut said = VecDeque::new();
        let mut take = |is_handed_on: bool, bytes: &[u8]| {
            if is_handed_on {
                hand_on(bytes);
            } else {
                said.extend(bytes);
                said.drain(..said.len().saturating_sub(SAID_MAX));
            }
        };
        let outcome = self.wait(&child, &mut pipes, &mut take);
        // The leader is not yet waited for, so the number is still its own; whoever is gone needs no signal.
        kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap_or_default();
        let status = child.wait().map_err(failed)?;
        for pipe in &mut pipes {
            pipe.read(&mut take);
        }
        outcome?;
        let said: Vec<u8> = said.into();
        Ok(Ended { status, said: String::from_utf8_lossy(&said).trim().to_owned() })
    }

    /// The same, where it has to succeed.
    pub(super) fn run_well(&self, hand_on: &mut dyn FnMut(&[u8])) -> Result<()> {
        let ended = self.run(hand_on)?;
        if ended.status.success() { Ok(()) } else { Err(self.failed(&ended.to_string())) }
    }

    /// The second pipe, if there is one, is to be held for as long as the program may run.
    fn start(&self) -> io::Result<(Child, Vec<Pipe>, Option<PipeWriter>)> {
        let mut command = Command::new("/bin/sh");
        let (pipe, said) = Pipe::new(false)?;
        let (mut pipes, mut guard) = (vec![pipe], None);
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said).arg("-c");
        let mut hear = || {
            let (pipe, heard) = Pipe::new(true)?;
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
            // A shell gets the pipe as its standard input, which a child can be given without unsafe code, and moves it.
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
        Ok((command.env(name, value).process_group(0).spawn()?, pipes, guard))
    }

    /// Until the child has ended, it is too late, or the user wants an end.
    fn wait(&self, child: &Child, pipes: &mut Vec<Pipe>, take: &mut dyn FnMut(bool, &[u8])) -> Result<()> {
        let failed = |errno: rustix::io::Errno| self.failed(&format!("could not be waited for: {errno}"));
        let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).map_err(failed)?;
        let until = Instant::now() + self.timeout;
        loop {
            let time = until.saturating_duration_since(Instant::now()).min(LOOK_EVERY);
            let timeout = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
            let files = pipes.iter().map(|pipe| pipe.file.as_fd());
            let all = std::iter::once(ended.as_fd()).chain(files);
            let mut all: Vec<_> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            match poll(&mut all, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
            let has_ended = !all[0].revents().is_empty();
            pipes.retain_mut(|pipe| pipe.read(take));
            if has_ended {
                return Ok(());
            }
            if self.stop.load(Ordering::Acquire) {
                return Err(self.failed("was interrupted"));
            }
            if time.is_zero() {
                let after = self.timeout.as_secs_f64();
                return Err(self.failed(&format!("has not ended after {after} s and was killed")));
            }
        }
    }

    /// Of a script its first line is its name.
    pub(super) fn failed(&self, what: &str) -> Error {
        let name = self.line.lines().next().unwrap_or_default().trim_start_matches("# ");
        Error::failed(format!("`{name}`"), what)
    }
}

#[cfg(test)]
mod tests {
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
        let (mut child, _pipes, guard) = process.start().unwrap();
        assert!(child.try_wait().unwrap().is_none());
        drop(guard);
        assert_eq!(child.wait().unwrap().to_string(), "signal: 9 (SIGKILL)");
    }
}
