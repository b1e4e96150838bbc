//! One span: its teams run between two readings of the storage's counters.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use plumb_block::{Bytes, Nanos};
use plumb_load::{
    CpuUse, Event, Fault, Ledger, Observer, Part, Phase, Progress, RunOptions, SpanResult, TargetNow,
    TargetResult, TeamOutcome, ThreadResult, Totals, run_teams,
};
use plumb_workload::{Durability, Job, Span, Warmup};

use crate::counters::{Beneath, CounterReading};
use crate::cpu::{self, Processors};
use crate::error::TrialError;
use crate::interim_record::InterimRecord;
use crate::request::Context;
use crate::span_run::{FinishedSpan, SpanEnd};
use crate::target_series::TargetSeries;
use crate::targets::{Place, Targets};
use crate::teams::{SpanTeams, ThreadPlan, Variation, make_teams};
use crate::verify::verify;

/// Everything needed to run a span: [`run_span`](Self::run_span).
pub(crate) struct SpanRunner<'a> {
    /// Open targets, including those of the span.
    pub(crate) targets: &'a Targets,
    /// Clock, and the stop flag.
    pub(crate) context: &'a Context<'a>,
    /// Observer of the run.
    pub(crate) observer: &'a mut dyn Observer,
    /// Receiver of interim measurements while a span runs.
    pub(crate) interim: InterimRecord,
}

impl SpanRunner<'_> {
    /// Runs the span with this number.
    ///
    /// # Errors
    /// If it could not be started, or its writes could not be read back.
    pub(crate) fn run(
        &mut self,
        number: usize,
        span: &Span,
        variation: Variation,
    ) -> Result<FinishedSpan, TrialError> {
        let variation = Variation { shows_latency: self.observer.wants_latency(), ..variation };
        let program = self.targets.program_of(number).zip(span.jobs.first());
        let SpanTeams { teams, plans } = match program {
            Some(((place, _), _)) => SpanTeams::for_program(place),
            None => make_teams(self.targets, number, span, variation)?,
        };
        let duration = span.jobs.iter().map(|job| job.workload.stop.duration).max().flatten();
        let options = RunOptions {
            time: self.targets.time.clone(),
            stop: self.context.stop,
            warmup: span.warmup,
            duration,
            cooldown: span.cooldown,
        };
        let interim = (!variation.prepares).then_some(&mut self.interim);
        let of_span = OfSpan { number, jobs: &span.jobs, plans: &plans };
        let mut span_observer = SpanObserver::new(self.targets, of_span, &options, self.observer, interim);
        let ran = match program {
            Some(((_, program), job)) => {
                let Context { clock, stop, .. } = self.context;
                Ok(program.run(job, variation.round, &***clock, stop, &mut span_observer)?)
            }
            None => run_teams(teams, &options, &mut span_observer),
        };
        let (teams, ended) = match ran {
            Ok(teams) if self.context.stop.load(Ordering::Relaxed) => (teams, SpanEnd::Interrupted),
            Ok(teams) => (teams, SpanEnd::Complete),
            Err(failure) => (failure.teams, SpanEnd::Failed(failure.fault)),
        };
        let teams = span_observer.with_cpu(teams, span_observer.after.as_ref());
        let (mut result, settled, series) = span_observer.finish();
        let mut ledgers = take_in(&mut result, teams, of_span, self.first_target(number));
        let read_back = match ledgers.is_empty() {
            true => None,
            false => {
                self.spread_losses(&mut ledgers, &ended);
                Some(self.read_back(number, ledgers, &mut result)?)
            }
        };
        Ok(FinishedSpan { series: vec![(result.window, series)], result, ended, settled, read_back })
    }

    /// Returns the index of a span's first target among all.
    fn first_target(&self, number: usize) -> usize {
        self.targets.places(number).next().map_or(0, |(index, _)| index)
    }

    /// Propagates a power loss or silence seen by one worker to all workers on the same storage.
    fn spread_losses(&self, ledgers: &mut [KeptLedger], ended: &SpanEnd) {
        let is_silence = matches!(
            ended,
            SpanEnd::Failed(Fault::Unanswered { .. } | Fault::Hung { .. } | Fault::Queue { .. })
        );
        let beneath = |kept: &KeptLedger| self.targets.job_targets[kept.one].beneath;
        let lost: Vec<usize> =
            ledgers.iter().filter(|kept| kept.ledger.has_lost_power()).map(beneath).collect();
        for kept in ledgers {
            if is_silence || lost.contains(&beneath(kept)) {
                kept.ledger.lose_power();
            }
        }
    }

    /// Reads back the writes of each worker. Returns true if that was completed.
    fn read_back(
        &mut self,
        number: usize,
        ledgers: Vec<KeptLedger>,
        result: &mut SpanResult,
    ) -> Result<bool, TrialError> {
        self.observer.phase(number, &Phase::Verifying, None);
        let mut done = Bytes(0);
        let mut whole = true;
        for kept in ledgers {
            let one = &self.targets.job_targets[kept.one];
            let mut last = Bytes(0);
            let observer = &mut *self.observer;
            let found = verify(one, kept.ledger, self.context.clock, self.context.stop, &mut |read| {
                last = read;
                observer.on(&Event::Bytes(done + read));
            })?;
            done += last;
            whole &= found.whole;
            result.threads[kept.thread].parts[kept.part].outcome.verified = Some(found.verified);
        }
        Ok(whole)
    }
}

