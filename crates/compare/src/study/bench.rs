//! The one place where studies meet `trial`, `application` and `targets`: loads in plumb's own words,
//! comparisons, application profiles and opened devices. Nothing of it is recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_application::{self as application, Directory, Limits};
use plumb_block::{
    Bytes, Clock, DeviceCounters, FailureKind, FileStore, Nanos, Time, VirtualClock, in_one_line,
};
use plumb_dialect::native::{Words, write};
use plumb_linux::FileOptions;
use plumb_load::{LoadOutcome, Observer};
use plumb_measure::{Out, SeriesPoint};
use plumb_report::RunDocument;
use plumb_report::document::ComparisonDocument;
use plumb_sim::Handle;
use plumb_sim::files::{Host, SimulatedFiles};
use plumb_targets::{Intent, Name, OpenedTarget, Permission, TargetRequest, open_all, open_simulated};
use plumb_trial::{Context, Request, Trial, TrialEnded, TrialError, run};
use plumb_workload::Scenario;

use super::file::SetBy;
use crate::setting::{CacheSetting, CacheWanted, Setting};
use crate::{Chapter, Experiment, Extent, Factor, FindMachine, Level, Terms};

/// Makes an error of the trial from one that it does not know.
pub(super) fn failed(error: &(dyn std::error::Error + 'static)) -> TrialError {
    TrialError::new(FailureKind::Failed, in_one_line(error))
}

/// Returns how an error ends the studies.
pub(super) fn ended(error: &TrialError) -> TrialEnded {
    match (error, error.failure()) {
        (TrialError::Interrupted, _) => TrialEnded::Interrupted,
        (_, FailureKind::NotMeasured) => TrialEnded::NotMeasured(in_one_line(error)),
        _ => TrialEnded::Failed(in_one_line(error)),
    }
}

/// A run of loads or of a profile.
#[derive(Debug)]
pub(super) struct LoadRun {
    pub(super) document: RunDocument,
    /// Operations of each target over time.
    pub(super) series: Vec<Vec<SeriesPoint>>,
}

impl LoadRun {
    fn from_trial(trial: &Trial) -> Self {
        let of_span = |span: &plumb_trial::SpanRun| {
            let result = &span.ran.result;
            let points = |target| result.of_target(target).operations().series.whole_points(result.window);
            (0..result.targets.len()).map(points).collect::<Vec<_>>()
        };
        let series = trial.spans.iter().flat_map(of_span).collect();
        Self { document: trial.recording.document.clone(), series }
    }
}

/// Tools with which studies measure.
pub(super) struct Bench<'a> {
    pub(super) request: &'a Request,
    pub(super) context: &'a Context<'a>,
    pub(super) observer: &'a mut dyn Observer,
    /// Target on which the studies run; `None`: simulated drives.
    pub(super) on: Option<&'a str>,
    /// Seed of all random choices.
    pub(super) seed: u64,
    pub(super) switches: &'a mut Switches,
}

/// Settings that set states on the machine of a real target; none where it stays as it is.
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
    /// Levels of the cache in front of a target.
    pub const CACHE: [&str; 2] = ["none", "wb:5G"];

    /// Returns the switches of the target `on`: the write caches of the disks beneath it if `policy` is set,
    /// and a cache in front of it whose log is at the path `cache_log`, if there is one.
    ///
    /// # Errors
    /// If `on` is not there, there are no such disks, or the user may not change them.
    pub fn new(
        on: &str,
        policy: bool,
        cache_log: Option<&str>,
        permission: &Permission,
        machine: &FindMachine<'_>,
    ) -> Result<Self, TrialError> {
        if let Name::Path(path) = Name::parse(on)?
            && !path.exists()
        {
            let why = "it is not there; name a directory, a file or a block device that is";
            return Err(TrialError::usage(format!("--on {on}: {why}")));
        }
        let targets = [on.to_owned()];
        let set_policy = || {
            let factor = format!("policy={}", Self::POLICY.join(",")).parse::<Factor>();
            factor.map_err(TrialError::usage)?.setting_of_disks(&targets, machine)
        };
        let set_cache = |log| -> Result<(Box<dyn Setting>, String), TrialError> {
            let levels = Self::CACHE.iter().filter_map(|level| level.parse().ok()).collect();
            let wanted = CacheWanted::new(on, log, permission)?;
            Ok((Box::new(CacheSetting::new(machine()?, wanted, levels)), CacheSetting::target()))
        };
        Ok(Self {
            policy: policy.then(set_policy).transpose()?,
            cache: cache_log.map(set_cache).transpose()?,
        })
    }

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

