//! The threads of a run: prepared, started, watched, and brought together.

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

/// How a run goes, apart from its program.
pub(crate) struct Conduct<'a> {
    /// Name of the profile, for whoever observes.
    pub(crate) profile: &'a str,
    /// Clock from which times are read.
    pub(crate) clock: &'a dyn Clock,
    /// Becomes true when the run must end early.
    pub(crate) stop: &'a AtomicBool,
    /// No transaction starts after this time.
    pub(crate) duration: Option<Nanos>,
    /// Number of transactions over all threads.
    pub(crate) count: Option<u64>,
    /// Number of threads.
    pub(crate) threads: u32,
    /// The most bytes that one call moves, so that memory for it is there before anything is measured.
    pub(crate) call_bytes_max: u64,
    /// Seed from which all choices follow.
    pub(crate) seed: u64,
}

/// How often the observer is shown the progress.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Prepares and runs a program in `store`. If it is stopped early, it returns the results so far.
///
/// # Errors
/// The first call that failed.
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

/// A thread that is ready.
struct Ready<'a> {
    hand: Hand<'a>,
    actor: Box<dyn Actor + 'a>,
}

/// Makes the files that are there before, makes them durable, so that their write-back does not go on below
/// what is measured, and lets every thread open what is its own.
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

/// The threads while they run.
struct Threads<'a> {
    conduct: &'a Conduct<'a>,
    recording: &'a Recording,
    start: Nanos,
}

impl Threads<'_> {
    /// Runs them all: how they ended together, and how much time the one that paused longest took out
    /// of the measurement.
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
                    // The receiver lives until all senders are gone.
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
        together(ended)
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

/// Shows an observer the progress, and the figures until now if it wants them.
pub(crate) fn show(observer: &mut dyn Observer, progress: &Progress, figures: impl Fn() -> LoadOutcome) {
    observer.on(&Event::Sample(progress));
    observer.on(&Event::Progress { progress, targets: &Vec::new });
    if observer.wants_figures() {
        let workers = vec![WorkerOutcome { outcome: figures(), ledger: None }];
        observer.on(&Event::TeamFigures(&Cell::new(vec![TeamOutcome { cpu: None, workers }])));
    }
}

/// Returns the failure if there is one, else the stop if there was one; and the longest pause.
fn together(ended: Vec<(Step<()>, Nanos)>) -> (Step<()>, Nanos) {
    let mut together = (Ok(()), Nanos::ZERO);
    for (end, paused) in ended {
        together.1 = together.1.max(paused);
        together.0 = match (together.0, end) {
            (failed @ Err(Halt::Failed(_)), _) => failed,
            (first, Ok(())) => first,
            (_, end) => end,
        };
    }
    together
}

/// When a thread begins no more transactions.
#[derive(Debug, Clone, Copy)]
struct Quota {
    left: Option<u64>,
    until: Option<Nanos>,
}

impl Quota {
    /// Returns true if one more may begin now.
    fn take(&mut self, clock: &dyn Clock) -> bool {
        if self.until.is_some_and(|until| clock.now() >= until) || self.left == Some(0) {
            return false;
        }
        self.left = self.left.map(|left| left - 1);
        true
    }
}

/// Returns how many of `total` transactions are a thread's: the shares differ by at most one and add up.
fn share_of(total: u64, thread: u64, threads: u64) -> u64 {
    total / threads + u64::from(thread < total % threads)
}
