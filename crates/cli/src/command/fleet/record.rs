//! One run directory for all hosts: the document, and of each host of a load the distributions and the time
//! series. It is begun before a host is asked, and what came so far is kept in it, so that a controller that
//! is killed leaves that. Until all hosts are gone it is written by a thread of its own: hosts stop if they
//! do not hear of their controller, and a disk may take longer than they wait.

use std::sync::mpsc::{Receiver, channel};

use plumb_block::{Clock as _, Nanos, in_one_line};
use plumb_fleet::merge::{self, Answer};
use plumb_fleet::{Controller, MonotonicClock};
use plumb_measure::{Manifest, Out, RunDirectory, TaggedHistogram};
use plumb_report::document::FleetDocument;
use plumb_report::{Record, Rendered, verdict};
use plumb_trial::{Outlet, TrialEnded, environment};
use serde::Serialize;

use super::recorded_argv;
use crate::command::running::exit_of_end;
use crate::exit::{Exit, usage};
use crate::surroundings::time_of_day;
use crate::terminal;

/// Interval at which interim results are written; longer where writing would take more than a twentieth of
/// the time.
const WRITE_EVERY: Nanos = Nanos::secs(5);
const WRITE_SHARE: u64 = 20;

/// The recording of a command.
pub(super) struct Recording {
    record: Record,
    /// Facts that are known before a host has answered: command, workload, steps, where it is run and kept.
    pub(super) begun: FleetDocument,
}

/// Content that is kept of a command that goes on.
pub(super) enum What {
    /// The answers of the hosts until now.
    Answers,
    /// The document that is given to [`Kept::write`].
    Given,
}

impl Recording {
    /// Begins the recording of what is to become of `begun`.
    ///
    /// # Errors
    /// If the place does not take it.
    pub(super) fn begin(out: &Out, names: &[String], mut begun: FleetDocument) -> anyhow::Result<Self> {
        let (argv, started_at) = (recorded_argv(), time_of_day());
        begun.environment = environment(&argv, &started_at);
        let mut manifest = Manifest::starting("fleet", argv, begun.seed, started_at);
        manifest.target = Some(names.join(" "));
        let record = Record::of(RunDirectory::create(out, &manifest).map_err(usage)?);
        begun.run_directory = record.shown();
        Ok(Self { record, begun })
    }

    /// Does `work`, while a thread of its own writes what that keeps, and waits until all of it is written.
    pub(super) fn during<R>(&mut self, what: &What, work: impl FnOnce(&mut Kept) -> R) -> R {
        let Self { record, begun } = self;
        let is_kept = record.path().is_some();
        let next = (is_kept && matches!(what, What::Answers)).then_some(Nanos::ZERO);
        let (tell, troubles) = channel();
        let write = |job: Job| {
            // Nobody is left to be told once the work is over: then it is written once more.
            record.attempt(job).map(|trouble| tell.send(trouble).ok());
        };
        plumb_trial::recorded(is_kept, write, |outlet| {
            let mut kept = Kept { outlet, waiting: None, begun: std::mem::take(begun), next, troubles };
            let done = work(&mut kept);
            *begun = kept.begun;
            done
        })
    }

    /// Gives the recording up: nothing was measured.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(super) fn abandon(self) -> anyhow::Result<()> {
        Ok(self.record.abandon()?)
    }

    /// Ends the recording with the last document and what the loads measured; it is whole, or not for a
    /// reason.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn finish<'a, D: Serialize>(
        mut self,
        document: &'a D,
        answers: &[Answer<'_>],
        because: Option<String>,
    ) -> plumb_measure::Result<()>
    where
        &'a D: Into<Rendered<'a>>,
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
        self.record.close(document, because, time_of_day())
    }
}

/// How a command ends whose recording `ended` so. What is wrong with it is said, also in the result.
pub(super) fn exit_of_recording(
    ended: plumb_measure::Result<()>,
    notes: &mut Vec<String>,
    run_directory: &mut Option<String>,
) -> Exit {
    let Err(error) = ended else { return Exit::Done };
    let why = format!("the recording is not whole: {}", in_one_line(&error));
    terminal::say(&format!("plumb: {why}"));
    notes.push(why);
    *run_directory = None;
    exit_of_end(&TrialEnded::Complete.unrecorded(&error))
}

/// Writes something.
type Job = Box<dyn FnOnce(&mut RunDirectory) -> plumb_measure::Result<()> + Send>;

/// Recording that is kept while hosts work. Nothing here waits for a disk.
pub(super) struct Kept {
    outlet: Outlet<Job>,
    /// Job that is written after the current one.
    waiting: Option<Job>,
    /// Facts that are known before a host has answered, as in [`Recording`].
    pub(super) begun: FleetDocument,
    /// When the answers of hosts are written next, if they are.
    next: Option<Nanos>,
    troubles: Receiver<String>,
}

impl Kept {
    /// Has what the hosts have answered until now written, if it is time, and nothing else waits. What cannot
    /// be written now is written the next time, or at the end. What is to be told of that.
    pub(super) fn look(&mut self, controller: &Controller, now: Nanos) -> Option<String> {
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
    pub(super) fn write(&mut self, document: impl Serialize + Send + 'static) {
        self.give(Box::new(move |directory| directory.write_result(&document)));
    }

    fn give(&mut self, job: Job) {
        self.waiting = self.outlet.offer(job);
    }
}

/// The document of these answers, judged.
pub(super) fn document(begun: &FleetDocument, answers: &mut [Answer<'_>]) -> FleetDocument {
    let found = merge::findings(answers);
    let FleetDocument { command, scale, workload, seed, environment, run_directory, .. } = begun.clone();
    let known = merge::document(answers);
    let mut document = FleetDocument { command, scale, workload, seed, environment, run_directory, ..known };
    verdict::conclude_fleet(&mut document, &found);
    document
}

/// The distributions of all loads, as they are recorded.
pub(super) fn histograms(answers: &[Answer<'_>]) -> Vec<TaggedHistogram> {
    measured(answers).flat_map(|(number, of)| plumb_trial::histograms(number, of)).collect()
}

/// Returns what each load has measured, with the number of its host.
fn measured<'a>(answers: &'a [Answer<'_>]) -> impl Iterator<Item = (usize, &'a plumb_load::LoadOutcome)> {
    answers.iter().enumerate().filter_map(|(number, of)| Some((number, of.outcome.as_deref()?)))
}
