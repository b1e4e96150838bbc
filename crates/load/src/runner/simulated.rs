//! All teams on the calling thread, in virtual time.
//!
//! Workers never move the clock. When none of them can continue, the clock moves to the next event of a
//! device, or to the time at which a worker has work.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plumb_block::{Clock as _, Nanos, RealClock, wait_any};

use super::steps::Steps;
use crate::fault::Fault;
use crate::observer::{Event, Observer};
use crate::phases::{OBSERVED_EVERY, Phases};
use crate::progress::{Board, Progress};
use crate::run_options::RunOptions;
use crate::team::{Team, TeamOutcome};
use crate::worker::Step;

/// Largest number of steps without a move of the clock: with more, the device takes no time and the clock
/// will never move.
const STEPS_PER_INSTANT_MAX: u64 = 1 << 24;
/// Largest number of waits at one time that end without work; a few are normal caution of a device.
const IDLE_WAITS_MAX: u32 = 1 << 10;
/// Real time between two reports of the progress to an observer.
const SHOWN_EVERY: Nanos = Nanos::millis(100);
/// Number of moves of the clock between two looks at the real time.
const MOVES_PER_LOOK: u32 = 1024;

/// Runs the teams; returns the failure, if any, and the measurements of each.
pub(super) fn run(
    teams: Vec<Team>,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
) -> (Option<Fault>, Vec<TeamOutcome>) {
    let mut run = Run::start(teams, options, observer);
    let fault = run.run_to_end(options, observer).err();
    run.phases.end(observer);
    observer.on(&Event::Progress { progress: &run.progress(options.time.now()), targets: &Vec::new });
    let outcomes = run.teams.into_iter().map(|team| TeamOutcome { cpu: None, workers: team.finish().0 });
    (fault, outcomes.collect())
}

/// State of a run.
struct Run {
    phases: Phases,
    teams: Vec<Steps>,
    boards: Vec<Vec<Arc<Board>>>,
    /// Next check of the rate, in virtual time.
    next_look: Nanos,
    shown: RealClock,
    moves: u32,
}

impl Run {
    fn start(teams: Vec<Team>, options: &RunOptions<'_>, observer: &mut dyn Observer) -> Self {
        let start = observer.start_at(options.time.now(), true);
        let mut phases = Phases::new(options.warmup, options.duration, options.cooldown);
        phases.start(start);
        let teams = teams.into_iter().map(|team| Steps::new(team.workers, team.shared_depth, false));
        let mut teams: Vec<Steps> = teams.collect();
        teams.iter_mut().for_each(|team| team.start(start, &phases.window()));
        let boards = teams.iter().map(Steps::boards).collect();
        Self { phases, teams, boards, next_look: start, shown: RealClock::start(), moves: 0 }
    }

    fn run_to_end(&mut self, options: &RunOptions<'_>, observer: &mut dyn Observer) -> Result<(), Fault> {
        let mut time = &options.time;
        let mut now = time.now();
        let mut idle_waits = 0;
        loop {
            if options.stop.load(Ordering::Relaxed) {
                self.teams.iter_mut().for_each(Steps::interrupt);
            }
            self.phases.move_window(now, observer);
            let (has_progressed, deadline) = self.step_all(now)?;
            let Some(deadline) = deadline else { return Ok(()) };
            idle_waits = if has_progressed { 0 } else { idle_waits + 1 };
            if idle_waits > IDLE_WAITS_MAX {
                return Err(Fault::Standstill { at: now });
            }
            let until = self.no_later_than(deadline, now);
            let queues = self.teams.iter().flat_map(Steps::queues);
            wait_any(queues, Some(until), &mut time).map_err(|source| Fault::Queue { worker: 0, source })?;
            let before = now;
            now = time.now();
            if now > before {
                idle_waits = 0;
            }
            self.look_around(now, observer);
        }
    }

    /// Steps every worker until none can do more at `now`. Returns whether any did work, and when the first
    /// has work again; `None` if all are done.
    fn step_all(&mut self, now: Nanos) -> Result<(bool, Option<Nanos>), Fault> {
        let (mut has_progressed, mut deadline) = (false, None);
        for team in &mut self.teams {
            let mut steps = 0;
            loop {
                match team.step(now)? {
                    Step::Progressed if steps < STEPS_PER_INSTANT_MAX => steps += 1,
                    Step::Progressed => return Err(Fault::Standstill { at: now }),
                    Step::Waiting { until } | Step::Idle { until } => {
                        deadline = Some(deadline.map_or(until, |earliest: Nanos| earliest.min(until)));
                        break;
                    }
                    Step::Done => break,
                }
            }
            has_progressed |= steps > 0;
        }
        Ok((has_progressed, deadline))
    }

    /// Returns the deadline, limited by the next change of the window and the next check of the rate.
    fn no_later_than(&self, deadline: Nanos, now: Nanos) -> Nanos {
        let marks = [self.phases.next_mark(), Some(self.next_look)];
        marks.into_iter().flatten().filter(|mark| *mark > now).fold(deadline, Nanos::min)
    }

    /// Checks the rate by the virtual clock, and reports progress to the observer by the real one.
    fn look_around(&mut self, now: Nanos, observer: &mut dyn Observer) {
        if now >= self.next_look {
            let progress = self.progress(now);
            self.phases.watch_rate(&progress, now, Nanos::ZERO);
            observer.on(&Event::Sample(&progress));
            self.next_look = now.saturating_add(OBSERVED_EVERY);
        }
        self.moves += 1;
        if self.moves.is_multiple_of(MOVES_PER_LOOK) && self.shown.now() >= SHOWN_EVERY {
            self.shown = RealClock::start();
            if observer.wants_figures() {
                self.give_figures(observer);
            }
            observer.on(&Event::Progress { progress: &self.progress(now), targets: &Vec::new });
        }
    }

    fn give_figures(&self, observer: &mut dyn Observer) {
        self.boards.iter().flatten().for_each(|board| board.ask_for_figures());
        self.teams.iter().for_each(Steps::show);
        let said = |board: &Arc<Board>| board.take_figures();
        let teams = self.boards.iter().map(|boards| TeamOutcome::of_figures(boards.iter().filter_map(said)));
        observer.on(&Event::TeamFigures(&Cell::new(teams.collect())));
    }

    fn progress(&self, now: Nanos) -> Progress {
        self.teams.iter().for_each(Steps::show);
        Progress::from_boards(now.since(self.phases.start), self.boards.iter().map(|boards| &boards[..]))
    }
}
