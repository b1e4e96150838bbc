//! Running teams in virtual time: what [`run_teams`](crate::run_teams) does in real time, on one thread and with a world
//! that moves the clock.
//!
//! Processors and threads do not exist here: no team is made ready, and no processor time is told.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plumb_block::Nanos;

use super::STEPS_PER_INSTANT_MAX;
use crate::fault::Fault;
use crate::observer::Observer;
use crate::outcome::Ending;
use crate::phases::{OBSERVED_EVERY, Phases};
use crate::progress::{Board, Progress};
use crate::realtime::{Conduct, TeamOutcome, TeamsFailure, WorkerOutcome};
use crate::team::{SharedDepth, Team};
use crate::worker::{Step, Worker};

/// Moves the clock that stamps completions to its next event, or to the deadline that it is given if there is none
/// before; the time that it is then.
pub type AdvanceWorld<'a> = dyn FnMut(Nanos) -> Nanos + 'a;

/// How often, in real time, an observer is shown how far the run is.
const SHOWN_EVERY: Duration = Duration::from_millis(100);
/// How many moves of the clock go by between looks at the real time.
const MOVES_PER_LOOK: u32 = 1024;

/// Runs the teams to the end of their workloads, until told to stop, or until something fails.
///
/// # Errors
/// The first fault, with all that was measured before it.
pub fn run_teams_virtual(
    teams: Vec<Team>,
    conduct: &Conduct<'_>,
    observer: &mut dyn Observer,
    world: &mut AdvanceWorld<'_>,
) -> Result<Vec<TeamOutcome>, TeamsFailure> {
    let mut run = Run::start(teams, conduct);
    let fault = run.go_on(conduct, observer, world).err();
    run.phases.end(observer);
    observer.look(&run.progress(conduct.clock.now()));
    let mut teams: Vec<TeamOutcome> = run.teams.into_iter().map(Steps::finish).collect();
    match fault {
        None => Ok(teams),
        Some(fault) => {
            let workers = teams.iter_mut().flat_map(|team| &mut team.workers);
            workers.for_each(|worker| worker.outcome.ending = Ending::Interrupted);
            Err(TeamsFailure { fault, teams })
        }
    }
}

/// A run under way.
struct Run {
    phases: Phases,
    teams: Vec<Steps>,
    /// When the rate is looked at next, in virtual time.
    next_look: Nanos,
    shown: Instant,
    moves: u32,
}

impl Run {
    fn start(teams: Vec<Team>, conduct: &Conduct<'_>) -> Self {
        let now = conduct.clock.now();
        let mut phases = Phases::new(conduct.warmup, conduct.duration, conduct.cooldown);
        phases.start(now);
        let mut teams: Vec<Steps> = teams.into_iter().map(Steps::of).collect();
        for worker in teams.iter_mut().flat_map(|team| &mut team.workers) {
            worker.start(now, &phases.window());
        }
        Self { phases, teams, next_look: now, shown: Instant::now(), moves: 0 }
    }

    fn go_on(
        &mut self,
        conduct: &Conduct<'_>,
        observer: &mut dyn Observer,
        world: &mut AdvanceWorld<'_>,
    ) -> Result<(), Fault> {
        let mut now = conduct.clock.now();
        let mut has_moved = true;
        loop {
            if conduct.stop.load(Ordering::Relaxed) {
                self.teams.iter_mut().flat_map(|team| &mut team.workers).for_each(Worker::interrupt);
            }
            self.phases.move_window(now, observer);
            let mut round = Round::default();
            for team in &mut self.teams {
                team.step(now, &mut round)?;
            }
            let Some(deadline) = round.deadline else { return Ok(()) };
            if !has_moved && !round.has_progressed {
                return Err(Fault::Standstill { at: now });
            }
            let next = world(self.no_later_than(deadline, now));
            has_moved = next > now;
            now = next.max(now);
            self.look_around(now, observer);
        }
    }

    /// The deadline, but not past what happens to the window, nor past the next look at the rate.
    fn no_later_than(&self, deadline: Nanos, now: Nanos) -> Nanos {
        let marks = [self.phases.next_mark(), Some(self.next_look)];
        marks.into_iter().flatten().filter(|mark| *mark > now).fold(deadline, Nanos::min)
    }

    /// Watches the rate by the virtual clock, and shows the run to the observer by the real one.
    fn look_around(&mut self, now: Nanos, observer: &mut dyn Observer) {
        if now >= self.next_look {
            let progress = self.progress(now);
            self.phases.watch_the_rate(&progress, now, Nanos::ZERO);
            self.next_look = now.saturating_add(OBSERVED_EVERY);
        }
        self.moves += 1;
        if self.moves.is_multiple_of(MOVES_PER_LOOK) && self.shown.elapsed() >= SHOWN_EVERY {
            self.shown = Instant::now();
            observer.look(&self.progress(now));
        }
    }

    fn progress(&self, now: Nanos) -> Progress {
        let mut progress = Progress { elapsed: now.since(self.phases.started_at()), ..Progress::default() };
        for team in &self.teams {
            team.workers.iter().for_each(Worker::show);
            let totals: Vec<_> = team.boards.iter().map(|board| board.totals()).collect();
            totals.iter().for_each(|worker| progress.total.add(worker));
            progress.teams.push(totals);
        }
        progress
    }
}

/// What all teams did at one moment.
#[derive(Default)]
struct Round {
    /// The first time at which one of them has something to do; `None` if all are done.
    deadline: Option<Nanos>,
    has_progressed: bool,
}

/// A team at work.
struct Steps {
    workers: Vec<Worker>,
    boards: Vec<Arc<Board>>,
    shared_depth: Option<SharedDepth>,
    over: Vec<bool>,
}

impl Steps {
    fn of(team: Team) -> Self {
        let Team { workers, shared_depth, .. } = team;
        let boards = workers.iter().map(Worker::board).collect();
        Self { over: vec![false; workers.len()], boards, shared_depth, workers }
    }

    /// Steps every worker until none can do more at `now`.
    fn step(&mut self, now: Nanos, round: &mut Round) -> Result<(), Fault> {
        for _ in 0..STEPS_PER_INSTANT_MAX {
            if let Some(shared) = &mut self.shared_depth {
                shared.grant(&mut self.workers, &self.over);
            }
            let mut has_progressed = false;
            let mut deadline: Option<Nanos> = None;
            for (worker, over) in self.workers.iter_mut().zip(&mut self.over).filter(|(_, over)| !**over) {
                worker.do_not_wait();
                match worker.step(now)? {
                    Step::Progressed => has_progressed = true,
                    Step::Waiting { until } | Step::Idle { until } => {
                        deadline = Some(deadline.map_or(until, |earliest| earliest.min(until)));
                    }
                    Step::Done => *over = true,
                }
            }
            if !has_progressed {
                let earlier = [round.deadline, deadline].into_iter().flatten().min();
                round.deadline = earlier;
                return Ok(());
            }
            round.has_progressed = true;
        }
        Err(Fault::Standstill { at: now })
    }

    fn finish(self) -> TeamOutcome {
        let workers = self.workers.into_iter().map(|worker| {
            let (outcome, ledger, _) = worker.finish();
            WorkerOutcome { outcome, ledger }
        });
        TeamOutcome { cpu: None, workers: workers.collect() }
    }
}
