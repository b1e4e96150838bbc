//! `plumb policy plan`: plans changes, and changes nothing.

use plumb_block::FailureKind;
use plumb_policy::error::PolicyError;
use plumb_policy::machine::Machine;
use plumb_policy::plan::{self, Ask, DiskSelection, Plan, PlanRequest};
use plumb_report::Kind;
use plumb_report::document::policy::ShownPlan;
use plumb_text::shell_word;

use super::disks::{are_disks_of_this_machine, filter};
use crate::arguments::policy::{Chosen, PlanArguments};
use crate::exit::{Exit, Refusal};
use crate::terminal;

pub(super) fn run(arguments: &PlanArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::Status)?;
    let reads = [arguments.shared.claims.clone()];
    let output = arguments.writing.only(arguments.out.as_ref(), &reads)?;
    let machine = Machine::this(&arguments.shared.claims)?;
    let plan = make(&machine, arguments)?;
    if let Some(output) = output {
        let bytes = plan.to_json().map_err(anyhow::Error::new)?;
        output.write(&bytes)?;
    }
    let end = match &arguments.out {
        Some(path) if plan.changes.is_empty() => {
            format!("The plan is in {}; it has nothing to apply.", path.display())
        }
        Some(path) => {
            let word = shell_word(&path.to_string_lossy());
            format!("The plan is in {}; `plumb policy apply {word}` applies it.", path.display())
        }
        None if plan.changes.is_empty() => String::new(),
        None => "Nothing was changed. `--out FILE` writes the plan for `plumb policy apply`.".to_owned(),
    };
    terminal::show_status(&ShownPlan { plan: &plan, with_bytes: arguments.explain, end }, format)?;
    Ok(exit_of(&plan))
}

pub(super) fn make(machine: &Machine, arguments: &PlanArguments) -> anyhow::Result<Plan> {
    let ask = Ask {
        asked: PlanRequest::from(arguments.state),
        save: arguments.save,
        wanted: wanted(&arguments.chosen)?,
        filter: filter(&arguments.chosen).map_err(PolicyError::from)?,
        wave_size: arguments.wave_size,
        claims: &machine.claims,
        now: machine.now,
    };
    Ok(plan::make(&*machine.gateway, &ask)?)
}

/// Returns the named disks. With only an expression, all disks are candidates; with neither, it is a usage
/// error.
pub(super) fn wanted(chosen: &Chosen) -> anyhow::Result<DiskSelection> {
    if !chosen.devices.is_empty() {
        are_disks_of_this_machine(&chosen.devices)?;
        return Ok(DiskSelection::Named(chosen.devices.clone()));
    }
    if chosen.all || chosen.filter.is_some() {
        return Ok(DiskSelection::All);
    }
    let message = "no disk is named: give names, --all, or --where EXPR";
    Err(Refusal::new(FailureKind::Usage, message).into())
}

/// Returns the exit code for a plan: a refused disk is a refusal, whatever happens to the others.
pub(super) fn exit_of(plan: &Plan) -> Exit {
    if plan.refused.is_empty() { Exit::Done } else { Exit::Failed(FailureKind::Refused) }
}
