//! Runs programs to completion: each in its own process group, with a time limit, until the user asks to
//! stop. Output is passed on as it arrives.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_block::wait::{LOOK_EVERY, PollFlags, Poller, wait_any};
use plumb_block::{Clock as _, Nanos, RealClock};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::orphans::{self, Mark};

/// Maximum number of bytes in one read of a pipe.
const READ_MAX: usize = 16 << 10;
/// Maximum number of consecutive reads of a pipe, so that a program with endless output does not starve
/// others.
const READS_MAX: usize = 16;

/// Maximum time for a killed process to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum run time of a tool, such as one that creates a file system.
const TOOL_TIMEOUT: Duration = Duration::from_secs(600);

/// Callback for a program's output.
type OnOutput<'a> = Box<dyn FnMut(&[u8]) + 'a>;

/// A pipe from a program to a callback.
pub struct Pipe<'a> {
    reader: PipeReader,
    on_output: OnOutput<'a>,
}

impl<'a> Pipe<'a> {
    /// Creates a pipe. Returns it with the program's end.
    ///
    /// # Errors
    /// Fails as pipe(2) does.
    pub fn new(on_output: impl FnMut(&[u8]) + 'a) -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        Ok((Self { reader, on_output: Box::new(on_output) }, writer))
    }

    /// Passes on available output. Returns true if there may be more.
    fn read(&mut self) -> bool {
        let mut bytes = [0; READ_MAX];
        for _ in 0..READS_MAX {
            match self.reader.read(&mut bytes) {
                Ok(0) => return false,
                Ok(read) => (self.on_output)(&bytes[..read]),
                Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
            }
        }
        true
    }
}

/// The last part of a program's output, limited in bytes.
#[derive(Debug)]
pub struct Tail {
    bytes: VecDeque<u8>,
    bytes_max: usize,
}

impl Tail {
    /// Creates an empty tail of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes: VecDeque::new(), bytes_max }
    }

    /// Appends `bytes`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.drain(..self.bytes.len().saturating_sub(self.bytes_max));
    }

    /// Returns the text without surrounding white space.
    pub fn text(mut self) -> String {
        String::from_utf8_lossy(self.bytes.make_contiguous()).trim().to_owned()
    }
}

/// Conditions that end a program early.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'a> {
    /// Maximum run time of the program; `None`: no limit.
    pub timeout: Option<Duration>,
    /// Flags, any of which requests the end.
    pub stop: &'a [&'a AtomicBool],
    /// Time between SIGTERM and SIGKILL; zero: SIGKILL at once.
    pub grace: Duration,
    /// True if remaining processes of its group are killed even after the program ended by itself.
    pub kills_leftovers: bool,
}

/// Cause of a program's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The program ended by itself.
    Itself,
    /// The user asked to stop.
    Stop,
    /// The program exceeded its time limit.
    Timeout,
}

/// A program that has ended.
#[derive(Debug, Clone)]
pub struct ProgramEnd {
    /// Exit status of the program.
    pub status: ExitStatus,
    /// Cause of the end.
    pub by: EndedBy,
    /// Names of the processes outside its group that the program left behind and that were killed. Requires
    /// `kills_leftovers` and an [`Adoption`](crate::orphans::Adoption).
    pub left: Vec<String>,
}

/// Runs `command` to completion in its own process group. Meanwhile passes on the output of `pipes`, whose
/// other ends the command holds.
///
/// # Errors
/// Fails as fork(2), execve(2), pidfd_open(2) and poll(2) do.
pub fn run(mut command: Command, mut pipes: Vec<Pipe<'_>>, limits: Limits<'_>) -> io::Result<ProgramEnd> {
    let mark = Mark::new();
    let mut child = command.env(orphans::VARIABLE, mark.value()).process_group(0).spawn()?;
    // The command also holds the program's ends of the pipes; as long as it does, the pipes never end.
    drop(command);
    let by = watch(&child, &mut pipes, limits);
    let kills = limits.kills_leftovers || !matches!(by, Ok(EndedBy::Itself));
    if kills {
        // The group leader has not been waited for, so its number cannot have been reused.
        signal_group(&child, Signal::KILL);
    }
    let status = child.wait()?;
    let left = if kills { orphans::kill_left(&mark, Pid::from_child(&child)) } else { Vec::new() };
    for pipe in &mut pipes {
        pipe.read();
    }
    Ok(ProgramEnd { status, by: by?, left })
}

