//! One run directory for all hosts: the document, and of each host of a load the distributions and the time
//! series. It is begun before a host is asked, and what came so far is kept in it, so that a controller that
//! is killed leaves that. Until all hosts are gone it is written by a thread of its own: hosts stop if they
//! do not hear of their controller, and a disk may take longer than they wait.

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

/// Interval at which interim results are written; longer where writing would take more than a twentieth of
/// the time.
const WRITE_EVERY: Nanos = Nanos::secs(5);
const WRITE_SHARE: u64 = 20;

/// The command that is recorded.
#[derive(Debug, Clone)]
pub struct Command {
    /// The command line, without words that are nobody's business.
    pub argv: Vec<String>,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
}

impl Command {
    /// Returns the command with these words, but of the launcher only its program: a password may be among
    /// its words.
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

/// The recording of a command.
pub struct Recording {
    record: Record,
    /// Facts that are known before a host has answered: command, workload, steps, where it is run and kept.
    pub begun: FleetDocument,
}

/// Content that is kept of a command that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The answers of the hosts until now.
    Answers,
    /// The document that is given to [`InterimRecord::write`].
    Given,
}

impl Recording {
    /// Begins the recording of what is to become of `begun`.
    ///
    /// # Errors
    /// If the place does not take it.
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

    /// Does `work`, while a thread of its own writes what that keeps, and waits until all of it is written.
    pub(crate) fn during<R>(&mut self, content: Content, work: impl FnOnce(&mut InterimRecord) -> R) -> R {
        let Self { record, begun } = self;
        let is_kept = record.path().is_some();
        let next = (is_kept && content == Content::Answers).then_some(Nanos::ZERO);
        let (tell, troubles) = channel();
        let write = |job: Job| {
            // Nobody is left to be told once the work is over: then it is written once more.
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

    /// Removes the recording, for a run in which nothing was measured.
    ///
    /// # Errors
    /// Fails if the directory cannot be removed.
    pub fn abandon(self) -> plumb_measure::Result<()> {
        self.record.abandon()
    }

    /// Ends the recording with the last document and what the loads measured; it is whole, or not for a
    /// reason.
    ///
    /// # Errors
    /// If it cannot be written.
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
            // There may be room for the document, or not: one error is enough.
            directory.write_result(document).ok();
            return appended;
        }
        self.record.close(document, because, ended_at)
    }
}

/// Writes something.
type Job = Box<dyn FnOnce(&mut RunDirectory) -> plumb_measure::Result<()> + Send>;

/// Recording that is kept while hosts work. Nothing here waits for a disk.
pub struct InterimRecord {
    outlet: InterimSender<Job>,
    /// Job that is written after the current one.
    waiting: Option<Job>,
    /// Facts that are known before a host has answered, as in [`Recording`].
    pub begun: FleetDocument,
    /// When the answers of hosts are written next, if they are.
    next: Option<Nanos>,
    troubles: Receiver<String>,
}

impl InterimRecord {
    /// Has what the hosts have answered until now written, if it is time, and nothing else waits. What cannot
    /// be written now is written the next time, or at the end. Returns what is to be told of that.
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

    /// Has `document` made the result, durably, unless another comes before it is written.
    pub fn write(&mut self, document: impl Serialize + Send + 'static) {
        self.give(Box::new(move |directory| directory.write_result(&document)));
    }

    fn give(&mut self, job: Job) {
        self.waiting = self.outlet.offer(job);
    }
}

/// Builds the document of these answers, judged.
pub fn document(begun: &FleetDocument, answers: &mut [Answer<'_>]) -> FleetDocument {
    let found = merge::findings(answers);
    let FleetDocument { command, scale, workload, seed, environment, run_directory, .. } = begun.clone();
    let known = merge::document(answers);
    let mut document = FleetDocument { command, scale, workload, seed, environment, run_directory, ..known };
    verdict::conclude_fleet(&mut document, &found);
    document
}

/// Returns the distributions of all loads, as they are recorded.
pub fn histograms(answers: &[Answer<'_>]) -> Vec<TaggedHistogram> {
    measured(answers).flat_map(|(number, of)| plumb_trial::histograms(number, of)).collect()
}

/// Returns what each load has measured, with the number of its host.
fn measured<'a>(answers: &'a [Answer<'_>]) -> impl Iterator<Item = (usize, &'a LoadOutcome)> {
    answers.iter().enumerate().filter_map(|(number, of)| Some((number, of.outcome.as_deref()?)))
}
