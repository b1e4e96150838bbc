//! `plumb policy apply`: execution of a plan.

use std::sync::atomic::AtomicBool;

use plumb_block::FailureKind;
use plumb_policy::error::PolicyError;
use plumb_policy::file::FileError;
use plumb_policy::job::Job;
use plumb_policy::journal::{self, JournalError};
use plumb_policy::machine::Machine;
use plumb_policy::plan::{self, Plan};
use plumb_report::document::policy::PolicyApply;
use plumb_report::progress::PolicyProgress;
use plumb_report::{Format, Kind};

use crate::arguments::policy::{ApplyArguments, Carrying};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

pub(super) fn run(arguments: &ApplyArguments) -> anyhow::Result<Exit> {
    let machine = Machine::this(&arguments.carrying.shared.claims)?;
    machine.need_root("change the write cache of a disk")?;
    let stop = stop::on_signals()?;
    match (&arguments.resume, &arguments.plan) {
        (Some(journal), _) => {
            let plan = journal::snapshot_of(journal).map_err(PolicyError::from)?.plan;
            told(&machine, Job::Resumed { journal, plan: &plan }, &arguments.carrying, &stop)
        }
        (None, Some(path)) => {
            let plan = plan::load(path).map_err(PolicyError::from)?;
            if plan.changes.is_empty() && !plan.refused.is_empty() {
                return Err(all_refused(&plan));
            }
            let journals = &arguments.carrying.journal;
            told(&machine, Job::New { plan: &plan, journals }, &arguments.carrying, &stop)
        }
        (None, None) => Err(Refusal::new(FailureKind::Usage, "neither a plan nor a journal is named").into()),
    }
}

fn all_refused(plan: &Plan) -> anyhow::Error {
    let each = plan.refused.iter().map(|disk| format!("\n  {}: {}; {}", disk.name, disk.reason, disk.remedy));
    let message =
        format!("the plan changes nothing: every disk of it was refused{}", each.collect::<String>());
    Refusal::new(FailureKind::Refused, message).into()
}

/// Executes a job, prints its report, and returns the exit code, which depends only on the states read back.
pub(super) fn told(
    machine: &Machine,
    job: Job<'_>,
    carrying: &Carrying,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let format = carrying.shared.printed.format(Kind::Status)?;
    let progress = PolicyProgress::on_stderr();
    let ended = job.carry_out(machine, carrying.observe.as_deref(), stop, &|event| progress.on(event));
    drop(progress);
    let (report, observation) = ended.map_err(|error| refused_or_failed(error, carrying))?;
    let outcome = PolicyApply { report, observation };
    terminal::show_status(&outcome, format)?;
    if let Some(go_on) = outcome.report.go_on.as_ref().filter(|_| format != Format::Terminal) {
        terminal::say(&format!("plumb: {go_on}"));
    }
    Ok(outcome.report.failure().map_or(Exit::Done, Exit::from))
}

/// Converts an error. If the journal cannot be created, nothing was changed, because the journal is written
/// before the first change.
fn refused_or_failed(error: PolicyError, carrying: &Carrying) -> anyhow::Error {
    match error {
        PolicyError::Journal(JournalError::File(FileError { operation: "make", .. })) => {
            let place = carrying.journal.display();
            let message = format!(
                "{:#}; nothing was changed: name another place than {place} with --journal",
                anyhow::Error::new(error)
            );
            Refusal::new(FailureKind::Failed, message).into()
        }
        error => error.into(),
    }
}
