//! An observation, from its first event to its document.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plumb_block::{Clock, DeviceCounters, Nanos, Result, StorageCounters as _, StorageSnapshot, in_one_line};
use plumb_linux::BlockCounters;
use plumb_linux::thread::cpu_times;
use plumb_measure::storage::delta;
use plumb_report::document::ObservationDocument;
use plumb_report::document::observation::{
    BucketCount, ObservationCost, ObservedDevice, ObservedSync, Source, WritebackError,
};

use crate::counted::CounterReadings;
use crate::event::Request;
use crate::fold::{Fold, Sink, SoFar};
use crate::live::Meter;
use crate::observer::{FinishedDevice, Observer};
use crate::processes::{self, LiveProcesses};
use crate::target::Target;
use crate::tracer::Tracer;

/// Interval at which events are fetched.
pub(crate) const READ_EVERY: Duration = Duration::from_millis(50);
/// Interval at which a continuous observation fetches events: frequent wake-ups cost more than a later
/// figure.
const READ_LIVE_EVERY: Duration = Duration::from_millis(200);
/// Number of events per second from which on they are fetched as often as for a recording: the buffer of one
/// processor holds the events of half a second at this rate.
const BUSY_RATE: f64 = 100_000.0;

/// Function that stores a request with its time since the start.
pub type Keep<'a> = dyn FnMut(Nanos, &Request) -> io::Result<()> + 'a;

/// Options of an observation.
pub struct Options<'a> {
    /// Duration of the observation.
    pub duration: Nanos,
    /// True if an observation that is stopped early still counts as complete.
    pub may_end_early: bool,
    /// True if the calls that make files durable are observed.
    pub syncs: bool,
    /// True if only counters are read.
    pub counters_only: bool,
    /// Callback for each request of the first device, with its time since the start. The first device is the
    /// topmost one: the devices below it would show each request again.
    pub requests: Option<&'a mut Keep<'a>>,
    /// Meter that counts the same events, for the lines of slow events.
    pub meter: Option<&'a Mutex<Meter>>,
}

/// Meter that several threads use.
struct SharedMeter<'a>(&'a Mutex<Meter>);

impl SharedMeter<'_> {
    fn with<T>(&self, use_it: impl FnOnce(&mut Meter) -> T) -> T {
        // Counts stay correct even if another thread panicked.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Environment of an observation.
pub struct Surroundings<'a> {
    /// Clock of the counters.
    pub clock: &'a Arc<dyn Clock>,
    /// Clock of the events: the kernel's monotonic clock.
    pub now: &'a dyn Fn() -> Nanos,
    /// Flag that becomes true when the observation must end early.
    pub stop: &'a AtomicBool,
    /// Callback that receives the progress, and may read the results so far.
    pub progress: &'a mut dyn FnMut(Nanos, SoFar, &mut Look<'_>),
    /// Callback that receives failed writes that the page cache had accepted, before the progress.
    pub lost: &'a mut LostWrite<'a>,
}

/// Callback that receives a file when a write that the page cache had accepted failed for the first time, or
/// for the first time since a report.
pub type LostWrite<'a> = dyn FnMut(&WritebackError) + 'a;

/// Function that returns the figures of the devices so far, and the syncs by process.
pub type Look<'a> = dyn FnMut() -> (Vec<ObservedDevice>, Vec<ObservedSync>) + 'a;

/// Observes `target`. The document states which parts could not be observed; the facts of the run
/// (environment, directory) are left empty.
///
/// # Errors
/// Fails if the counters of the devices cannot be read, or events can no longer be read.
pub fn observe(
    target: &Target,
    options: Options<'_>,
    around: Surroundings<'_>,
) -> Result<ObservationDocument> {
    let before_cpu = cpu_times();
    let process = target.process.and_then(processes::io);
    let mut document = match tracer(target, &options) {
        Ok(tracer) => by_events(target, tracer, options, around)?,
        Err(why) => by_counters(target, &options, around, why)?,
    };
    ObservationDocument::SCHEMA.clone_into(&mut document.schema);
    level(&document).clone_into(&mut document.level);
    document.target.clone_from(&target.shown);
    document.notes.splice(0..0, target.notes.iter().cloned());
    document.process = match (process, target.process) {
        (Some(before), Some(number)) => {
            let after = processes::io(number);
            if after.is_none() {
                document.notes.push(format!("Process {number} ended while it was observed."));
            }
            after.map(|after| processes::io_since(&before, after))
        }
        _ => None,
    };
    let after_cpu = cpu_times();
    let spent = (after_cpu.user + after_cpu.system).since(before_cpu.user + before_cpu.system);
    document.cost.cpu_seconds = spent.as_secs_f64();
    document.cost.cpu_share = spent.as_secs_f64() / f64::max(document.seconds, 1e-9);
    in_order(target, &mut document.devices);
    document.headline = crate::headline::from_document(&document);
    Ok(document)
}

