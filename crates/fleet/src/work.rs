//! Tasks of an agent: loads, which start together with those of other hosts, and commands of this program
//! that print a document.
//!
//! Scenarios and levels are interpreted by the whole program, which runs the loads as an implementation of
//! [`Loads`].

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_block::{Clock, FailureKind, Nanos, in_one_line, sleep_unless};
use plumb_linux::child::{self, Limits, Pipe, Tail};
use plumb_linux::tree::{self, LiveTree};
use plumb_load::{Event, LoadOutcome, Observer, SpanResult};
use plumb_measure::Series;
use plumb_trial::{Trial, TrialError};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::agent::Agent;
use crate::clock::MonotonicClock;
use crate::message::{Identity, LoadTask, Task, TaskResult};
use crate::stdio::{self, Link, Work};

/// Path of the running program, valid even after its file was removed.
pub const PROGRAM: &str = "/proc/self/exe";
/// Environment variable that marks a command run by an agent.
const OF_AGENT: &str = "PLUMB_OF_AGENT";
/// Interval of interim figures.
const FIGURES_EVERY: Nanos = Nanos::secs(1);
/// Time limit for a command to exit after SIGTERM. A command does not outlive its agent.
const END_WITHIN: Duration = Duration::from_secs(5);
/// Maximum length of a command's document in bytes.
const DOCUMENT_MAX: usize = 6 << 20;
/// Maximum number of bytes kept of a command's stderr.
const SAID_MAX: usize = 4 << 10;
/// Highest exit code of a command with a valid document: 1 means that it has findings.
const ANSWERED: u8 = 1;

/// Runner of loads.
pub trait Loads: Send + Sync {
    /// Runs `load` at its level until its end or the stop of `link`, reporting to `observer`. Returns the
    /// trial with the exit code of an equivalent command.
    ///
    /// # Errors
    /// Fails if nothing could be measured, or the level could not be set or restored.
    fn run(
        &self,
        load: &LoadTask,
        link: &Link,
        observer: &mut dyn Observer,
    ) -> Result<(Trial, u8), TaskFailure>;
}

/// Failure of a task that produced no result.
#[derive(Debug, thiserror::Error)]
#[error("{because}")]
pub struct TaskFailure {
    /// Failure class, for the exit code.
    pub kind: FailureKind,
    /// Reason, for the controller.
    pub because: String,
}

impl TaskFailure {
    fn new(kind: FailureKind, because: impl Into<String>) -> Self {
        Self { kind, because: because.into() }
    }

    fn system(error: &io::Error) -> Self {
        Self::new(FailureKind::Failed, format!("{PROGRAM}: {error}"))
    }
}

impl From<TrialError> for TaskFailure {
    fn from(error: TrialError) -> Self {
        Self::new(error.failure(), in_one_line(&error))
    }
}

impl From<serde_json::Error> for TaskFailure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(FailureKind::Failed, error.to_string())
    }
}

/// Serves a controller over stdin and stdout until it ends the session or is lost; returns the reason if it
/// was lost. Setting `stop` ends a task early.
///
/// # Errors
/// Fails if the program file cannot be read or waiting fails.
pub fn run(stop: &Arc<AtomicBool>, loads: Arc<dyn Loads>) -> io::Result<Option<String>> {
    let clock = MonotonicClock;
    let agent = Agent::new(own_identity()?, clock.now());
    let work: Arc<Work> = Arc::new(move |task, link: &Link| done(&task, link, &*loads));
    stdio::serve(agent, &clock, stop, &work)
}

/// Removes the file of this program and its directory, which a push created for this run.
///
/// # Errors
/// Fails if the file cannot be removed.
pub fn remove_program() -> io::Result<()> {
    let path = std::env::current_exe()?;
    std::fs::remove_file(&path)?;
    // The shell of the push removes a directory that remains.
    path.parent().map(|parent| std::fs::remove_dir(parent).ok());
    Ok(())
}

/// Makes this process exit with its parent, if it is a command run by an agent.
pub fn end_with_agent() {
    if std::env::var_os(OF_AGENT).is_some() {
        // On failure the command still exits by itself, later.
        set_parent_process_death_signal(Some(Signal::TERM)).ok();
    }
}

/// Returns the identity of this program and its machine.
///
/// # Errors
/// Fails if the program file cannot be read.
pub fn own_identity() -> io::Result<Identity> {
    let boot_id = tree::boot_id(&LiveTree::new());
    Ok(Identity { boot_id, ..Identity::from_program(File::open(PROGRAM)?)? })
}

fn done(task: &Task, link: &Link, loads: &dyn Loads) -> TaskResult {
    let done = match task {
        Task::Load(load) => run_load(load, link, loads),
        Task::Command { arguments, .. } => run_command(arguments, &link.stop),
    };
    done.unwrap_or_else(|failure| TaskResult {
        exit: failure.kind.exit_code(),
        because: Some(failure.because),
        ..TaskResult::default()
    })
}

/// Runs a load that starts together with those of the other hosts.
fn run_load(load: &LoadTask, link: &Link, loads: &dyn Loads) -> Result<TaskResult, TaskFailure> {
    let mut observer = Together {
        link,
        lasted: Nanos::ZERO,
        before: Nanos::ZERO,
        behind: Nanos::ZERO,
        start: Start::Awaited,
        sent: None,
    };
    let (trial, exit) = loads.run(load, link, &mut observer)?;
    Ok(TaskResult {
        exit,
        because: trial.ended.reason(),
        document: Some(trial.recording.document.to_json()?),
        outcome: outcome(&trial),
        lasted: Some(observer.before + observer.lasted),
    })
}

