//! `plumb policy verify`: checks whether disks are still in their planned state.

use std::sync::atomic::AtomicBool;

use plumb_block::FailureKind;
use plumb_policy::error::PolicyError;
use plumb_policy::journal;
use plumb_policy::machine::Machine;
use plumb_policy::plan::{self, Plan};
use plumb_policy::verify::verify;
use plumb_report::Kind;

use crate::arguments::policy::VerifyArguments;
use crate::exit::{Exit, Refusal};
use crate::terminal;

pub(super) fn run(arguments: &VerifyArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::State)?;
    let reads = [arguments.plan.clone(), arguments.shared.claims.clone()];
    let output = arguments.writing.only(arguments.prometheus_file.as_ref(), &reads)?;
    let machine = Machine::this(&arguments.shared.claims)?;
    let plan = plan(arguments)?;
    if !machine.is_root {
        // A drive that cannot be queried must not count as drift.
        let message = "only root may read the state of drives; nothing was verified: run it again as root";
        return Err(Refusal::new(FailureKind::NotMeasured, message).into());
    }
    let stop = AtomicBool::new(false);
    let verification = verify(&machine.session(&stop, &|_| ()), &plan)
        .map_err(|unseen| Refusal::because(FailureKind::NotMeasured, PolicyError::from(unseen)))?;
    if let Some(output) = output {
        output.write(verification.metrics().as_bytes())?;
    }
    terminal::show_status(&verification, format)?;
    Ok(if verification.has_drift() { Exit::Finding } else { Exit::Done })
}

fn plan(arguments: &VerifyArguments) -> anyhow::Result<Plan> {
    if arguments.plan.is_dir() {
        let snapshot = journal::snapshot_of(&arguments.plan).map_err(PolicyError::from)?;
        return Ok(snapshot.plan);
    }
    Ok(plan::load(&arguments.plan).map_err(PolicyError::from)?)
}