/// Returns the level of an observation, which depends on lost writes alone.
fn level(document: &ObservationDocument) -> &'static str {
    match &document.writeback_errors {
        Some(errors) if errors.iter().any(|error| !error.reported) => "danger",
        Some(errors) if !errors.is_empty() => "warning",
        _ => "none",
    }
}

/// Puts the busiest device first if all disks are observed; otherwise the devices directly below the target
/// stay first.
fn in_order(target: &Target, devices: &mut [ObservedDevice]) {
    if target.is_all() {
        devices.sort_by_key(|device| std::cmp::Reverse(device.requests()));
    }
}

/// Returns a tracer, or the reason why tracing is not possible.
fn tracer(target: &Target, options: &Options<'_>) -> std::result::Result<Tracer, String> {
    if options.counters_only {
        return Err("--counters".to_owned());
    }
    Tracer::prepare(&target.devices, options.syncs).map_err(|error| in_one_line(&error))
}

/// Reads the counters of the devices. If one device is gone, all are unknown.
fn snapshot(target: &Target, clock: &Arc<dyn Clock>) -> Result<StorageSnapshot> {
    let names = target.devices.iter().map(|device| device.name.clone()).collect();
    BlockCounters::new(names, Arc::clone(clock)).read()
}

/// Events of a tracer, with their observer and an optional meter.
struct TracedObservation<'a> {
    tracer: Tracer,
    observer: Observer,
    processes: LiveProcesses,
    meter: Option<SharedMeter<'a>>,
}

impl TracedObservation<'_> {
    /// Reads, at the time `at`, the events before `until`. `arrived` is called for each request that arrives.
    fn read(&mut self, at: Nanos, until: Nanos, mut arrived: impl FnMut(Nanos, &Request)) -> Result<()> {
        let Self { tracer, observer, processes, meter } = self;
        // The loss is handled first: a request from before it must not end in an event after it.
        let lost = tracer.fetch()?;
        let mut all = |mut beside: Option<&mut Meter>| {
            observer.lost(at, lost, beside.as_deref_mut().map(|meter| meter as &mut dyn Sink));
            for event in tracer.before(until) {
                let beside = beside.as_deref_mut().map(|meter| meter as &mut dyn Sink);
                observer.take(event, processes, &mut arrived, beside);
            }
        };
        match meter {
            Some(meter) => meter.with(|meter| all(Some(meter))),
            None => all(None),
        }
        Ok(())
    }

    /// Returns the document of the observation from `start` to `end`, with the kernel's counters `counted`
    /// for that time.
    fn document(
        &mut self,
        start: Nanos,
        end: Nanos,
        counted: Option<&[DeviceCounters]>,
    ) -> ObservationDocument {
        let (devices, syncs) = self.observer.finish(start, end);
        let so_far = self.observer.so_far();
        let (seconds, is_partial) = (end.since(start).as_secs_f64(), so_far.lost > 0);
        let with_counters = |finished: FinishedDevice| {
            let own = counted.into_iter().flatten().find(|of| of.name == finished.device.name).cloned();
            finished.with_counters(own, is_partial, seconds)
        };
        let sees_errors = self.tracer.sees_writeback_errors;
        let errors = sees_errors.then(|| self.observer.writeback_errors(start, &mut self.processes));
        let unnamed = self.observer.writeback_errors_left_out();
        let sync_latency = self.observer.sync_latency();
        let notes = (unnamed > 0)
            .then(|| format!("Failed writes to further files, which are not named here: {unnamed}."));
        ObservationDocument {
            seconds,
            source: Source::Events,
            devices: devices.into_iter().map(with_counters).collect(),
            writeback_errors: errors,
            syncs: self.tracer.no_syncs.is_none().then_some(syncs),
            sync_latency: sync_latency.summary(),
            sync_latency_buckets: BucketCount::of_histogram(&sync_latency),
            syncs_unknown_because: self.tracer.no_syncs.clone(),
            cost: ObservationCost {
                events: so_far.events,
                events_lost: so_far.lost,
                ..ObservationCost::default()
            },
            notes: notes.into_iter().collect(),
            ..ObservationDocument::default()
        }
    }
}

