//! Run directory of all hosts: the document, and for each host of a load the distributions and time series.
//!
//! It is created before any host is contacted and holds interim results, which remain if the controller is
//! killed. While the agents run, a separate thread writes it: agents stop if their controller is silent, and
//! a disk may block longer than their lease.

use std::sync::mpsc::{Receiver, channel};

use plumb_block::{Clock as _, Nanos};
use plumb_load::LoadOutcome;
use plumb_measure::{Manifest, Out, RunDirectory, TaggedHistogram};
use plumb_report::document::FleetDocument;
use plumb_report::{Record, RenderInput, verdict};
use plumb_trial::{InterimSender, environment};
use serde::Serialize;

use crate::clock::MonotonicClock;
use crate::controller::Controller;
use crate::merge::{self, Answer};

/// Interval of interim results; longer if writing would take more than a twentieth of the time
/// ([`WRITE_SHARE`]).
const WRITE_EVERY: Nanos = Nanos::secs(5);
const WRITE_SHARE: u64 = 20;

/// The recorded command.
#[derive(Debug, Clone)]
pub struct Command {
    /// Command line without secrets.
    pub argv: Vec<String>,
    /// Start time, RFC 3339 in UTC.
    pub started_at: String,
}

impl Command {
    /// Creates the record of a command line. Of the launcher it keeps only the program, as its words may
    /// contain a password.
    pub fn new(argv: Vec<String>, started_at: String) -> Self {
        let program = |words: &str| format!("{} ...", words.split_whitespace().next().unwrap_or_default());
        let mut is_launcher = false;
        let recorded = |word: String| {
            if std::mem::replace(&mut is_launcher, word == "--launcher") {
                return program(&word);
            }
            match word.strip_prefix("--launcher=") {
                Some(words) => format!("--launcher={}", program(words)),
                None => word,
            }
        };
        Self { argv: argv.into_iter().map(recorded).collect(), started_at }
    }
}

/// Recording of a command.
pub struct Recording {
    record: Record,
    /// Facts known before any host has answered: command, workload, scale steps, environment, run directory.
    pub begun: FleetDocument,
}

/// Source of the interim results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Interim answers of the hosts.
    Answers,
    /// Documents passed to [`InterimRecord::write`].
    Given,
}

impl Recording {
    /// Creates the recording of a run described by `begun`.
    ///
    /// # Errors
    /// Fails if the run directory cannot be created.
    pub(crate) fn begin(
        out: &Out,
        names: &[String],
        command: Command,
        mut begun: FleetDocument,
    ) -> plumb_measure::Result<Self> {
        let Command { argv, started_at } = command;
        begun.environment = environment(&argv, &started_at);
        let mut manifest = Manifest::starting("fleet", argv, begun.seed, started_at);
        manifest.target = Some(names.join(" "));
        let record = Record::new(RunDirectory::create(out, &manifest)?);
        begun.run_directory = record.shown();
        Ok(Self { record, begun })
    }

    /// Runs `work` while a separate thread writes its interim results; returns when all are written.
    pub(crate) fn during<R>(&mut self, content: Content, work: impl FnOnce(&mut InterimRecord) -> R) -> R {
        let Self { record, begun } = self;
        let is_kept = record.path().is_some();
        let next = (is_kept && content == Content::Answers).then_some(Nanos::ZERO);
        let (tell, troubles) = channel();
        let write = |job: Job| {
            // After the end of the work the result is written once more, so its error can be ignored.
            record.attempt(job).map(|trouble| tell.send(trouble).ok());
        };
        plumb_trial::run_recorded(is_kept, write, |outlet| {
            let mut kept =
                InterimRecord { outlet, waiting: None, begun: std::mem::take(begun), next, troubles };
            let done = work(&mut kept);
            *begun = kept.begun;
            done
        })
    }

    /// Removes the recording of a run that measured nothing.
    ///
    /// # Errors
    /// Fails if the directory cannot be removed.
    pub fn abandon(self) -> plumb_measure::Result<()> {
        self.record.abandon()
    }

