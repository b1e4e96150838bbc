//! The experiments that a study file can name, run by `trial`, `application` and the hosts of this crate.
//! Each returns a document, in which a figure is a number at a path. Rates are per second, times seconds,
//! sizes bytes.
//!
//! ```text
//! load           application, write, targets, counts; peak, thirds, series
//! compare        ratio, first_over_later, said
//! profile        per_second, syncs_each, latency; on a simulated drive flushes, synced_blocks_lost
//! passes         counts, dirty_bytes, under_way_bytes
//! object-store   syncs, writes, counts
//! live-switch    failed, longest
//! ```

use std::sync::atomic::Ordering;

use plumb_application::{self as application, Directory, Limits};
use plumb_block::{Bytes, FailureKind, FileStore, Nanos, Time, VolatileCache};
use plumb_dialect::native::{Words, write};
use plumb_linux::{FileOptions, Filling};
use plumb_load::Observer;
use plumb_measure::{Out, SERIES_BUCKET, SeriesPoint};
use plumb_report::document::ComparisonDocument;
use plumb_report::document::comparison::{Counts, Outcome};
use plumb_report::document::study::StudyPoint;
use plumb_report::outcome_words;
use plumb_report::quantity::ratio;
use plumb_targets::{Intent, Name, OpenedTarget, TargetRequest, open_all, time_of};
use plumb_trial::{Context, Request, SpanRun, Trial, TrialEnded, TrialError, run};
use plumb_workload::{ByteRange, Scenario, Workload};
use serde_json::{Value, json};

use super::file::{Compare, LiveSwitch, Load, Needs, Osd, Profile};
use super::switches::Switches;
use crate::explanation::main_cause;
use crate::host::live_switch::switched;
use crate::host::object_store::ObjectStore;
use crate::host::simulated_files::SimulatedHost;
use crate::setting::{Setting, failed};
use crate::{Chapter, Experiment, Level};

/// A value, or the reason why it is missing.
pub(super) type Had<T> = Result<T, String>;

/// Tools for the measurements of studies.
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

