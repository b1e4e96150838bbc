//! `plumb policy claim`: the claim of an administrator that a cache survives a power cut.

use std::path::Path;

use plumb_block::FailureKind;
use plumb_policy::claims::{self, Claim};
use plumb_policy::error::PolicyError;
use plumb_policy::machine::{Machine, RecordedClaim};
use plumb_report::Kind;
use plumb_report::document::policy::PolicyClaim;
use plumb_state::places::CLAIMS;

use super::disks::are_disks_of_this_machine;
use crate::arguments::policy::ClaimArguments;
use crate::exit::{Exit, Refusal, refuse_if};
use crate::terminal;

pub(super) fn run(arguments: &ClaimArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::Status)?;
    let mut machine = Machine::this(&arguments.shared.claims)?;
    let file = arguments.shared.claims.as_path();
    if file == Path::new(CLAIMS) {
        machine.need_root("record a claim for this machine")?;
    }
    if arguments.withdraw {
        let identity = machine.identity(&arguments.device)?;
        let withdrawn = claims::withdraw(file, &identity).map_err(PolicyError::from)?;
        let message = format!("{} holds no claim for {identity}: nothing was withdrawn", file.display());
        refuse_if!(withdrawn == 0, Usage, message);
        terminal::show_status(&PolicyClaim { withdrawn, ..PolicyClaim::new(file, &identity) }, format)?;
        return Ok(Exit::Done);
    }
    let RecordedClaim { name, claim, doubt } = give(&mut machine, arguments)?;
    let document = PolicyClaim::new(file, &claim.identity);
    terminal::show_status(&PolicyClaim { name: Some(name), claim: Some(claim), ..document }, format)?;
    if let Some(doubt) = doubt {
        terminal::say(&format!("plumb: the claim is recorded, but {doubt}"));
        return Ok(Exit::Finding);
    }
    Ok(Exit::Done)
}

/// Records the claim, and reads the disk again with it.
pub(super) fn give(machine: &mut Machine, arguments: &ClaimArguments) -> anyhow::Result<RecordedClaim> {
    let (Some(who), Some(until), Some(reason)) = (&arguments.by, arguments.until, &arguments.reason) else {
        return Err(Refusal::new(FailureKind::Usage, "a claim needs --by, --until and --reason").into());
    };
    are_disks_of_this_machine(std::slice::from_ref(&arguments.device))?;
    for (option, text) in [("--by", who), ("--reason", reason)] {
        let message = format!("{option} is empty: a claim names its author and the reason");
        refuse_if!(text.trim().is_empty(), Usage, message);
    }
    let claim = Claim { identity: String::new(), who: who.clone(), until, reason: reason.clone() };
    Ok(machine.record(&arguments.shared.claims, &arguments.device, claim)?)
}
