//! A plan in a file.

use std::path::Path;

use serde_json::Value;

use super::document::Plan;
use super::error::PlanError;
use super::hash;
use crate::file::failed;

impl Plan {
    /// Encodes the plan as the text of its file, readable for people and programs.
    ///
    /// # Errors
    /// Fails as [`serde_json::to_vec_pretty`] does.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Loads a plan.
///
/// # Errors
/// [`PlanError::Altered`] if it was altered.
pub fn load(path: &Path) -> Result<Plan, PlanError> {
    let bytes = std::fs::read(path).map_err(failed("read the plan", path))?;
    let not_a_plan = |source| PlanError::NotAPlan { path: path.to_owned(), source };
    let value: Value = serde_json::from_slice(&bytes).map_err(not_a_plan)?;
    if value.get("schema").and_then(Value::as_str) != Some(Plan::SCHEMA) {
        let source = serde::de::Error::custom("another schema, or none");
        return Err(not_a_plan(source));
    }
    let written = value.get(hash::KEY).and_then(Value::as_str).unwrap_or("nothing").to_owned();
    let found = hash::compute(value);
    if found != written {
        return Err(PlanError::Altered { found, written });
    }
    // Parsed from the bytes rather than the value, so that duplicate keys are detected.
    serde_json::from_slice(&bytes).map_err(not_a_plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlanRequest, RefusedDisk};

    fn plan() -> Plan {
        let mut plan = Plan {
            schema: Plan::SCHEMA.into(),
            hash: String::new(),
            made_at: "2026-11-22T03:31:28Z".into(),
            boot_id: "b".into(),
            kernel: None,
            asked: PlanRequest::Off,
            changes: Vec::new(),
            refused: vec![RefusedDisk { name: "sdb".into(), reason: "r".into(), remedy: "m".into() }],
            unchanged: Vec::new(),
        };
        plan.hash = plan.hash_now();
        plan
    }

    #[test]
    fn any_change_of_a_value_is_found_and_none_of_the_form() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.json");
        std::fs::write(&path, plan().to_json().unwrap()).unwrap();
        assert_eq!(load(&path).unwrap(), plan());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace('\n', "").replace("  ", " ")).unwrap();
        assert_eq!(load(&path).unwrap(), plan());
        for (from, to) in [
            ("\"sdb\"", "\"sdc\""),
            ("\"off\"", "\"on\""),
            ("\"asked\"", "\"more\": 1, \"asked\""),
            ("sha256:", "sha256:0"),
        ] {
            std::fs::write(&path, text.replace(from, to)).unwrap();
            let error = load(&path).unwrap_err();
            assert!(matches!(error, PlanError::Altered { .. }), "{from}: {error}");
        }
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(load(&path), Err(PlanError::NotAPlan { .. })));
    }
}
