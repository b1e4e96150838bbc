//! Threads of a run: preparation, execution, and the combined result.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use plumb_block::{Clock, FileStore, Nanos};
use plumb_load::{Ending, Event, LoadOutcome, Observer, Progress, TeamOutcome, WorkerOutcome};

use super::halt::{Halt, Halts, Step};
use super::hand::{Bench, Hand, Preparation};
use super::program::{Actor, Program};
use super::recording::{Recording, lock};
use crate::error::Error;

/// Parameters of a run, except its program.
pub(crate) struct Conduct<'a> {
    /// Name of the profile, for observers.
    pub(crate) profile: &'a str,
    /// Clock for all times.
    pub(crate) clock: &'a dyn Clock,
    /// Stop flag, which ends the run early.
    pub(crate) stop: &'a AtomicBool,
    /// Time after which no transaction starts.
    pub(crate) duration: Option<Nanos>,
    /// Number of transactions of all threads together.
    pub(crate) count: Option<u64>,
    /// Number of threads.
    pub(crate) threads: u32,
    /// Most bytes in one call, for which memory is allocated before the measurement.
    pub(crate) call_bytes_max: u64,
    /// Seed of all choices.
    pub(crate) seed: u64,
}

/// Interval between two progress reports to the observer.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Prepares and runs a program in `store`. If the run is stopped early, returns the measurements until then.
///
/// # Errors
/// Returns the error of the first failed call.
pub(crate) fn perform(
    program: &dyn Program,
    store: &dyn FileStore,
    conduct: &Conduct<'_>,
    observer: &mut dyn Observer,
) -> Result<LoadOutcome, Error> {
    let halts = Halts::new(conduct.stop);
    let notes = Mutex::new(Vec::new());
    let bench = Bench { store, clock: conduct.clock, halts: &halts, notes: &notes, seed: conduct.seed };
    let threads = conduct.threads;
    let expected = conduct.duration.unwrap_or(Nanos::ZERO);
    let recording = Recording::starting_at(conduct.clock.now(), expected, threads);
    let prepared = prepare(program, conduct, bench, &recording, observer);
    observer.on(&Event::WindowBegins { warmup: Nanos::ZERO, settled: true });
    let start = conduct.clock.now();
    recording.restart(start, expected);
    let (result, paused) = match prepared {
        Ok(ready) => Threads { conduct, recording: &recording, start }.run(ready, observer),
        Err(halt) => (Err(halt), Nanos::ZERO),
    };
    let ending = match result {
        Ok(()) if !halts.is_stopped() => Ending::Complete,
        Ok(()) | Err(Halt::Stopped) => Ending::Interrupted,
        Err(Halt::Failed(error)) => return Err(error),
    };
    let end = conduct.clock.now().since(paused);
    observer.on(&Event::WindowEnds);
    let mut measured = recording.together(start).finish(end, ending, threads);
    let said = lock(&notes).drain(..).chain(program.notes(&measured)).collect();
    measured.transactions.get_or_insert_default().notes = said;
    Ok(measured)
}

/// Thread that is ready to run.
struct Ready<'a> {
    hand: Hand<'a>,
    actor: Box<dyn Actor + 'a>,
}

/// Creates the initial files, makes them durable, so that their write-back does not disturb the measurement,
/// and lets every thread open its files.
fn prepare<'a>(
    program: &'a dyn Program,
    conduct: &Conduct<'_>,
    bench: Bench<'a>,
    recording: &'a Recording,
    observer: &mut dyn Observer,
) -> Step<Vec<Ready<'a>>> {
    let mut hand = Hand::preparing(bench);
    program.prepare(&mut hand, &mut Preparation::new(conduct.profile, observer))?;
    hand.syncfs()?;
    let thread = |number| {
        let mut hand = Hand::new(bench, Some(recording.book(number)), u64::from(number));
        hand.warm(conduct.call_bytes_max);
        let actor = hand.unmeasured(|hand| program.actor(number, hand))?;
        hand.starts();
        Ok(Ready { hand, actor })
    };
    (0..conduct.threads).map(thread).collect()
}

