//! The conformance kit: the contract of the waist as checks that any [`Device`](crate::Device) implementation
//! runs.
//!
//! A test gives the kit a [`Rig`]: the device, and the events around it that the rig can stage (a power cut,
//! a failed flush, a request that is never answered). [`run`] runs every check and returns a [`Report`]; a
//! check whose events the rig cannot stage is reported as skipped with the reason, never as passed.
//! [`Report::assert_conforms`] ends a test.
//!
//! - `crash_rules`: the rules for reads and power cuts, as text and code.
//! - `rig`, `report`: input and result of a test.
//! - `session`: drives queues, and judges every completion and every block read.
//! - `oracle`: judges histories of one device across cuts and kills, for tests that do without a rig.
//! - `checks`: the checks.
//! - `model`: [`ModelDevice`], a reference implementation in memory, slow and simple, with bugs to be
//!   planted: the proof that each check can fail.
//!
//! Invariant: everything random follows from the seed given to [`run`] and from the rig's own; both are in
//! the message of every failure.

mod checks;
mod crash_rules;
mod model;
pub mod oracle;
mod report;
mod rig;
mod session;

pub use crash_rules::{Content, History, Moment, Survivors, Version};
pub use model::{Bug, ModelDevice, ModelOptions, ModelRig};
pub use report::{CheckReport, Report, Verdict};
pub use rig::{CannotStage, Rig};
pub use session::BlockContent;

use session::Stop;

/// A check by its name.
type Check = (&'static str, fn(&mut dyn Rig, u64) -> Result<(), Stop>);

/// Runs every check on the rig's device.
pub fn run(rig: &mut dyn Rig, seed: u64) -> Report {
    let checks = checks::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    run_some(rig, seed, &checks)
}

/// Returns the names of all checks, in the order in which [`run`] runs them.
pub fn names() -> Vec<&'static str> {
    checks::ALL.iter().map(|(name, _)| *name).collect()
}

/// Runs the checks with these names; a name that does not exist is reported as failed.
pub fn run_some(rig: &mut dyn Rig, seed: u64, names: &[&str]) -> Report {
    let mut results = Vec::with_capacity(names.len());
    for name in names {
        let verdict = match checks::ALL.iter().find(|(known, _)| known == name) {
            None => Verdict::Failed { why: "there is no check of this name".to_owned() },
            Some((_, check)) => match check(rig, seed) {
                Ok(()) => Verdict::Passed,
                Err(Stop::Skipped(because)) => Verdict::Skipped { because },
                Err(Stop::Failed(why)) => {
                    Verdict::Failed { why: format!("{why} (kit seed {seed}, rig: {})", rig.describe()) }
                }
            },
        };
        results.push(CheckReport { name: (*name).to_owned(), verdict });
    }
    Report { rig: rig.describe(), seed, checks: results }
}
