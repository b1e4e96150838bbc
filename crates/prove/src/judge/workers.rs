//! Threads that check states, each with its own device.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_block::{Clock as _, Nanos, RealClock, receive_unless};
use plumb_linux::isolated_thread::{self, IsolatedThread};
use plumb_report::document::proof::FailureClass;
use rustix::fs::OFlags;
use rustix::mount::UnmountFlags;

use super::attached::{AttachedStates, Place};
use super::checker::Checker;
use super::directory::{DirectorySite, StateDirectory};
use super::parameters::Judge;
use super::results::CheckResult;
use crate::error::{ErrorKind, Result, cannot};
use crate::explore::OwnedState;
use crate::file_system::MountedFileSystem;
use crate::subject::Outcome;

/// Time that a check may exceed its limit: a subject that kills its program at the limit still has to report
/// that, and unmounting takes time. A stop waits this long for checks, too.
const GRACE: Nanos = Nanos::secs(3);

/// State to check, and the receiver of the answer.
type Task = (OwnedState, Sender<Answer>);

/// Result of the check of a state, or the reason why it stays unknown.
type Answer = std::result::Result<CheckResult, String>;

/// Pending result of a state. Tickets must be waited for in the order in which they were issued.
pub(super) struct Ticket(Receiver<Answer>);

/// Site of states: a drive, or a directory.
enum Bench {
    Drive(Box<AttachedStates>),
    Directory(StateDirectory),
}

/// A [`Bench`] for a thread without the descriptors of others.
enum Site {
    Drive(Box<Place>),
    Directory(DirectorySite),
}

impl Bench {
    fn new(judge: &Judge<'_>) -> Result<Self> {
        match &judge.recorded.layout {
            Some(layout) => StateDirectory::new(judge, layout).map(Self::Directory),
            None => AttachedStates::new(judge).map(|attached| Self::Drive(Box::new(attached))),
        }
    }

    fn site(&self) -> Site {
        match self {
            Self::Drive(attached) => Site::Drive(Box::new(attached.place.clone())),
            Self::Directory(directory) => Site::Directory(directory.site.clone()),
        }
    }

    /// Detaches the drive, or removes the directory.
    fn close(self) -> Result<()> {
        match self {
            Self::Drive(attached) => attached.detach(),
            Self::Directory(directory) => directory.close(),
        }
    }

    /// Removes the bench from a thread that does not end.
    fn abandon(self) -> Result<()> {
        let Self::Drive(attached) = self else { return Ok(()) };
        // A lazy unmount: without its device every user of it fails.
        let point = &attached.place.mount_point;
        let unmount = || rustix::mount::unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        let unmounted =
            isolated_thread::run(|| unmount().map_err(std::io::Error::from)).and_then(|done| done);
        unmounted.map_err(cannot(format!("unmount {}", point.display())))
    }
}

impl Site {
    fn check(&self, checker: &Checker, state: OwnedState) -> Result<CheckResult> {
        match self {
            Self::Drive(place) => check(place, checker, state),
            Self::Directory(site) => site.check(checker, &state),
        }
    }
}

pub(super) struct Workers {
    tasks: Sender<Task>,
    threads: Vec<(IsolatedThread<()>, Bench)>,
    timeout: Nanos,
    /// True if states are checked by a program, false if by comparison.
    runs_programs: bool,
    /// Set when no more results are needed.
    is_ended: Arc<AtomicBool>,
}

impl Workers {
    /// Attaches the devices, and starts the threads.
    pub(super) fn start(judge: &Judge<'_>, count: usize) -> Result<Self> {
        let (tasks, received) = channel::<Task>();
        let received = Arc::new(Mutex::new(received));
        let checker = Arc::new(Checker::new(judge)?);
        let (mut threads, is_ended) = (Vec::new(), Arc::new(AtomicBool::new(false)));
        for _ in 0..count {
            let bench = Bench::new(judge)?;
            let (site, checker) = (bench.site(), Arc::clone(&checker));
            let (received, is_ended) = (Arc::clone(&received), Arc::clone(&is_ended));
            let thread = isolated_thread::start(move |ended| {
                let next = || received.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok((state, answer)) = next() {
                    if is_ended.load(Ordering::Acquire) {
                        continue;
                    }
                    // The receiver may be gone.
                    let checked = site.check(&checker, state).map_err(|error| error.to_string());
                    drop(answer.send(checked));
                }
                ended(());
                Ok(())
            });
            threads.push((thread.map_err(cannot("start a thread"))?, bench));
        }
        let runs_programs = !checker.has_moments();
        Ok(Self { tasks, threads, timeout: checker.timeout(judge.timeout), runs_programs, is_ended })
    }

