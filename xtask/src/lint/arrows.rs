//! Arrows between crates point downwards only: each crate may use those that stand before it here, if named.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Offence;

/// Each crate and what it may use; the picture in docs/ARCHITECTURE.md.
const MAY_USE: &[(&str, &[&str])] = &[
    ("plumb-testkit", &[]),
    ("plumb-block", &[]),
    ("plumb-linux", &["plumb-block"]),
    ("plumb-path", &["plumb-block", "plumb-linux"]),
    ("plumb-measure", &["plumb-block"]),
    ("plumb-workload", &["plumb-block"]),
    ("plumb-load", &["plumb-block", "plumb-workload", "plumb-measure"]),
    ("plumb-crash", &["plumb-block"]),
    ("plumb-sim", &["plumb-block", "plumb-crash"]),
    ("plumb-serve", &["plumb-block", "plumb-linux"]),
    ("plumb-policy", &["plumb-block", "plumb-linux", "plumb-path"]),
    ("plumb-target", &["plumb-block", "plumb-linux", "plumb-path", "plumb-sim", "plumb-serve"]),
    ("plumb-application", &["plumb-block", "plumb-workload", "plumb-measure", "plumb-load"]),
    ("plumb-dialect", &["plumb-block", "plumb-workload", "plumb-measure", "plumb-load"]),
    ("plumb-report", &["plumb-block", "plumb-measure", "plumb-path"]),
    (
        "plumb-check",
        &[
            "plumb-block",
            "plumb-linux",
            "plumb-path",
            "plumb-measure",
            "plumb-workload",
            "plumb-load",
            "plumb-report",
        ],
    ),
    (
        "plumb-trial",
        &[
            "plumb-block",
            "plumb-linux",
            "plumb-path",
            "plumb-measure",
            "plumb-workload",
            "plumb-load",
            "plumb-target",
            "plumb-application",
            "plumb-report",
        ],
    ),
    (
        "plumb",
        &[
            "plumb-block",
            "plumb-linux",
            "plumb-path",
            "plumb-measure",
            "plumb-workload",
            "plumb-load",
            "plumb-target",
            "plumb-application",
            "plumb-dialect",
            "plumb-report",
            "plumb-check",
            "plumb-trial",
            "plumb-sim",
            "plumb-serve",
            "plumb-policy",
        ],
    ),
    ("xtask", &[]),
];

/// Reads the workspace's own dependencies from cargo and holds them against the table.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    judge(&crate::cargo_metadata(root)?)
}

fn judge(metadata: &Value) -> Result<Vec<Offence>> {
    let mut found = Vec::new();
    let names: Vec<&str> = MAY_USE.iter().map(|(name, _)| *name).collect();
    for package in metadata["packages"].as_array().context("cargo metadata has no packages")? {
        let name = package["name"].as_str().context("a package has no name")?;
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            found.push(Offence::new(name, "is not in the table of arrows: say what it may use"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().context("a package has no dependencies")?;
        for dependency in dependencies.iter().filter(|dependency| dependency["kind"].is_null()) {
            let used = dependency["name"].as_str().context("a dependency has no name")?;
            if names.contains(&used) && !allowed.contains(&used) {
                found.push(Offence::new(name, format!("may not use {used}: the arrow points upwards")));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upward_arrow_is_found() {
        let metadata = serde_json::json!({"packages": [
            {"name": "plumb-block", "dependencies": [{"name": "plumb-linux", "kind": null}]},
            {"name": "plumb-linux", "dependencies": [{"name": "plumb-path", "kind": "dev"}]},
            {"name": "plumb-attic", "dependencies": []},
        ]});
        let found = judge(&metadata).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].place, "plumb-block");
        assert_eq!(found[1].place, "plumb-attic");
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        for (index, (name, allowed)) in MAY_USE.iter().enumerate() {
            for used in *allowed {
                let stands = MAY_USE.iter().position(|(known, _)| known == used).unwrap();
                assert!(stands < index, "{name} uses {used}, which does not stand before it");
            }
        }
    }
}
