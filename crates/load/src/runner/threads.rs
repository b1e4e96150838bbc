//! Threads of all teams, as managed by the calling thread.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plumb_block::{Clock, Nanos, RealClock, retry_until};

use super::thread::{Report, TeamThread};
use crate::fault::Fault;
use crate::observer::{Event, Observer};
use crate::outcome::LoadOutcome;
use crate::phases::{OBSERVED_EVERY, Phases};
use crate::progress::{Board, Progress};
use crate::run_options::RunOptions;
use crate::team::{Team, TeamOutcome};
use crate::worker::{POLL_MAX, Worker};

/// Interval of the checks by the calling thread.
const TICK: Nanos = Nanos::millis(25);
/// Time limit for threads to become ready before the others start without them.
const READY_WITHIN: Nanos = Nanos::secs(5);
/// Time limit for reported threads to drop their queues before they are abandoned.
const JOIN_WITHIN: Nanos = Nanos::secs(5);

/// Thread of a team.
struct Member {
    thread: Option<JoinHandle<()>>,
    go: Option<Sender<Nanos>>,
    boards: Vec<Arc<Board>>,
    /// Figures of each worker of the team so far, from those that have answered the request.
    figures: Vec<Option<LoadOutcome>>,
    seen_at: Arc<AtomicU64>,
    answer_within: Nanos,
    outcome: Option<TeamOutcome>,
    /// True if the thread has reported, or no report is expected.
    over: bool,
}

impl Member {
    /// Takes the measurements of the team's workers: complete if they are done, otherwise the figures that
    /// they have given.
    fn take_figures(&mut self) -> TeamOutcome {
        let said: Vec<LoadOutcome> = self.figures.iter_mut().filter_map(Option::take).collect();
        match &self.outcome {
            Some(done) => TeamOutcome::of_figures(done.workers.iter().map(|worker| worker.outcome.clone())),
            None => TeamOutcome::of_figures(said),
        }
    }
}

/// Threads of all teams.
pub(super) struct Threads<'a> {
    clock: &'a dyn Clock,
    /// True if the user wants the run to end.
    stop_wanted: &'a AtomicBool,
    phases: Phases,
    /// Stop flag of the threads.
    stop: Arc<AtomicBool>,
    members: Vec<Member>,
    ready: Receiver<()>,
    /// Delays of the start, from threads that are not yet reported to the observer.
    begun: Receiver<Nanos>,
    lateness: Vec<Nanos>,
    reports: Receiver<Report>,
    fault: Option<Fault>,
    /// True if figures were requested and not all workers have given them.
    awaits_figures: bool,
}

impl<'a> Threads<'a> {
    /// Creates the threads, which wait for their start.
    pub(super) fn spawn(teams: Vec<Team>, options: &'a RunOptions<'_>, clock: &'a dyn Clock) -> Self {
        let (report, reports) = channel();
        let (tell_ready, ready) = channel();
        let (tell_begun, begun) = channel();
        let mut threads = Self {
            clock,
            stop_wanted: options.stop,
            phases: Phases::new(options.warmup, options.duration, options.cooldown),
            stop: Arc::new(AtomicBool::new(false)),
            members: Vec::new(),
            ready,
            begun,
            lateness: Vec::new(),
            reports,
            fault: None,
            awaits_figures: false,
        };
        for (index, team) in teams.into_iter().enumerate() {
            let seen_at = Arc::new(AtomicU64::new(0));
            let thread = TeamThread {
                team: index,
                clock: options.time.clock(),
                stop: Arc::clone(&threads.stop),
                window: threads.phases.window(),
                seen_at: Arc::clone(&seen_at),
                ready: tell_ready.clone(),
                begun: tell_begun.clone(),
                report: report.clone(),
            };
            if !threads.spawn_one(thread, team, seen_at) {
                break;
            }
        }
        threads
    }

    /// Creates one thread. Returns true on success.
    fn spawn_one(&mut self, thread: TeamThread, team: Team, seen_at: Arc<AtomicU64>) -> bool {
        let (go, start) = channel();
        let boards: Vec<_> = team.workers.iter().map(Worker::board).collect();
        let answer_within = team.workers.iter().map(Worker::answer_within).max().unwrap_or(Nanos::ZERO);
        let index = thread.team;
        let spawned =
            thread::Builder::new().name(format!("load-{index}")).spawn(move || thread.run(team, &start));
        let failed = spawned.as_ref().err().map(ToString::to_string);
        let over = failed.is_some();
        let (thread, go) = (spawned.ok(), Some(go));
        let figures = vec![None; boards.len()];
        self.members.push(Member {
            thread,
            go,
            boards,
            figures,
            seen_at,
            answer_within,
            outcome: None,
            over,
        });
        if let Some(why) = failed {
            self.fail(Fault::Thread { worker: index, why });
        }
        !over
    }

