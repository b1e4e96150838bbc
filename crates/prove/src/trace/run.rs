//! Program under strace(1), whose trace is read while it runs, with sync calls made on its behalf.
//!
//! The trace goes through a FIFO that holds one page, and a line is far longer, since strace pads it before
//! the result. So while the beginning of a line has been read and its end has not, strace waits in write(2),
//! and the calling thread is held right after its call. That works with any number of threads, and without
//! signals, which threads would share. Syncs made meanwhile reach the drive as if the program had made them.
//! Chosen writeback ([`Writeback`]) is done at the same point.
//!
//! Limitations: the result of the call is at the end of the line, so failed calls are followed by a sync as
//! well; these are counted. strace can leave failed calls out by itself (`-z`), but version 6.1 then loses
//! calls of programs with several threads. Writes by io_uring, aio and mapped memory are not among the calls;
//! [`Audit::not_seen`] lists them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use plumb_block::unix_time;
use plumb_linux::child;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempDir;

use super::leftovers::Leftovers;
use super::names::FileNames;
use super::strace::{CALLS, Lines};
use super::sync_call::injected;
use super::thread_state::{is_gone, is_held};
use super::writeback::Chosen;
use super::{Audit, Call, Injection, Sync, SyncCall, TracedCalls, Writeback};
use crate::error::{Error, ErrorKind, Result, cannot};
use crate::posix::{Follower, make_fifo};
use crate::subject::User;

/// Capacity of the FIFO: the minimum, which is a page.
const PIPE: usize = 4096;
/// Column of the result, in capacities of the FIFO. With arguments of up to half of that strace still waits.
const PADDED: usize = 6;
/// Option of strace(1) that refuses interfaces whose writes are not visible in calls.
const REFUSED: &str = "inject=io_uring_setup,io_setup:error=ENOSYS";
/// Number of blanks that end the part of a line about a returned call.
const BLANKS: usize = 64;

/// Calls of a program that has ended, and their follower.
type Read = (TracedCalls, Option<Follower>);

#[derive(Default)]
pub(crate) struct TraceOptions {
    /// Sync calls to make on behalf of the program.
    pub(crate) injections: Vec<Injection>,
    /// Sync calls of the program that are skipped and reported as successful.
    pub(crate) left_out: Vec<SyncCall>,
    /// Choice of writeback; `None` for the kernel's own.
    pub(crate) writeback: Option<Writeback>,
    /// Receiver of each call while its thread is held. Writes by io_uring or aio are refused then.
    pub(crate) follower: Option<Follower>,
    /// True if sync calls are only reported to the follower. Those that are left out are just not reported.
    pub(crate) is_modelled: bool,
    /// True to kill leftover processes a second after the end of the program; false to wait for them.
    pub(crate) kills_leftovers: bool,
}

/// Trace in progress. Dropping it abandons the trace.
#[derive(Debug)]
pub struct Tracer {
    directory: TempDir,
    /// Column of the result if threads are held after their calls.
    column: Option<usize>,
    /// True if interfaces whose writes are not visible are refused.
    refuses: bool,
    /// Expressions for strace(1) that skip sync calls.
    injected: Vec<String>,
    reader: Option<JoinHandle<Result<Read>>>,
}

impl Tracer {
    /// Prepares to trace one program, of which operations below `root` count, with sync calls to make on its
    /// behalf and chosen writeback. The reading thread shares the descriptors of the calling one.
    ///
    /// # Errors
    /// If strace is missing, or the directory for temporary files is not writable.
    pub fn start(root: &Path, injections: Vec<Injection>, writeback: Option<Writeback>) -> Result<Self> {
        let options = TraceOptions { injections, writeback, ..TraceOptions::default() };
        Self::with(root, options)
    }

