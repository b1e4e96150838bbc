//! Check that disks are still in the state of a plan: read again and compared.

use serde::Serialize;

use crate::apply::Session;
use crate::device::{InventoryError, Reader};
use crate::mechanism::{self, Goal, Material};
use crate::metrics;
use crate::plan::{Plan, PlanRequest};
use crate::view::DeviceView;

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Always [`Verification::SCHEMA`].
    pub schema: String,
    /// Hash of the plan.
    pub plan: String,
    /// All disks that the plan changed or found in the requested state.
    pub disks: Vec<DiskDrift>,
}

/// Drift of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiskDrift {
    /// Name in the plan.
    pub name: String,
    /// Present name; null if it is absent.
    pub name_now: Option<String>,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: String,
    /// Requested state.
    pub asked: PlanRequest,
    /// Differences, one line each; empty if there are none.
    pub drift: Vec<String>,
}

impl Verification {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-verify/1";

    /// Returns true if anything differs, which is a finding.
    pub fn has_drift(&self) -> bool {
        self.disks.iter().any(|disk| !disk.drift.is_empty())
    }

    /// Formats the result in Prometheus text format.
    pub fn metrics(&self) -> String {
        metrics::drift(&self.disks)
    }
}

/// Reads every disk of a plan again; changes nothing. Disks are found by their identity, in any boot.
///
/// # Errors
/// If the uses of the disks cannot be determined.
pub fn verify(session: &Session<'_>, plan: &Plan) -> Result<Verification, InventoryError> {
    let reader = session.reader()?;
    let changed = plan.changes.iter().map(|change| (&change.name, &change.identity, change.goal()));
    let state = plan.asked.state();
    let unchanged = plan.unchanged.iter().filter_map(|disk| {
        // In a plan for a heal, a disk without a trap may have its cache off, which is not a drift.
        let goal = Goal { state: state?, saved: None };
        Some((&disk.name, disk.identity.as_ref()?, goal))
    });
    let disks = changed
        .chain(unchanged)
        .map(|(name, identity, goal)| {
            let (name_now, mut drift) = drift(session, &reader, name, identity, goal);
            if !drift.is_empty() {
                drift.extend(reader.configured.iter().map(|line| format!("perhaps set by {line}")));
            }
            DiskDrift { name: name.clone(), name_now, identity: identity.clone(), asked: plan.asked, drift }
        })
        .collect();
    Ok(Verification { schema: Verification::SCHEMA.to_owned(), plan: plan.hash.clone(), disks })
}

fn drift(
    session: &Session<'_>,
    reader: &Reader<'_>,
    name: &str,
    identity: &str,
    goal: Goal,
) -> (Option<String>, Vec<String>) {
    let Some(disk) = reader.find_named(name, identity) else {
        return (None, vec!["the disk is not there".to_owned()]);
    };
    let lines = match reader.one(&disk.name) {
        Err(error) => vec![error.to_string()],
        Ok(mut view) => {
            // Reading is not refused; a disk that must not be changed now can still have drifted.
            view.refusal = None;
            read(session, reader, &view, goal)
        }
    };
    (Some(disk.name), lines)
}

fn read(session: &Session<'_>, reader: &Reader<'_>, view: &DeviceView, goal: Goal) -> Vec<String> {
    match Material::read(reader, view) {
        Err(refusal) => vec![refusal.reason],
        Ok(material) => {
            let found = mechanism::read_back(session.gateway, &material);
            let differs = mechanism::disagreements(material.kind, goal, &found);
            differs.iter().map(ToString::to_string).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_count_what_differs_of_each_disk() {
        let disk = |name: &str, now: Option<&str>, drift: &[&str]| DiskDrift {
            name: name.into(),
            name_now: now.map(str::to_owned),
            identity: format!("serial.\"{name}"),
            asked: PlanRequest::Off,
            drift: drift.iter().map(|line| (*line).to_owned()).collect(),
        };
        let disks = vec![disk("sda", Some("sdc"), &["a", "b"]), disk("sdb", None, &[])];
        let found =
            Verification { schema: Verification::SCHEMA.into(), plan: String::new(), disks }.metrics();
        for line in [
            r#"plumb_policy_drift{disk="sdc",identity="serial.\"sda",asked="off"} 2"#,
            r#"plumb_policy_drift{disk="sdb",identity="serial.\"sdb",asked="off"} 0"#,
        ] {
            assert!(found.lines().any(|of| of == line), "{line} is not in\n{found}");
        }
    }
}