    /// Starts all threads once each runs: a thread that still waits for its processor would miss its window.
    pub(super) fn start(&mut self, observer: &mut dyn Observer) {
        let deadline = self.clock.now().saturating_add(READY_WITHIN);
        for _ in self.members.iter().filter(|member| !member.over) {
            let left = Duration::from_nanos(deadline.since(self.clock.now()).0);
            if self.ready.recv_timeout(left).is_err() {
                break;
            }
        }
        let now = self.clock.now();
        let agreed = observer.start_at(now, false);
        self.phases.tell_before_start(observer);
        // Other hosts know a later time and use it.
        let start = if agreed == now { self.clock.now() } else { agreed };
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

    /// Supervises the threads to the end.
    pub(super) fn supervise(&mut self, observer: &mut dyn Observer) {
        let mut next_view = self.phases.start + OBSERVED_EVERY;
        while self.members.iter().any(|member| !member.over) {
            let now = self.clock.now();
            self.phases.move_window(now, observer);
            self.tell_begun(observer);
            if now >= next_view {
                let progress = self.progress(now);
                self.give_figures(observer);
                self.phases.watch_rate(&progress, now, POLL_MAX * 2);
                observer.on(&Event::Sample(&progress));
                observer.on(&Event::Progress { progress: &progress, targets: &Vec::new });
                next_view = now + OBSERVED_EVERY;
            }
            match self.reports.recv_timeout(self.patience()) {
                Ok(report) => self.collect(report),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => self.give_up_silent(),
            }
            if self.stop_wanted.load(Ordering::Relaxed) {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        let now = self.clock.now();
        self.phases.move_window(now, observer);
        self.tell_begun(observer);
        self.phases.end(observer);
        observer.on(&Event::Progress { progress: &self.progress(now), targets: &Vec::new });
    }

    /// Reports once to the observer how late the last thread began.
    fn tell_begun(&mut self, observer: &mut dyn Observer) {
        let before = self.lateness.len();
        self.lateness.extend(self.begun.try_iter());
        if before < self.members.len() && self.lateness.len() == self.members.len() {
            let late = self.lateness.iter().max().copied().unwrap_or_default();
            observer.on(&Event::Begun { late });
        }
    }

    /// Returns the time to wait for a report: until the window begins or ends, with a short limit.
    fn patience(&self) -> Duration {
        let mark = self.phases.next_mark();
        let left = mark.map_or(TICK, |mark| mark.since(self.clock.now()).min(TICK));
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

    /// Stores the first fault and stops all threads.
    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Abandons threads that panicked, and those that do not return from their queue.
    fn give_up_silent(&mut self) {
        let now = self.clock.now();
        for worker in 0..self.members.len() {
            let member = &self.members[worker];
            if member.over {
                continue;
            }
            let waited = now.since(Nanos(member.seen_at.load(Ordering::Relaxed)));
            let fault = if member.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                // The worker may have reported between the last check and its end.
                while let Ok(report) = self.reports.try_recv() {
                    self.collect(report);
                }
                (!self.members[worker].over).then(|| Fault::Thread { worker, why: "it panicked".to_owned() })
            } else {
                // The limit is twice the time, since the check of the worker itself comes first if its queue
                // returns at all.
                (waited > member.answer_within.saturating_add(member.answer_within).saturating_add(POLL_MAX))
                    .then_some(Fault::Hung { worker, waited })
            };
            if let Some(fault) = fault {
                self.members[worker].over = true;
                self.fail(fault);
            }
        }
    }

    /// Requests the figures of the workers when the observer wants them, and delivers them when all have
    /// answered. Nobody waits: workers answer between two steps.
    fn give_figures(&mut self, observer: &mut dyn Observer) {
        if !self.awaits_figures {
            self.awaits_figures = observer.wants_figures();
            let boards = self.members.iter().flat_map(|member| &member.boards);
            return boards.filter(|_| self.awaits_figures).for_each(|board| board.ask_for_figures());
        }
        for member in &mut self.members {
            for (figures, board) in member.figures.iter_mut().zip(&member.boards) {
                *figures = board.take_figures().or(figures.take());
            }
        }
        if self.members.iter().all(|member| member.over || member.figures.iter().all(Option::is_some)) {
            self.awaits_figures = false;
            let teams = self.members.iter_mut().map(Member::take_figures).collect();
            observer.on(&Event::TeamFigures(&Cell::new(teams)));
        }
    }

    fn progress(&self, now: Nanos) -> Progress {
        let boards = self.members.iter().map(|member| &member.boards[..]);
        Progress::from_boards(now.since(self.phases.start), boards)
    }

    /// Waits for the threads to drop their queues; returns the failure, if any, and the measurements of each
    /// team.
    pub(super) fn join(self) -> (Option<Fault>, Vec<TeamOutcome>) {
        let clock = RealClock::start();
        let mut teams = Vec::new();
        for member in self.members {
            if let (Some(thread), true) = (member.thread, member.outcome.is_some()) {
                let left = JOIN_WITHIN.since(clock.now());
                retry_until(left, || thread.is_finished().then_some(()));
            }
            teams.push(member.outcome.unwrap_or(TeamOutcome { cpu: None, workers: Vec::new() }));
        }
        (self.fault, teams)
    }
}