    /// Prepares as [`start`](Self::start) does, with these options.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub(crate) fn with(root: &Path, options: TraceOptions) -> Result<Self> {
        let TraceOptions { injections, left_out, writeback, follower, kills_leftovers, is_modelled } =
            options;
        let root = root.canonicalize().map_err(cannot(format!("find {}", root.display())))?;
        let mut command = Command::new("strace");
        command.arg("-V");
        let version = child::output(command);
        match version {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let what = "strace is not there: install the package strace";
                return Err(Error::new(ErrorKind::NotTraced, what));
            }
            version => version.map_err(cannot("start strace"))?,
        };
        let injected = if is_modelled { Some(Vec::new()) } else { injected(&left_out) };
        let injected = injected.ok_or_else(|| {
            let what = "strace cannot leave out single sync calls of several processes or threads";
            Error::new(ErrorKind::NotTraced, what)
        })?;
        let directory = tempfile::tempdir().map_err(cannot("make a directory for temporary files"))?;
        let path = directory.path().join("trace");
        let (fifo, held) = open_fifo(&path).map_err(cannot("make a FIFO"))?;
        let refuses = follower.is_some();
        let holds = !injections.is_empty() || writeback.is_some() || refuses;
        let column = holds.then_some(PADDED * held);
        let began = unix_time();
        let names = FileNames::beneath(&root);
        let reader = Reader {
            audit: Audit::beneath(&root, &names),
            lines: Lines::default(),
            injections,
            left_out: if is_modelled { left_out } else { Vec::new() },
            syncs: 0,
            chosen: writeback.map(|plan| Chosen::new(plan, &root)),
            follower,
            leftovers: kills_leftovers.then(Leftovers::default),
            traced: TracedCalls { root, names, began, ..TracedCalls::default() },
        };
        let thread = std::thread::Builder::new().name("strace".to_owned());
        let reader = thread.spawn(move || reader.read(fifo)).map_err(cannot("start a thread"))?;
        Ok(Self { directory, column, refuses, injected, reader: Some(reader) })
    }

    /// Returns the command that runs `command` traced, with its arguments, variables and directory. The
    /// caller sets descriptors and process group. It ends with the status of `command` after all its
    /// children, and must be run once.
    pub fn command(&self, command: &Command) -> Command {
        self.command_as(command, None)
    }

    /// Returns the command as [`command`](Self::command) does, for a `command` that runs as a user.
    pub(crate) fn command_as(&self, command: &Command, user: Option<&User>) -> Command {
        let mut traced = Command::new("strace");
        let calls: Vec<&str> = CALLS.iter().map(|(_, names)| *names).collect();
        traced.args("-f --seccomp-bpf -y -ttt -T -q -s 0 -e signal=none -e".split(' '));
        traced.arg(format!("trace={}", calls.join(",")));
        if self.refuses {
            traced.arg("-e").arg(REFUSED);
        }
        for expression in &self.injected {
            traced.arg("-e").arg(expression);
        }
        if let Some(column) = self.column {
            traced.arg("-a").arg(column.to_string());
        }
        if let Some(user) = user {
            traced.arg("-u").arg(user.name());
        }
        traced.arg("-o").arg(self.path()).arg("--").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => traced.env(name, value),
                None => traced.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            traced.current_dir(directory);
        }
        traced
    }

    /// Returns the calls after the program has ended.
    ///
    /// # Errors
    /// If the trace cannot be read, or an additional sync call failed.
    pub fn finish(self) -> Result<TracedCalls> {
        self.read().map(|(traced, _)| traced)
    }

    /// Returns the calls and their follower after the program has ended.
    ///
    /// # Errors
    /// Those of [`finish`](Self::finish).
    pub(crate) fn finish_followed(self) -> Result<(TracedCalls, Option<Follower>)> {
        self.read()
    }

    fn read(mut self) -> Result<Read> {
        self.wake();
        let Some(reader) = self.reader.take() else { return Ok((TracedCalls::default(), None)) };
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("trace")
    }

    /// Wakes the reader, which would wait indefinitely if nothing was ever written.
    fn wake(&self) {
        drop(rustix::fs::open(
            self.path(),
            OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        ));
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.wake();
    }
}

/// Opens a FIFO for reading, and returns its capacity in bytes.
fn open_fifo(path: &Path) -> rustix::io::Result<(File, usize)> {
    let fifo = make_fifo(path)?;
    let held = rustix::pipe::fcntl_setpipe_size(&fifo, PIPE)?;
    Ok((fifo, held))
}

/// Reads the trace, and holds the program for additional sync calls and writeback.
struct Reader {
    injections: Vec<Injection>,
    /// Sync calls not reported to the follower.
    left_out: Vec<SyncCall>,
    /// Number of sync calls that have returned.
    syncs: u64,
    chosen: Option<Chosen>,
    follower: Option<Follower>,
    /// Leftover processes; `None` to wait for them.
    leftovers: Option<Leftovers>,
    audit: Audit,
    lines: Lines,
    traced: TracedCalls,
}

