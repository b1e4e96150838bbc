//! Driver of a controller over launched processes: one thread that polls their pipes with poll(2).
//!
//! Each launcher has a process group of its own, so that Ctrl-C reaches only the controller, which then stops
//! the hosts. When a host is given up, its pipes are closed and its launcher receives SIGTERM, then SIGKILL.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::wait::{LOOK_EVERY, PollFlags, Poller, wait_any};
use plumb_block::{Clock, Nanos};
use plumb_linux::child::signal_group;
use plumb_linux::descriptors;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::controller::Controller;
use crate::launcher::{Launcher, pushed_to};

/// Time limit for a launcher to exit.
const EXIT_WITHIN: Nanos = Nanos::secs(3);
/// Maximum time of reading before pings are sent again.
const READ_FOR: Nanos = Nanos::millis(100);
/// Maximum number of bytes per read.
const CHUNK: usize = 64 << 10;
/// Maximum length of the output of a push, in bytes.
const PUSHED_MAX: usize = 4 << 10;

/// Launchers of the hosts of a controller.
pub struct Processes {
    launcher: Launcher,
    names: Vec<String>,
    /// With a push: the program, its SHA-256, and the time limit for starting its agent.
    push: Option<(PathBuf, String, Nanos)>,
    running: Vec<Option<Process>>,
    /// Pipes that were ready at the last wait and have not been read, and the time of that wait.
    unread: Vec<(usize, Pipe)>,
    waited: Nanos,
    /// Launchers that are terminating, with closed pipes, and the time of SIGKILL.
    ending: Vec<(Process, Nanos)>,
}

/// A launcher.
struct Process {
    child: Child,
    /// Readable once the launcher has exited (pidfd_open(2)).
    exit: OwnedFd,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// Output of a push; `None` for an agent.
    pushed: Option<Vec<u8>>,
    /// Time at which stdout ended.
    ended: Option<Nanos>,
}

impl Processes {
    /// Creates the launchers without starting them. With `push`, this program with this SHA-256 is first
    /// copied to each host, where it is removed unless its agent starts within the given time.
    pub fn new(launcher: Launcher, names: &[String], push: Option<(PathBuf, String, Nanos)>) -> Self {
        // Three pipes for each host. If the limit is too low, starting a launcher reports the error.
        descriptors::raise(names.len() as u64 * 3 + 64);
        let running = names.iter().map(|_| None).collect();
        let (unread, ending) = (Vec::new(), Vec::new());
        Self { launcher, names: names.to_vec(), push, running, unread, waited: Nanos::ZERO, ending }
    }

    /// Drives the controller until `is_over` returns true. When `stop` is set, the hosts are told to end
    /// their tasks. Calls `watch` about ten times a second.
    ///
    /// # Errors
    /// Fails if waiting fails.
    pub fn drive(
        &mut self,
        controller: &mut Controller,
        is_over: &dyn Fn(&Controller) -> bool,
        clock: &dyn Clock,
        stop: &AtomicBool,
        watch: &mut dyn FnMut(&Controller, Nanos),
    ) -> plumb_block::Result<()> {
        let mut next_look = clock.now();
        let mut looked = Nanos::ZERO;
        loop {
            let now = clock.now();
            if stop.load(Ordering::Relaxed) {
                controller.stop(now);
            }
            controller.tick(now, looked);
            for number in controller.to_launch(now) {
                self.launch(number, None, controller);
            }
            controller.to_kill().into_iter().for_each(|number| self.end(number, now));
            self.write_all(controller);
            self.reap(controller, now);
            if now >= next_look {
                watch(controller, now);
                next_look = now + LOOK_EVERY;
            }
            if is_over(controller) && self.ending.is_empty() {
                watch(controller, now);
                return Ok(());
            }
            self.wait(controller, clock, next_look)?;
            if self.unread.is_empty() {
                looked = self.waited;
            }
        }
    }

