//! Work of the thread of a team.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

use plumb_block::{Clock, Nanos, Poller, wait_any};
use plumb_measure::process::OwnThread;

use super::steps::Steps;
use crate::fault::Fault;
use crate::span::CpuUse;
use crate::team::{Team, TeamOutcome};
use crate::window::Window;
use crate::worker::{POLL_MAX, Step};

/// Precision of a sleep; the rest of a wait spins.
const SLEEP_SLACK: Nanos = Nanos::micros(60);

/// Report of a finished thread.
pub(super) struct Report {
    pub(super) team: usize,
    pub(super) outcome: TeamOutcome,
    pub(super) fault: Option<Fault>,
}

/// State of the thread of a team.
pub(super) struct TeamThread {
    pub(super) team: usize,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) window: Arc<Window>,
    /// Time of the team's last return from its queues.
    pub(super) seen_at: Arc<AtomicU64>,
    /// Receives a message once the thread runs and is ready to start.
    pub(super) ready: Sender<()>,
    /// Receives the delay after the start once the first requests are submitted.
    pub(super) begun: Sender<Nanos>,
    pub(super) report: Sender<Report>,
}

impl TeamThread {
    /// Does all work of the thread, from the start time that it receives.
    pub(super) fn run(self, team: Team, start: &Receiver<Nanos>) {
        let Team { workers, shared_depth, prepare, cpu } = team;
        let ready = prepare.map_or(Ok(()), |prepare| prepare());
        if self.ready.send(()).is_err() {
            // The calling thread has ended, so there is no start.
            return;
        }
        let Ok(start) = start.recv() else { return };
        let mut usage = CpuUsage { read: cpu, before: None, used: None };
        let mut steps = Steps::new(workers, shared_depth, true);
        let fault = match ready {
            Ok(()) => self.run_to_end(&mut steps, start, &mut usage).err(),
            Err(why) => Some(Fault::Thread { worker: self.team, why }),
        };
        usage.end();
        let is_silence = fault.as_ref().is_some_and(Fault::is_silence);
        let (cpu, scheduled) = usage.used.unwrap_or_default();
        let (mut workers, queues) = steps.finish();
        if let Some(first) = workers.first_mut() {
            first.outcome.worker_cpu = vec![scheduled];
        }
        // The send fails only if the calling thread has abandoned this one.
        drop(self.report.send(Report { team: self.team, outcome: TeamOutcome { cpu, workers }, fault }));
        if is_silence {
            std::mem::forget(queues);
        }
    }

    fn run_to_end(&self, steps: &mut Steps, start: Nanos, usage: &mut CpuUsage) -> Result<(), Fault> {
        steps.start(start, &self.window);
        let mut just_read = None;
        let mut begun = Some(&self.begun);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                steps.interrupt();
            }
            let now = just_read.take().unwrap_or_else(|| self.clock.now());
            self.seen_at.store(now.0, Ordering::Relaxed);
            usage.follow(&self.window, now, || steps.measured_until());
            let step = steps.step(now)?;
            steps.show();
            if let Some(begun) = begun.take_if(|_| now >= start) {
                // The send fails only if the calling thread has abandoned this one.
                begun.send(now.since(start)).ok();
                // With more threads than processors, all begin before one continues.
                thread::yield_now();
            }
            match step {
                Step::Progressed => just_read = steps.time_just_read(),
                // The steps have already waited in their own queue.
                Step::Waiting { .. } if steps.waits() => {}
                Step::Waiting { until } => {
                    let until = until.min(now.saturating_add(POLL_MAX));
                    wait_any(steps.queues(), Some(until), &mut Poller::new(&*self.clock))
                        .map_err(|source| Fault::Queue { worker: self.team, source })?;
                }
                Step::Idle { until } => self.sleep_towards(until),
                Step::Done => return Ok(()),
            }
        }
    }

    /// Sleeps for a short time at most, until shortly before `until`; spins near it.
    fn sleep_towards(&self, until: Nanos) {
        let left = until.since(self.clock.now()).0.min(POLL_MAX.0);
        match left.checked_sub(SLEEP_SLACK.0) {
            Some(sleep) => thread::sleep(Duration::from_nanos(sleep)),
            None => std::hint::spin_loop(),
        }
    }
}

/// Processor time of the thread since the begin of the window.
struct CpuUsage {
    read: Option<fn() -> Option<CpuUse>>,
    before: Option<(Option<CpuUse>, Option<OwnThread>)>,
    used: Option<(Option<CpuUse>, Option<OwnThread>)>,
}

impl CpuUsage {
    /// Reads the processor time when the window begins, and again when it has ended.
    #[inline]
    fn follow(&mut self, window: &Window, now: Nanos, until: impl FnOnce() -> Option<Nanos>) {
        if self.before.is_none() {
            if window.from().is_some_and(|from| now >= from) {
                self.before = Some(self.now());
            }
        } else if self.used.is_none()
            && window.cooldown() > Nanos::ZERO
            && until().is_some_and(|end| now >= end)
        {
            self.end();
        }
    }

    /// Computes the use since the window began.
    fn end(&mut self) {
        let (None, Some((cpu, own))) = (self.used, self.before) else { return };
        let (cpu_now, own_now) = self.now();
        let cpu = cpu_now.zip(cpu).map(|(now, before)| CpuUse {
            user: now.user.since(before.user),
            system: now.system.since(before.system),
        });
        let scheduled = own_now.zip(own).map(|(now, before)| now.since(&before));
        self.used = Some((cpu, scheduled));
    }

    fn now(&self) -> (Option<CpuUse>, Option<OwnThread>) {
        (self.read.and_then(|read| read()), OwnThread::read(Path::new("/proc")))
    }
}
