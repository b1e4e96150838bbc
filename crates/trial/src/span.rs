//! One span: its teams run between two readings of the storage's counters.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use plumb_block::{Bytes, Nanos};
use plumb_load::{
    Fault, Ledger, Observer, Part, Progress, RunOptions, SpanResult, TargetResult, TeamOutcome, ThreadResult,
    Totals, run_teams,
};
use plumb_workload::{Durability, Job, Span, Warmup};

use crate::counters::{Beneath, Counted};
use crate::cpu::{self, Processors};
use crate::error::TrialError;
use crate::looks::Looks;
use crate::so_far::SoFar;
use crate::staff::{Post, Staff, Variation, staff};
use crate::targets::{Targets, Use};
use crate::trial::Context;
use crate::verify::verify;
use crate::watcher::{Phase, TargetNow, Watcher};

/// How a span ended.
#[derive(Debug)]
pub enum Ended {
    /// As the workload says.
    Complete,
    /// It was told to stop earlier; what it measured until then is as good as any.
    Interrupted,
    /// Something failed; what was measured until then is there.
    Failed(Fault),
}

/// A span that was run.
#[derive(Debug)]
pub struct Ran {
    /// What it measured.
    pub result: SpanResult,
    /// How it ended.
    pub ended: Ended,
    /// Whether the rate had settled when measuring began, if that was waited for.
    pub settled: bool,
    /// Whether all that was written was read back, if that was asked for.
    pub read_back: Option<bool>,
    /// What was seen of each target over time, in windows that followed one another.
    pub(crate) looks: Vec<(Nanos, Vec<Looks>)>,
}

/// What it takes to run a span: [`run_span`](Self::run_span).
pub struct Stage<'a> {
    /// Open targets; those of the span among them.
    pub targets: &'a Targets,
    /// The clock, and the flag to stop.
    pub context: &'a Context<'a>,
    /// Who looks on.
    pub watcher: &'a mut dyn Watcher,
    /// Where what was measured until now goes while a span runs.
    pub(crate) so_far: SoFar,
}

impl Stage<'_> {
    /// Runs the span with this number.
    ///
    /// # Errors
    /// If it could not be started, or what it wrote could not be read back.
    pub(crate) fn run(
        &mut self,
        number: usize,
        span: &Span,
        variation: Variation,
    ) -> Result<Ran, TrialError> {
        let variation = Variation { shows_latency: self.watcher.wants_latency(), ..variation };
        let Staff { teams, posts } = staff(self.targets, number, span, variation)?;
        let duration = span.jobs.iter().map(|job| job.workload.stop.duration).max().flatten();
        let options = RunOptions {
            time: self.targets.time.clone(),
            stop: self.context.stop,
            warmup: span.warmup,
            duration,
            cooldown: span.cooldown,
        };
        let so_far = (!variation.prepares).then_some(&mut self.so_far);
        let of_span = OfSpan { number, jobs: &span.jobs, posts: &posts };
        let mut sides = Sides::new(self.targets, of_span, &options, self.watcher, so_far);
        let (teams, ended) = match run_teams(teams, &options, &mut sides) {
            Ok(teams) if self.context.stop.load(Ordering::Relaxed) => (teams, Ended::Interrupted),
            Ok(teams) => (teams, Ended::Complete),
            Err(failure) => (failure.teams, Ended::Failed(failure.fault)),
        };
        let (mut result, settled, looks) = sides.finish();
        let mut ledgers = take_in(&mut result, teams, of_span, self.first_use(number));
        let read_back = match ledgers.is_empty() {
            true => None,
            false => {
                self.spread_losses(&mut ledgers, &ended);
                Some(self.read_back(number, ledgers, &mut result)?)
            }
        };
        Ok(Ran { looks: vec![(result.window, looks)], result, ended, settled, read_back })
    }

    /// The place of the first use of a span among all.
    fn first_use(&self, number: usize) -> usize {
        self.targets.of_span(number).next().map_or(0, |(index, _)| index)
    }

    /// What one worker has seen lose its power, or fall silent, has lost it for all.
    fn spread_losses(&self, ledgers: &mut [Kept], ended: &Ended) {
        let is_silence = matches!(
            ended,
            Ended::Failed(Fault::Unanswered { .. } | Fault::Hung { .. } | Fault::Queue { .. })
        );
        let beneath = |kept: &Kept| self.targets.uses[kept.one].beneath;
        let lost: Vec<usize> =
            ledgers.iter().filter(|kept| kept.ledger.has_lost_power()).map(beneath).collect();
        for kept in ledgers {
            if is_silence || lost.contains(&beneath(kept)) {
                kept.ledger.lose_power();
            }
        }
    }

    /// Reads back what each worker wrote. Says whether that was done to the end.
    fn read_back(
        &mut self,
        number: usize,
        ledgers: Vec<Kept>,
        result: &mut SpanResult,
    ) -> Result<bool, TrialError> {
        self.watcher.phase(number, &Phase::Verifying, None);
        let mut done = Bytes(0);
        let mut whole = true;
        for kept in ledgers {
            let one = &self.targets.uses[kept.one];
            let mut last = Bytes(0);
            let watcher = &mut *self.watcher;
            let found = verify(one, kept.ledger, self.context.clock, self.context.stop, &mut |read| {
                last = read;
                watcher.bytes(done + read);
            })?;
            done += last;
            whole &= found.whole;
            result.threads[kept.thread].parts[kept.part].outcome.verified = Some(found.verified);
        }
        Ok(whole)
    }
}

