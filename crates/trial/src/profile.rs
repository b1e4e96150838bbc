//! A trial of an application profile that works on files: the application runs between two readings of the storage's
//! counters, and is recorded like any load.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use plumb_application::{self as application, Directory, Limits, Measured, Moment, Profile};
use plumb_block::{Bytes, Caching, FileStore, Nanos};
use plumb_linux::{DirectoryStore, space};
use plumb_load::{CpuUse, LoadOutcome};
use plumb_measure::RunDirectory;
use plumb_measure::run::TimeseriesRow;
use plumb_report::document::{CallLatency, RunDocument, RunJob, RunSpan, RunTarget, Transactions};
use plumb_report::{RunRecording, verdict};
use serde::{Deserialize, Serialize};

use crate::counters::{Beneath, Counted, Surveyed, survey};
use crate::cpu;
use crate::document::{cpu_seconds, sides};
use crate::error::TrialError;
use crate::judge;
use crate::looks::Looks;
use crate::record::{self, Recorder};
use crate::session::add_path;
use crate::so_far::{self, Outlet};
use crate::trial::{Context, GOES_ON, Request, Trial, TrialEnded};
use crate::watcher::{Phase, TargetNow, Watcher};

/// Which profile, where, and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileRun {
    /// The profile and its variant, as typed.
    pub profile: String,
    /// Beneath this directory.
    pub directory: PathBuf,
    /// How long, how many threads.
    pub limits: Limits,
}

/// Runs a profile that works on files. Of `request` the scenario is not looked at.
///
/// # Errors
/// If nothing could be measured at all.
pub fn run_profile(
    request: &Request,
    run: &ProfileRun,
    context: &Context<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Trial, TrialError> {
    let Context { clock, stop, time_of_day } = *context;
    let (profile, variant) = application::find(&run.profile)?;
    let directory = std::path::absolute(&run.directory).unwrap_or_else(|_| run.directory.clone());
    let surveyed = survey(&directory);
    let mut beneath = Beneath::under(&surveyed, clock);
    beneath.trace_flushes(None);
    let open = |path: &std::path::Path| -> plumb_block::Result<Box<dyn FileStore>> {
        Ok(Box::new(DirectoryStore::open(path)?))
    };
    let free = space::space_at(&directory).ok().map(|space| space.free);
    let place = Directory { path: directory.clone(), free, open: &open };
    RunDirectory::check(&request.out)?;
    let mut recorder = Recorder::default();
    recorder.open(request, run.limits.seed)?;
    let told = Told { request, run, profile, directory: &directory, surveyed: &surveyed };
    let (measured, storage, cpu, looks) = so_far::recorded(
        recorder.is_open(),
        |seen: Seen| {
            let mut document = told.describe(&seen, None);
            recorder.add_so_far(
                &mut document,
                0,
                std::slice::from_ref(&seen.measured.outcome),
                seen.over_time,
            );
        },
        |outlet| {
            let mut looking = Looking {
                watcher,
                beneath: &beneath,
                name: &profile.name,
                before: None,
                looks: Looks::default(),
                outlet,
            };
            let measured =
                application::run(profile, variant, &place, &run.limits, &**clock, stop, &mut |moment| {
                    looking.tell(moment);
                });
            let (storage, cpu) = looking.sides();
            (measured, storage, cpu, looking.looks)
        },
    );
    let (measured, ended) = match measured {
        Ok(measured) if stop.load(Ordering::Relaxed) => (measured, TrialEnded::Interrupted),
        Ok(measured) => (measured, TrialEnded::Complete),
        Err(error) => {
            recorder.abandon()?;
            return Err(error.into());
        }
    };
    let seen = Seen::of(measured, storage, cpu, &looks);
    let mut document = told.describe(&seen, Some(&ended));
    recorder.add(&mut document, 0, std::slice::from_ref(&seen.measured.outcome), seen.over_time);
    let kept = recorder.finish(&mut document, time_of_day);
    let ended = match (recorder.lost(), ended) {
        (Some(unrecorded), TrialEnded::Complete) => unrecorded.clone(),
        (_, ended) => ended,
    };
    let (recording, run_directory) = match kept {
        Some((recording, path)) => (recording, Some(path)),
        None => {
            document.run_directory = None;
            (RunRecording::without_distributions(document), None)
        }
    };
    Ok(Trial { spans: Vec::new(), recording, ended, run_directory, left_behind: Vec::new() })
}

/// What was measured, and what was seen beside it.
struct Seen {
    measured: Measured,
    storage: Result<plumb_measure::StorageSide, String>,
    cpu: Option<CpuUse>,
    over_time: Vec<TimeseriesRow>,
}

impl Seen {
    fn of(
        measured: Measured,
        storage: Result<plumb_measure::StorageSide, String>,
        cpu: Option<CpuUse>,
        looks: &Looks,
    ) -> Self {
        let shows_operations = measured.outcome.operations().operations() > 0;
        let over_time = looks.rows(0, Nanos::ZERO, shows_operations);
        Self { measured, storage, cpu, over_time }
    }
}

/// Watches a profile run.
struct Looking<'a> {
    watcher: &'a mut dyn Watcher,
    beneath: &'a Beneath,
    name: &'static str,
    /// The counters and the processor time when it began to be measured.
    before: Option<(Counted, Option<CpuUse>)>,
    looks: Looks,
    outlet: Outlet<Seen>,
}

