//! `plumb policy`: showing, planning, changing, verifying, restoring and persisting the write caches of
//! disks.
//!
//! The decisions are in `plumb_policy`, the output in `plumb_report`; this module converts arguments.

mod apply;
mod claim;
mod disks;
mod enforce;
mod heal;
mod persist;
mod plan;
mod rollback;
mod show;
#[cfg(test)]
mod tests;
mod verify;
mod watch;

use std::io;

use plumb_block::FailureKind;
use plumb_policy::error::PolicyError;

use crate::arguments::policy::{PolicyArguments, PolicyCommand};
use crate::exit::{Exit, Refusal};

/// Runs the command as typed.
pub(crate) fn run(arguments: &PolicyArguments) -> anyhow::Result<Exit> {
    let ended = match &arguments.command {
        PolicyCommand::Show(show) => show::run(show),
        PolicyCommand::Plan(plan) => plan::run(plan),
        PolicyCommand::Apply(apply) => apply::run(apply),
        PolicyCommand::Verify(verify) => verify::run(verify),
        PolicyCommand::Rollback(rollback) => rollback::run(rollback),
        PolicyCommand::Watch(watch) => watch::run(watch),
        PolicyCommand::Persist(persist) => persist::run(persist),
        PolicyCommand::Heal(heal) => heal::run(heal),
        PolicyCommand::Claim(claim) => claim::run(claim),
        PolicyCommand::Enforce(enforce) => enforce::run(enforce),
    };
    ended.map_err(|failure| match failure.is::<PolicyError>() && is_denied(&failure) {
        true => {
            let message = format!("{failure:#}: only root may; nothing was done: run it again as root");
            Refusal::new(FailureKind::Refused, message).into()
        }
        false => failure,
    })
}

/// Returns true if the system denied the operation and this user is not root.
fn is_denied(failure: &anyhow::Error) -> bool {
    let mut causes = failure.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == io::ErrorKind::PermissionDenied)
        && !rustix::process::geteuid().is_root()
}
