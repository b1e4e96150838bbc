//! What studies measure with: loads in plumb's own words, and application profiles, each run and nothing of it recorded.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plumb_application::{self as application, Directory, Limits, Measured};
use plumb_block::{
    Bytes, Clock, DeviceCounters, FileStore, Nanos, StorageCounters, Time, VirtualClock, in_one_line,
};
use plumb_dialect::native::{Words, write};
use plumb_linux::{FileOptions, Filling};
use plumb_measure::{Out, SeriesPoint};
use plumb_report::RunDocument;
use plumb_report::document::study::{StudyPoint, StudySeries};
use plumb_report::document::{ComparisonDocument, Sides};
use plumb_sim::files::{Host, SimulatedFiles};
use plumb_targets::{Intent, Name, Opened, Wanted, open_all};
use plumb_trial::{Context, ProfileRun, Request, Trial, TrialEnded, TrialError, Watcher, run, run_profile};
use plumb_workload::Scenario;

use super::StudyPlan;
use crate::setting::Setting;
use crate::{Chapter, Experiment, Extent, Level, Terms, Work};

/// A study could not go on.
#[derive(Debug)]
pub(super) enum StudyError {
    /// A run could not be made.
    Trial(TrialError),
    /// A run ended early.
    Ended(TrialEnded),
}

impl StudyError {
    /// How that ends the studies.
    pub(super) fn ended(self) -> TrialEnded {
        match self {
            Self::Trial(TrialError::Interrupted) => TrialEnded::Interrupted,
            Self::Trial(error) => TrialEnded::Failed(in_one_line(&error)),
            Self::Ended(ended) => ended,
        }
    }

    pub(super) fn failed(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Ended(TrialEnded::Failed(in_one_line(error)))
    }
}

impl From<TrialError> for StudyError {
    fn from(error: TrialError) -> Self {
        Self::Trial(error)
    }
}

impl From<plumb_targets::Error> for StudyError {
    fn from(error: plumb_targets::Error) -> Self {
        Self::Trial(error.into())
    }
}

impl From<application::Error> for StudyError {
    fn from(error: application::Error) -> Self {
        Self::Trial(error.into())
    }
}

impl From<plumb_block::Error> for StudyError {
    fn from(error: plumb_block::Error) -> Self {
        Self::failed(&error)
    }
}

impl From<plumb_dialect::Error> for StudyError {
    fn from(error: plumb_dialect::Error) -> Self {
        Self::failed(&error)
    }
}

/// A load that was run.
pub(super) struct Loaded {
    pub(super) document: RunDocument,
    /// Of each target, its operations over time.
    series: Vec<Vec<SeriesPoint>>,
}

impl Loaded {
    fn of(trial: &Trial) -> Self {
        let of_span = |span: &plumb_trial::SpanRun| {
            let result = &span.ran.result;
            let points = |target| result.of_target(target).operations().series.whole_points(result.window);
            (0..result.targets.len()).map(points).collect::<Vec<_>>()
        };
        let series = trial.spans.iter().flat_map(of_span).collect();
        Self { document: trial.recording.document.clone(), series }
    }

    /// What was asked of all targets, and what became of it.
    pub(super) fn total(&self) -> &Sides {
        &self.document.total
    }

    /// Operations a second.
    pub(super) fn iops(&self) -> f64 {
        self.total().application.iops
    }

    /// Those of one target.
    pub(super) fn iops_of(&self, target: usize) -> Option<f64> {
        Some(self.document.targets.get(target)?.sides.application.iops)
    }

    /// A target over time, in steps of so long.
    pub(super) fn series(&self, target: usize, step: f64, chart: &str, name: &str) -> StudySeries {
        let mut points: Vec<StudyPoint> = Vec::new();
        for point in self.series.get(target).map_or(&[][..], Vec::as_slice) {
            let at = (point.at.as_secs_f64() / step).floor() * step;
            match points.last_mut() {
                Some(last) if last.at >= at => last.per_second += point.operations as f64 / step,
                _ => points.push(StudyPoint { at, per_second: point.operations as f64 / step }),
            }
        }
        StudySeries { chart: chart.to_owned(), name: name.to_owned(), points }
    }