/// Threads of a run.
struct Threads<'a> {
    conduct: &'a Conduct<'a>,
    recording: &'a Recording,
    start: Nanos,
}

impl Threads<'_> {
    /// Runs all threads. Returns their combined ending, and the largest time that a thread excluded from the
    /// measurement.
    fn run(&self, ready: Vec<Ready<'_>>, observer: &mut dyn Observer) -> (Step<()>, Nanos) {
        let threads = ready.len() as u64;
        let mut ended = Vec::new();
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            for (number, thread) in ready.into_iter().enumerate() {
                let sender = sender.clone();
                let quota = self.quota(number as u64, threads);
                scope.spawn(move || {
                    let Ready { mut hand, actor } = thread;
                    let end = self.turns(&mut hand, actor, quota);
                    // The receiver outlives all senders.
                    sender.send((end, hand.paused())).expect("every thread is waited for");
                });
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(TELL_EVERY) {
                    Ok(end) => ended.push(end),
                    Err(RecvTimeoutError::Timeout) => self.show(observer),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        self.show(observer);
        combined(ended)
    }

    fn turns(&self, hand: &mut Hand<'_>, mut actor: Box<dyn Actor + '_>, mut quota: Quota) -> Step<()> {
        while quota.take(self.conduct.clock) {
            hand.check()?;
            actor.turn(hand)?;
        }
        actor.finish(hand)
    }

    fn quota(&self, thread: u64, threads: u64) -> Quota {
        Quota {
            left: self.conduct.count.map(|count| share_of(count, thread, threads)),
            until: self.conduct.duration.map(|duration| self.start.saturating_add(duration)),
        }
    }

    fn show(&self, observer: &mut dyn Observer) {
        let now = self.conduct.clock.now();
        let elapsed = now.since(self.start);
        let progress = Progress::of_one(elapsed, self.recording.totals());
        let so_far =
            || self.recording.together(self.start).finish(now, Ending::Interrupted, self.conduct.threads);
        show(observer, &progress, so_far);
    }
}

/// Reports progress to an observer, and the interim results if it wants them.
pub(crate) fn show(observer: &mut dyn Observer, progress: &Progress, figures: impl Fn() -> LoadOutcome) {
    observer.on(&Event::Sample(progress));
    observer.on(&Event::Progress { progress, targets: &Vec::new });
    if observer.wants_figures() {
        let workers = vec![WorkerOutcome { outcome: figures(), ledger: None }];
        observer.on(&Event::TeamFigures(&Cell::new(vec![TeamOutcome { cpu: None, workers }])));
    }
}

/// Returns the failure if there is one, otherwise the stop if there was one, and the longest pause.
fn combined(ended: Vec<(Step<()>, Nanos)>) -> (Step<()>, Nanos) {
    let mut combined = (Ok(()), Nanos::ZERO);
    for (end, paused) in ended {
        combined.1 = combined.1.max(paused);
        combined.0 = match (combined.0, end) {
            (failed @ Err(Halt::Failed(_)), _) => failed,
            (first, Ok(())) => first,
            (_, end) => end,
        };
    }
    combined
}

/// Limits on the transactions of a thread.
#[derive(Debug, Clone, Copy)]
struct Quota {
    left: Option<u64>,
    until: Option<Nanos>,
}

impl Quota {
    /// Returns true if another transaction may start, and counts it.
    fn take(&mut self, clock: &dyn Clock) -> bool {
        if self.until.is_some_and(|until| clock.now() >= until) || self.left == Some(0) {
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        true
    }
}

/// Returns a thread's share of `total` transactions. The shares differ by at most one and add up to `total`.
fn share_of(total: u64, thread: u64, threads: u64) -> u64 {
    total / threads + u64::from(thread < total % threads)
}