    /// Returns the blocks that the check of a state reads, in order, if creating the state already reads them
    /// all. Returns `None` if only the check knows, or a comparison would be as fast.
    pub(super) fn reads(&self, state: &OwnedState) -> Option<Vec<u64>> {
        match self.threads.first() {
            Some((_, Bench::Directory(directory))) if self.runs_programs => {
                Some(directory.site.tree(state).1.into_iter().map(|(lba, _)| lba).collect())
            }
            _ => None,
        }
    }

    /// Submits a state to be checked.
    pub(super) fn submit(&self, state: OwnedState) -> Ticket {
        let (answer, ticket) = channel();
        // If the threads are gone, the ticket reports it.
        drop(self.tasks.send((state, answer)));
        Ticket(ticket)
    }

    /// Waits for the result of a state.
    pub(super) fn wait_for(&self, ticket: &Ticket, stop: &AtomicBool) -> Answer {
        // All earlier checks are done, so this one is running by now.
        let patience = self.timeout.saturating_add(GRACE);
        let is_stopped = || stop.load(Ordering::Relaxed);
        match receive_unless(&ticket.0, is_stopped, patience) {
            Ok(checked) => checked,
            Err(RecvTimeoutError::Disconnected) => Err("the threads that check have ended".to_owned()),
            Err(RecvTimeoutError::Timeout) if is_stopped() => Err(STOPPED.to_owned()),
            Err(RecvTimeoutError::Timeout) => {
                let after = self.timeout.as_secs_f64();
                Err(format!("a check did not end within {after} s, and was abandoned"))
            }
        }
    }

    /// Ends the threads and detaches the devices. A thread that does not end is left behind without its
    /// device.
    pub(super) fn end(self) -> Result<()> {
        self.is_ended.store(true, Ordering::Release);
        drop(self.tasks);
        let (clock, mut outcome) = (RealClock::start(), Ok(()));
        for (thread, bench) in self.threads {
            if thread.within(GRACE.since(clock.now()).into()).is_some() {
                outcome = outcome.and(bench.close());
                continue;
            }
            outcome = outcome.and(bench.abandon());
        }
        outcome
    }
}

/// Reason for the end of judging after a signal.
pub(super) const STOPPED: &str = "it was stopped";

/// Mounts the state, unless the subject uses the block device, checks it, and unmounts it.
fn check(place: &Place, checker: &Checker, state: OwnedState) -> Result<CheckResult> {
    let required = state.required;
    let drive = place.put(state)?;
    let mut log = KernelLog::from_now();
    let mut mounted = match place.mount(&drive) {
        Ok(mounted) => Some(mounted),
        Err(error) if error.kind == ErrorKind::Unmountable => {
            let words = place.without_names(&format!("{error}{}", log.since(&place.disks())));
            let outcome = Outcome::Failed { class: FailureClass::Unmountable, words };
            return Ok(CheckResult { outcome, read: drive.read(), wrote: false });
        }
        Err(error) => return Err(error),
    };
    let before = mounted.take_if(|_| checker.subject.is_checked_unmounted());
    before.map_or(Ok(()), MountedFileSystem::unmount)?;
    let path = mounted.as_ref().map_or(place.block_device(), MountedFileSystem::path);
    let writes = drive.writes();
    let outcome = checker.outcome(path, required);
    let (read, wrote) = (drive.read(), drive.writes() > writes);
    let unmounted = mounted.map_or(Ok(()), MountedFileSystem::unmount);
    let outcome = outcome?;
    unmounted?;
    let outcome = match outcome {
        Outcome::Failed { class, words } => Outcome::Failed { class, words: place.without_names(&words) },
        Outcome::Intact => outcome,
    };
    Ok(CheckResult { outcome, read, wrote })
}

/// Kernel log from a certain moment on.
struct KernelLog(Option<File>);

impl KernelLog {
    fn from_now() -> Self {
        let nonblock = OFlags::NONBLOCK.bits() as i32;
        let log = File::options().read(true).custom_flags(nonblock).open("/dev/kmsg").ok();
        Self(log.and_then(|mut log| log.seek(SeekFrom::End(0)).map(|_| log).ok()))
    }

    /// Returns the kernel's messages about these disks since that moment, of each line the text after the
    /// semicolon; empty if the log cannot be read.
    fn since(&mut self, disks: &[String]) -> String {
        let (mut said, mut line) = (String::new(), [0; 8192]);
        // One read is one line: `6,339,5140900,-;EXT4-fs (loop3): bad geometry`, and more of it behind a line
        // feed.
        while let Some(Ok(length)) = self.0.as_mut().map(|log| log.read(&mut line)) {
            let text = String::from_utf8_lossy(&line[..length]);
            let text = text.lines().next().and_then(|text| text.split_once(';')).map_or("", |(_, text)| text);
            let is_of_disk = |word: &str| {
                disks.iter().any(|disk| word.trim_matches(|c: char| !c.is_alphanumeric()) == disk)
            };
            if text.split_whitespace().any(is_of_disk) {
                said = said + "; " + text;
            }
        }
        said
    }
}
