//! Targets of a scenario: all are checked and opened before anything is written, and new files are filled.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use plumb_block::{Bytes, Caching, Clock, FailureKind, FlushCall, Nanos, in_one_line};
use plumb_linux::Filling;
use plumb_linux::range_lock::LockKind;
use plumb_load::{Event, LATENCY_EXCESS_MAX, Observer, Phase};
use plumb_measure::WriteSizes;
use plumb_path::facts::Units;
use plumb_targets::{Intent, Kind, Name, OpenedTarget, Route, TargetKind, TargetRequest, Time, open_all};
use plumb_workload::{
    ByteRange, Job, Layout, RecordedEvents, Replays, Scenario, Span, Workload, common_unit,
};

use crate::counters::{Beneath, SurveyedPath, survey_of};
use crate::error::TrialError;
use crate::open_options;
use crate::program::ProgramUse;
use crate::request::{Context, Request};
use crate::sharing::{self, Sharer};

/// Open target of a job.
pub(crate) struct JobTarget {
    /// Number of the span that uses the target.
    pub(crate) span: usize,
    /// Number of the job in the span.
    pub(crate) job: usize,
    /// Name as typed.
    pub(crate) name: String,
    /// Target as opened.
    pub(crate) opened: OpenedTarget,
    /// Write path below the target.
    pub(crate) surveyed: Arc<SurveyedPath>,
    /// Index of the storage below in [`Targets::beneath`].
    pub(crate) beneath: usize,
    /// Events of the trace that the job replays on the target, if any.
    pub(crate) recorded: Option<RecordedEvents>,
    /// True if its job writes to it.
    pub(crate) is_written: bool,
    /// Length of the range that is in the page cache, if it was loaded. The rest is not used.
    pub(crate) loaded: OnceLock<Bytes>,
}

/// Target, or the directory of a program, with its application and storage side.
pub(crate) struct Place<'a> {
    /// Number of its job in the span.
    pub(crate) job: usize,
    /// Name as typed.
    pub(crate) name: &'a str,
    /// Name as opened.
    pub(crate) shown: &'a str,
    pub(crate) size: Bytes,
    /// Interface for requests, or the name of the program.
    pub(crate) engine: &'a str,
    /// Index of the storage below in [`Targets::beneath`].
    pub(crate) beneath: usize,
}

impl JobTarget {
    fn place(&self) -> Place<'_> {
        let Self { job, name, opened, beneath, .. } = self;
        let engine = opened.route.name();
        Place { job: *job, name, shown: &opened.shown, size: opened.size, engine, beneath: *beneath }
    }

    /// Returns the workload of the job, or the one that represents a trace.
    pub(crate) fn workload_of(&self, job: &Job) -> Workload {
        let stand_in = self.recorded.as_ref().map(|recorded| recorded.stand_in(&job.workload));
        stand_in.unwrap_or_else(|| job.workload.clone())
    }

    /// Limits a workload to the target as [`within`] does, and to the loaded part.
    ///
    /// # Errors
    /// If the range begins or ends past the target.
    pub(crate) fn within(&self, asked: &Workload) -> Result<Workload, TrialError> {
        let whole = within(&self.opened, asked)?;
        let length = self.loaded.get().map_or(whole.range.length, |loaded| whole.range.length.min(*loaded));
        Ok(Workload { range: ByteRange { length, ..whole.range }, ..whole })
    }
}

/// All targets of a scenario, open.
pub(crate) struct Targets {
    pub(crate) job_targets: Vec<JobTarget>,
    programs: Vec<ProgramUse>,
    pub(crate) beneath: Vec<Beneath>,
    /// Spans and indices in `beneath` whose counters several targets share.
    pub(crate) shared: HashSet<(usize, usize)>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// Clock of all targets.
    pub(crate) time: Time,
    /// Spans that cannot be run here, with the reasons.
    pub(crate) left_out: HashMap<usize, String>,
    /// Spans with writes that may stay in the page cache indefinitely.
    written_back: HashSet<usize>,
}

