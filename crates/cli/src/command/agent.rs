//! `plumb agent --stdio`: executes the tasks of a fleet's controller, over stdin and stdout.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use clap::Args;
use plumb_block::{Clock, FailureKind};
use plumb_compare::Factor;
use plumb_dialect::{Meaning, native};
use plumb_fleet::stdio::Link;
use plumb_fleet::work::{self, Loads, TaskFailure};
use plumb_fleet::{LoadTask, MonotonicClock};
use plumb_load::Observer;
use plumb_trial::{Context, Request, Trial};

use crate::arguments::running::{OwnArguments, RecordingArguments};
use crate::command::running::{RunningCommand, exit_of};
use crate::exit::{self, Exit, Refusal, usage};
use crate::strictness::Strictness;
use crate::surroundings::time_of_day;
use crate::{leftovers, setting_machine, stop, traces};

/// Arguments of `plumb agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// Answer over stdin and stdout
    #[arg(long, required = true)]
    stdio: bool,

    /// Remove the file of this program first: it was copied for this run alone
    #[arg(long)]
    remove_program: bool,
}

/// Serves the controller until it is gone.
pub(crate) fn run(arguments: &AgentArguments) -> anyhow::Result<Exit> {
    if arguments.remove_program {
        work::remove_program().context("cannot remove this program")?;
    }
    let stop = stop::on_signals()?;
    match work::run(&stop, Arc::new(OwnLoads)).context("stdin, stdout or this program")? {
        None => Ok(Exit::Done),
        Some(because) => Err(Refusal::new(FailureKind::NotMeasured, because).into()),
    }
}

/// Runner of loads, with the code of `plumb load`.
struct OwnLoads;

impl Loads for OwnLoads {
    fn run(
        &self,
        load: &LoadTask,
        link: &Link,
        observer: &mut dyn Observer,
    ) -> Result<(Trial, u8), TaskFailure> {
        leftovers::put_back_runs();
        leftovers::tell_of_servers();
        let request = request(load)?;
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock);
        let context = Context { clock: &clock, stop: &link.stop, time_of_day: &time_of_day };
        let trial = at_level(load, &request, link, || plumb_trial::run(&request, &context, observer))?;
        let exit = exit_of(&trial, Strictness::default());
        Ok((trial, exit.code()))
    }
}

fn request(load: &LoadTask) -> Result<Request, TaskFailure> {
    let scenario = native::read(&load.words, "the workload", 0).map_err(usage).map_err(task_failure)?;
    let own = OwnArguments {
        overwrite: load.overwrite,
        destroy: load.destroy.clone(),
        remove_after: load.remove_after,
        recording: RecordingArguments { no_record: true, ..RecordingArguments::default() },
        ..OwnArguments::default()
    };
    let running = RunningCommand::begin("load", own);
    traces::read(running.request(Meaning { scenario, notes: Vec::new() }, load.words.clone()))
        .map_err(task_failure)
}

/// Sets the level of the load, if it has one, runs, and restores the state before.
fn at_level(
    load: &LoadTask,
    request: &Request,
    link: &Link,
    run: impl FnOnce() -> Result<Trial, plumb_trial::TrialError>,
) -> Result<Trial, TaskFailure> {
    let Some(level) = &load.level else { return Ok(run()?) };
    let failed = |because: String| TaskFailure { kind: FailureKind::Usage, because };
    let factor: Factor = level.factor.parse().map_err(failed)?;
    let targets = request.scenario.targets();
    let mut setting = factor.setting_of_disks(&targets, &setting_machine::this).map_err(task_failure)?;
    link.restores.store(true, Ordering::Relaxed);
    let set = setting.set(level.number);
    let ran = catch_unwind(AssertUnwindSafe(|| set.and_then(|()| run())));
    let restored = setting.restore();
    link.restores.store(false, Ordering::Relaxed);
    restored?;
    Ok(ran.unwrap_or_else(|panic| resume_unwind(panic))?)
}

/// Converts a failure into the form that the controller receives.
fn task_failure(failure: impl Into<anyhow::Error>) -> TaskFailure {
    let failure = failure.into();
    TaskFailure { kind: exit::kind_of(&failure), because: format!("{failure:#}") }
}