    /// Starts the launcher of a host: for a push, or for the agent, in the directory of the push if there was
    /// one.
    fn launch(&mut self, number: usize, directory: Option<&str>, controller: &mut Controller) {
        let name = &self.names[number];
        let (words, stdin) = match (&self.push, directory) {
            (Some((program, hash, within)), None) => {
                (self.launcher.push(name, hash, *within), Some(File::open(program)))
            }
            (_, Some(directory)) => (self.launcher.pushed(name, directory), None),
            (None, None) => (self.launcher.agent(name), None),
        };
        let is_push = stdin.is_some();
        let started = stdin.transpose().and_then(|file| {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.stdin(file.map_or_else(Stdio::piped, Stdio::from)).spawn()
        });
        match started.and_then(|child| Process::from_child(child, is_push)) {
            Ok(process) => self.running[number] = Some(process),
            Err(error) => controller.closed(number, &format!("cannot start `{}`: {error}", words[0])),
        }
    }

    /// Closes the pipes of a host and terminates its launcher.
    fn end(&mut self, number: usize, now: Nanos) {
        if let Some(process) = self.running[number].take() {
            signal_group(&process.child, Signal::TERM);
            let closed = Process { stdin: None, stdout: None, stderr: None, ..process };
            self.ending.push((closed, now + EXIT_WITHIN));
        }
    }

    fn write_all(&mut self, controller: &mut Controller) {
        for (number, process) in self.running.iter_mut().enumerate() {
            let Some(process) = process.as_mut().filter(|process| process.pushed.is_none()) else { continue };
            let output = controller.output(number);
            if let Some(stdin) = process.stdin.as_mut().filter(|_| !output.is_empty())
                && write(stdin, output).is_err()
            {
                // The process reports the reason on stdout and stderr.
                process.stdin = None;
            }
        }
    }

    /// Waits until a pipe is ready or a deadline passes, then reads. Pipes that could not be read in time are
    /// read at the next call, before waiting.
    fn wait(
        &mut self,
        controller: &mut Controller,
        clock: &dyn Clock,
        until: Nanos,
    ) -> plumb_block::Result<()> {
        if self.unread.is_empty() {
            self.find_ready(controller, clock, until)?;
        }
        let until = clock.now() + READ_FOR;
        let mut chunk = vec![0; CHUNK];
        while let Some((number, pipe)) = self.unread.pop() {
            self.read(number, pipe, &mut chunk, controller, clock.now());
            if clock.now() >= until {
                break;
            }
        }
        Ok(())
    }

    fn find_ready(
        &mut self,
        controller: &mut Controller,
        clock: &dyn Clock,
        until: Nanos,
    ) -> plumb_block::Result<()> {
        let now = clock.now();
        self.waited = now;
        let until = until.min(controller.deadline(now));
        let mut poller = Poller::new(clock);
        let mut polled: Vec<(usize, Pipe)> = Vec::new();
        for (number, process) in self.running.iter().enumerate() {
            let Some(process) = process else { continue };
            let is_waiting = !controller.output(number).is_empty() && process.pushed.is_none();
            for (pipe, descriptor, events) in process.pipes(is_waiting) {
                poller = poller.watching(descriptor, events);
                polled.push((number, pipe));
            }
        }
        let exiting = self.running.iter().flatten().filter(|process| process.ended.is_some());
        for process in exiting.chain(self.ending.iter().map(|(process, _)| process)) {
            poller = poller.watching(process.exit.as_fd(), PollFlags::IN);
        }
        wait_any([], Some(until), &mut poller)?;
        let ready = |index: &usize| !poller.events(*index).is_empty();
        self.unread = (0..polled.len()).filter(ready).map(|index| polled[index]).collect();
        Ok(())
    }

    fn read(&mut self, number: usize, pipe: Pipe, chunk: &mut [u8], controller: &mut Controller, now: Nanos) {
        let Some(process) = &mut self.running[number] else { return };
        match pipe {
            Pipe::Stdin => {}
            Pipe::Stderr => match process.stderr.as_mut().map(|stderr| read(stderr, chunk)) {
                Some(Some(0)) => process.stderr = None,
                Some(Some(count)) => controller.said(number, &chunk[..count]),
                _ => {}
            },
            Pipe::Stdout => {
                match (process.stdout.as_mut().and_then(|stdout| read(stdout, chunk)), &mut process.pushed) {
                    (Some(0), _) => {
                        process.stdout = None;
                        process.ended = Some(now);
                    }
                    (Some(count), Some(printed)) => {
                        let room = PUSHED_MAX.saturating_sub(printed.len());
                        printed.extend_from_slice(&chunk[..count.min(room)]);
                    }
                    (Some(count), None) => controller.receive(number, &chunk[..count], now),
                    (None, _) => {}
                }
            }
        }
    }