impl Looking<'_> {
    fn tell(&mut self, moment: &Moment<'_>) {
        match moment {
            Moment::Preparing { done, of } => {
                if *done == Bytes(0) {
                    let phase = Phase::LayingOut { path: self.name.to_owned(), size: *of };
                    self.watcher.phase(0, &phase, None);
                }
                self.watcher.bytes(*done);
            }
            Moment::Running { progress, so_far } => {
                if self.before.is_none() {
                    self.before = Some((self.beneath.count(false), cpu::of_this_process()));
                    self.watcher.phase(0, &Phase::Measuring, None);
                }
                if self.looks.is_due(progress.elapsed) {
                    let storage = self.beneath.watch.read().ok();
                    self.looks.add(progress.elapsed, &progress.total, storage.as_ref());
                }
                self.beneath.follow();
                let now = || {
                    let storage = self.beneath.watch.read().ok();
                    vec![TargetNow {
                        name: self.name.to_owned(),
                        application: progress.total.clone(),
                        storage,
                        shares_devices: false,
                    }]
                };
                self.watcher.progress(progress, &now);
                if self.outlet.is_due() {
                    let (storage, cpu) = self.sides();
                    self.outlet.send(Seen::of(so_far(), storage, cpu, &self.looks));
                }
            }
        }
    }

    /// What the devices were handed and the processor time until now.
    fn sides(&self) -> (Result<plumb_measure::StorageSide, String>, Option<CpuUse>) {
        let Some((counted, cpu)) = &self.before else {
            return (Err("the counters could not be read when it began".to_owned()), None);
        };
        let cpu = cpu.zip(cpu::of_this_process()).map(|(before, now)| CpuUse {
            user: now.user.since(before.user),
            system: now.system.since(before.system),
        });
        (self.beneath.between(counted, &self.beneath.count(false)), cpu)
    }
}

/// What is known of a run before it begins.
struct Told<'a> {
    request: &'a Request,
    run: &'a ProfileRun,
    profile: &'static Profile,
    directory: &'a std::path::Path,
    surveyed: &'a Surveyed,
}

impl Told<'_> {
    /// The document of what was seen, judged; without an end of a run that goes on.
    fn describe(&self, seen: &Seen, ended: Option<&TrialEnded>) -> RunDocument {
        let Self { request, run, profile, directory, surveyed } = self;
        let Seen { measured, storage, cpu, .. } = seen;
        let outcome: &LoadOutcome = &measured.outcome;
        let seconds = outcome.length.as_secs_f64();
        let total = sides(outcome, storage.clone(), *cpu);
        let job = RunJob {
            name: profile.name.clone(),
            description: profile.summary.clone(),
            threads: run.limits.threads.unwrap_or(1),
            caching: Caching::Cached,
            scheduled: false,
            flush: None,
            durable_write_every: None,
            content: "what the application writes".to_owned(),
            reducible: false,
            cpu: cpu.map(cpu_seconds),
            ..RunJob::default()
        };
        let calls = measured.operations.iter().filter_map(|(name, histogram)| {
            Some(CallLatency { name: name.clone(), latency: histogram.summary()? })
        });
        let mut notes = request.notes.clone();
        notes.extend(measured.notes.iter().cloned());
        let target = RunTarget {
            name: directory.display().to_string(),
            opened: directory.display().to_string(),
            engine: profile.name.clone(),
            sides: total.clone(),
            ..RunTarget::default()
        };
        let span = RunSpan { duration: seconds, jobs: vec![job], total: total.clone(), ..RunSpan::default() };
        let mut document = RunDocument {
            duration: seconds,
            complete: ended == Some(&TrialEnded::Complete),
            incomplete_because: ended.map_or(Some(GOES_ON.to_owned()), TrialEnded::reason),
            targets: vec![target],
            total,
            spans: vec![span],
            transactions: Some(Transactions {
                count: measured.transactions.count(),
                per_second: measured.transactions_per_second().unwrap_or(0.0),
                // SQLite syncs by itself, which is not seen from here.
                syncs_each: match profile.work {
                    application::Work::Sqlite(_) => None,
                    _ => measured.syncs_per_transaction(),
                },
                latency: measured.transactions.summary(),
                calls: calls.collect(),
            }),
            notes,
            ..record::empty_document(request, run.limits.seed)
        };
        add_path(&mut document, &directory.display().to_string(), surveyed);
        verdict::conclude(&mut document, judge::findings(&application::judge(profile, measured)));
        document
    }
}

/// A failure of an application, by what kind it is.
pub(crate) fn kind_of(error: &application::Error) -> crate::error::FailureKind {
    use application::Error;
    match error {
        Error::SyncFailed { .. } | Error::Full { .. } | Error::Call { .. } => {
            crate::error::FailureKind::Failed
        }
        _ => crate::error::FailureKind::Usage,
    }
}