    /// Operations a second of a target between two moments.
    pub(super) fn rate_between(&self, target: usize, from: f64, until: f64) -> Option<f64> {
        let points = self.series.get(target)?.iter();
        let within = points.filter(|point| (from..until).contains(&point.at.as_secs_f64()));
        Some(within.map(|point| point.operations).sum::<u64>() as f64 / (until - from))
    }
}

/// A profile that was run on a simulated drive.
pub(super) struct Profiled {
    pub(super) measured: Measured,
    /// What reached the drive meanwhile, preparation included.
    pub(super) drive: DeviceCounters,
}

/// What studies measure with.
pub(super) struct Bench<'a> {
    request: &'a Request,
    context: &'a Context<'a>,
    watcher: &'a mut dyn Watcher,
    plan: &'a StudyPlan,
    switches: &'a mut Switches,
    /// The loads that were run on simulated drives: in the same words they give the same figures again.
    known: HashMap<String, Rc<Loaded>>,
}

/// Whether a target is a file, or is to be a file in a directory.
pub(super) fn is_file(target: &str) -> bool {
    std::fs::metadata(target).map_or(true, |found| found.is_dir() || found.is_file())
}

/// What sets states on the machine of a real target; none where it stays as it is.
#[derive(Default)]
pub struct Switches {
    /// The write cache of the drives beneath it; its levels are those of [`Switches::POLICY`].
    pub policy: Option<Box<dyn Setting>>,
    /// A cache in front of it, and how it is named then; its levels are those of [`Switches::CACHE`].
    pub cache: Option<(Box<dyn Setting>, String)>,
}

impl Switches {
    /// The states of a drive's write cache.
    pub const POLICY: [&str; 3] = ["on", "off", "protected"];
    /// What is in front of a target.
    pub const CACHE: [&str; 2] = ["none", "wb:5G"];

    /// Puts everything back.
    pub(super) fn restore(&mut self) -> Result<(), TrialError> {
        let policy = self.policy.as_mut().map_or(Ok(()), |policy| policy.restore());
        let cache = self.cache.as_mut().map_or(Ok(()), |(cache, _)| cache.restore());
        match (cache, policy) {
            (Err(one), Err(other)) => Err(one.and(&other)),
            (cache, policy) => cache.and(policy),
        }
    }
}

/// The places of states in [`Switches::POLICY`].
pub(super) const ON: usize = 0;
pub(super) const OFF: usize = 1;
pub(super) const PROTECTED: usize = 2;
/// Why there are no figures of other states.
pub(super) const NOT_SWITCHED: &str =
    "the drive stays as it is: --switch puts its cache into each state that it has, and back at the end";

