//! Driver of an agent over its own stdin and stdout. The task runs on a separate thread, so that heartbeats
//! continue while devices block.

use std::any::Any;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use plumb_block::wait::{LOOK_EVERY, PollFlags, Poller, wait_any};
use plumb_block::{Clock, FailureKind, Nanos};
use plumb_load::LoadOutcome;

use crate::agent::{Action, Agent};
use crate::message::{Task, TaskResult};
use crate::processes::{read, unblock, write};

/// Time limit for a task to end after its controller is lost, unless it has something to restore. A device
/// that hangs must not keep the process alive.
const END_WITHIN: Nanos = Nanos::secs(10);
/// Maximum number of bytes per read.
const CHUNK: usize = 64 << 10;

/// Message from a task.
enum Said {
    Ready,
    Begun(Nanos),
    Figures(Box<LoadOutcome>),
    Over(Box<TaskResult>),
}

/// Connection of a task to its agent.
pub struct Link {
    to: Sender<Said>,
    wake: PipeWriter,
    start: Receiver<Nanos>,
    /// Set when the task must end early.
    pub stop: Arc<AtomicBool>,
    /// True while the task has a change to restore; the process does not exit until it is false.
    pub restores: Arc<AtomicBool>,
}

impl Link {
    fn say(&self, said: Said) {
        // If the agent has ended, the message is not needed.
        if self.to.send(said).is_ok() {
            (&self.wake).write_all(&[0]).ok();
        }
    }

    /// Reports that the task is ready, and returns the start time sent by the controller, of
    /// [`MonotonicClock`](crate::MonotonicClock); `None` if the task must end instead.
    pub fn wait_for_start(&self) -> Option<Nanos> {
        self.say(Said::Ready);
        while !self.stop.load(Ordering::Relaxed) {
            if let Ok(at) = self.start.recv_timeout(Duration::from(LOOK_EVERY)) {
                return Some(at);
            }
        }
        None
    }

    /// Reports that the task has started, `late` after its start time.
    pub fn begun(&self, late: Nanos) {
        self.say(Said::Begun(late));
    }

    /// Sends interim figures.
    pub fn figures(&self, outcome: LoadOutcome) {
        self.say(Said::Figures(Box::new(outcome)));
    }
}

/// Function that runs a task.
pub type Work = dyn Fn(Task, &Link) -> TaskResult + Send + Sync;

/// Runs the agent of this process until its controller ends the session or is lost; returns the reason if it
/// was lost. `stop` ends a task early; the agent and signals set it. `work` runs the tasks.
///
/// # Errors
/// Fails if waiting fails.
pub fn serve(
    mut agent: Agent,
    clock: &dyn Clock,
    stop: &Arc<AtomicBool>,
    work: &Arc<Work>,
) -> io::Result<Option<String>> {
    // Bypass the buffers of the standard library.
    let [stdin, stdout] = [io::stdin().as_fd(), io::stdout().as_fd()].map(|own| own.try_clone_to_owned());
    let (stdin, stdout) = (File::from(stdin?), File::from(stdout?));
    let (woken, wake) = io::pipe()?;
    unblock([stdin.as_fd(), stdout.as_fd(), woken.as_fd()])?;
    let (to, said) = channel();
    let mut stdio = Stdio { stdin, stdout, woken, has_input: true, has_reader: true };
    let restores = Arc::default();
    let mut tasks = Tasks { to, wake, stop, work, restores, start: None, is_told: false };
    // Reason of the end, and its time limit.
    let mut end: Option<(Option<String>, Nanos)> = None;
    loop {
        let mut actions = stdio.exchange(&mut agent, clock)?;
        said.try_iter().for_each(|said| tasks.take_in(said, &mut agent));
        actions.extend(agent.tick(clock.now()));
        for action in actions {
            if let Action::End(because) = &action {
                end = Some((because.clone(), clock.now() + END_WITHIN));
            }
            tasks.act(action)?;
        }
        let is_idle = tasks.start.is_none();
        match end.take() {
            Some((because, until)) if is_idle || (clock.now() >= until && !tasks.restores()) => {
                return Ok(because);
            }
            None if is_idle
                && !tasks.is_told
                && stop.load(Ordering::Relaxed)
                && agent.output().is_empty() =>
            {
                return Ok(Some("interrupted by a signal".to_owned()));
            }
            goes_on => end = goes_on,
        }
    }
}

/// The running task, if any.
struct Tasks<'a> {
    to: Sender<Said>,
    wake: PipeWriter,
    stop: &'a Arc<AtomicBool>,
    work: &'a Arc<Work>,
    restores: Arc<AtomicBool>,
    /// Sends the start time to the task; `None` if none is running.
    start: Option<Sender<Nanos>>,
    /// True if the controller has ordered the stop.
    is_told: bool,
}

