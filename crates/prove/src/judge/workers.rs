//! Threads that check states, each with a device of its own.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use plumb_linux::apart::{self, Apart};
use plumb_report::document::proof::FailureClass;
use rustix::fs::OFlags;
use rustix::mount::UnmountFlags;

use super::attached::{Attached, Place};
use super::results::Checked;
use super::{Judge, JudgeError};
use crate::explore::OwnedState;
use crate::file_system::Mounted;
use crate::subject::{CheckPlace, Outcome, Subject};

/// How long a check may take beyond its time: a subject that kills its own program in time has to say so, and to unmount takes
/// time as well. So long, too, whoever wants to stop waits for checks.
const GRACE: Duration = Duration::from_secs(3);
/// How often whoever waits looks whether it is to stop.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A state to check, with its number.
type Task = (u64, OwnedState);

/// The threads.
pub(super) struct Workers {
    workers: Vec<Worker>,
    answers: Receiver<Answer>,
    waiting: VecDeque<Task>,
    checked: HashMap<u64, Result<Checked, String>>,
    time: Duration,
}

struct Worker {
    tasks: Sender<Task>,
    thread: Apart<()>,
    /// Since when it checks.
    busy_since: Option<Instant>,
    attached: Attached,
}

struct Answer {
    worker: usize,
    number: u64,
    checked: Result<Checked, String>,
}

impl Workers {
    /// Attaches the devices, and starts the threads.
    pub(super) fn start(judge: &Judge<'_>, count: usize) -> Result<Self, JudgeError> {
        let (sender, answers) = channel();
        let mut workers = Vec::new();
        for number in 0..count {
            let attached = Attached::new(judge)?;
            let (tasks, received) = channel();
            let (place, subject, sender) =
                (attached.place.clone(), Arc::clone(judge.subject), sender.clone());
            let thread = apart::start(move |ended| {
                for (task, state) in received {
                    let checked = checked(&place, &*subject, state);
                    drop(sender.send(Answer { worker: number, number: task, checked }));
                }
                ended(());
                Ok(())
            });
            let thread = thread.map_err(|source| JudgeError::Io { path: "a thread".into(), source })?;
            workers.push(Worker { tasks, thread, busy_since: None, attached });
        }
        let time = judge.timeout.saturating_add(GRACE);
        Ok(Self { workers, answers, waiting: VecDeque::new(), checked: HashMap::new(), time })
    }

    /// Has a state checked under this number.
    pub(super) fn give(&mut self, number: u64, state: OwnedState) {
        self.waiting.push_back((number, state));
        self.hand_out();
    }

    fn hand_out(&mut self) {
        for worker in self.workers.iter_mut().filter(|worker| worker.busy_since.is_none()) {
            let Some(task) = self.waiting.pop_front() else { return };
            worker.busy_since = Some(Instant::now());
            // A thread that is gone answers never, and is given up as one that hangs.
            drop(worker.tasks.send(task));
        }
    }

