//! `plumb agent --stdio`: does what a controller of many hosts asks for, over stdin and stdout.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_block::{Clock, Nanos};
use plumb_dialect::{Meaning, native};
use plumb_fleet::stdio::{self, Link, Work};
use plumb_fleet::{Agent, Identity, Level, MonotonicClock, Task, TaskResult};
use plumb_linux::child::{self, Limits, Pipe, Tail};
use plumb_load::{Event, LoadOutcome, Observer, SpanResult};
use plumb_measure::Series;
use plumb_trial::{Context, Trial};
use plumb_workload::Scenario;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::arguments::{OwnArguments, RecordingArguments};
use crate::command::compare::Factor;
use crate::command::running::{Running, exit_of};
use crate::exit::{Exit, Refusal};
use crate::strictness::Strictness;
use crate::surroundings::time_of_day;
use crate::{leftovers, stop, traces};

/// Path of the running program, also where its file has been taken away.
const PROGRAM: &str = "/proc/self/exe";
/// In the environment of a command that an agent runs.
const OF_AGENT: &str = "PLUMB_OF_AGENT";
/// How often figures are sent.
const FIGURES_EVERY: Nanos = Nanos::secs(1);
/// How long a command may take to end when it is told to. It does not outlive its agent.
const END_WITHIN: Duration = Duration::from_secs(5);
/// The longest document of a command.
const DOCUMENT_MAX: usize = 6 << 20;
/// Number of bytes that are kept of what a command says on stderr.
const SAID_MAX: usize = 4 << 10;

/// What `plumb agent` takes.
#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// Answer over stdin and stdout
    #[arg(long, required = true)]
    stdio: bool,

    /// Take the file of this program away first: it was copied for this run alone
    #[arg(long)]
    remove_program: bool,
}

/// Answers until the controller is gone.
pub(crate) fn run(arguments: &AgentArguments) -> anyhow::Result<Exit> {
    let identity = own_identity()?;
    if arguments.remove_program {
        let path = std::env::current_exe().context("the own program")?;
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        // Whoever copied it takes away what is left of the directory.
        path.parent().map(|parent| std::fs::remove_dir(parent).ok());
    }
    let stop = stop::on_signals()?;
    let clock = MonotonicClock;
    let work: Arc<Work> = Arc::new(work);
    match stdio::serve(Agent::new(identity, clock.now()), &clock, &stop, &work).context("stdin or stdout")? {
        None => Ok(Exit::Done),
        Some(because) => Err(Refusal::new(Exit::NotMeasured, because).into()),
    }
}

/// Where this is a command that an agent runs: is told to end when that agent is no more, however it went.
pub(crate) fn end_with_agent() {
    if std::env::var_os(OF_AGENT).is_some() {
        // Without it the command ends by itself, later.
        set_parent_process_death_signal(Some(Signal::TERM)).ok();
    }
}

/// Returns the identity of this program.
pub(crate) fn own_identity() -> anyhow::Result<Identity> {
    let program = File::open(PROGRAM).context(PROGRAM)?;
    Identity::of(program).context(PROGRAM)
}

fn work(task: Task, link: &Link) -> TaskResult {
    let done = match task {
        Task::Load { words, overwrite, destroy, remove_after, level } => {
            let recording = RecordingArguments { no_record: true, ..RecordingArguments::default() };
            let own = OwnArguments { overwrite, destroy, remove_after, recording, ..OwnArguments::default() };
            leftovers::put_back_runs();
            load(&words, own, level, link)
        }
        Task::Command { arguments, .. } => command(&arguments, &link.stop),
    };
    done.unwrap_or_else(|failure| TaskResult {
        exit: failure.downcast_ref::<Refusal>().map_or(Exit::Failed, |refusal| refusal.exit) as u8,
        because: Some(format!("{failure:#}")),
        ..TaskResult::default()
    })
}

/// Runs a load, which starts with those of the other hosts; at a level that is set before it, and whatever
/// was there is put back.
fn load(words: &str, own: OwnArguments, level: Option<Level>, link: &Link) -> anyhow::Result<TaskResult> {
    let scenario = native::read(words, "the workload", 0).map_err(crate::exit::usage)?;
    let Some(level) = level else { return load_here(scenario, words, own, link) };
    let factor: Factor = level.factor.parse().map_err(|problem| Refusal::new(Exit::Usage, problem))?;
    let mut setting = factor.setting_of_disks(&scenario.targets())?;
    link.restores.store(true, Ordering::Relaxed);
    let set = setting.set(level.number).map_err(Refusal::from);
    let run = || set.map_err(Into::into).and_then(|()| load_here(scenario, words, own, link));
    let ran = catch_unwind(AssertUnwindSafe(run));
    let restored = setting.restore().map_err(Refusal::from);
    link.restores.store(false, Ordering::Relaxed);
    restored?;
    ran.unwrap_or_else(|panic| resume_unwind(panic))
}

