//! One check while it runs: its clock, its counters, its progress, and what it has learnt so far.
//!
//! After every phase the document goes to the run directory, so that whatever ends the check leaves a recording that
//! can be read.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{Clock, Nanos, in_one_line};
use plumb_linux::Engine;
use plumb_measure::process::surroundings;
use plumb_measure::{DeviceIdentity, Histogram, Manifest, Out, RunDirectory, Series, TaggedHistogram};
use plumb_report::{
    CheckDocument, CheckEnvironment as Environment, Format, RunDocument, RunRecording, Style, render, verdict,
};

use crate::ended::{Ended, Mishap};
use crate::error::CheckError;
use crate::plan::{Phase, time_for};
use crate::progress::Progress;
use crate::request::{Checked, Request};
use crate::site::Site;
use crate::storage::Storage;
use crate::survey::{self, Surveyed};

/// What stands for the engine where requests go to a drive in this process.
const SIMULATION: &str = "simulation";

/// What one phase measured, for the recording.
pub(crate) struct Window<'a> {
    /// The distributions, each with the part of an operation that it times: `durable`, `write`, `sync`, `read`.
    pub(crate) parts: &'a [(&'a str, &'a Histogram)],
    /// Operations over time.
    pub(crate) series: &'a Series,
    /// The length of the window.
    pub(crate) length: Nanos,
}

/// A check in progress.
pub(crate) struct Session<'a> {
    pub(crate) request: &'a Request,
    phases: &'static [Phase],
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) storage: Storage,
    pub(crate) document: CheckDocument,
    progress: &'a mut dyn Progress,
    directory: Option<RunDirectory>,
    /// The run directory cannot be written any more.
    is_recording_lost: bool,
    /// What could not be measured, although the check went on.
    unmeasured: Option<String>,
}

impl<'a> Session<'a> {
    /// A session that has surveyed and measured nothing yet.
    pub(crate) fn begin(
        request: &'a Request,
        site: &Site<'_>,
        surveyed: Surveyed,
        progress: &'a mut dyn Progress,
        stop: &'a AtomicBool,
    ) -> Self {
        let clock = site.clock();
        let mut storage = site.storage(&surveyed, Arc::clone(&clock));
        storage.book("begin");
        let Surveyed { path, kernel } = surveyed;
        let environment = Environment {
            plumb: env!("CARGO_PKG_VERSION").to_owned(),
            argv: request.argv.clone(),
            seed: request.seed,
            started_at: request.started_at.clone(),
            kernel,
            host: surroundings::host(),
            cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
            memory_bytes: surroundings::memory_bytes(),
            root_would_add: survey::root_would_add(&path),
            ..Environment::default()
        };
        let document = CheckDocument {
            schema: CheckDocument::SCHEMA.to_owned(),
            target: request.subject.to_string(),
            complete: false,
            incomplete_because: None,
            failed: false,
            level: String::new(),
            headline: String::new(),
            path,
            sync: Vec::new(),
            io: Vec::new(),
            accounting: Vec::new(),
            verdicts: Vec::new(),
            environment,
            run_directory: None,
        };
        Self {
            request,
            phases: site.phases(),
            clock,
            stop,
            storage,
            document,
            progress,
            directory: None,
            is_recording_lost: false,
            unmeasured: None,
        }
    }

    /// Whether it was told to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Says that a phase begins.
    pub(crate) fn announce(&mut self, phase: Phase) {
        self.progress.begin(phase.name(), self.request.length.since(self.before(phase)));
    }

    /// Shows how far a phase is, which began `elapsed` ago.
    pub(crate) fn show(&mut self, phase: Phase, elapsed: Nanos) {
        let done = self.before(phase) + elapsed.min(self.time_for(phase));
        let left = self.request.length.since(done);
        let share = done.as_secs_f64() / self.request.length.as_secs_f64();
        self.progress.at(phase.name(), share, left);
    }

    /// Something that the user should know now.
    pub(crate) fn note(&mut self, line: &str) {
        self.progress.note(line);
    }

    /// How long `phase` may take.
    pub(crate) fn time_for(&self, phase: Phase) -> Nanos {
        time_for(phase, self.phases, self.request.length)
    }

    /// How long all phases before `phase` take.
    fn before(&self, phase: Phase) -> Nanos {
        self.phases
            .iter()
            .take_while(|earlier| **earlier != phase)
            .map(|earlier| self.time_for(*earlier))
            .sum()
    }

    /// Keeps how requests reach the kernel, and says so once if it is not the usual way. Without it they reach a drive.
    pub(crate) fn keep_engine(&mut self, engine: Option<&Engine>) {
        if self.document.environment.engine.is_empty() {
            let Some(engine) = engine else {
                SIMULATION.clone_into(&mut self.document.environment.engine);
                return;
            };
            self.document.environment.engine = engine.name().to_owned();
            self.document.environment.engine_because = engine.because().map(str::to_owned);
            if engine.because().is_some() {
                self.note(&format!("direct requests go through {engine}"));
            }
        }
    }

    /// Records distributions under `PHASE/PART`, and what happened when under the name of the phase.
    pub(crate) fn keep(&self, phase: Phase, window: &Window<'_>) -> Result<(), CheckError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let tagged: Vec<TaggedHistogram> = window
            .parts
            .iter()
            .map(|(part, histogram)| TaggedHistogram {
                tag: format!("{}/{part}", phase.name()),
                start: self.clock.now().since(window.length),
                length: window.length,
                histogram: (*histogram).clone(),
            })
            .collect();
        directory.append_histograms(&tagged)?;
        directory.append_series(phase.name(), window.series)?;
        Ok(())
    }