    /// Processes launchers that have exited.
    fn reap(&mut self, controller: &mut Controller, now: Nanos) {
        for number in 0..self.running.len() {
            let Some(process) = &mut self.running[number] else { continue };
            let Some(ended) = process.ended else { continue };
            let status = process.child.try_wait().ok().flatten();
            if status.is_none() && now.since(ended) < EXIT_WITHIN {
                continue;
            }
            if let Some(mut stderr) = process.stderr.take() {
                let mut chunk = vec![0; CHUNK];
                if let Some(count) = read(&mut stderr, &mut chunk) {
                    controller.said(number, &chunk[..count]);
                }
            }
            let pushed = process.pushed.take().filter(|_| status.is_some_and(|status| status.success()));
            let how = status.map_or_else(|| "its output ended".to_owned(), words);
            self.end(number, now);
            match pushed.as_deref().map(pushed_to) {
                Some(Ok(directory)) => self.launch(number, Some(&directory), controller),
                Some(Err(instead)) => controller.closed(number, &format!("{instead}: {how}")),
                None => controller.closed(number, &how),
            }
        }
        self.ending.retain_mut(|(process, until)| {
            if matches!(process.child.try_wait(), Ok(None)) {
                if now >= *until {
                    // A process that survives SIGKILL is left behind.
                    signal_group(&process.child, Signal::KILL);
                }
                return now < *until;
            }
            false
        });
    }
}

impl Drop for Processes {
    /// Terminates all launchers. Agents stop their tasks when their pipes close.
    fn drop(&mut self) {
        for mut process in self.running.drain(..).flatten() {
            signal_group(&process.child, Signal::TERM);
            // init reaps a process that does not exit at once.
            process.child.try_wait().ok();
        }
    }
}

/// A pipe of a launcher.
#[derive(Debug, Clone, Copy)]
enum Pipe {
    Stdin,
    Stdout,
    Stderr,
}

impl Process {
    fn from_child(mut child: Child, is_push: bool) -> io::Result<Self> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        unblock(stdin.as_ref().map(AsFd::as_fd))?;
        unblock([stdout.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd)].into_iter().flatten())?;
        let exit = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(Self { child, exit, stdin, stdout, stderr, pushed: is_push.then(Vec::new), ended: None })
    }

    /// Returns the pipes to poll, with their events; stdin only if there `is_waiting` output.
    fn pipes(&self, is_waiting: bool) -> impl Iterator<Item = (Pipe, BorrowedFd<'_>, PollFlags)> {
        let stdin = self
            .stdin
            .as_ref()
            .filter(|_| is_waiting)
            .map(|pipe| (Pipe::Stdin, pipe.as_fd(), PollFlags::OUT));
        let stdout = self.stdout.as_ref().map(|pipe| (Pipe::Stdout, pipe.as_fd(), PollFlags::IN));
        let stderr = self.stderr.as_ref().map(|pipe| (Pipe::Stderr, pipe.as_fd(), PollFlags::IN));
        [stdin, stdout, stderr].into_iter().flatten()
    }
}

/// Sets descriptors to non-blocking mode.
pub(crate) fn unblock<'a>(all: impl IntoIterator<Item = BorrowedFd<'a>>) -> io::Result<()> {
    all.into_iter().try_for_each(|one| Ok(fcntl_setfl(one, fcntl_getfl(one)? | OFlags::NONBLOCK)?))
}

/// Reads into `chunk`. Returns the number of bytes, 0 at the end or after an error, `None` if nothing is
/// available.
pub(crate) fn read(from: &mut impl Read, chunk: &mut [u8]) -> Option<usize> {
    match from.read(chunk) {
        Ok(count) => Some(count),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => None,
        Err(_) => Some(0),
    }
}

/// Writes as much of `output` as possible without blocking, and removes it from the front.
pub(crate) fn write(to: &mut impl Write, output: &mut Vec<u8>) -> io::Result<()> {
    let mut written = 0;
    let ended = loop {
        match to.write(&output[written..]) {
            Ok(0) => break Ok(()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
        if written == output.len() {
            break Ok(());
        }
    };
    output.drain(..written);
    ended
}

fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the launcher exited with {code}"),
        (None, Some(signal)) => format!("the launcher was ended by signal {signal}"),
        (None, None) => "the launcher ended".to_owned(),
    }
}
