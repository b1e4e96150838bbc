//! Drives an agent over its own stdin and stdout. The task runs on a thread of its own, so that the
//! controller hears of the agent whatever the devices do.

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

/// Time that a task may take to end once its controller is lost, unless it has something to put back: a
/// device that hangs does not keep the process.
const END_WITHIN: Nanos = Nanos::secs(10);
/// Number of bytes that are read at once.
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
    /// Becomes true when the task must end early.
    pub stop: Arc<AtomicBool>,
    /// True while the task has changed what it puts back at its end: until then the process does not end.
    pub restores: Arc<AtomicBool>,
}

impl Link {
    fn say(&self, said: Said) {
        // The agent may have ended already: nobody is left to be told.
        if self.to.send(said).is_ok() {
            (&self.wake).write_all(&[0]).ok();
        }
    }

    /// Says that all is ready, and waits until the controller has said when to start, by
    /// [`MonotonicClock`](crate::MonotonicClock); `None` if the task is to end instead.
    pub fn wait_for_start(&self) -> Option<Nanos> {
        self.say(Said::Ready);
        while !self.stop.load(Ordering::Relaxed) {
            if let Ok(at) = self.start.recv_timeout(Duration::from(LOOK_EVERY)) {
                return Some(at);
            }
        }
        None
    }

    /// Reports that the task has started, `late` after it was told to.
    pub fn begun(&self, late: Nanos) {
        self.say(Said::Begun(late));
    }

    /// Sends all that it has measured until now.
    pub fn figures(&self, outcome: LoadOutcome) {
        self.say(Said::Figures(Box::new(outcome)));
    }
}

/// Does a task.
pub type Work = dyn Fn(Task, &Link) -> TaskResult + Send + Sync;

/// Returns the agent of this process, until its controller says good-bye or is lost; why, if it was lost.
/// `stop` is set when a task must end early, also by signals. `work` does a task.
///
/// # Errors
/// If the system cannot wait.
pub fn serve(
    mut agent: Agent,
    clock: &dyn Clock,
    stop: &Arc<AtomicBool>,
    work: &Arc<Work>,
) -> io::Result<Option<String>> {
    // Without the buffers of the library.
    let [stdin, stdout] = [io::stdin().as_fd(), io::stdout().as_fd()].map(|own| own.try_clone_to_owned());
    let (stdin, stdout) = (File::from(stdin?), File::from(stdout?));
    let (woken, wake) = io::pipe()?;
    unblock([stdin.as_fd(), stdout.as_fd(), woken.as_fd()])?;
    let (to, said) = channel();
    let mut stdio = Stdio { stdin, stdout, woken, has_input: true, has_reader: true };
    let restores = Arc::default();
    let mut tasks = Tasks { to, wake, stop, work, restores, start: None, is_told: false };
    // Why it ends, and when at the latest.
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

/// The task that runs, if one does.
struct Tasks<'a> {
    to: Sender<Said>,
    wake: PipeWriter,
    stop: &'a Arc<AtomicBool>,
    work: &'a Arc<Work>,
    restores: Arc<AtomicBool>,
    /// Where it is told when to start; none if nothing runs.
    start: Option<Sender<Nanos>>,
    /// True if the controller has told it to stop.
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

/// Returns the result of a task that panicked: the controller and the other hosts do not wait for it.
fn panicked(panic: &(dyn Any + Send)) -> TaskResult {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    let because = format!("plumb itself failed there: {}", said.unwrap_or("no reason is known"));
    TaskResult { exit: FailureKind::Failed.exit_code(), because: Some(because), ..TaskResult::default() }
}

/// Connection of the agent.
struct Stdio {
    stdin: File,
    stdout: File,
    woken: PipeReader,
    /// True if stdin has not ended.
    has_input: bool,
    /// True if somebody reads stdout.
    has_reader: bool,
}

impl Stdio {
    /// Waits for input, for room for output, or for the task; reads and writes.
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
