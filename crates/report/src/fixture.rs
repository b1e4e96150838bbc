//! The sample documents of `tests/samples`, for the unit tests of this crate.

use std::path::PathBuf;

use crate::document::{RunDocument, Sides};

/// Returns the sample `name` without verdicts.
pub(crate) fn document(name: &str) -> RunDocument {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    RunDocument::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the sample `name` of a load without verdicts.
pub(crate) fn load(name: &str) -> RunDocument {
    document(&format!("load/{name}"))
}

/// Returns the sample of a healthy virtual machine.
pub(crate) fn virtual_machine() -> RunDocument {
    document("virtual-machine")
}

/// Returns the results of a phase of a check, by its name.
pub(crate) fn phase<'a>(document: &'a mut RunDocument, name: &str) -> &'a mut Sides {
    let at = document.labels().iter().position(|label| label == name);
    &mut document.targets[at.unwrap_or_else(|| panic!("no phase {name}"))].sides
}

/// Returns all samples of checks.
pub(crate) fn all() -> Vec<RunDocument> {
    ["virtual-machine", "raid-eight-disks", "tmpfs", "interrupted", "denied", "hard-drive", "no-storage"]
        .map(document)
        .into()
}
