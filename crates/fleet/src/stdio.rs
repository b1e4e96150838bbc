//! Drives an agent over its own stdin and stdout. The task runs on a thread of its own, so that the controller hears of the agent
//! whatever the devices do.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use plumb_block::wait::{PollFlags, Poller, wait_any};
use plumb_block::{Clock, Nanos};
use plumb_load::LoadOutcome;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::agent::{Action, Agent};
use crate::message::{Task, TaskResult};
use crate::processes::{read, write};

/// How often the flags are looked at.
const LOOK_EVERY: Nanos = Nanos::millis(100);
/// How long a task may take to end once its controller is lost: a device that hangs does not keep the process.
const END_WITHIN: Nanos = Nanos::secs(10);
/// So much is read at once.
const CHUNK: usize = 64 << 10;

/// What a task says.
enum Said {
    Ready,
    Begun(Nanos),
    Figures(Box<LoadOutcome>),
    Over(Box<TaskResult>),
}

/// What a task has of its agent.
pub struct Link {
    to: Sender<Said>,
    wake: PipeWriter,
    start: Receiver<Nanos>,
    /// Becomes true when the task shall end early.
    pub stop: Arc<AtomicBool>,
}

impl Link {
    fn say(&self, said: Said) {
        // The agent may have ended already: nobody is left to be told.
        if self.to.send(said).is_ok() {
            (&self.wake).write_all(&[0]).ok();
        }
    }

    /// Says that all is ready, and waits until the controller has said when to start, by [`MonotonicClock`](crate::MonotonicClock);
    /// `None` if the task is to end instead.
    pub fn wait_for_start(&self) -> Option<Nanos> {
        self.say(Said::Ready);
        while !self.stop.load(Ordering::Relaxed) {
            if let Ok(at) = self.start.recv_timeout(Duration::from(LOOK_EVERY)) {
                return Some(at);
            }
        }
        None
    }

    /// It has started, so much later than it was told to.
    pub fn begun(&self, late: Nanos) {
        self.say(Said::Begun(late));
    }

    /// All that it has measured until now.
    pub fn figures(&self, outcome: LoadOutcome) {
        self.say(Said::Figures(Box::new(outcome)));
    }
}

/// Does a task.
pub type Work = dyn Fn(Task, &Link) -> TaskResult + Send + Sync;

/// The agent of this process, until its controller says good-bye or is lost; why, if it was lost. `stop` is set when a task shall end
/// early, also by signals. `work` does a task.
///
/// # Errors
/// If the system cannot wait.
pub fn serve(
    mut agent: Agent,
    clock: &dyn Clock,
    stop: &Arc<AtomicBool>,
    work: &Arc<Work>,
) -> io::Result<Option<String>> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let (woken, wake) = io::pipe()?;
    for descriptor in [stdin.as_fd(), stdout.as_fd(), woken.as_fd()] {
        fcntl_setfl(descriptor, fcntl_getfl(descriptor)? | OFlags::NONBLOCK)?;
    }
    let (to, said) = channel();
    let mut stdio = Stdio { stdin: stdin.as_fd(), stdout: stdout.as_fd(), woken, has_input: true };
    let mut tasks = Tasks { to, wake, stop, work, start: None, is_told: false };
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
            Some((because, until)) if is_idle || clock.now() >= until => return Ok(because),
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
    /// Where it is told when to start; none if nothing runs.
    start: Option<Sender<Nanos>>,
    /// Whether the controller has told it to stop.
    is_told: bool,
}

impl Tasks<'_> {
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
                };
                let work = Arc::clone(self.work);
                Builder::new().name("task".to_owned()).spawn(move || {
                    let result = work(task, &link);
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

/// What the agent is connected by.
struct Stdio<'a> {
    stdin: BorrowedFd<'a>,
    stdout: BorrowedFd<'a>,
    woken: PipeReader,
    /// Whether stdin has not ended.
    has_input: bool,
}

impl Stdio<'_> {
    /// Waits for input, for room for output, or for the task; reads and writes.
    fn exchange(&mut self, agent: &mut Agent, clock: &dyn Clock) -> io::Result<Vec<Action>> {
        let now = clock.now();
        let until = agent.deadline().min(now + LOOK_EVERY);
        let wanted = |wanted: bool, events| if wanted { events } else { PollFlags::empty() };
        let mut poller = Poller::new(clock)
            .watching(self.woken.as_fd(), PollFlags::IN)
            .watching(self.stdout, wanted(!agent.output().is_empty(), PollFlags::OUT));
        if self.has_input {
            poller = poller.watching(self.stdin, PollFlags::IN);
        }
        wait_any([], Some(until), &mut poller).map_err(io::Error::other)?;
        let is_readable = self.has_input && !poller.events(2).is_empty();
        let mut chunk = vec![0; CHUNK];
        read(&mut self.woken, &mut chunk);
        let mut actions = Vec::new();
        if is_readable {
            match read(&mut Descriptor(self.stdin), &mut chunk) {
                Some(0) => {
                    self.has_input = false;
                    actions.extend(agent.closed());
                }
                Some(count) => actions = agent.receive(&chunk[..count], clock.now()),
                None => {}
            }
        }
        // A reader who is gone is told of by stdin, or by silence.
        if !agent.output().is_empty() && write(&mut Descriptor(self.stdout), agent.output()).is_err() {
            agent.output().clear();
        }
        Ok(actions)
    }
}

/// A descriptor without a buffer of its own.
struct Descriptor<'a>(BorrowedFd<'a>);

impl Read for Descriptor<'_> {
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, chunk)?)
    }
}

impl Write for Descriptor<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