    /// Completes the recording with the final document and the figures of the loads; `because` is the reason
    /// if the result is incomplete.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn finish<'a, D: Serialize>(
        mut self,
        document: &'a D,
        answers: &[Answer<'_>],
        because: Option<String>,
        ended_at: String,
    ) -> plumb_measure::Result<()>
    where
        &'a D: Into<RenderInput<'a>>,
    {
        let Some(directory) = self.record.directory() else { return Ok(()) };
        let appended = measured(answers).try_for_each(|(number, outcome)| {
            directory.append_histograms(&plumb_trial::histograms(number, outcome))?;
            directory.append_series(plumb_trial::series(number, outcome))
        });
        if appended.is_err() {
            // The document may still fit on the disk; report only the first error.
            directory.write_result(document).ok();
            return appended;
        }
        self.record.close(document, because, ended_at)
    }
}

/// A write to the run directory.
type Job = Box<dyn FnOnce(&mut RunDirectory) -> plumb_measure::Result<()> + Send>;

/// Recording of interim results. Does not wait for the disk.
pub struct InterimRecord {
    outlet: InterimSender<Job>,
    /// Job to be written after the current one.
    waiting: Option<Job>,
    /// Facts known before any host has answered, as in [`Recording`].
    pub begun: FleetDocument,
    /// Time of the next interim result; `None` if answers are not recorded.
    next: Option<Nanos>,
    troubles: Receiver<String>,
}

impl InterimRecord {
    /// Queues the interim answers for writing, if it is time and no other write is queued. A failed write is
    /// repeated with the next result. Returns a message about a failure.
    pub(crate) fn look(&mut self, controller: &Controller, now: Nanos) -> Option<String> {
        self.waiting = self.waiting.take().and_then(|job| self.outlet.offer(job));
        let has_answers = || controller.hosts().any(|host| host.figures.is_some() || host.result.is_some());
        if self.waiting.is_none() && self.next.is_some_and(|next| now >= next) && has_answers() {
            let mut answers = merge::answers_so_far(controller);
            let document = document(&self.begun, &mut answers);
            let histograms = histograms(&answers);
            let rows: Vec<_> =
                measured(&answers).flat_map(|(number, of)| plumb_trial::series(number, of)).collect();
            self.give(Box::new(move |directory| directory.write_so_far(&document, &histograms, rows)));
            let took = MonotonicClock.now().since(now);
            self.next = Some(now + WRITE_EVERY.max(took * WRITE_SHARE));
        }
        self.troubles.try_recv().ok()
    }

    /// Queues `document` as the result, written durably. A later document may replace it in the queue.
    pub fn write(&mut self, document: impl Serialize + Send + 'static) {
        self.give(Box::new(move |directory| directory.write_result(&document)));
    }

    fn give(&mut self, job: Job) {
        self.waiting = self.outlet.offer(job);
    }
}

/// Creates the document of these answers, with verdicts.
pub fn document(begun: &FleetDocument, answers: &mut [Answer<'_>]) -> FleetDocument {
    let found = merge::findings(answers);
    let FleetDocument { command, scale, workload, seed, environment, run_directory, .. } = begun.clone();
    let known = merge::document(answers);
    let mut document = FleetDocument { command, scale, workload, seed, environment, run_directory, ..known };
    verdict::conclude_fleet(&mut document, &found);
    document
}

/// Returns the distributions of all loads for the recording.
pub fn histograms(answers: &[Answer<'_>]) -> Vec<TaggedHistogram> {
    measured(answers).flat_map(|(number, of)| plumb_trial::histograms(number, of)).collect()
}

/// Returns the figures of each load with the index of its host.
fn measured<'a>(answers: &'a [Answer<'_>]) -> impl Iterator<Item = (usize, &'a LoadOutcome)> {
    answers.iter().enumerate().filter_map(|(number, of)| Some((number, of.outcome.as_deref()?)))
}