    /// Waits for what came of a state. `Err`: why that will not be known.
    pub(super) fn take(&mut self, number: u64, stop: &AtomicBool) -> Result<Checked, String> {
        loop {
            if let Some(checked) = self.checked.remove(&number) {
                return checked;
            }
            match self.answers.recv_timeout(LOOK_AGAIN) {
                Ok(Answer { worker, number, checked }) => {
                    self.workers[worker].busy_since = None;
                    self.checked.insert(number, checked);
                    self.hand_out();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the threads that check have ended".to_owned());
                }
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(STOPPED.to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {
                    let is_over = |since: Instant| since.elapsed() > self.time;
                    if self.workers.iter().any(|worker| worker.busy_since.is_some_and(is_over)) {
                        let after = self.time.saturating_sub(GRACE).as_secs_f64();
                        return Err(format!("a check has not ended after {after} s, and was given up"));
                    }
                }
            }
        }
    }

    /// Ends the threads and takes the devices away. A thread that does not end is left behind without its device.
    pub(super) fn end(self) -> Result<(), JudgeError> {
        let until = Instant::now() + GRACE;
        let mut outcome = Ok(());
        for Worker { tasks, thread, attached, .. } in self.workers {
            drop(tasks);
            let has_ended = thread.within(until.saturating_duration_since(Instant::now())).is_some();
            if has_ended {
                outcome = outcome.and(attached.detach());
                continue;
            }
            // Out of sight; without its device all that uses it fails.
            let point = &attached.place.mount_point;
            let unmount = || rustix::mount::unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
            let unmounted = apart::run(|| unmount().map_err(std::io::Error::from)).and_then(|done| done);
            let io = |source| JudgeError::Io { path: point.clone(), source };
            outcome = outcome.and(unmounted.map_err(io));
        }
        outcome
    }
}

/// Why no more is judged after a signal.
pub(super) const STOPPED: &str = "it was stopped";

/// Mounts the state, unless the subject looks at the bare device, lets it look, and unmounts it.
fn checked(place: &Place, subject: &dyn Subject, state: OwnedState) -> Result<Checked, String> {
    let required = state.required;
    place.put(state).map_err(|error| format!("{}: {error}", place.block_device.display()))?;
    let mut log = KernelLog::from_now();
    let at = subject.check_place();
    let mounted = match (at != CheckPlace::Device).then(|| place.mount()).transpose() {
        Ok(mounted) => mounted,
        Err(error) if error.is_refusal() => {
            let words = place.without_names(&format!("{error}{}", log.since(&place.disk())));
            let outcome = Outcome::Failed { class: FailureClass::Unmountable, words };
            return Ok(Checked { outcome, read: place.read() });
        }
        Err(error) => return Err(error.to_string()),
    };
    let (before, mounted) = if at == CheckPlace::MountedBefore { (mounted, None) } else { (None, mounted) };
    before.map_or(Ok(()), Mounted::unmount).map_err(|error| error.to_string())?;
    let path = mounted.as_ref().map_or(&*place.block_device, Mounted::path);
    let checked = catch_unwind(AssertUnwindSafe(|| subject.check(path, required)));
    let read = place.read();
    let unmounted = mounted.map_or(Ok(()), Mounted::unmount);
    let outcome = match checked {
        Err(_) => return Err(format!("the check of {} panicked", subject.name())),
        Ok(checked) => checked.map_err(|error| error.to_string())?,
    };
    unmounted.map_err(|error| error.to_string())?;
    let outcome = match outcome {
        Outcome::Failed { class, words } => Outcome::Failed { class, words: place.without_names(&words) },
        Outcome::Intact => outcome,
    };
    Ok(Checked { outcome, read })
}

/// What the kernel says from a moment on.
struct KernelLog(Option<File>);

impl KernelLog {
    fn from_now() -> Self {
        let nonblock = OFlags::NONBLOCK.bits() as i32;
        let log = File::options().read(true).custom_flags(nonblock).open("/dev/kmsg").ok();
        Self(log.and_then(|mut log| log.seek(SeekFrom::End(0)).map(|_| log).ok()))
    }

    /// What it has said of a disk since, each line after a semicolon. Nothing where it cannot be read.
    fn since(&mut self, disk: &str) -> String {
        let (mut said, mut line) = (String::new(), [0; 8192]);
        // One read is one line: `6,339,5140900,-;EXT4-fs (loop3): bad geometry`, and more of it behind a line feed.
        while let Some(Ok(length)) = self.0.as_mut().map(|log| log.read(&mut line)) {
            let text = String::from_utf8_lossy(&line[..length]);
            let text = text.lines().next().and_then(|text| text.split_once(';')).map_or("", |(_, text)| text);
            let is_of_disk = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()) == disk;
            if text.split_whitespace().any(is_of_disk) {
                said = said + "; " + text;
            }
        }
        said
    }
}