    /// Remembers that a phase could not be measured here, although others can.
    pub(crate) fn lacks(&mut self, phase: Phase, mishap: &Mishap) {
        let reason = format!("{}: {}", phase.name(), mishap.reason());
        self.note(&reason);
        self.unmeasured.get_or_insert(reason);
    }

    /// How a check ends whose phases all had their turn.
    pub(crate) fn ended(&mut self) -> Ended {
        self.unmeasured.take().map_or(Ended::Complete, Ended::NotMeasured)
    }

    /// Makes the run directory, now that there is something to record.
    pub(crate) fn open_recording(&mut self) -> Result<(), CheckError> {
        let environment = &self.document.environment;
        let mut manifest = Manifest::starting(
            "check",
            self.request.argv.clone(),
            self.request.seed,
            &self.request.started_at,
        );
        manifest.target = Some(self.document.target.clone());
        manifest.kernel.clone_from(&environment.kernel);
        manifest.host.clone_from(&environment.host);
        manifest.devices = self.devices();
        let directory = RunDirectory::create_out(&self.request.out, &manifest)?;
        let shown = std::path::absolute(directory.path()).unwrap_or_else(|_| directory.path().to_owned());
        self.document.run_directory = Some(shown.display().to_string());
        self.directory = Some(directory);
        self.save()
    }

    /// Judges the document as it stands and writes it, so that also a run that is killed leaves its verdicts.
    pub(crate) fn save(&mut self) -> Result<(), CheckError> {
        self.document.accounting = self.storage.accounts().to_vec();
        let mut run = RunDocument::from(self.document.clone());
        verdict::conclude(&mut run, Vec::new());
        (self.document.verdicts, self.document.level) = (run.verdicts, run.level);
        self.document.headline = run.headline;
        if let Some(directory) = &self.directory {
            directory.write_result(&self.document)?;
        }
        Ok(())
    }

    /// Goes on without a recording that cannot be written any more: how the check then ends. What was recorded before
    /// stays as it is.
    pub(crate) fn lose_recording(&mut self, error: &plumb_measure::Error) -> Ended {
        self.directory = None;
        self.is_recording_lost = true;
        let reason = in_one_line(error);
        match error {
            plumb_measure::Error::Full { .. } => Ended::NotMeasured(reason),
            _ => Ended::Failed(reason),
        }
    }

    /// Whether there is a recording.
    pub(crate) fn is_recording(&self) -> bool {
        self.directory.is_some()
    }

    /// Judges what was learnt, writes the last of the recording, and lets go of the rest. A recording that cannot be
    /// completed does not take the result with it.
    pub(crate) fn finish(mut self, mut ended: Ended, ended_at: &str) -> Result<Checked, CheckError> {
        if self.directory.is_none() && !self.is_recording_lost && matches!(self.request.out, Out::At(_)) {
            self.open_recording()?;
        }
        self.storage.book("report");
        self.close_document(&ended);
        let recorded = match self.write_up(&ended, ended_at) {
            Err(CheckError::Recording(error)) => {
                ended = self.lose_recording(&error);
                self.close_document(&ended);
                None
            }
            written => written?,
        };
        self.progress.end();
        let (recording, run_directory) = match recorded {
            Some((recording, path)) => (recording, Some(path)),
            None => {
                self.document.run_directory = None;
                (RunRecording::without_distributions(self.document.into()), None)
            }
        };
        Ok(Checked { recording, ended, run_directory })
    }

    /// Brings the document to its end.
    fn close_document(&mut self, ended: &Ended) {
        let document = &mut self.document;
        document.io.sort_by_key(|io| crate::plan::IoKind::ALL.iter().position(|kind| kind.name() == io.name));
        document.incomplete_because = ended.reason();
        document.complete = *ended == Ended::Complete;
        document.failed = matches!(ended, Ended::Failed(_));
    }

    /// The last of the recording: the document, the page, the manifest. `None` without a recording.
    fn write_up(
        &mut self,
        ended: &Ended,
        ended_at: &str,
    ) -> Result<Option<(RunRecording, PathBuf)>, CheckError> {
        self.save()?;
        let Some(directory) = self.directory.take() else { return Ok(None) };
        // The page is made from the recording, as anybody can make it again.
        let recording = RunRecording::open(directory.path())
            .map_err(|error| CheckError::Report(error.to_string()))?
            .unwrap_or_else(|| RunRecording::without_distributions(self.document.clone().into()));
        let page = render(&recording, Format::Html, Style::PLAIN)
            .map_err(|error| CheckError::Report(error.to_string()))?;
        directory.write_file(Format::Html.file_name(), page.as_bytes())?;
        let path = directory.finish(ended.reason(), ended_at)?;
        Ok(Some((recording, path)))
    }

    /// The drives beneath, by what stays the same.
    fn devices(&self) -> Vec<DeviceIdentity> {
        let path = &self.document.path;
        let identity = |name: &str| path.layers.iter().find(|layer| layer.name == name)?.identity.clone();
        path.block_devices()
            .into_iter()
            .map(|name| DeviceIdentity { identity: identity(&name), name })
            .collect()
    }
}
