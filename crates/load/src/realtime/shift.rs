//! What a team does on its thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

use plumb_block::{Clock, Nanos};
use plumb_measure::process::OwnThread;

use super::{TeamOutcome, WorkerOutcome};
use crate::fault::Fault;
use crate::span::CpuUse;
use crate::team::{Stand, Steps, Team};
use crate::window::Window;
use crate::worker::POLL_MAX;

/// Sleeping is only this precise; the rest of a wait is spun.
const SLEEP_SLACK: Nanos = Nanos::micros(60);

/// What a thread says when it is done.
pub(super) struct Report {
    pub(super) team: usize,
    pub(super) outcome: TeamOutcome,
    pub(super) fault: Option<Fault>,
}

/// What a team's thread has.
pub(super) struct Shift {
    pub(super) team: usize,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) window: Arc<Window>,
    /// When the team last came back from its queues.
    pub(super) seen_at: Arc<AtomicU64>,
    /// Told once the thread runs and is ready to start.
    pub(super) ready: Sender<()>,
    pub(super) report: Sender<Report>,
}

/// Processor time of the thread from the beginning of the window on.
struct Account {
    read: Option<fn() -> Option<CpuUse>>,
    before: Option<(Option<CpuUse>, Option<OwnThread>)>,
    used: Option<(Option<CpuUse>, Option<Nanos>)>,
}

impl Shift {
    /// The whole work of the thread, from the start that it is told.
    pub(super) fn work(self, mut team: Team, start: &Receiver<Nanos>) {
        let ready = team.prepare.take().map_or(Ok(()), |prepare| prepare());
        if self.ready.send(()).is_err() {
            // The calling thread is gone, and so is the start.
            return;
        }
        let Ok(start) = start.recv() else { return };
        let mut account = Account { read: team.cpu, before: None, used: None };
        let fault = match ready {
            Ok(()) => self.step_to_the_end(&mut team, start, &mut account).err(),
            Err(why) => Some(Fault::Thread { worker: self.team, why }),
        };
        account.close();
        let is_silence = fault.as_ref().is_some_and(Fault::is_silence);
        let (cpu, running) = account.used.unwrap_or_default();
        let mut queues = Vec::new();
        let mut workers = Vec::new();
        for (index, worker) in team.workers.into_iter().enumerate() {
            worker.show();
            let (mut outcome, ledger, queue) = worker.finish();
            if index == 0 {
                outcome.worker_cpu = vec![running];
            }
            workers.push(WorkerOutcome { outcome, ledger });
            queues.push(queue);
        }
        // Fails only if the calling thread has given this one up.
        drop(self.report.send(Report { team: self.team, outcome: TeamOutcome { cpu, workers }, fault }));
        if is_silence {
            std::mem::forget(queues);
        }
    }

    fn step_to_the_end(&self, team: &mut Team, start: Nanos, account: &mut Account) -> Result<(), Fault> {
        for worker in &mut team.workers {
            worker.start(start, &self.window);
        }
        let mut steps = Steps::of(&mut team.workers, team.shared_depth.as_mut());
        let mut just_read = None;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                steps.workers().iter_mut().for_each(crate::worker::Worker::interrupt);
            }
            let now = just_read.take().unwrap_or_else(|| self.clock.now());
            self.seen_at.store(now.0, Ordering::Relaxed);
            account.keep(&self.window, now, || {
                steps.workers().iter().map(crate::worker::Worker::measured_until).max().flatten()
            });
            let stand = steps.step(&*self.clock, now)?;
            steps.workers().iter().for_each(crate::worker::Worker::show);
            match stand {
                Stand::On(time) => just_read = time,
                Stand::Idle(until) => self.sleep_towards(until),
                Stand::Done => return Ok(()),
            }
        }
    }

    /// Sleeps until shortly before `until`, but not for long; spins when it is near.
    fn sleep_towards(&self, until: Nanos) {
        let left = until.since(self.clock.now()).0.min(POLL_MAX.0);
        match left.checked_sub(SLEEP_SLACK.0) {
            Some(sleep) => thread::sleep(Duration::from_nanos(sleep)),
            None => std::hint::spin_loop(),
        }
    }
}

impl Account {
    /// Opens the account when the window begins, and closes it when the window has ended.
    #[inline]
    fn keep(&mut self, window: &Window, now: Nanos, until: impl FnOnce() -> Option<Nanos>) {
        if self.before.is_none() {
            if window.from().is_some_and(|from| now >= from) {
                self.before = Some(self.now());
            }
        } else if self.used.is_none()
            && window.cooldown() > Nanos::ZERO
            && until().is_some_and(|end| now >= end)
        {
            self.close();
        }
    }

    /// What was used since it was opened.
    fn close(&mut self) {
        let (None, Some((cpu, own))) = (self.used, self.before) else { return };
        let (cpu_now, own_now) = self.now();
        let cpu = cpu_now.zip(cpu).map(|(now, before)| CpuUse {
            user: now.user.since(before.user),
            system: now.system.since(before.system),
        });
        let running = own_now.zip(own).map(|(now, before)| now.running.since(before.running));
        self.used = Some((cpu, running));
    }

    fn now(&self) -> (Option<CpuUse>, Option<OwnThread>) {
        (self.read.and_then(|read| read()), OwnThread::read(Path::new("/proc")))
    }
}