/// Which of the switches sets the levels of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetBy {
    Nothing,
    Policy,
    Cache,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        request: &'a Request,
        context: &'a Context<'a>,
        watcher: &'a mut dyn Watcher,
        plan: &'a StudyPlan,
        switches: &'a mut Switches,
    ) -> Self {
        Self { request, context, watcher, plan, switches, known: HashMap::new() }
    }

    /// Whether the drive beneath the target can be put into other states.
    pub(super) fn switches_policy(&self) -> bool {
        self.switches.policy.is_some()
    }

    /// How the target is named behind a cache, if one can be put in front of it.
    pub(super) fn behind_cache(&self) -> Option<String> {
        self.switches.cache.as_ref().map(|(_, name)| name.clone())
    }

    /// Puts the drive into a state; why it could not be.
    pub(super) fn put(&mut self, state: usize) -> Result<(), String> {
        let policy = self.switches.policy.as_mut().ok_or(NOT_SWITCHED)?;
        policy.set(state).map_err(|error| in_one_line(&error))
    }

    /// What is measured; `None`: simulated drives.
    pub(super) fn on(&self) -> Option<&'a str> {
        self.plan.on.as_deref()
    }

    pub(super) fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// Says what comes next.
    pub(super) fn say(&mut self, line: &str) {
        self.watcher.note(line);
    }

    /// Goes on only if nobody wants it to end.
    pub(super) fn check(&self) -> Result<(), StudyError> {
        match self.context.stop.load(Ordering::Relaxed) {
            true => Err(StudyError::Ended(TrialEnded::Interrupted)),
            false => Ok(()),
        }
    }

    /// What these words of a load mean; targets go before, one argument each.
    pub(super) fn scenario(&self, targets: &[&str], words: &str) -> Result<Scenario, StudyError> {
        let typed = targets.iter().copied().chain(words.split_whitespace()).map(str::to_owned);
        Ok(Words::of_arguments(typed.collect())?.meaning(self.plan.seed)?.scenario)
    }

    /// A request for a trial of this scenario.
    pub(super) fn asking(&self, scenario: Scenario) -> Request {
        Request { words: write(&scenario), scenario, out: Out::Nowhere, ..self.request.clone() }
    }

    /// Runs a load in these words.
    pub(super) fn load(&mut self, targets: &[&str], words: &str) -> Result<Rc<Loaded>, StudyError> {
        let typed = format!("{} {words}", targets.join(" "));
        if let Some(known) = self.known.get(&typed) {
            return Ok(Rc::clone(known));
        }
        let request = self.asking(self.scenario(targets, words)?);
        let trial = self.shown(|context, watcher| run(&request, context, watcher))?;
        let loaded = Rc::new(Loaded::of(&trial));
        if self.plan.on.is_none() {
            self.known.insert(typed, Rc::clone(&loaded));
        }
        Ok(loaded)
    }

    /// Runs a profile that works on files, in the directory that is measured.
    pub(super) fn profile_in(
        &mut self,
        directory: &str,
        profile: &str,
        limits: Limits,
    ) -> Result<Loaded, StudyError> {
        let run = ProfileRun { profile: profile.to_owned(), directory: directory.into(), limits };
        let request = self.asking(Scenario { spans: Vec::new() });
        let trial = self.shown(|context, watcher| run_profile(&request, &run, context, watcher))?;
        Ok(Loaded::of(&trial))
    }

    /// Compares two levels, each a target with its words, in interleaved blocks of this length.
    pub(super) fn compare(
        &mut self,
        factor: &str,
        levels: &[(&str, &str, &str); 2],
        block: Nanos,
        set_by: SetBy,
    ) -> Result<ComparisonDocument, StudyError> {
        let level = |(name, target, words): &(&str, &str, &str)| {
            Ok(Level { name: (*name).to_owned(), work: Work::Load(self.scenario(&[*target], words)?) })
        };
        let experiment = Experiment {
            factor: factor.to_owned(),
            levels: levels.iter().map(level).collect::<Result<_, StudyError>>()?,
            figure: None,
            terms: Terms::default(),
            limits: Vec::new(),
            // The fewest rounds.
            budget: Nanos::ZERO,
            block: Some(block),
            extent: Extent::UntilClear,
            together: false,
        };
        let scenario = experiment.scenario().map_err(|error| StudyError::failed(&error))?;
        let chapter = Chapter { name: String::new(), experiment, request: self.asking(scenario) };
        let mut switches = std::mem::take(self.switches);
        let setting = match set_by {
            SetBy::Nothing => None,
            SetBy::Policy => switches.policy.as_mut(),
            SetBy::Cache => switches.cache.as_mut().map(|(cache, _)| cache),
        };
        let setting = setting.map(|setting| &mut **setting as &mut dyn Setting);
        let compared = self.shown(|context, watcher| crate::run(&chapter, &[], context, watcher, setting));
        *self.switches = switches;
        Ok(compared?.0)
    }

    /// Runs something that is shown only where it takes the time that it measures.
    pub(super) fn shown<T>(
        &mut self,
        run: impl FnOnce(&Context<'_>, &mut dyn Watcher) -> Result<T, TrialError>,
    ) -> Result<T, StudyError>
    where
        T: Whole,
    {
        self.check()?;
        let ran = match self.plan.on {
            Some(_) => run(self.context, self.watcher)?,
            None => run(self.context, &mut Unseen)?,
        };
        match ran.ended() {
            TrialEnded::Complete => Ok(ran),
            ended => Err(StudyError::Ended(ended.clone())),
        }
    }

    /// The size of a file that is to be made on `target`; `None` where there is one, or a device.
    pub(super) fn size_on(&self, target: &str, size: Bytes) -> Option<Bytes> {
        let is_to_be_made = match std::fs::metadata(target) {
            Ok(found) => found.is_dir(),
            Err(_) => !target.contains(':'),
        };
        is_to_be_made.then_some(size)
    }

    /// The same as words of a load.
    pub(super) fn size_words(&self, target: &str, size: Bytes) -> String {
        self.size_on(target, size).map_or_else(String::new, |size| format!(" --size {}", size.0))
    }

    /// Opens a target for a host that no words describe, with the clock that it goes by. A file that is made for it is of `size`.
    pub(super) fn open(&self, target: &str, size: Bytes) -> Result<(Opened, Time), StudyError> {
        let name = Name::parse(target)?;
        let time = plumb_targets::time_of(std::slice::from_ref(&name), self.context.clock);
        let intent = Intent { size: self.size_on(target, size), ..Intent::WRITE };
        let wanted = Wanted { name, intent, options: FileOptions::write_direct() };
        let opened = open_all(&[wanted], &self.request.permission, &time)?.pop();
        let mut opened = opened
            .ok_or_else(|| StudyError::Ended(TrialEnded::Failed(format!("{target} was not opened"))))?;
        if opened.needs_layout.is_some() {
            opened.lay_out(Filling {
                seed: self.plan.seed,
                stop: self.context.stop,
                progress: &mut |_| {},
            })?;
        }
        Ok((opened, time))
    }

    /// The flag by which a run is told to end.
    pub(super) fn stop(&self) -> &'a std::sync::atomic::AtomicBool {
        self.context.stop
    }

    /// An empty file system on a simulated drive, with the clock and the counters of that.
    pub(super) fn files(&self, drive: &str, host: Host) -> Result<SimulatedPlace, StudyError> {
        let (opened, time) = self.open(drive, Bytes(0))?;
        let Time::Virtual(clock) = time else {
            return Err(StudyError::Ended(TrialEnded::Failed(format!("{drive} is no simulated drive"))));
        };
        let files = SimulatedFiles::new(Arc::clone(&opened.device), &clock, host)?;
        let counters = opened.counters.clone();
        let missing = || StudyError::Ended(TrialEnded::Failed(format!("{drive} counts nothing")));
        Ok(SimulatedPlace { files, clock, counters: counters.ok_or_else(missing)? })
    }

    /// Runs a profile on files of a simulated drive.
    pub(super) fn profile(
        &mut self,
        drive: &str,
        host: Host,
        profile: &str,
        limits: &Limits,
    ) -> Result<Profiled, StudyError> {
        self.check()?;
        let place = self.files(drive, host)?;
        let (profile, variant) = application::find(profile)?;
        let store = || -> plumb_block::Result<Box<dyn FileStore>> { Ok(Box::new(place.files.clone())) };
        // The profile makes a directory of its own somewhere; nothing is written into it.
        let directory = Directory { path: std::env::temp_dir(), free: None, open: &|_| store() };
        let measured = application::run(
            profile,
            variant,
            &directory,
            limits,
            &*place.clock,
            self.context.stop,
            &mut |_| {},
        )?;
        self.check()?;
        Ok(Profiled { measured, drive: place.drive()? })
    }
}

/// A file system on a simulated drive.
pub(super) struct SimulatedPlace {
    pub(super) files: SimulatedFiles,
    pub(super) clock: Arc<VirtualClock>,
    counters: Arc<dyn StorageCounters>,
}

impl SimulatedPlace {
    /// What reached the drive until now.
    pub(super) fn drive(&self) -> Result<DeviceCounters, StudyError> {
        Ok(self.counters.read()?.devices.into_iter().next().unwrap_or_default())
    }

    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }
}

/// What says whether it ran to its end.
pub(super) trait Whole {
    fn ended(&self) -> &TrialEnded;
}

impl Whole for Trial {
    fn ended(&self) -> &TrialEnded {
        &self.ended
    }
}

impl<T> Whole for (T, TrialEnded) {
    fn ended(&self) -> &TrialEnded {
        &self.1
    }
}

/// Nobody looks on: what is simulated is over before it could be shown.
struct Unseen;

impl Watcher for Unseen {}