impl Reader {
    fn read(mut self, mut fifo: File) -> Result<Read> {
        let mut pending = Vec::new();
        // Number of additional sync calls for the current line.
        let mut synced = None;
        let mut failed = None;
        let mut chunk = [0; PIPE];
        loop {
            let patience = self.leftovers.as_ref().and_then(Leftovers::patience);
            poll(&mut [PollFd::new(&fifo, PollFlags::IN)], patience.as_ref())
                .or_else(|errno| if errno == Errno::INTR { Ok(0) } else { Err(errno) })
                .map_err(cannot("wait for strace"))?;
            if let Some(leftovers) = &mut self.leftovers {
                leftovers.kill_late();
            }
            match fifo.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => pending.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(cannot("read what strace says")(error)),
            }
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                self.traced.is_started = true;
                let synced = synced.take().unwrap_or(0);
                let line = String::from_utf8_lossy(&line);
                if let Some(leftovers) = &mut self.leftovers {
                    leftovers.observe(&line);
                }
                if let Some(call) = self.lines.parse(&line) {
                    let TracedCalls { injected, injected_after_failures, .. } = &mut self.traced;
                    *(if call.result.is_ok() { injected } else { injected_after_failures }) += synced;
                    self.audit.observe(&call);
                    if let Some(follower) = &mut self.follower {
                        self.syncs += u64::from(call.synced(&self.traced.root).is_some());
                        let is_left_out = self.left_out.iter().any(|one| one.number == self.syncs)
                            && call.synced(&self.traced.root).is_some();
                        if is_left_out {
                            follower.drop_last();
                        } else {
                            follower.ended(&call);
                        }
                    }
                    self.traced.calls.push(call);
                }
            }
            // After a failure the program continues, and its trace is read to the end, so that it does not
            // block.
            if synced.is_none() && failed.is_none() && pending.ends_with(&[b' '; BLANKS]) {
                match self.returned(&pending) {
                    Ok(count) => synced = Some(count),
                    Err(error) => failed = Some(error),
                }
            }
        }
        self.traced.left = self.leftovers.map(Leftovers::into_names).unwrap_or_default();
        failed.map_or(Ok((self.traced, self.follower)), Err)
    }

    /// Acts after a call that has returned, successfully or not, and whose thread is held. Returns the number
    /// of additional sync calls. If the program continued meanwhile, the run proves nothing.
    fn returned(&mut self, begin: &[u8]) -> Result<u64> {
        let text = String::from_utf8_lossy(begin);
        let Some(call) = self.lines.clone().parse(&format!("{} = 0", text.trim_ascii_end())) else {
            return Ok(0);
        };
        if let Some(follower) = &mut self.follower {
            follower.returned(&call);
        }
        let injected = self.inject(&call)?;
        let written = self.chosen.as_mut().map_or(Ok(false), |chosen| chosen.returned(&call, &self.audit))?;
        let is_acted = injected > 0 || written;
        if !is_acted
            && let Some(follower) = &mut self.follower
            && is_gone(call.thread)
            && !follower.is_cut()
        {
            follower.killed(&call);
        } else if (is_acted || self.follower.is_some())
            && !is_held(call.thread)
            && !self.follower.as_ref().is_some_and(Follower::is_cut)
        {
            let what = format!("strace did not hold thread {} after its system call", call.thread);
            return Err(Error::missing(what, "this version of strace cannot be used here"));
        }
        Ok(injected)
    }

    /// Makes the additional sync calls for a call, and returns their number.
    fn inject(&mut self, call: &Call) -> Result<u64> {
        let Some((after, path)) = self.audit.changed(call) else { return Ok(0) };
        let Ok(named) = path.strip_prefix(&self.traced.root) else { return Ok(0) };
        let mut synced_count = 0;
        for injection in self.injections.iter().filter(|one| one.matches(after, named)) {
            let synced = match injection.sync {
                Sync::File => path.as_path(),
                Sync::Directory => path.parent().unwrap_or(&self.traced.root),
            };
            let fsync = File::open(synced).and_then(|file| file.sync_all());
            match fsync {
                // The file was removed meanwhile, so there is nothing to sync.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let what = format!("fsync of {} in place of the program", synced.display());
                    return Err(Error::failed(what, error));
                }
                Ok(()) => {
                    synced_count += 1;
                    if let Some(follower) = &mut self.follower {
                        follower.synced_in_place(synced);
                    }
                }
            }
        }
        Ok(synced_count)
    }
}
