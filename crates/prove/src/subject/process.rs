//! A program run to its end, with all that it starts: its output is cut, its time is limited, and it can be stopped.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{PipeReader, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::SubjectError;

/// How much of what a program says is kept: the end of it.
const SAID_MAX: usize = 4 << 10;
/// How often the wish to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often at most a pipe is read after its writer has ended: more than it holds, however little comes at a time.
const DRAIN_MAX: usize = 64;

/// A program and the bounds that it runs within.
pub(super) struct Process<'a> {
    /// What to call it.
    pub(super) words: &'a str,
    pub(super) timeout: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// What became of a program.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The end of what it said on stdout and stderr.
    pub(super) said: String,
}

/// How a program ended that should have ended otherwise.
pub(super) fn failed_as(ended: &Ended) -> String {
    let said = if ended.said.is_empty() { String::new() } else { format!(": {}", ended.said) };
    format!("ended with {}{said}", ended.status)
}

/// A child in a process group of its own.
struct Group(Child);

impl Group {
    fn kill(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(group) = Pid::from_raw(self.0.id() as i32) {
            // The leader is not yet waited for, so the number is still its own; whoever is gone needs no signal.
            kill_process_group(group, Signal::KILL).unwrap_or_default();
        }
        self.0.wait()
    }
}

/// A pipe from the program, and whether what it says there is handed on.
struct Pipe {
    file: Option<File>,
    is_handed_on: bool,
}

impl Pipe {
    fn of(file: Option<impl Into<OwnedFd>>, is_handed_on: bool) -> Self {
        Self { file: file.map(|file| File::from(file.into())), is_handed_on }
    }
}

impl Process<'_> {
    /// Runs `command` to its end; then all that it left in its process group is killed. What it writes to `acks`, or on stdout if
    /// there are none, is handed on as it comes.
    pub(super) fn run(
        &self,
        mut command: Command,
        acks: Option<PipeReader>,
        hand_on: &mut dyn FnMut(&[u8]),
    ) -> Result<Ended, SubjectError> {
        let failed = |error: std::io::Error| self.failed(&format!("could not be run: {error}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut group = Group(command.spawn().map_err(failed)?);
        drop(command);
        let has_acks = acks.is_some();
        let mut pipes = [
            Pipe::of(group.0.stdout.take(), !has_acks),
            Pipe::of(group.0.stderr.take(), false),
            Pipe::of(acks, true),
        ];
        let mut said = VecDeque::new();
        let mut take = |pipe: &Pipe, bytes: &[u8]| {
            if pipe.is_handed_on {
                hand_on(bytes);
            }
            if !(pipe.is_handed_on && has_acks) {
                said.extend(bytes);
                said.drain(..said.len().saturating_sub(SAID_MAX));
            }
        };
        let outcome = self.wait(&group.0, &mut pipes, &mut take);
        let status = group.kill().map_err(failed)?;
        for _ in 0..DRAIN_MAX {
            if !read_ready(None, &mut pipes, Duration::ZERO, &mut take).map_err(failed)?.has_read {
                break;
            }
        }
        outcome?;
        let said: Vec<u8> = said.into();
        Ok(Ended { status, said: String::from_utf8_lossy(&said).trim().to_owned() })
    }

    /// Until the child has ended, it is too late, or the user wants an end.
    fn wait(
        &self,
        child: &Child,
        pipes: &mut [Pipe],
        take: &mut dyn FnMut(&Pipe, &[u8]),
    ) -> Result<(), SubjectError> {
        let failed = |error: std::io::Error| self.failed(&format!("could not be waited for: {error}"));
        let pid = Pid::from_child(child);
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| failed(errno.into()))?;
        let until = Instant::now() + self.timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if read_ready(Some(&ended), pipes, left.min(LOOK_EVERY), take).map_err(failed)?.has_ended {
                return Ok(());
            }
            if self.stop.load(Ordering::Acquire) {
                return Err(self.failed("was interrupted"));
            }
            if left.is_zero() {
                return Err(SubjectError::TimedOut { command: self.words.to_owned(), after: self.timeout });
            }
        }
    }

    pub(super) fn failed(&self, what: &str) -> SubjectError {
        SubjectError::Program { command: self.words.to_owned(), what: what.to_owned() }
    }
}

/// What a look at the pipes has shown.
struct Seen {
    has_ended: bool,
    has_read: bool,
}

/// Waits for `ended` or for something to read, and takes what there is.
fn read_ready(
    ended: Option<&OwnedFd>,
    pipes: &mut [Pipe],
    time: Duration,
    take: &mut dyn FnMut(&Pipe, &[u8]),
) -> std::io::Result<Seen> {
    let ready: Vec<bool> = {
        let files = pipes.iter().map(|pipe| pipe.file.as_ref().map(|file| file.as_fd()));
        let all: Vec<_> = std::iter::once(ended.map(|fd| fd.as_fd())).chain(files).collect();
        let mut polled: Vec<_> =
            all.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let timeout = Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
        let mut polled = polled.iter().map(|fd| !fd.revents().is_empty());
        all.iter().map(|fd| fd.is_some() && polled.next().unwrap_or(false)).collect()
    };
    let mut has_read = false;
    let mut bytes = vec![0; 64 << 10];
    for (pipe, is_ready) in pipes.iter_mut().zip(&ready[1..]) {
        if !is_ready {
            continue;
        }
        let read = pipe.file.as_mut().map_or(Ok(0), |file| file.read(&mut bytes))?;
        if read == 0 {
            pipe.file = None;
            continue;
        }
        has_read = true;
        take(pipe, &bytes[..read]);
    }
    Ok(Seen { has_ended: ready[0], has_read })
}