/// Reason why there are no figures of other states.
pub(super) const NOT_SWITCHED: &str =
    "the drive's cache stays as it is: --switch puts it into each of its states, and restores it at the end";

impl<'a> Bench<'a> {
    /// Puts the drive of a real target into a state; the error says why it could not be.
    pub(super) fn put(&mut self, state: &str) -> Result<(), String> {
        let policy = self.switches.policy.as_mut().ok_or(NOT_SWITCHED)?;
        let place = Switches::POLICY.iter().position(|known| *known == state).ok_or(NOT_SWITCHED)?;
        policy.set(place).map_err(|error| in_one_line(&error))
    }

    /// Returns the flag that ends a run early.
    pub(super) fn stop(&self) -> &'a AtomicBool {
        self.context.stop
    }

    /// Goes on only if nobody wants it to end.
    pub(super) fn check(&self) -> Result<(), TrialError> {
        match self.stop().load(Ordering::Relaxed) {
            true => Err(TrialError::Interrupted),
            false => Ok(()),
        }
    }

    /// Parses the words of a load; targets go before, one argument each.
    fn scenario(&self, targets: &[String], words: &str) -> Result<Scenario, TrialError> {
        let typed = targets.iter().cloned().chain(words.split_whitespace().map(str::to_owned));
        let meaning = Words::of_arguments(typed.collect()).and_then(|words| words.meaning(self.seed));
        Ok(meaning.map_err(|error| failed(&error))?.scenario)
    }

    /// Makes a request for a trial of this scenario.
    fn asking(&self, scenario: Scenario) -> Request {
        Request { words: write(&scenario), scenario, out: Out::Nowhere, ..self.request.clone() }
    }

    /// Runs a load in these words.
    pub(super) fn load(&mut self, targets: &[String], words: &str) -> Result<LoadRun, TrialError> {
        self.run(self.scenario(targets, words)?)
    }

    fn run(&mut self, scenario: Scenario) -> Result<LoadRun, TrialError> {
        let request = self.asking(scenario);
        self.shown(|context, observer| run(&request, context, observer))
            .map(|trial| LoadRun::from_trial(&trial))
    }

    /// Runs a profile that works on files, in a directory of this machine.
    pub(super) fn profile_in(
        &mut self,
        directory: &str,
        profile: &str,
        limits: &Limits,
    ) -> Result<LoadRun, TrialError> {
        let (profile, variant) = application::find(profile)?;
        self.run(application::scenario(profile, variant, directory, limits)?)
    }

    /// Compares two levels, each a name and a target, in interleaved blocks of this length.
    pub(super) fn compare(
        &mut self,
        factor: &str,
        levels: &[[String; 2]; 2],
        words: &str,
        block: Nanos,
        set_by: Option<SetBy>,
    ) -> Result<ComparisonDocument, TrialError> {
        let level = |[name, target]: &[String; 2]| {
            let scenario = self.scenario(std::slice::from_ref(target), words)?;
            Ok(Level { name: name.clone(), scenario })
        };
        let experiment = Experiment {
            factor: factor.to_owned(),
            levels: levels.iter().map(level).collect::<Result<_, TrialError>>()?,
            figure: None,
            terms: Terms::default(),
            limits: Vec::new(),
            // The fewest rounds.
            budget: Nanos::ZERO,
            block: Some(block),
            extent: Extent::UntilClear,
            together: false,
        };
        let scenario = experiment.scenario().map_err(|error| failed(&error))?;
        let chapter = Chapter { name: String::new(), experiment, request: self.asking(scenario) };
        let mut switches = std::mem::take(self.switches);
        let setting = match set_by {
            None => None,
            Some(SetBy::Policy) => switches.policy.as_mut(),
            Some(SetBy::Cache) => switches.cache.as_mut().map(|(cache, _)| cache),
        };
        let setting = setting.map(|setting| &mut **setting as &mut dyn Setting);
        let compared = self.shown(|context, observer| crate::run(&chapter, &[], context, observer, setting));
        *self.switches = switches;
        Ok(compared?.0)
    }

    /// Runs something that is shown only where it takes the time that it measures.
    fn shown<T: Whole>(
        &mut self,
        run: impl FnOnce(&Context<'_>, &mut dyn Observer) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        self.check()?;
        let ran = match self.on {
            Some(_) => run(self.context, self.observer)?,
            // A simulated run is over before its progress could be shown.
            None => run(self.context, &mut ())?,
        };
        match ran.ended() {
            TrialEnded::Complete => Ok(ran),
            TrialEnded::Interrupted => Err(TrialError::Interrupted),
            TrialEnded::Failed(why) => Err(TrialError::new(FailureKind::Failed, why)),
            ended => Err(TrialError::new(FailureKind::NotMeasured, ended.reason().unwrap_or_default())),
        }
    }

    /// Returns the size of a file that is to be made on `target`; `None` where there is one, or a device.
    pub(super) fn size_on(&self, target: &str, size: Bytes) -> Option<Bytes> {
        let is_to_be_made = match std::fs::metadata(target) {
            Ok(found) => found.is_dir(),
            Err(_) => !target.contains(':'),
        };
        (is_to_be_made && size > Bytes(0)).then_some(size)
    }

    /// Opens a target for a host that no words describe, with its clock. A file that is made for it has this
    /// size, and is laid out by whoever uses it.
    pub(super) fn open(&self, target: &str, size: Bytes) -> Result<(OpenedTarget, Time), TrialError> {
        let name = Name::parse(target)?;
        let time = plumb_targets::time_of(std::slice::from_ref(&name), self.context.clock);
        let intent = Intent { size: self.size_on(target, size), ..Intent::WRITE };
        let wanted = TargetRequest { name, intent, options: FileOptions::write_direct() };
        let opened = open_all(&[wanted], &self.request.permission, &time)?.pop();
        let missing = || TrialError::new(FailureKind::Failed, format!("{target} was not opened"));
        Ok((opened.ok_or_else(missing)?, time))
    }

    /// Makes an empty file system on a simulated drive, with the clock and the counters of that.
    pub(super) fn files(&self, drive: &str, host: Host) -> Result<SimulatedPlace, TrialError> {
        let name = Name::parse(drive)?;
        let Time::Virtual(clock) = plumb_targets::time_of(std::slice::from_ref(&name), self.context.clock)
        else {
            let problem = format!("{drive} is not a simulated drive");
            return Err(TrialError::new(FailureKind::Failed, problem));
        };
        let wanted = TargetRequest { name, intent: Intent::WRITE, options: FileOptions::write_direct() };
        let (opened, handle) = open_simulated(&wanted, &Time::Virtual(Arc::clone(&clock)))?;
        let files = SimulatedFiles::new(opened.device, &clock, host).map_err(|error| failed(&error))?;
        Ok(SimulatedPlace { files, clock, handle })
    }

    /// Runs a profile on files of a simulated drive; what it measured, and what reached the drive,
    /// preparation included.
    pub(super) fn profile(
        &mut self,
        place: &SimulatedPlace,
        profile: &str,
        limits: &Limits,
    ) -> Result<(LoadOutcome, DeviceCounters), TrialError> {
        self.check()?;
        let (profile, variant) = application::find(profile)?;
        let store = || -> plumb_block::Result<Box<dyn FileStore>> { Ok(Box::new(place.files.clone())) };
        // The profile makes a directory of its own somewhere; nothing is written into it.
        let directory = Directory { path: std::env::temp_dir(), free: None, open: &|_| store() };
        let (stop, clock) = (self.context.stop, &*place.clock);
        let measured = application::run(profile, variant, &directory, limits, clock, stop, &mut ());
        let measured = measured?;
        self.check()?;
        Ok((measured, place.drive().map_err(|error| failed(&error))?))
    }
}

/// A file system on a simulated drive.
pub(super) struct SimulatedPlace {
    pub(super) files: SimulatedFiles,
    clock: Arc<VirtualClock>,
    handle: Handle,
}

impl SimulatedPlace {
    /// Reads what reached the drive until now.
    pub(super) fn drive(&self) -> plumb_block::Result<DeviceCounters> {
        Ok(self.handle.counters().read()?.devices.into_iter().next().unwrap_or_default())
    }

    /// Cuts the power of the drive, and returns the logical blocks that it loses although a flush or FUA that
    /// covered them was answered.
    pub(super) fn synced_blocks_lost_by_cut(&self) -> u64 {
        self.handle.with(|drive, now| {
            drive.cut_power(now);
            drive.last_cut().map_or(0, |report| report.promised_lost_blocks)
        })
    }

    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }
}

/// A run that says whether it ran to its end.
trait Whole {
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
