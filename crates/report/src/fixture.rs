//! The sample documents of `tests/samples`, for the unit tests of this crate.

use std::path::PathBuf;

use serde::de::DeserializeOwned;

use crate::{CheckDocument, RunDocument};

/// The sample `name`, as it was measured: without verdicts.
pub(crate) fn document(name: &str) -> CheckDocument {
    read(name)
}

/// The sample `name` of a load, as it was measured: without verdicts.
pub(crate) fn load(name: &str) -> RunDocument {
    read(&format!("load/{name}"))
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The sample of a healthy virtual machine.
pub(crate) fn virtual_machine() -> CheckDocument {
    document("virtual-machine")
}

/// All samples.
pub(crate) fn all() -> Vec<CheckDocument> {
    ["virtual-machine", "raid-eight-disks", "tmpfs", "interrupted", "denied", "hard-drive", "no-storage"]
        .map(document)
        .into()
}