fn by_events(
    target: &Target,
    tracer: Tracer,
    mut options: Options<'_>,
    around: Surroundings<'_>,
) -> Result<ObservationDocument> {
    let Surroundings { clock, now, stop, progress, lost } = around;
    let before = snapshot(target, clock)?;
    let start = now();
    tracer.turn(true)?;
    let scope = target.scope.clone();
    let observer = Observer::new(target.devices.clone(), scope, std::process::id(), start, options.duration);
    let meter = options.meter.map(SharedMeter);
    let mut tracing = TracedObservation { tracer, observer, processes: LiveProcesses::default(), meter };
    let mut not_kept = None;
    let kept = target.devices.first();
    let mut arrived = |at: Nanos, request: &Request| {
        let is_kept = not_kept.is_none() && kept.is_some_and(|device| device.number == request.device);
        let keep = options.requests.as_mut().filter(|_| is_kept);
        if let Some(Err(error)) = keep.map(|keep| keep(at.since(start), request)) {
            not_kept = Some(error);
        }
    };
    progress(Nanos::ZERO, SoFar::default(), &mut Default::default);
    let mut is_whole = false;
    while !is_whole && !stop.load(Ordering::Acquire) {
        std::thread::sleep(READ_EVERY.min(Duration::from_nanos((start + options.duration).since(now()).0)));
        let at = now();
        is_whole = at.since(start) >= options.duration;
        tracing.read(at, at, &mut arrived)?;
        tracing.observer.take_writeback_errors(start, &mut tracing.processes).iter().for_each(&mut *lost);
        tracing.processes.refresh();
        let observer = &mut tracing.observer;
        progress(at.since(start), observer.so_far(), &mut || {
            let (devices, syncs) = observer.finish(start, at);
            let mut devices: Vec<_> = devices.into_iter().map(|finished| finished.device).collect();
            in_order(target, &mut devices);
            (devices, syncs)
        });
    }
    tracing.tracer.turn(false)?;
    let end = now();
    let after = snapshot(target, clock);
    tracing.read(end, Nanos(u64::MAX), &mut arrived)?;
    let counted = after.ok().and_then(|after| delta(&before, &after).ok());
    let mut document = tracing.document(start, end, counted.as_deref());
    document.complete = is_whole || options.may_end_early;
    document.incomplete_because = (!document.complete).then(|| "interrupted".to_owned());
    if options.requests.is_some() {
        document.notes.extend(notes_on_requests(target, not_kept));
    }
    Ok(document)
}

/// Environment of a continuous observation.
pub struct LiveSurroundings<'a> {
    /// Clock of the events: the kernel's monotonic clock.
    pub now: &'a dyn Fn() -> Nanos,
    /// Flag that becomes true when the observation must end.
    pub stop: &'a AtomicBool,
    /// Function called after each read of events, with the time since the start and the counts so far.
    pub progress: &'a mut dyn FnMut(Nanos, SoFar),
    /// Callback that receives failed writes that the page cache had accepted.
    pub lost: &'a mut LostWrite<'a>,
}

/// Observes `target` until it is stopped, and counts the events in `meter`.
///
/// # Errors
/// Fails if tracing is not possible, or no longer possible.
pub fn observe_live(
    target: &Target,
    syncs: bool,
    meter: &Mutex<Meter>,
    around: LiveSurroundings<'_>,
) -> Result<()> {
    let LiveSurroundings { now, stop, progress, lost: lost_write } = around;
    let meter = SharedMeter(meter);
    let mut tracer = Tracer::prepare(&target.devices, syncs)?;
    let mut processes = LiveProcesses::default();
    let mut fold = Fold::new(&target.devices, target.scope.clone(), std::process::id());
    let start = now();
    tracer.turn(true)?;
    progress(Nanos::ZERO, SoFar::default());
    let mut pause = READ_LIVE_EVERY;
    while !stop.load(Ordering::Acquire) {
        std::thread::sleep(pause);
        let at = now();
        let known = fold.so_far.events;
        let lost = tracer.fetch()?;
        meter.with(|meter| {
            fold.lost(at, lost, meter);
            tracer.before(at).for_each(|event| fold.take(event, &mut processes, meter));
            meter.put_unreported(fold.unreported());
        });
        fold.take_writeback_errors(start, &mut processes).iter().for_each(&mut *lost_write);
        let is_busy = (fold.so_far.events - known) as f64 > BUSY_RATE * pause.as_secs_f64();
        pause = if is_busy { READ_EVERY } else { READ_LIVE_EVERY };
        processes.refresh();
        progress(at.since(start), fold.so_far);
    }
    tracer.turn(false)
}

/// Returns the notes on requests that had to be stored: their device, and why some are missing.
fn notes_on_requests(target: &Target, not_kept: Option<io::Error>) -> Vec<String> {
    let first = target.devices.first().filter(|_| target.devices.len() > 1);
    let alone = first.map(|device| format!("Only the requests of {} were kept.", device.name));
    let failed = not_kept.map(|error| format!("Not all requests were kept: {error}."));
    alone.into_iter().chain(failed).collect()
}