impl Bench<'_> {
    /// Fails if the studies must end early.
    pub(super) fn check(&self) -> Result<(), TrialError> {
        match self.context.stop.load(Ordering::Relaxed) {
            true => Err(TrialError::Interrupted),
            false => Ok(()),
        }
    }

    /// Runs a load.
    pub(super) fn load(&mut self, of: &Load, targets: &[String]) -> Result<Value, TrialError> {
        let words = format!("{} {}{}", of.words, of.chosen, size_words(targets.first(), of.file_mib));
        let trial = self.trial(self.scenario(targets, &words)?)?;
        let series: Vec<Vec<StudyPoint>> = trial.spans.iter().flat_map(in_steps).collect();
        let rates: Vec<f64> = series.iter().take(1).flatten().map(|point| point.per_second).collect();
        let thirds = rates.chunks(rates.len().div_ceil(3).max(1));
        let thirds = thirds.map(|rates| rates.iter().sum::<f64>() / rates.len() as f64);
        let document = &trial.recording.document;
        let total = &document.total;
        Ok(json!({
            "application": total.application,
            "write": total.write,
            "targets": document.targets,
            "counts": Counts::from_sides(total),
            "peak": rates.iter().copied().fold(0.0, f64::max),
            "thirds": thirds.collect::<Vec<_>>(),
            "series": series,
        }))
    }

    /// Compares two levels, each a name and a target, in interleaved blocks.
    pub(super) fn compare(
        &mut self,
        of: &Compare,
        levels: &[[String; 2]; 2],
        needs: Option<Needs>,
    ) -> Result<Value, TrialError> {
        let words = format!("{}{}", of.words, size_words(levels[0].last(), of.file_mib));
        let level = |[name, target]: &[String; 2]| {
            let scenario = self.scenario(std::slice::from_ref(target), &words)?;
            Ok(Level { name: name.clone(), scenario })
        };
        let experiment = Experiment {
            factor: of.factor.clone(),
            levels: levels.iter().map(level).collect::<Result<_, TrialError>>()?,
            block: Some(Nanos::millis(of.block_ms)),
            // Without a budget: the fewest rounds.
            ..Experiment::default()
        };
        let scenario = experiment.scenario().map_err(|error| failed(&error))?;
        let chapter = Chapter { name: String::new(), experiment, request: self.request_of(scenario) };
        let setting = match needs {
            Some(Needs::Policy) => self.switches.policy.as_mut(),
            Some(Needs::Cache) => self.switches.cache.as_mut(),
            _ => None,
        };
        let setting = setting.map(|setting| &mut **setting as &mut dyn Setting);
        let observer: &mut dyn Observer = if self.on.is_some() { &mut *self.observer } else { &mut () };
        let (document, ended) = crate::run(&chapter, &[], self.context, observer, setting)?;
        complete(&ended)?;
        let contrast = &document.contrast;
        let outcome = outcome_words(contrast.outcome, document.design.equivalent);
        let cause = main_cause(&contrast.explanation).filter(|_| contrast.outcome == Outcome::Different);
        let interval =
            contrast.ratio.and_then(|of| Some(format!("{} to {}", ratio(of.low?), ratio(of.high?))));
        let said = format!(
            "{outcome}; interval {} over {} pairs of blocks{}",
            interval.unwrap_or_else(|| "not bounded".to_owned()),
            document.blocks,
            cause.map_or_else(String::new, |cause| format!("; {cause}"))
        );
        Ok(json!({ "ratio": contrast.ratio, "first_over_later": first_block(&document), "said": said }))
    }

    /// Runs an application profile: on a simulated file system, or in a directory of this machine.
    pub(super) fn profile(&mut self, of: &Profile, drive: &str) -> Result<Value, TrialError> {
        let (profile, variant) = application::find(&of.profile)?;
        let (chosen, seed) = (&of.chosen, self.seed);
        let (count, threads, scale) = (Some(chosen.transactions), Some(chosen.threads), chosen.scale);
        let limits = Limits { duration: None, count, threads, scale: Some(scale), seed };
        if let Some(directory) = self.on {
            let duration = Some(Nanos::secs(of.real_seconds));
            let limits = Limits { duration, scale: Some(scale.min(of.real_scale)), ..limits };
            let trial = self.trial(application::scenario(profile, variant, directory, &limits)?)?;
            return Ok(json!(trial.recording.document.transactions));
        }
        let place = SimulatedHost::new(drive, chosen.host, chosen.cold)?;
        let store = || -> plumb_block::Result<Box<dyn FileStore>> { Ok(Box::new(place.files.clone())) };
        // The directory is only a name: the files of the profile are simulated.
        let directory = Directory { path: std::env::temp_dir(), free: None, open: &|_| store() };
        let (clock, stop) = (&*place.clock, self.context.stop);
        let measured = application::run(profile, variant, &directory, &limits, clock, stop, &mut ())?;
        let drive = place.drive().map_err(|error| failed(&error))?;
        Ok(json!({
            "per_second": measured.transactions_per_second(),
            "syncs_each": measured.syncs_per_transaction(),
            "latency": measured.transactions.as_ref().and_then(|of| of.latency.summary()),
            "flushes": drive.devices.first().and_then(|drive| drive.flushes),
            // The cut comes last: it ends the drive.
            "synced_blocks_lost": place.handle.with(|drive, now| {
                drive.cut_power(now);
                drive.last_cut().map_or(0, |report| report.promised_lost_blocks)
            }),
        }))
    }

    /// Runs a Ceph OSD on `target`. If a real drive could not be put into `state`, the inner error gives the
    /// reason, unless the drive is in that state anyway.
    pub(super) fn object_store(
        &mut self,
        of: &Osd,
        target: &str,
        state: &str,
    ) -> Result<Had<Value>, TrialError> {
        let put = if self.on.is_some() { self.switches.put(state) } else { Ok(()) };
        let (mut opened, time) = self.open(target, Bytes::mib(of.file_mib))?;
        let is_on = opened.device.info().volatile_cache != VolatileCache::None;
        if let Err(because) = put
            && is_on != (state == "on")
        {
            opened.remove_if_ours()?;
            return Ok(Err(because));
        }
        let stop = self.context.stop;
        if opened.needs_layout.is_some() {
            opened.lay_out(Filling { seed: self.seed, stop, progress: &mut |_| {} })?;
        }
        let store = ObjectStore::new(opened.device.clone(), &time, of.chosen, self.seed);
        let served = store.and_then(|store| store.serve(stop)).map_err(|error| failed(&error))?;
        let counted = opened.counters.as_ref().map(|counters| counters.read()).transpose();
        let counted = counted.map_err(|error| failed(&error))?;
        let drive = counted.as_ref().and_then(|read| read.devices.first());
        opened.mark_as_left();
        opened.remove_if_ours()?;
        let seconds = served.syncs.sum_ns() as f64 / 1e9;
        let counts = Counts {
            seconds,
            operations: served.syncs.count(),
            slot_seconds: seconds,
            thread_seconds: Some(seconds),
            syncs: served.syncs.count(),
            sync_seconds: seconds,
            flushes: drive.and_then(|drive| drive.flushes),
            flush_seconds: drive.map(|drive| drive.flush_time.as_secs_f64()),
            ..Counts::default()
        };
        let (syncs, writes) = (served.syncs.summary(), served.writes.summary());
        Ok(Ok(json!({ "syncs": syncs, "writes": writes, "counts": counts })))
    }

    /// Switches the cache of a drive under load.
    pub(super) fn live_switch(&self, of: &LiveSwitch, drive: &str) -> Result<Value, TrialError> {
        let (opened, time) = self.open(drive, Bytes(0))?;
        let range = ByteRange { offset: Bytes(0), length: opened.device.info().size };
        let writes = Workload::over(range, Bytes::kib(of.block_kib));
        let writes = Workload { write_percent: 100, depth: of.depth, seed: self.seed, ..writes };
        let switched = switched(&*opened.device, time, writes, self.context.stop)?;
        let longest = switched.longest.into_iter().map(Nanos::as_secs_f64);
        Ok(json!({ "failed": switched.failed, "longest": longest.collect::<Vec<_>>() }))
    }

    /// Parses the words of a load, preceded by `targets`, one argument each.
    fn scenario(&self, targets: &[String], words: &str) -> Result<Scenario, TrialError> {
        let typed = targets.iter().cloned().chain(words.split_whitespace().map(str::to_owned));
        let meaning = Words::of_arguments(typed.collect()).and_then(|words| words.meaning(self.seed));
        Ok(meaning.map_err(|error| failed(&error))?.scenario)
    }

    /// Creates a request for a trial of this scenario.
    fn request_of(&self, scenario: Scenario) -> Request {
        Request { words: write(&scenario), scenario, out: Out::Nowhere, ..self.request.clone() }
    }

    fn trial(&mut self, scenario: Scenario) -> Result<Trial, TrialError> {
        let request = self.request_of(scenario);
        // A simulated run is over before its progress could be shown.
        let observer: &mut dyn Observer = if self.on.is_some() { &mut *self.observer } else { &mut () };
        let trial = run(&request, self.context, observer)?;
        complete(&trial.ended).map(|()| trial)
    }

    /// Opens a target for a host that no words can describe, and returns it with its clock. A new file has
    /// the size `size`, and the host lays it out.
    fn open(&self, target: &str, size: Bytes) -> Result<(OpenedTarget, Time), TrialError> {
        let name = Name::parse(target)?;
        let time = time_of([&name], self.context.clock);
        let intent = Intent { size: size_to_make(target, size), ..Intent::WRITE };
        let wanted = TargetRequest { name, intent, options: FileOptions::write_direct() };
        Ok((open_all(&[wanted], &self.request.permission, &time)?.swap_remove(0), time))
    }
}