impl Tasks<'_> {
    fn restores(&self) -> bool {
        self.restores.load(Ordering::Relaxed)
    }

    fn take_in(&mut self, said: Said, agent: &mut Agent) {
        match said {
            Said::Ready => agent.ready(),
            Said::Begun(late) => agent.begun(late),
            Said::Figures(outcome) => agent.figures(*outcome),
            Said::Over(result) => {
                self.start = None;
                agent.result(&result);
            }
        }
    }

    fn act(&mut self, action: Action) -> io::Result<()> {
        match action {
            Action::Run(task) => {
                let (go, start) = channel();
                let link = Link {
                    to: self.to.clone(),
                    wake: self.wake.try_clone()?,
                    start,
                    stop: Arc::clone(self.stop),
                    restores: Arc::clone(&self.restores),
                };
                let work = Arc::clone(self.work);
                Builder::new().name("task".to_owned()).spawn(move || {
                    let result = catch_unwind(AssertUnwindSafe(|| work(task, &link)));
                    let result = result.unwrap_or_else(|panic| panicked(&*panic));
                    link.say(Said::Over(Box::new(result)));
                })?;
                self.start = Some(go);
            }
            Action::Start(at) => {
                // A task that has just ended needs no start.
                self.start.as_ref().map(|start| start.send(at).ok());
            }
            Action::Stop => {
                self.is_told = true;
                self.stop.store(true, Ordering::Relaxed);
            }
            Action::End(_) => self.stop.store(true, Ordering::Relaxed),
        }
        Ok(())
    }
}

/// Returns the result of a task that panicked, so that the controller and other hosts do not wait for it.
fn panicked(panic: &(dyn Any + Send)) -> TaskResult {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    let because = format!("plumb itself failed there: {}", said.unwrap_or("no reason is known"));
    TaskResult { exit: FailureKind::Failed.exit_code(), because: Some(because), ..TaskResult::default() }
}

/// Connection to the controller.
struct Stdio {
    stdin: File,
    stdout: File,
    woken: PipeReader,
    /// False after stdin has ended.
    has_input: bool,
    /// False after the reader of stdout has closed it.
    has_reader: bool,
}

impl Stdio {
    /// Waits for input, space for output, or the task; then reads and writes.
    fn exchange(&mut self, agent: &mut Agent, clock: &dyn Clock) -> io::Result<Vec<Action>> {
        let now = clock.now();
        let until = agent.deadline().min(now + LOOK_EVERY);
        let wanted = |wanted: bool, events| if wanted { events } else { PollFlags::empty() };
        let mut poller = Poller::new(clock).watching(self.woken.as_fd(), PollFlags::IN);
        if self.has_input {
            poller = poller.watching(self.stdin.as_fd(), PollFlags::IN);
        }
        if self.has_reader {
            poller = poller.watching(self.stdout.as_fd(), wanted(!agent.output().is_empty(), PollFlags::OUT));
        }
        wait_any([], Some(until), &mut poller).map_err(io::Error::other)?;
        let is_readable = self.has_input && !poller.events(1).is_empty();
        let gone = PollFlags::ERR | PollFlags::HUP;
        let is_gone = self.has_reader && poller.events(1 + usize::from(self.has_input)).intersects(gone);
        let mut chunk = vec![0; CHUNK];
        read(&mut self.woken, &mut chunk);
        let mut actions = Vec::new();
        if is_readable {
            match read(&mut self.stdin, &mut chunk) {
                Some(0) => {
                    self.has_input = false;
                    actions.extend(agent.closed());
                }
                Some(count) => actions = agent.receive(&chunk[..count], clock.now()),
                None => {}
            }
        }
        let is_gone =
            is_gone || (!agent.output().is_empty() && write(&mut self.stdout, agent.output()).is_err());
        if self.has_reader && is_gone {
            self.has_reader = false;
            actions.extend(agent.closed());
        }
        if !self.has_reader {
            agent.output().clear();
        }
        Ok(actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_panics_is_over_and_says_why() {
        let (to, said) = channel();
        let (_woken, wake) = io::pipe().unwrap();
        let stop = Arc::default();
        let work: Arc<Work> = Arc::new(|_, _| panic!("by intent"));
        let restores = Arc::default();
        let mut tasks = Tasks { to, wake, stop: &stop, work: &work, restores, start: None, is_told: false };
        tasks.act(Action::Run(Task::Command { arguments: Vec::new(), schema: String::new() })).unwrap();
        let Ok(Said::Over(result)) = said.recv_timeout(Duration::from_secs(60)) else {
            panic!("the task did not end");
        };
        assert_eq!(result.exit, 5);
        assert!(result.because.unwrap().ends_with("by intent"));
    }
}
