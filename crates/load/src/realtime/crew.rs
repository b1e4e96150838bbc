//! All threads, seen from the calling one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plumb_block::Nanos;

use super::shift::{Report, Shift};
use super::{Conduct, TeamOutcome, TeamsFailure};
use crate::fault::Fault;
use crate::observer::Observer;
use crate::outcome::Ending;
use crate::phases::{OBSERVED_EVERY, Phases};
use crate::progress::{Board, Progress};
use crate::team::Team;
use crate::worker::{POLL_MAX, Worker};

/// How often the calling thread looks around.
const TICK: Nanos = Nanos::millis(25);
/// How long threads may take to get going before the others start without them.
const READY_WITHIN: Nanos = Nanos::secs(5);
/// How long threads that have reported may take to let go of their queues before they are left behind.
const LET_GO_WITHIN: Nanos = Nanos::secs(5);

/// A team's thread, seen from the calling thread.
struct Member {
    thread: Option<JoinHandle<()>>,
    go: Option<Sender<Nanos>>,
    boards: Vec<Arc<Board>>,
    seen_at: Arc<AtomicU64>,
    answer_within: Nanos,
    outcome: Option<TeamOutcome>,
    /// It has reported, or nothing more is expected of it.
    over: bool,
}

/// All threads.
pub(super) struct Crew<'a> {
    conduct: &'a Conduct<'a>,
    phases: Phases,
    stop: Arc<AtomicBool>,
    members: Vec<Member>,
    ready: Receiver<()>,
    reports: Receiver<Report>,
    fault: Option<Fault>,
}

impl<'a> Crew<'a> {
    /// Makes the threads, which wait for their start.
    pub(super) fn gather(teams: Vec<Team>, conduct: &'a Conduct<'a>) -> Self {
        let (report, reports) = channel();
        let (tell_ready, ready) = channel();
        let mut crew = Self {
            conduct,
            phases: Phases::new(conduct.warmup, conduct.duration, conduct.cooldown),
            stop: Arc::new(AtomicBool::new(false)),
            members: Vec::new(),
            ready,
            reports,
            fault: None,
        };
        for (index, team) in teams.into_iter().enumerate() {
            if !crew.hire(index, team, &report, &tell_ready) {
                break;
            }
        }
        crew
    }

    /// Makes one thread. Says whether that was possible.
    fn hire(&mut self, index: usize, team: Team, report: &Sender<Report>, ready: &Sender<()>) -> bool {
        let (go, start) = channel();
        let boards = team.workers.iter().map(Worker::board).collect();
        let answer_within = team.workers.iter().map(Worker::answer_within).max().unwrap_or(Nanos::ZERO);
        let seen_at = Arc::new(AtomicU64::new(0));
        let shift = Shift {
            team: index,
            clock: Arc::clone(&self.conduct.clock),
            stop: Arc::clone(&self.stop),
            window: self.phases.window(),
            seen_at: Arc::clone(&seen_at),
            ready: ready.clone(),
            report: report.clone(),
        };
        let thread =
            thread::Builder::new().name(format!("load-{index}")).spawn(move || shift.work(team, &start));
        let failed = thread.as_ref().err().map(ToString::to_string);
        let over = failed.is_some();
        let (thread, go) = (thread.ok(), Some(go));
        self.members.push(Member { thread, go, boards, seen_at, answer_within, outcome: None, over });
        if let Some(why) = failed {
            self.fail(Fault::Thread { worker: index, why });
        }
        !over
    }

    /// Starts all of them, once each runs: a thread that is still to get its processor would miss its window.
    pub(super) fn start(&mut self) {
        let deadline = self.conduct.clock.now().saturating_add(READY_WITHIN);
        for _ in self.members.iter().filter(|member| !member.over) {
            let left = Duration::from_nanos(deadline.since(self.conduct.clock.now()).0);
            if self.ready.recv_timeout(left).is_err() {
                break;
            }
        }
        let start = self.conduct.clock.now();
        self.phases.start(start);
        for worker in 0..self.members.len() {
            let member = &mut self.members[worker];
            member.seen_at.store(start.0, Ordering::Relaxed);
            if member.go.take().is_some_and(|go| go.send(start).is_err()) {
                member.over = true;
                self.fail(Fault::Thread { worker, why: "it ended before the start".to_owned() });
            }
        }
    }