/// Runs a tool to completion without stdin, and returns its output. Kills it after ten minutes.
///
/// # Errors
/// Fails as [`run`] does; [`TimedOut`](ErrorKind::TimedOut) if the tool was killed.
pub fn output(command: Command) -> io::Result<Output> {
    output_within(command, TOOL_TIMEOUT)
}

fn output_within(mut command: Command, timeout: Duration) -> io::Result<Output> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (out, out_end) = Pipe::new(|bytes| stdout.extend_from_slice(bytes))?;
    let (err, err_end) = Pipe::new(|bytes| stderr.extend_from_slice(bytes))?;
    command.stdin(Stdio::null()).stdout(out_end).stderr(err_end);
    let limits = Limits { timeout: Some(timeout), stop: &[], grace: Duration::ZERO, kills_leftovers: false };
    let ended = run(command, vec![out, err], limits)?;
    if ended.by != EndedBy::Itself {
        let what = format!("it had not ended after {} s and was killed", timeout.as_secs_f64());
        return Err(io::Error::new(ErrorKind::TimedOut, what));
    }
    Ok(Output { status: ended.status, stdout, stderr })
}

/// Waits at most `within` for `child` to end; `None` if it has not. A process stuck in a request to a dead
/// drive is left to the kernel.
///
/// # Errors
/// Fails as pidfd_open(2), poll(2) and waitpid(2) do.
pub fn reap_within(child: &mut Child, within: Duration) -> io::Result<Option<ExitStatus>> {
    let (clock, ended) = (RealClock::start(), pidfd_open(Pid::from_child(child), PidfdFlags::empty())?);
    ends_by(&clock, &ended, &mut Vec::new(), Nanos::from(within))?;
    child.try_wait()
}

/// Kills a child and waits at most ten seconds for its end.
///
/// # Errors
/// Fails as kill(2) and [`reap_within`] do.
pub fn kill(child: &mut Child) -> io::Result<()> {
    child.kill()?;
    reap_within(child, KILL_TIMEOUT).map(drop)
}

/// Sends a signal to the process group that `child` leads. A group that is gone already is not an error.
pub fn signal_group(child: &Child, signal: Signal) {
    kill_process_group(Pid::from_child(child), signal).unwrap_or_default();
}

/// Waits until the child ends, its time is over, or the user asks to stop. In the latter two cases sends
/// SIGTERM and waits for the grace time.
fn watch(child: &Child, pipes: &mut Vec<Pipe<'_>>, limits: Limits<'_>) -> io::Result<EndedBy> {
    let (clock, ended) = (RealClock::start(), pidfd_open(Pid::from_child(child), PidfdFlags::empty())?);
    let until = limits.timeout.map_or(Nanos(u64::MAX), Nanos::from);
    let by = loop {
        let now = clock.now();
        if has_ended(&clock, &ended, pipes, until.min(now + LOOK_EVERY))? {
            return Ok(EndedBy::Itself);
        }
        if limits.stop.iter().any(|stop| stop.load(Ordering::Acquire)) {
            break EndedBy::Stop;
        }
        if now >= until {
            break EndedBy::Timeout;
        }
    };
    if !limits.grace.is_zero() {
        signal_group(child, Signal::TERM);
        ends_by(&clock, &ended, pipes, clock.now() + Nanos::from(limits.grace))?;
    }
    Ok(by)
}

/// Waits until a program has ended, or `until`. Returns true if it has ended.
fn ends_by(clock: &RealClock, ended: &OwnedFd, pipes: &mut Vec<Pipe<'_>>, until: Nanos) -> io::Result<bool> {
    loop {
        let has_ended = has_ended(clock, ended, pipes, until)?;
        if has_ended || clock.now() >= until {
            return Ok(has_ended);
        }
    }
}