/// Ledger, with its worker and target.
struct KeptLedger {
    thread: usize,
    part: usize,
    one: usize,
    ledger: Ledger,
}

/// Span, and the role of each of its threads.
#[derive(Clone, Copy)]
struct OfSpan<'a> {
    /// Index of the span in the scenario.
    number: usize,
    jobs: &'a [Job],
    plans: &'a [ThreadPlan],
}

/// Adds the figures of the teams to `result`, and returns the ledgers to verify. If each write is durable on
/// completion, its latency is that of a durable write.
fn take_in(
    result: &mut SpanResult,
    teams: Vec<TeamOutcome>,
    span: OfSpan<'_>,
    first_target: usize,
) -> Vec<KeptLedger> {
    let mut ledgers = Vec::new();
    for (thread, (team, plan)) in teams.into_iter().zip(span.plans).enumerate() {
        let mut parts = Vec::new();
        for (part, (worker, one)) in team.workers.into_iter().zip(&plan.targets).enumerate() {
            let mut outcome = worker.outcome;
            let target = one - first_target;
            let job = result.targets.get(target).and_then(|target| span.jobs.get(target.job));
            if job.is_some_and(|job| job.workload.durability == Durability::EACH_WRITE) {
                outcome.durable = outcome.write.latency.clone();
            }
            result.window = result.window.max(outcome.length);
            parts.push(Part { target, outcome });
            ledgers.extend(worker.ledger.map(|ledger| KeptLedger { thread, part, one: *one, ledger }));
        }
        result.threads.push(ThreadResult { job: plan.job, cpu: team.cpu, parts });
    }
    ledgers
}

/// Observer of a span that reads the counters of the storage when its window begins and ends.
struct SpanObserver<'a> {
    targets: &'a Targets,
    span: OfSpan<'a>,
    observer: &'a mut dyn Observer,
    interim: Option<&'a mut InterimRecord>,
    /// True if the last requested figures are to be recorded.
    is_recorded: bool,
    duration: Option<Nanos>,
    cooldown: Nanos,
    before: Option<Reading>,
    after: Option<Reading>,
    warmup: Nanos,
    settled: bool,
    series: Vec<TargetSeries>,
}

/// Counters at one moment.
struct Reading {
    storage: Storage<CounterReading>,
    processors: Processors,
    /// Processor time of this process, which runs the program.
    process: Option<CpuUse>,
}