/// Fails unless a run is complete.
fn complete(ended: &TrialEnded) -> Result<(), TrialError> {
    match ended {
        TrialEnded::Complete => Ok(()),
        TrialEnded::Interrupted => Err(TrialError::Interrupted),
        TrialEnded::Failed(why) => Err(TrialError::new(FailureKind::Failed, why)),
        ended => Err(TrialError::new(FailureKind::NotMeasured, ended.reason().unwrap_or_default())),
    }
}

/// Returns the size of the file to create at `target`; `None` if a file or device exists there.
fn size_to_make(target: &str, size: Bytes) -> Option<Bytes> {
    let is_to_be_made = match std::fs::metadata(target) {
        Ok(found) => found.is_dir(),
        Err(_) => !target.contains(':'),
    };
    (is_to_be_made && size > Bytes(0)).then_some(size)
}

fn size_words(target: Option<&String>, mib: u64) -> String {
    let size = target.and_then(|target| size_to_make(target, Bytes::mib(mib)));
    size.map_or_else(String::new, |size| format!(" --size {}", size.0))
}

/// Returns the operations of each target over time, in steps of half a second.
fn in_steps(span: &SpanRun) -> Vec<Vec<StudyPoint>> {
    const STEP: Nanos = Nanos::millis(500);
    let result = &span.ran.result;
    let steps = |target| {
        let points = result.of_target(target).operations().series.whole_points(result.window);
        let point = |of: &[SeriesPoint]| StudyPoint {
            at: of[0].at.as_secs_f64(),
            per_second: of.iter().map(|point| point.operations).sum::<u64>() as f64 / STEP.as_secs_f64(),
        };
        points.chunks((STEP.0 / SERIES_BUCKET.0) as usize).map(point).collect()
    };
    (0..result.targets.len()).map(steps).collect()
}

/// Returns the ratio of the rate of the very first block to the median of the blocks that count.
fn first_block(document: &ComparisonDocument) -> Option<f64> {
    let median = document.levels.first()?.figures.get("iops")?;
    let first = document.measured.iter().find(|block| block.level == 0 && block.round == 0)?;
    Some(first.figures.get("iops")? / median)
}
