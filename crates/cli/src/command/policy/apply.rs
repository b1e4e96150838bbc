//! `plumb policy apply`: a plan, carried out.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plumb_block::RealClock;
use plumb_policy::apply::{Progress, apply_in, resume_in};
use plumb_policy::error::PolicyError;
use plumb_policy::file::FileError;
use plumb_policy::journal::{self, JournalError};
use plumb_policy::light_load::{LightLoad, LightLoadError};
use plumb_policy::observe::{Observation, SwitchRecorder};
use plumb_policy::plan::{self, Plan, PlanError};
use plumb_report::document::policy::PolicyApply;
use plumb_report::{Format, Kind};

use super::host::{Host, refusal};
use super::progress::TerminalProgress;
use crate::arguments::policy::{ApplyArguments, Carrying};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// Job that is applied.
pub(super) enum Job<'a> {
    /// A plan, from its beginning.
    New(&'a Plan),
    /// A journal, from where it was cut off.
    Resumed { journal: &'a Path, plan: &'a Plan },
}

pub(super) fn run(arguments: &ApplyArguments) -> anyhow::Result<Exit> {
    let host = Host::new(&arguments.carrying.shared)?;
    host.need_root("change the write cache of a disk")?;
    let stop = stop::on_signals()?;
    match (&arguments.resume, &arguments.plan) {
        (Some(journal), _) => {
            let plan = journal::snapshot_of(journal).map_err(|error| refusal(error.into()))?.plan;
            told(&host, &Job::Resumed { journal, plan: &plan }, &arguments.carrying, &stop)
        }
        (None, Some(path)) => {
            let plan = plan::load(path).map_err(|error| refusal(error.into()))?;
            if plan.changes.is_empty() && !plan.refused.is_empty() {
                return Err(all_refused(&plan));
            }
            told(&host, &Job::New(&plan), &arguments.carrying, &stop)
        }
        (None, None) => Err(Refusal::new(Exit::Usage, "neither a plan nor a journal is named").into()),
    }
}

fn all_refused(plan: &Plan) -> anyhow::Error {
    let each = plan.refused.iter().map(|disk| format!("\n  {}: {}; {}", disk.name, disk.reason, disk.remedy));
    let message =
        format!("the plan changes nothing: every disk of it was refused{}", each.collect::<String>());
    Refusal::new(Exit::Refused, message).into()
}

/// Carries a job out, prints what became of it, and says how it ended: by what was read back, and by nothing
/// else.
pub(super) fn told(
    host: &Host,
    job: &Job<'_>,
    carrying: &Carrying,
    stop: &AtomicBool,
) -> anyhow::Result<Exit> {
    let format = carrying.shared.printed.format(Kind::Status)?;
    let progress = TerminalProgress::on_stderr();
    let outcome = carry_out(host, job, carrying, stop, &progress);
    drop(progress);
    tell(&outcome?, format)
}

/// Carries a job out, with a load beside it if that was asked for.
pub(super) fn carry_out(
    host: &Host,
    job: &Job<'_>,
    carrying: &Carrying,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> anyhow::Result<PolicyApply> {
    let plan = match job {
        Job::New(plan) | Job::Resumed { plan, .. } => *plan,
    };
    // A plan that will be refused is not to cost the disk a load.
    let found = plan.hash_now();
    if found != plan.hash {
        let written = plan.hash.clone();
        return Err(refusal(PolicyError::Plan(PlanError::Altered { found, written })));
    }
    let clock = RealClock::start();
    let load = match &carrying.observe {
        Some(file) => Some(LightLoad::start(&*host.gateway, plan, file, clock).map_err(unobserved)?),
        None => None,
    };
    let switches = SwitchRecorder::new(&clock, progress);
    let session = host.session(stop, &switches);
    let ended = match job {
        Job::New(plan) => apply_in(&session, plan, &carrying.journal),
        Job::Resumed { journal, .. } => resume_in(&session, journal),
    };
    let samples = load.map(LightLoad::stop);
    let switches = switches.into_switches();
    let observation = samples.map(|samples| Observation::from_samples(&samples, &switches));
    let report = ended.map_err(|error| refused_or_failed(error, carrying))?;
    Ok(PolicyApply { report, observation })
}

fn tell(outcome: &PolicyApply, format: Format) -> anyhow::Result<Exit> {
    terminal::show_status(outcome, format)?;
    if let Some(go_on) = outcome.report.go_on.as_ref().filter(|_| format != Format::Terminal) {
        terminal::say(&format!("plumb: {go_on}"));
    }
    Ok(outcome.report.failure().map_or(Exit::Done, Exit::from))
}

/// Returns where the journal cannot be kept nothing is changed: the first write to it comes before the first
/// change.
fn refused_or_failed(error: PolicyError, carrying: &Carrying) -> anyhow::Error {
    match error {
        PolicyError::Journal(JournalError::File(FileError { operation: "make", .. })) => {
            let place = carrying.journal.display();
            let message = format!(
                "{:#}; nothing was changed: name another place than {place} with --journal",
                anyhow::Error::new(error)
            );
            Refusal::new(Exit::Failed, message).into()
        }
        error => refusal(error),
    }
}

fn unobserved(error: LightLoadError) -> Refusal {
    Refusal::because(error.failure().into(), error)
}
