//! `plumb policy`: the write caches of disks, read, planned, changed, read back, restored and kept.
//!
//! `plumb_policy` decides, and `plumb_report` shows; here arguments become questions.

mod apply;
mod claim;
mod enforce;
mod heal;
mod host;
mod persist;
mod plan;
mod progress;
mod rollback;
mod show;
#[cfg(test)]
mod tests;
mod verify;
mod watch;

use crate::arguments::policy::{PolicyArguments, PolicyCommand};
use crate::exit::Exit;

/// Runs the command as typed.
pub(crate) fn run(arguments: &PolicyArguments) -> anyhow::Result<Exit> {
    match &arguments.command {
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
    }
}