/// Readings of the storage below targets, by its index, once for all targets on it.
type Storage<T> = HashMap<usize, T>;

/// Reads the storage below the targets of a span.
fn read_storage<T>(targets: &Targets, span: usize, read: impl Fn(&Beneath) -> T) -> Storage<T> {
    let mut storage = Storage::new();
    for (_, place) in targets.places(span) {
        storage.entry(place.beneath).or_insert_with(|| read(&targets.beneath[place.beneath]));
    }
    storage
}

impl<'a> SpanObserver<'a> {
    fn new(
        targets: &'a Targets,
        span: OfSpan<'a>,
        options: &RunOptions<'_>,
        observer: &'a mut dyn Observer,
        interim: Option<&'a mut InterimRecord>,
    ) -> Self {
        let begins_at_once = options.warmup == Warmup::For(Nanos::ZERO);
        if !begins_at_once {
            let expected = match options.warmup {
                Warmup::For(warmup) => Some(warmup),
                Warmup::Auto => None,
            };
            observer.phase(span.number, &Phase::WarmingUp, expected);
        }
        Self {
            targets,
            span,
            observer,
            interim,
            is_recorded: false,
            duration: options.duration,
            cooldown: options.cooldown,
            before: None,
            after: None,
            warmup: Nanos::ZERO,
            settled: true,
            series: targets.places(span.number).map(|_| TargetSeries::default()).collect(),
        }
    }

    fn read(&self) -> Reading {
        let at_once = self.targets.is_written_at_once(self.span.number);
        let storage = read_storage(self.targets, self.span.number, |beneath| beneath.count(at_once));
        Reading { storage, processors: cpu::processors(), process: cpu::of_this_process() }
    }

    /// Adds the processor time of a program until `after`, which is that of this process.
    fn with_cpu(&self, mut teams: Vec<TeamOutcome>, after: Option<&Reading>) -> Vec<TeamOutcome> {
        if let (Some(_), [team]) = (self.targets.program_of(self.span.number), &mut teams[..]) {
            let both = self
                .before
                .as_ref()
                .and_then(|before| before.process)
                .zip(after.and_then(|after| after.process));
            team.cpu = both.map(|(before, after)| CpuUse {
                user: after.user.since(before.user),
                system: after.system.since(before.system),
            });
        }
        teams
    }

    /// Returns the results without those of the teams, whether the rate had settled, and the series of each
    /// target.
    fn finish(self) -> (SpanResult, bool, Vec<TargetSeries>) {
        (self.result(self.after.as_ref()), self.settled, self.series)
    }

    /// Returns the results until `after`, without those of the teams.
    fn result(&self, after: Option<&Reading>) -> SpanResult {
        let both = self.before.as_ref().zip(after);
        let side = |place: &Place<'_>| match both {
            Some((before, after)) => {
                let (before, after) = (&before.storage[&place.beneath], &after.storage[&place.beneath]);
                self.targets.beneath[place.beneath].between(before, after)
            }
            None => Err("nothing was measured".to_owned()),
        };
        let targets = self
            .targets
            .places(self.span.number)
            .map(|(_, place)| TargetResult {
                job: place.job,
                name: place.name.to_owned(),
                opened: place.shown.to_owned(),
                size: place.size,
                engine: place.engine.to_owned(),
                storage: side(&place),
            })
            .collect();
        let processors = both.map(|(before, after)| cpu::between(&before.processors, &after.processors));
        let processors = processors.unwrap_or_default();
        SpanResult { warmup: self.warmup, window: Nanos::ZERO, threads: Vec::new(), targets, processors }
    }
}

/// Returns the totals of all workers on each target.
fn totals_by_target(plans: &[ThreadPlan], progress: &Progress) -> HashMap<usize, Totals> {
    let mut totals: HashMap<usize, Totals> = HashMap::new();
    for (plan, workers) in plans.iter().zip(&progress.teams) {
        for (one, worker) in plan.targets.iter().zip(workers) {
            totals.entry(*one).or_default().add(worker);
        }
    }
    totals
}