    /// Sees them through to the end.
    pub(super) fn supervise(&mut self, observer: &mut dyn Observer) {
        let mut next_view = self.phases.started_at();
        self.phases.move_window(next_view, observer);
        while self.members.iter().any(|member| !member.over) {
            match self.reports.recv_timeout(self.patience()) {
                Ok(report) => self.collect(report),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.look_after_the_silent();
                }
            }
            if self.conduct.stop.load(Ordering::Relaxed) {
                self.stop.store(true, Ordering::Relaxed);
            }
            let now = self.conduct.clock.now();
            self.phases.move_window(now, observer);
            if now >= next_view {
                let progress = self.progress(now);
                self.phases.watch_the_rate(&progress, now, POLL_MAX * 2);
                observer.look(&progress);
                next_view = now + OBSERVED_EVERY;
            }
        }
        self.phases.end(observer);
        observer.look(&self.progress(self.conduct.clock.now()));
    }

    /// How long to wait for a report: until the window begins or ends, but not for long.
    fn patience(&self) -> Duration {
        let mark = self.phases.next_mark();
        let left = mark.map_or(TICK, |mark| mark.since(self.conduct.clock.now()).min(TICK));
        Duration::from_nanos(left.0.max(1000))
    }

    fn collect(&mut self, report: Report) {
        let Some(member) = self.members.get_mut(report.team) else { return };
        member.outcome = Some(report.outcome);
        member.over = true;
        if let Some(fault) = report.fault {
            self.fail(fault);
        }
    }

    /// Keeps the first fault and stops everybody.
    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Gives up threads that panicked, and those that do not come back from their queue.
    fn look_after_the_silent(&mut self) {
        let now = self.conduct.clock.now();
        for worker in 0..self.members.len() {
            let member = &self.members[worker];
            if member.over {
                continue;
            }
            let waited = now.since(Nanos(member.seen_at.load(Ordering::Relaxed)));
            let fault = if member.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                // It may have reported between the last look and its end.
                while let Ok(report) = self.reports.try_recv() {
                    self.collect(report);
                }
                (!self.members[worker].over).then(|| Fault::Thread { worker, why: "it panicked".to_owned() })
            } else {
                // Twice the time, for the worker's own watch comes first wherever its queue returns at all.
                (waited > member.answer_within.saturating_add(member.answer_within).saturating_add(POLL_MAX))
                    .then_some(Fault::Hung { worker, waited })
            };
            if let Some(fault) = fault {
                self.members[worker].over = true;
                self.fail(fault);
            }
        }
    }

    fn progress(&self, now: Nanos) -> Progress {
        let mut progress = Progress { elapsed: now.since(self.phases.started_at()), ..Progress::default() };
        for member in &self.members {
            let totals: Vec<_> = member.boards.iter().map(|board| board.totals()).collect();
            totals.iter().for_each(|worker| progress.total.add(worker));
            progress.teams.push(totals);
        }
        progress
    }

    /// Waits for the threads to let go of their queues, and puts together what they measured.
    pub(super) fn dismiss(self) -> Result<Vec<TeamOutcome>, TeamsFailure> {
        let deadline = self.conduct.clock.now() + LET_GO_WITHIN;
        let mut teams = Vec::new();
        for member in self.members {
            if let (Some(thread), true) = (member.thread, member.outcome.is_some()) {
                while !thread.is_finished() && self.conduct.clock.now() < deadline {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            teams.push(member.outcome.unwrap_or(TeamOutcome { cpu: None, workers: Vec::new() }));
        }
        match self.fault {
            None => Ok(teams),
            Some(fault) => {
                let workers = teams.iter_mut().flat_map(|team| &mut team.workers);
                workers.for_each(|worker| worker.outcome.ending = Ending::Interrupted);
                Err(TeamsFailure { fault, teams })
            }
        }
    }
}