fn by_counters(
    target: &Target,
    options: &Options<'_>,
    around: Surroundings<'_>,
    why: String,
) -> Result<ObservationDocument> {
    let Surroundings { clock, stop, progress, .. } = around;
    let before = snapshot(target, clock)?;
    let mut counted = CounterReadings::new(before);
    progress(Nanos::ZERO, SoFar::default(), &mut Default::default);
    let mut is_whole = false;
    while !is_whole && !stop.load(Ordering::Acquire) {
        std::thread::sleep(READ_EVERY);
        let elapsed = clock.now().since(counted.start());
        is_whole = elapsed >= options.duration;
        if !is_whole && counted.is_due(clock.now()) {
            counted.take(snapshot(target, clock)?)?;
        }
        progress(elapsed, SoFar::default(), &mut || {
            let mut devices = counted.finish(&target.devices);
            in_order(target, &mut devices);
            (devices, Vec::new())
        });
    }
    // If the end came during the display of progress, the activity since the last reading is still missing.
    counted.take(snapshot(target, clock)?)?;
    let interrupted = (!is_whole && !options.may_end_early).then(|| "interrupted".to_owned());
    let not_kept = options.requests.is_some().then(|| format!("no request was recorded: {why}"));
    let missing: Vec<String> = interrupted.into_iter().chain(not_kept).collect();
    Ok(ObservationDocument {
        seconds: counted.length().as_secs_f64(),
        source: Source::Counters,
        source_because: Some(why.clone()),
        devices: counted.finish(&target.devices),
        syncs_unknown_because: Some(why),
        complete: missing.is_empty(),
        incomplete_because: (!missing.is_empty()).then(|| missing.join("; ")),
        ..ObservationDocument::default()
    })
}

#[cfg(test)]
mod tests {
    use plumb_block::RealClock;

    use super::*;
    use crate::syncs::Scope;

    #[test]
    fn of_all_disks_the_busiest_is_first_and_of_a_path_the_nearest() {
        let device = |name: &str, flushes| ObservedDevice {
            name: name.to_owned(),
            flushes: Some(flushes),
            ..ObservedDevice::default()
        };
        let target = |scope| Target {
            shown: String::new(),
            devices: Vec::new(),
            scope,
            process: None,
            notes: Vec::new(),
        };
        let order = |scope| {
            let mut devices = [device("loop0", 0), device("sda", 5), device("vda", 90)];
            in_order(&target(scope), &mut devices);
            devices.map(|device| device.name)
        };
        assert_eq!(order(Scope::All), ["vda", "sda", "loop0"]);
        assert_eq!(order(Scope::Process(1)), ["loop0", "sda", "vda"]);
    }

    fn by_counters_for<'a>(duration: Nanos) -> Options<'a> {
        Options {
            duration,
            may_end_early: false,
            syncs: true,
            counters_only: true,
            requests: None,
            meter: None,
        }
    }

    fn observed<'a>(requests: Option<&'a mut Keep<'a>>) -> (bool, Option<String>) {
        observed_with(Options { requests, ..by_counters_for(Nanos(1)) }, false)
    }

    /// Returns true if an observation by counters is complete, and otherwise the reason.
    fn observed_with(options: Options<'_>, is_stopped: bool) -> (bool, Option<String>) {
        let target = Target {
            shown: "nothing".to_owned(),
            devices: Vec::new(),
            scope: Scope::All,
            process: None,
            notes: Vec::new(),
        };
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let around = Surroundings {
            clock: &clock,
            now: &|| Nanos::ZERO,
            stop: &AtomicBool::new(is_stopped),
            progress: &mut |_, _, _| {},
            lost: &mut |_| {},
        };
        let document = observe(&target, options, around).unwrap();
        (document.complete, document.incomplete_because)
    }

    #[test]
    fn an_observation_that_is_stopped_is_complete_if_no_duration_was_given() {
        for (may_end_early, why) in [(true, None), (false, Some("interrupted"))] {
            let options = Options { may_end_early, ..by_counters_for(Nanos(u64::MAX)) };
            assert_eq!(observed_with(options, true), (may_end_early, why.map(str::to_owned)));
        }
    }

    #[test]
    fn requests_that_could_not_be_recorded_are_told() {
        assert_eq!(observed(None), (true, None));
        let (complete, why) = observed(Some(&mut |_, _| Ok(())));
        let is_told = why.as_deref().is_some_and(|why| why.starts_with("no request was recorded"));
        assert!(!complete && is_told, "{why:?}");
    }
}
