//! `plumb policy`: the write caches of disks, read, planned, changed, read back, restored and kept.
//!
//! What is decided is decided in `plumb_policy`; here arguments become questions, and answers text, JSON or
//! metrics.

mod apply;
mod claim;
mod enforce;
mod heal;
mod host;
mod observe;
mod persist;
mod plan;
mod progress;
mod recording_gateway;
mod rollback;
mod show;
#[cfg(test)]
mod tests;
mod text;
mod verify;
mod watch;

use serde::Serialize;

use crate::arguments::policy::{PolicyArguments, PolicyCommand};
use crate::exit::Exit;
use crate::terminal;

/// Does what was typed.
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

/// Prints what a command has to say: its one document as JSON, or a page for people.
fn print(json: bool, document: &impl Serialize, page: impl FnOnce() -> String) -> anyhow::Result<()> {
    if json { terminal::print_json(document) } else { terminal::print(&page()) }
}