impl Targets {
    /// Opens every target of `request`, or none, and fills new files. With `only`, the targets of the span
    /// with that number.
    ///
    /// # Errors
    /// The first refusal or failure. New files are removed then.
    pub(crate) fn open(
        request: &Request,
        only: Option<usize>,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Self, TrialError> {
        let numbers = 0..request.scenario.spans.len();
        let others = numbers.filter(|number| only.is_some_and(|only| only != *number));
        let left_out = others.map(|number| (number, "its targets are not open".to_owned())).collect();
        Self::open_some(request, context, observer, left_out)
    }

    /// Opens the targets as [`open`](Self::open) does, but leaves out spans with options that the file system
    /// does not support.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub(crate) fn open_supported(
        request: &Request,
        context: &Context<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Self, TrialError> {
        match Self::open(request, None, context, observer) {
            Err(TrialError::Target(error)) if error.kind() == Kind::Unsupported => {}
            opened => return opened,
        }
        let time = time_of(&request.scenario, &HashMap::new(), context.clock)?;
        let mut left_out = HashMap::new();
        for (number, span) in request.scenario.spans.iter().enumerate() {
            let wanted = span
                .jobs
                .iter()
                .flat_map(|job| job.targets.iter().map(move |one| wanted(span, job, &one.name, None)))
                .collect::<Result<Vec<_>, _>>()?;
            match open_all(&wanted, &request.permission, &time) {
                Err(error) if error.kind() == Kind::Unsupported => {
                    left_out.insert(number, in_one_line(&error));
                }
                Err(error) => return Err(error.into()),
                // Nothing was written.
                Ok(mut opened) => opened.iter_mut().try_for_each(OpenedTarget::remove_if_made)?,
            }
        }
        Self::open_some(request, context, observer, left_out)
    }

    fn open_some(
        request: &Request,
        context: &Context<'_>,
        observer: &mut dyn Observer,
        left_out: HashMap<usize, String>,
    ) -> Result<Self, TrialError> {
        let Request { scenario, replays, permission, .. } = request;
        scenario.validate()?;
        let time = &time_of(scenario, &left_out, context.clock)?;
        let spans = scenario.spans.iter().enumerate().filter(|(number, _)| !left_out.contains_key(number));
        let jobs = spans.flat_map(|(number, span)| {
            span.jobs.iter().enumerate().map(move |(job, what)| (number, job, what))
        });
        let (programs, jobs): (Vec<_>, Vec<_>) = jobs.partition(|(_, _, what)| what.program.is_some());
        let places: Vec<(usize, usize, &Job, &str)> = jobs
            .into_iter()
            .flat_map(|(span, job, what)| what.targets.iter().map(move |one| (span, job, what, &*one.name)))
            .collect();
        let recorded = recorded_of(&places, replays);
        let wanted = places
            .iter()
            .zip(&recorded)
            .map(|((span, _, job, name), recorded)| {
                wanted(&scenario.spans[*span], job, name, recorded.as_ref())
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut opened = open_all(&wanted, permission, time)?;
        let ready = fits(&opened, &places, &recorded)
            .and_then(|()| fill(&mut opened, &places, observer, context.stop));
        if let Err(error) = ready {
            for made in &mut opened {
                made.remove_if_made()?;
            }
            return Err(error);
        }
        let mut targets = Self {
            job_targets: Vec::new(),
            programs: Vec::new(),
            beneath: Vec::new(),
            shared: HashSet::new(),
            notes: Vec::new(),
            time: time.clone(),
            left_out,
            written_back: written_back(scenario),
        };
        let mut known = KnownStorage::default();
        let placed = opened.into_iter().zip(places).zip(recorded);
        for ((opened, (span, job, what, name)), recorded) in placed {
            targets.remember_notes(&opened, what);
            let (beneath, surveyed) = known.place_of(&opened, time, &mut targets.beneath);
            let (name, loaded) = (name.to_owned(), OnceLock::new());
            let is_written = recorded.as_ref().map_or(what.workload.changes(), RecordedEvents::changes);
            targets.job_targets.push(JobTarget {
                span,
                job,
                name,
                opened,
                surveyed,
                beneath,
                recorded,
                is_written,
                loaded,
            });
        }
        targets.find_shared();
        for (span, _, job) in programs {
            targets.add_program(span, job)?;
        }
        Ok(targets)
    }

    /// Finds targets that share devices.
    fn find_shared(&mut self) {
        let sharers = self.job_targets.iter().map(|one| Sharer {
            span: one.span,
            beneath: one.beneath,
            shown: &one.opened.shown,
            devices: &self.beneath[one.beneath].devices,
        });
        let (shared, said) = sharing::find_shared(&sharers.collect::<Vec<_>>());
        self.shared = shared;
        self.notes.extend(said);
    }

    fn add_program(&mut self, span: usize, job: &Job) -> Result<(), TrialError> {
        if let Some(program) = ProgramUse::of_job(span, job, self.beneath.len())? {
            let mut beneath = Beneath::under(&program.surveyed, &self.time.clock());
            beneath.trace_flushes(None);
            self.beneath.push(beneath);
            self.programs.push(program);
        }
        Ok(())
    }

    /// Returns the index and the program of a span that runs one.
    pub(crate) fn program_of(&self, span: usize) -> Option<(usize, &ProgramUse)> {
        let found = self.programs.iter().enumerate().find(|(_, program)| program.span == span);
        found.map(|(number, program)| (self.job_targets.len() + number, program))
    }

    /// Returns each target of a span, or the directory of its program, with its index.
    pub(crate) fn places(&self, span: usize) -> impl Iterator<Item = (usize, Place<'_>)> {
        let program = self.program_of(span).map(|(index, program)| {
            let ProgramUse { profile, shown, beneath, .. } = program;
            let (size, engine) = (Bytes(0), &*profile.name);
            (index, Place { job: 0, name: shown, shown, size, engine, beneath: *beneath })
        });
        self.of_span(span).map(|(index, one)| (index, one.place())).chain(program)
    }

    /// Returns the write paths below all targets, with the names of the targets.
    pub(crate) fn surveyed(&self) -> impl Iterator<Item = (&str, &Arc<SurveyedPath>)> {
        let found = self.job_targets.iter().map(|one| (&*one.opened.shown, &one.surveyed));
        found.chain(self.programs.iter().map(|program| (&*program.shown, &program.surveyed)))
    }

    /// Returns a description of the change if a file of the span with this number was truncated, removed or
    /// replaced while it ran. To be called regularly, since a truncated file may grow again.
    pub(crate) fn change_of(&self, span: usize) -> Option<&str> {
        self.of_span(span).find_map(|(_, one)| one.opened.change_since_open())
    }

    /// Returns the targets of a span with their indices, those of its first job first.
    pub(crate) fn of_span(&self, span: usize) -> impl Iterator<Item = (usize, &JobTarget)> {
        self.job_targets.iter().enumerate().filter(move |(_, one)| one.span == span)
    }

    /// Returns true if all writes of a span reach the devices soon: they bypass the page cache, or each is
    /// synced.
    pub(crate) fn is_written_at_once(&self, span: usize) -> bool {
        !self.written_back.contains(&span)
    }

    /// Returns true if several targets of `span` share the devices at index `beneath`, whose counters cover
    /// all of them.
    pub(crate) fn shares_devices(&self, span: usize, beneath: usize) -> bool {
        self.shared.contains(&(span, beneath))
    }

    fn remember_notes(&mut self, opened: &OpenedTarget, job: &Job) {
        let mut notes = opened.notes.clone();
        if let (Some(depth_max), depth) = (opened.route.depth_max(), job.workload.depth)
            && depth > depth_max
        {
            let engine = opened.route.name();
            notes.push(format!(
                "{} goes through {engine}, one request at a time: the depth is {depth_max}, not {depth}",
                opened.shown
            ));
        }
        let is_elsewhere = !matches!(opened.route, Route::Kernel(_));
        if is_elsewhere && job.opening.caching != Caching::Direct {
            notes
                .push(format!("{} has no page cache: it is read and written as with --direct", opened.shown));
        }
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Returns the maximum error of latencies; `None` without a target that takes block requests.
    pub(crate) fn latency_excess(&self) -> Option<Nanos> {
        if self.job_targets.is_empty() {
            return None;
        }
        Some(if self.job_targets.iter().any(|one| one.opened.route.batches()) {
            LATENCY_EXCESS_MAX
        } else {
            Nanos::ZERO
        })
    }

    /// Determines how the kernel counts flushes below the files that the scenario writes and the devices that
    /// it flushes, and traces the threads of flushes from then on.
    ///
    /// # Errors
    /// If a flush fails.
    pub(crate) fn calibrate(&mut self, scenario: &Scenario) -> Result<(), TrialError> {
        let mut done = HashSet::new();
        for one in &self.job_targets {
            let workload = one.workload_of(&scenario.spans[one.span].jobs[one.job]);
            // A file system flushes on its own, a device is flushed only on request.
            let is_flushed = match one.opened.kind {
                TargetKind::RegularFile => workload.writes(),
                TargetKind::BlockDevice => workload.writes() && workload.durability.is_any(),
                _ => false,
            };
            if is_flushed && done.insert(one.beneath) {
                let beneath = &mut self.beneath[one.beneath];
                beneath
                    .calibrate(&*one.opened.device)
                    .map_err(|error| TrialError::Flush { target: one.opened.shown.clone(), source: error })?;
            }
        }
        for place in 0..self.beneath.len() {
            if let Some(sizes) = self.write_sizes(scenario, place) {
                self.beneath[place].bound_writes(sizes);
            }
        }
        for one in &self.job_targets {
            if one.workload_of(&scenario.spans[one.span].jobs[one.job]).durability.is_any() {
                // This thread only records.
                self.beneath[one.beneath].trace_flushes(Some(std::process::id()));
            }
        }
        Ok(())
    }

    /// Returns the lengths of the writes that the scenario sends to the storage at index `beneath`; `None` if
    /// the page cache or a recording determines them.
    fn write_sizes(&self, scenario: &Scenario, beneath: usize) -> Option<WriteSizes> {
        // Queues take this much at once (max_sectors_kb). Larger writes may be split anywhere.
        const WHOLE_MAX: Bytes = Bytes::kib(64);
        let found = self.job_targets.iter().filter(|one| one.beneath == beneath);
        let each = found.map(|one| {
            let job = &scenario.spans[one.span].jobs[one.job];
            let is_known = one.recorded.is_none() && !job.opening.caching.is_cached();
            let (min, max) = (job.workload.blocks.write.min(), job.workload.blocks.write.max());
            let min = if max <= WHOLE_MAX { min } else { Bytes(512) };
            is_known.then_some(WriteSizes { min, max })
        });
        let both = |one: Option<WriteSizes>, other: Option<WriteSizes>| {
            let (one, other) = (one?, other?);
            Some(WriteSizes { min: one.min.min(other.min), max: one.max.max(other.max) })
        };
        each.reduce(both).flatten()
    }
}

/// Storage below the targets opened so far. Targets on the same devices share it, so that its counters are
/// read once.
#[derive(Default)]
struct KnownStorage {
    by_name: HashMap<String, (usize, Arc<SurveyedPath>)>,
    by_devices: HashMap<Vec<String>, usize>,
}

impl KnownStorage {
    /// Returns the index of the storage below `opened` in `all`, adding it if it is new, and the path to it.
    fn place_of(
        &mut self,
        opened: &OpenedTarget,
        time: &Time,
        all: &mut Vec<Beneath>,
    ) -> (usize, Arc<SurveyedPath>) {
        let name =
            opened.surveyed_from().map_or_else(|| opened.shown.clone(), |path| path.display().to_string());
        if let Some(known) = self.by_name.get(&name) {
            return known.clone();
        }
        let surveyed = Arc::new(survey_of(opened));
        let beneath = Beneath::new(opened, &surveyed, &time.clock());
        let devices = beneath.devices.clone();
        let place = self.by_devices.get(&devices).copied().filter(|_| !devices.is_empty());
        let place = place.unwrap_or_else(|| {
            all.push(beneath);
            self.by_devices.insert(devices, all.len() - 1);
            all.len() - 1
        });
        self.by_name.insert(name, (place, Arc::clone(&surveyed)));
        (place, surveyed)
    }
}

/// Returns the clock for `scenario` without the spans that are left out: that of a simulation if all targets
/// are simulated, otherwise the machine's.
///
/// # Errors
/// If a typed name is invalid.
fn time_of(
    scenario: &Scenario,
    left_out: &HashMap<usize, String>,
    clock: &Arc<dyn Clock>,
) -> Result<Time, TrialError> {
    let spans = scenario.spans.iter().enumerate().filter(|(number, _)| !left_out.contains_key(number));
    let jobs = spans.flat_map(|(_, span)| &span.jobs);
    let names: Vec<Name> = jobs
        .flat_map(|job| &job.targets)
        .map(|target| Name::parse(&target.name))
        .collect::<Result<_, _>>()?;
    Ok(plumb_targets::time_of(&names, clock))
}

/// Returns the spans with writes through the page cache that are not synced one by one.
fn written_back(scenario: &Scenario) -> HashSet<usize> {
    let stays = |job: &Job| {
        if job.program.is_some() {
            return true;
        }
        let durability = &job.workload.durability;
        let mut every = durability.flush_every.into_iter().chain(durability.fua_every);
        let syncs_each = every.any(|every| every.get() == 1);
        job.workload.writes() && job.opening.caching != Caching::Direct && !syncs_each
    };
    let spans = scenario.spans.iter().enumerate().filter(|(_, span)| span.jobs.iter().any(stays));
    spans.map(|(number, _)| number).collect()
}

/// Returns the events of traces for each target.
fn recorded_of(places: &[(usize, usize, &Job, &str)], replays: &Replays) -> Vec<Option<RecordedEvents>> {
    let mut last = None;
    let mut nth = 0;
    let of = |(span, job, ..): &(usize, usize, &Job, &str)| {
        nth = if last == Some((*span, *job)) { nth + 1 } else { 0 };
        last = Some((*span, *job));
        replays.get(&(*span, *job))?.targets.get(nth).cloned()
    };
    places.iter().map(of).collect()
}

/// Returns the workload `asked` limited to a target. The rest after the last whole block of the range or the
/// target is not used.
fn within(opened: &OpenedTarget, asked: &Workload) -> Result<Workload, TrialError> {
    let ByteRange { offset, length } = asked.range;
    let whole = length.round_down(opened.device.info().logical_block);
    let kept = if asked.range.is_open_ended() || whole == Bytes(0) { length } else { whole };
    let kept = Workload { range: ByteRange { offset, length: kept }, ..asked.clone() };
    kept.within(opened.size).map_err(|invalid| {
        TrialError::new(FailureKind::Usage, format!("{}: {}", opened.shown, in_one_line(&invalid)))
    })
}

/// Checks that a target supports untorn writes of the workload's size.
fn fits_untorn(one: &OpenedTarget, workload: &Workload) -> Result<(), TrialError> {
    let units = Units::of_device(&one.device.info());
    match workload.blocks.write.0.iter().map(|(size, _)| size).find(|size| !units.takes(size.0)) {
        Some(size) => {
            let (least, most) = (Bytes(units.min), Bytes(units.max));
            let limits = match Bytes(units.boundary) {
                Bytes(0) => format!("powers of two from {least} to {most}"),
                boundary => format!("powers of two from {least} to {most} that divide {boundary}"),
            };
            let problem =
                format!("{} takes untorn writes of {limits}, not of {size}: change --block-size", one.shown);
            Err(TrialError::new(FailureKind::Usage, problem))
        }
        None => Ok(()),
    }
}

/// Checks that targets support the requests, and that traces end within their targets.
fn fits(
    opened: &[OpenedTarget],
    places: &[(usize, usize, &Job, &str)],
    recorded: &[Option<RecordedEvents>],
) -> Result<(), TrialError> {
    for ((one, (_, _, job, _)), recorded) in opened.iter().zip(places).zip(recorded) {
        if job.opening.raw_flush && one.kind != TargetKind::Simulated {
            let problem = format!(
                "{} is not a simulated drive, but is reached through the kernel of this machine: leave out \
                 --raw-flush",
                one.shown
            );
            return Err(TrialError::new(FailureKind::Usage, problem));
        }
        if job.opening.flush == FlushCall::Range && one.kind.device_kind().is_some() {
            let problem = format!(
                "{} is not a file, and sync_file_range(2) is a call on files: leave out --sync-kind range, or name \
                 a file or a block device",
                one.shown
            );
            return Err(TrialError::usage(problem));
        }
        if job.opening.untorn {
            fits_untorn(one, &job.workload)?;
        }
        let Some(recorded) = recorded else {
            plumb_load::worker::check(&within(one, &job.workload)?, &one.device.info())
                .map_err(|source| TrialError::Unfit { target: one.shown.clone(), source })?;
            continue;
        };
        let (size, end) = (one.size, recorded.end());
        if end > size {
            let larger = match one.kind {
                TargetKind::RegularFile => format!("give a size of {} or more", end.0),
                TargetKind::BlockDevice | TargetKind::Network | TargetKind::Cache => {
                    "give a larger target".to_owned()
                }
                TargetKind::Simulated => format!("type ?size={} behind the name of the model", end.0),
            };
            let remedy = match recorded.scale_for(size) {
                Some(scale) => {
                    format!("{larger}, or divide the offsets with --trace-scale {scale} --trace-align 4k")
                }
                None => larger,
            };
            let problem = format!(
                "{} holds {size}, but the trace reaches {end}, {} too far; {remedy}",
                one.shown,
                Bytes(end.0 - size.0)
            );
            return Err(TrialError::new(FailureKind::Usage, problem));
        }
        plumb_load::worker::replaying::check(recorded, &one.device.info())
            .map_err(|source| TrialError::Unfit { target: one.shown.clone(), source })?;
    }
    Ok(())
}

fn wanted(
    span: &Span,
    job: &Job,
    name: &str,
    recorded: Option<&RecordedEvents>,
) -> Result<TargetRequest, TrialError> {
    let changes = recorded.map_or(job.workload.changes(), RecordedEvents::changes);
    let writes = changes || span.precondition;
    // The file may hold more than the part used by the job.
    let lock = if job.workload.verify { LockKind::Exclusive } else { LockKind::Shared };
    let intent = Intent {
        writes,
        size: job.size,
        cuts: job.workload.range.is_open_ended(),
        part: None,
        lock: writes.then_some(lock),
    };
    let unit = match recorded {
        // The workload that represents a trace may have other lengths than its events.
        Some(recorded) => common_unit([recorded.unit(), recorded.stand_in(&job.workload).unit()]),
        None => job.workload.unit(),
    };
    Ok(TargetRequest {
        name: Name::parse(name)?,
        intent,
        options: open_options::options(span, job, writes, unit),
    })
}

/// Lays out new files.
fn fill(
    opened: &mut [OpenedTarget],
    places: &[(usize, usize, &Job, &str)],
    observer: &mut dyn Observer,
    stop: &AtomicBool,
) -> Result<(), TrialError> {
    for (one, (span, _, job, _)) in opened.iter_mut().zip(places) {
        let Some(range) = one.needs_layout.clone() else { continue };
        if job.layout != Layout::Written && one.kind == TargetKind::RegularFile {
            one.size_unwritten(job.layout == Layout::Reserved)?;
            continue;
        }
        let phase = Phase::LayingOut { path: one.shown.clone(), size: Bytes(range.end - range.start) };
        observer.phase(*span, &phase, None);
        let mut progress = |done| observer.on(&Event::Bytes(done));
        let seed = plumb_load::stamp_seed(job.workload.seed, one.device.info().logical_block);
        let filling = Filling { seed, stop, progress: &mut progress };
        if let Err(error) = one.lay_out(filling) {
            let stopped = stop.load(Ordering::Relaxed);
            return Err(if stopped { TrialError::Interrupted } else { TrialError::Target(error) });
        }
    }
    Ok(())
}