/// Returns the combined figures of all spans; `None` without spans.
fn outcome(trial: &Trial) -> Option<LoadOutcome> {
    let mut totals = trial.spans.iter().map(|span| span.ran.result.total());
    let mut whole = totals.next()?;
    totals.for_each(|next| whole.append(&next));
    // The document contains the processor times of each worker.
    whole.worker_cpu.clear();
    Some(whole)
}

/// Observer of a load that starts together with those of other hosts.
struct Together<'a> {
    link: &'a Link,
    /// Duration of the current span so far, and total duration of the spans before it.
    lasted: Nanos,
    before: Nanos,
    /// Delay of the start message after the start time.
    behind: Nanos,
    start: Start,
    /// Time at which figures were last sent.
    sent: Option<Nanos>,
}

/// Delay of a load in virtual time after its start, by which other agents on the same processors start too. A
/// hundred agents on two processors need a fifth of it.
const ALL_BEGIN: Duration = Duration::from_millis(50);

/// Progress of the start of a span, as known to the controller. Each message is valid in its turn only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The controller has not sent the start time.
    Awaited,
    /// The controller has sent the start time, and does not know yet that the span started.
    Told,
    /// The controller knows that the span started.
    Begun,
}

impl Together<'_> {
    /// Reports the start of the span with its delay, unless already reported.
    fn tell_begun(&mut self, late: Nanos) {
        if self.start == Start::Told {
            self.link.begun(late);
            self.start = Start::Begun;
        }
    }
}

impl Observer for Together<'_> {
    fn on(&mut self, event: &Event<'_>) {
        match event {
            Event::Progress { progress, .. } => self.lasted = progress.elapsed,
            Event::Ready { start, is_virtual } => start.set(self.start_at(start.get(), *is_virtual)),
            Event::Begun { late } => self.tell_begun(self.behind.saturating_add(*late)),
            Event::WantsFigures(answer) => answer.set(self.wants_figures()),
            Event::Figures(result) => self.figures(result),
            _ => {}
        }
    }
}

impl Together<'_> {
    fn start_at(&mut self, now: Nanos, is_virtual: bool) -> Nanos {
        self.before += std::mem::take(&mut self.lasted);
        // A span may end before its start was reported.
        self.tell_begun(self.behind);
        self.start = Start::Awaited;
        let Some(at) = self.link.wait_for_start() else { return now };
        self.start = Start::Told;
        if !is_virtual {
            let now = MonotonicClock.now();
            self.behind = now.since(at);
            return at.max(now);
        }
        let left = at.since(MonotonicClock.now());
        sleep_unless(|| self.link.stop.load(Ordering::Relaxed), left);
        self.tell_begun(MonotonicClock.now().since(at));
        // A load in virtual time occupies a processor: if there are more loads than processors, let all start
        // first.
        std::thread::sleep(ALL_BEGIN);
        now
    }

    fn wants_figures(&mut self) -> bool {
        let now = MonotonicClock.now();
        let is_due =
            self.start != Start::Awaited && self.sent.is_none_or(|sent| now.since(sent) >= FIGURES_EVERY);
        if is_due {
            self.sent = Some(now);
        }
        is_due
    }

    fn figures(&mut self, result: &SpanResult) {
        let mut outcome = result.total();
        outcome.worker_cpu.clear();
        for direction in [&mut outcome.read, &mut outcome.write, &mut outcome.trim, &mut outcome.flush] {
            direction.series = Series::starting_at(Nanos::ZERO, Nanos::ZERO);
        }
        self.link.figures(outcome);
    }
}

/// Runs a command of this program that does not modify user data, and returns its document.
fn run_command(arguments: &[String], stop: &AtomicBool) -> Result<TaskResult, TaskFailure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if !matches!(words[..], ["survey" | "check", ..] | ["policy", "show", ..]) {
        let problem = "an agent runs survey, check and policy show, and loads";
        return Err(TaskFailure::new(FailureKind::Refused, problem));
    }
    let system = |error| TaskFailure::system(&error);
    let (mut document, mut said) = (Vec::new(), Tail::new(SAID_MAX));
    let (out, stdout) = Pipe::new(|bytes| {
        let room = DOCUMENT_MAX.saturating_sub(document.len());
        document.extend_from_slice(&bytes[..bytes.len().min(room)]);
    })
    .map_err(system)?;
    let (err, stderr) = Pipe::new(|bytes| said.push(bytes)).map_err(system)?;
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env(OF_AGENT, "1").stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let limits = Limits { timeout: None, stop: &[stop], grace: END_WITHIN, kills_leftovers: true };
    let ended = child::run(command, vec![out, err], limits).map_err(system)?;
    if document.len() >= DOCUMENT_MAX {
        let problem = format!("its document is larger than {} MiB", DOCUMENT_MAX >> 20);
        return Err(TaskFailure::new(FailureKind::NotMeasured, problem));
    }
    let (document, said) = (String::from_utf8_lossy(&document).into_owned(), said.text());
    let code = ended.status.code().and_then(|code| u8::try_from(code).ok());
    let exit = code.unwrap_or(FailureKind::Failed.exit_code());
    let last = said
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .map(|line| line.trim_start_matches("plumb: ").to_owned());
    Ok(TaskResult {
        exit,
        because: last.filter(|_| exit > ANSWERED),
        document: Some(document).filter(|document| !document.is_empty()),
        ..TaskResult::default()
    })
}