/// A ledger, and whose it is.
struct Kept {
    thread: usize,
    part: usize,
    one: usize,
    ledger: Ledger,
}

/// A span, and what each of its threads is for.
#[derive(Clone, Copy)]
struct OfSpan<'a> {
    /// Its place in the scenario.
    number: usize,
    jobs: &'a [Job],
    posts: &'a [Post],
}

/// Puts the figures of the teams into `result`; returns what is to be verified. Where each write is durable when it
/// completes, its latency is that of a durable write.
fn take_in(
    result: &mut SpanResult,
    teams: Vec<TeamOutcome>,
    span: OfSpan<'_>,
    first_use: usize,
) -> Vec<Kept> {
    let mut ledgers = Vec::new();
    for (thread, (team, post)) in teams.into_iter().zip(span.posts).enumerate() {
        let mut parts = Vec::new();
        for (part, (worker, one)) in team.workers.into_iter().zip(&post.uses).enumerate() {
            let mut outcome = worker.outcome;
            let target = one - first_use;
            let job = result.targets.get(target).and_then(|target| span.jobs.get(target.job));
            if job.is_some_and(|job| job.workload.durability == Durability::EACH_WRITE) {
                outcome.durable = outcome.write.latency.clone();
            }
            result.window = result.window.max(outcome.length);
            parts.push(Part { target, outcome });
            ledgers.extend(worker.ledger.map(|ledger| Kept { thread, part, one: *one, ledger }));
        }
        result.threads.push(ThreadResult { job: post.job, cpu: team.cpu, parts });
    }
    ledgers
}

/// Both sides of a span while it runs.
struct Sides<'a> {
    targets: &'a Targets,
    span: OfSpan<'a>,
    watcher: &'a mut dyn Watcher,
    so_far: Option<&'a mut SoFar>,
    /// Whether the figures that were asked for last are to be recorded.
    is_recorded: bool,
    duration: Option<Nanos>,
    cooldown: Nanos,
    before: Option<Reading>,
    after: Option<Reading>,
    warmup: Nanos,
    settled: bool,
    looks: Vec<Looks>,
}

/// The counters at one moment.
struct Reading {
    storage: Storage<Counted>,
    processors: Processors,
}

/// What was read of each that is beneath targets, by its place: once, however many targets are on it.
type Storage<T> = HashMap<usize, T>;

/// Reads what is beneath the targets of a span.
fn read_storage<T>(targets: &Targets, span: usize, read: impl Fn(&Beneath) -> T) -> Storage<T> {
    let mut storage = Storage::new();
    for (_, one) in targets.of_span(span) {
        storage.entry(one.beneath).or_insert_with(|| read(targets.beneath(one)));
    }
    storage
}

impl<'a> Sides<'a> {
    fn new(
        targets: &'a Targets,
        span: OfSpan<'a>,
        options: &RunOptions<'_>,
        watcher: &'a mut dyn Watcher,
        so_far: Option<&'a mut SoFar>,
    ) -> Self {
        let begins_at_once = options.warmup == Warmup::For(Nanos::ZERO);
        if !begins_at_once {
            let expected = match options.warmup {
                Warmup::For(warmup) => Some(warmup),
                Warmup::Auto => None,
            };
            watcher.phase(span.number, &Phase::WarmingUp, expected);
        }
        Self {
            targets,
            span,
            watcher,
            so_far,
            is_recorded: false,
            duration: options.duration,
            cooldown: options.cooldown,
            before: None,
            after: None,
            warmup: Nanos::ZERO,
            settled: true,
            looks: targets.of_span(span.number).map(|_| Looks::default()).collect(),
        }
    }

    fn read(&self) -> Reading {
        let at_once = self.targets.is_written_at_once(self.span.number);
        let storage = read_storage(self.targets, self.span.number, |beneath| beneath.count(at_once));
        Reading { storage, processors: cpu::processors() }
    }

    /// What is known without the teams, whether the rate had settled, and what was seen over time.
    fn finish(self) -> (SpanResult, bool, Vec<Looks>) {
        (self.result(self.after.as_ref()), self.settled, self.looks)
    }