/// Waits until a program has ended, a pipe has output, which is passed on, or `until`. Returns true if it has
/// ended.
fn has_ended(
    clock: &RealClock,
    ended: &OwnedFd,
    pipes: &mut Vec<Pipe<'_>>,
    until: Nanos,
) -> io::Result<bool> {
    let mut poller = Poller::new(clock).watching(ended.as_fd(), PollFlags::IN);
    for pipe in &*pipes {
        poller = poller.watching(pipe.reader.as_fd(), PollFlags::IN);
    }
    wait_any([], Some(until), &mut poller).map_err(io::Error::other)?;
    let has_ended = !poller.events(0).is_empty();
    drop(poller);
    pipes.retain_mut(Pipe::read);
    Ok(has_ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn a_program_that_ends_by_itself_takes_its_group_with_it_and_is_heard_to_its_end() {
        let stop = AtomicBool::new(false);
        let (mut said, mut tail) = (Vec::new(), Tail::new(3));
        let (out, writer) = Pipe::new(|bytes| said.extend_from_slice(bytes)).unwrap();
        let (err, complaints) = Pipe::new(|bytes| tail.push(bytes)).unwrap();
        // Ends once nobody is left who has the other end.
        let (mut group, held) = io::pipe().unwrap();
        let mut command = shell("sleep 1000 & echo abcdef >&2; head -c 300000 /dev/zero; exit 3");
        command.stdout(writer).stderr(complaints).stdin(held);
        let limits = Limits { timeout: None, stop: &[&stop], grace: Duration::ZERO, kills_leftovers: true };
        let ended = run(command, vec![out, err], limits).unwrap();
        assert_eq!((ended.status.code(), ended.by), (Some(3), EndedBy::Itself));
        assert_eq!((said.len(), tail.text().as_str()), (300_000, "ef"));
        assert_eq!(group.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn the_output_of_a_tool_is_whole_and_a_tool_that_does_not_end_is_killed() {
        let output = output_within(shell("cat; echo out; echo err >&2; exit 3"), Duration::from_secs(1000));
        let Output { status, stdout, stderr } = output.unwrap();
        assert_eq!((status.code(), &*stdout, &*stderr), (Some(3), &b"out\n"[..], &b"err\n"[..]));
        let error = output_within(shell("exec sleep 1000"), Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "it had not ended after 0.01 s and was killed");
    }

    #[test]
    fn a_program_ends_when_its_time_is_over_or_the_user_wants_it_with_grace_and_without() {
        let (no, yes) = (AtomicBool::new(false), AtomicBool::new(true));
        let (short, long) = (Duration::from_millis(10), Duration::from_secs(1000));
        for (line, timeout, stop, grace, by, code) in [
            ("exec sleep 1000", Some(short), &no, Duration::ZERO, EndedBy::Timeout, None),
            ("exec sleep 1000", None, &yes, Duration::ZERO, EndedBy::Stop, None),
            ("trap '' TERM; sleep 1000", Some(short), &no, short, EndedBy::Timeout, None),
        ] {
            let limits = Limits { timeout, stop: &[stop], grace, kills_leftovers: false };
            let ended = run(shell(line), Vec::new(), limits).unwrap();
            assert_eq!((ended.by, ended.status.code()), (by, code), "{line}");
        }
        // The program prints a line when it is ready for a signal.
        let stop = AtomicBool::new(false);
        let (ready, writer) = Pipe::new(|_| stop.store(true, Ordering::Release)).unwrap();
        let mut command = shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
        command.stdout(writer);
        let limits = Limits { timeout: None, stop: &[&stop], grace: long, kills_leftovers: false };
        let ended = run(command, vec![ready], limits).unwrap();
        assert_eq!((ended.by, ended.status.code()), (EndedBy::Stop, Some(7)));
    }
}