fn load_here(scenario: Scenario, words: &str, own: OwnArguments, link: &Link) -> anyhow::Result<TaskResult> {
    let running = Running::begin("load", own);
    let request = running.request(Meaning { scenario, notes: Vec::new() }, words.to_owned());
    let request = traces::read(request)?;
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock);
    let mut observer = Together {
        link,
        lasted: Nanos::ZERO,
        before: Nanos::ZERO,
        behind: Nanos::ZERO,
        start: Start::Awaited,
        sent: None,
    };
    let context = Context { clock: &clock, stop: &link.stop, time_of_day: &time_of_day };
    let trial = plumb_trial::run(&request, &context, &mut observer).map_err(Refusal::from)?;
    Ok(TaskResult {
        exit: exit_of(&trial, Strictness::default()) as u8,
        because: trial.ended.reason(),
        document: Some(trial.recording.document.to_json()?),
        outcome: outcome(&trial),
        lasted: Some(observer.before + observer.lasted),
    })
}

/// Appends what all spans measured to one outcome; `None` if there were no spans.
fn outcome(trial: &Trial) -> Option<LoadOutcome> {
    let mut totals = trial.spans.iter().map(|span| span.ran.result.total());
    let mut whole = totals.next()?;
    totals.for_each(|next| whole.append(&next));
    // The times of each worker are in the document.
    whole.worker_cpu.clear();
    Some(whole)
}

/// Watches a load that runs together with those of other hosts.
struct Together<'a> {
    link: &'a Link,
    /// How long the span runs that runs now, and how long those before it ran.
    lasted: Nanos,
    before: Nanos,
    /// How late it was already when it was told to start.
    behind: Nanos,
    start: Start,
    /// When figures were sent last.
    sent: Option<Nanos>,
}

/// How long a load in virtual time waits once it has begun. A hundred agents on two processors have begun
/// within a fifth of it.
const ALL_BEGIN: Duration = Duration::from_millis(50);

/// The controller's knowledge of the start of a span. The controller takes each message in its turn alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The controller has not told when to start.
    Awaited,
    /// The controller has told when to start, and does not know that all have begun.
    Told,
    /// The controller knows that all have begun.
    Begun,
}

impl Together<'_> {
    /// Tells that the span has begun, so much late, if that was not told.
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
        // A span may end before it is seen that all have begun.
        self.tell_begun(self.behind);
        self.start = Start::Awaited;
        let Some(at) = self.link.wait_for_start() else { return now };
        self.start = Start::Told;
        if !is_virtual {
            let now = MonotonicClock.now();
            self.behind = now.since(at);
            return at.max(now);
        }
        while MonotonicClock.now() < at && !self.link.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from(at.since(MonotonicClock.now()).min(Nanos::millis(50))));
        }
        self.tell_begun(MonotonicClock.now().since(at));
        // A load in virtual time takes the whole processor: where there are more of them than processors, all
        // begin before one goes on.
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

/// Runs a command of this program that changes nothing on other people's data, and takes its document.
fn command(arguments: &[String], stop: &AtomicBool) -> anyhow::Result<TaskResult> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if !matches!(words[..], ["survey" | "check", ..] | ["policy", "show", ..]) {
        let problem = "an agent runs survey, check and policy show, and loads";
        return Err(Refusal::new(Exit::Refused, problem).into());
    }
    let (mut document, mut said) = (Vec::new(), Tail::new(SAID_MAX));
    let (out, stdout) = Pipe::new(|bytes| {
        let room = DOCUMENT_MAX.saturating_sub(document.len());
        document.extend_from_slice(&bytes[..bytes.len().min(room)]);
    })?;
    let (err, stderr) = Pipe::new(|bytes| said.push(bytes))?;
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env(OF_AGENT, "1").stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let limits = Limits { timeout: None, stop, grace: END_WITHIN, kills_leftovers: true };
    let ended = child::run(command, vec![out, err], limits).context(PROGRAM)?;
    if document.len() >= DOCUMENT_MAX {
        let problem = format!("its document is larger than {} MiB", DOCUMENT_MAX >> 20);
        return Err(Refusal::new(Exit::NotMeasured, problem).into());
    }
    let (document, said) = (String::from_utf8_lossy(&document).into_owned(), said.text());
    let exit = ended.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::Failed as u8);
    let last = said
        .lines()
        .rfind(|line| !line.trim().is_empty())
        .map(|line| line.trim_start_matches("plumb: ").to_owned());
    Ok(TaskResult {
        exit,
        because: last.filter(|_| exit > Exit::Finding as u8),
        document: Some(document).filter(|document| !document.is_empty()),
        ..TaskResult::default()
    })
}