    /// What is known without the teams of the time until `after`.
    fn result(&self, after: Option<&Reading>) -> SpanResult {
        let both = self.before.as_ref().zip(after);
        let side = |one: &Use| match both {
            Some((before, after)) => {
                let (before, after) = (&before.storage[&one.beneath], &after.storage[&one.beneath]);
                self.targets.beneath(one).between(before, after)
            }
            None => Err("nothing was measured".to_owned()),
        };
        let targets = self
            .targets
            .of_span(self.span.number)
            .map(|(_, one)| TargetResult {
                job: one.job,
                name: one.name.clone(),
                opened: one.opened.shown.clone(),
                size: one.opened.size,
                engine: one.opened.route.name().to_owned(),
                storage: side(one),
            })
            .collect();
        let processors = both.map(|(before, after)| cpu::between(&before.processors, &after.processors));
        let processors = processors.unwrap_or_default();
        SpanResult { warmup: self.warmup, window: Nanos::ZERO, threads: Vec::new(), targets, processors }
    }
}

/// What all workers on each use have done.
fn totals_by_use(posts: &[Post], progress: &Progress) -> HashMap<usize, Totals> {
    let mut totals: HashMap<usize, Totals> = HashMap::new();
    for (post, workers) in posts.iter().zip(&progress.teams) {
        for (one, worker) in post.uses.iter().zip(workers) {
            totals.entry(*one).or_default().add(worker);
        }
    }
    totals
}

impl Observer for Sides<'_> {
    fn start_at(&mut self, now: Nanos) -> Nanos {
        // What only makes targets ready for a run waits for nobody.
        if self.so_far.is_some() { self.watcher.start_at(now, &self.targets.time) } else { now }
    }

    fn begun(&mut self, late: Nanos) {
        if self.so_far.is_some() {
            self.watcher.begun(late);
        }
    }

    fn sample(&mut self, progress: &Progress) {
        let at = progress.elapsed.since(self.warmup);
        let is_measured = self.before.is_some() && self.after.is_none();
        if !is_measured || !self.looks.iter().any(|looks| looks.is_due(at)) {
            return;
        }
        let mut totals = totals_by_use(self.span.posts, progress);
        let storage = read_storage(self.targets, self.span.number, |beneath| beneath.watch.read());
        for ((place, one), looks) in self.targets.of_span(self.span.number).zip(&mut self.looks) {
            let storage = storage.get(&one.beneath).and_then(|read| read.as_ref().ok());
            looks.add(at, &totals.remove(&place).unwrap_or_default(), storage);
        }
    }

    fn look(&mut self, progress: &Progress) {
        let (targets, number, posts) = (self.targets, self.span.number, self.span.posts);
        read_storage(targets, number, Beneath::follow);
        let now = || {
            let mut totals = totals_by_use(posts, progress);
            let storage = read_storage(targets, number, |beneath| beneath.watch.read());
            let uses = targets.of_span(number).map(|(place, one)| TargetNow {
                name: one.name.clone(),
                application: totals.remove(&place).unwrap_or_default(),
                storage: storage.get(&one.beneath).and_then(|read| read.clone().ok()),
                shares_devices: targets.shares_devices(one),
            });
            uses.collect()
        };
        self.watcher.progress(progress, &now);
    }

    fn window_begins(&mut self, warmup: Nanos, settled: bool) {
        self.before = Some(self.read());
        (self.warmup, self.settled) = (warmup, settled);
        self.watcher.phase(self.span.number, &Phase::Measuring, self.duration);
    }

    fn window_ends(&mut self) {
        self.after = Some(self.read());
        if self.cooldown > Nanos::ZERO {
            self.watcher.phase(self.span.number, &Phase::CoolingDown, Some(self.cooldown));
        }
    }

    fn wants_figures(&mut self) -> bool {
        let is_measuring = self.before.is_some() && self.after.is_none();
        let is_due = is_measuring && self.so_far.as_mut().is_some_and(|so_far| so_far.outlet.is_due());
        self.is_recorded |= is_due;
        is_due || (is_measuring && self.so_far.is_some() && self.watcher.wants_figures())
    }

    fn figures(&mut self, teams: Vec<TeamOutcome>) {
        let mut result = self.result(Some(&self.read()));
        let first_use = self.targets.of_span(self.span.number).next().map_or(0, |(index, _)| index);
        take_in(&mut result, teams, self.span, first_use);
        self.watcher.figures(&result);
        let looks = vec![(result.window, self.looks.clone())];
        let ran = Ran { result, ended: Ended::Interrupted, settled: self.settled, read_back: None, looks };
        if let Some(so_far) = self.so_far.as_ref().filter(|_| std::mem::take(&mut self.is_recorded)) {
            so_far.send(ran);
        }
    }
}