impl Observer for SpanObserver<'_> {
    fn on(&mut self, event: &Event<'_>) {
        match event {
            // A span that only makes targets ready for a run waits for nobody.
            Event::Ready { .. } | Event::Begun { .. } if self.interim.is_none() => {}
            Event::Phase { phase, expected, .. } => self.observer.phase(self.span.number, phase, *expected),
            Event::WindowBegins { warmup, settled } => self.window_begins(*warmup, *settled),
            Event::WindowEnds => self.window_ends(),
            Event::Sample(progress) => self.sample(progress),
            Event::Progress { progress, .. } => self.progress(progress),
            Event::WantsFigures(answer) => answer.set(self.wants_figures()),
            Event::TeamFigures(teams) => self.figures(teams.take()),
            _ => self.observer.on(event),
        }
    }
}

impl SpanObserver<'_> {
    fn sample(&mut self, progress: &Progress) {
        let at = progress.elapsed.since(self.warmup);
        let is_measured = self.before.is_some() && self.after.is_none();
        if !is_measured || !self.series.iter().any(|series| series.is_due(at)) {
            return;
        }
        let mut totals = totals_by_target(self.span.plans, progress);
        let storage = read_storage(self.targets, self.span.number, |beneath| beneath.watch.read());
        for ((index, place), series) in self.targets.places(self.span.number).zip(&mut self.series) {
            let storage = storage.get(&place.beneath).and_then(|read| read.as_ref().ok());
            series.add(at, &totals.remove(&index).unwrap_or_default(), storage);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let (targets, number, plans) = (self.targets, self.span.number, self.span.plans);
        read_storage(targets, number, Beneath::follow);
        // Remembered by the target.
        targets.change_of(number);
        let now = || {
            let mut totals = totals_by_target(plans, progress);
            let storage = read_storage(targets, number, |beneath| beneath.watch.read());
            let places = targets.places(number).map(|(index, place)| TargetNow {
                name: place.name.to_owned(),
                application: totals.remove(&index).unwrap_or_default(),
                storage: storage.get(&place.beneath).and_then(|read| read.clone().ok()),
                shares_devices: targets.shares_devices(number, place.beneath),
            });
            places.collect()
        };
        self.observer.on(&Event::Progress { progress, targets: &now });
    }

    fn window_begins(&mut self, warmup: Nanos, settled: bool) {
        self.before = Some(self.read());
        (self.warmup, self.settled) = (warmup, settled);
        self.observer.phase(self.span.number, &Phase::Measuring, self.duration);
    }

    fn window_ends(&mut self) {
        self.after = Some(self.read());
        if self.cooldown > Nanos::ZERO {
            self.observer.phase(self.span.number, &Phase::CoolingDown, Some(self.cooldown));
        }
    }

    fn wants_figures(&mut self) -> bool {
        let is_measuring = self.before.is_some() && self.after.is_none();
        let is_due = is_measuring && self.interim.as_mut().is_some_and(|interim| interim.sender.is_due());
        self.is_recorded |= is_due;
        is_due || (is_measuring && self.interim.is_some() && self.observer.wants_figures())
    }

    fn figures(&mut self, teams: Vec<TeamOutcome>) {
        let now = self.read();
        let teams = self.with_cpu(teams, Some(&now));
        let mut result = self.result(Some(&now));
        let first_target = self.targets.places(self.span.number).next().map_or(0, |(index, _)| index);
        take_in(&mut result, teams, self.span, first_target);
        self.observer.on(&Event::Figures(&result));
        let series = vec![(result.window, self.series.clone())];
        let ran = FinishedSpan {
            result,
            ended: SpanEnd::Interrupted,
            settled: self.settled,
            read_back: None,
            series,
        };
        if let Some(interim) = self.interim.as_ref().filter(|_| std::mem::take(&mut self.is_recorded)) {
            interim.send(ran);
        }
    }
}
