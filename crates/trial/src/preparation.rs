//! Directories that fio creates for the files of a scenario before it begins.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;

use plumb_block::FailureKind;
use plumb_targets::Name;
use plumb_workload::Scenario;

use crate::error::TrialError;

/// Creates the directories in the names of files, with the mode that fio uses.
///
/// # Errors
/// If one cannot be created.
pub fn make_folders(scenario: &Scenario) -> Result<(), TrialError> {
    const MODE: u32 = 0o700;
    for target in scenario.targets() {
        let Ok(Name::Path(path)) = Name::parse(&target) else { continue };
        let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        else {
            continue;
        };
        let made = DirBuilder::new().recursive(true).mode(MODE).create(folder);
        made.map_err(|error| {
            let problem = format!("cannot make {}: {error}", folder.display());
            TrialError::new(FailureKind::NotMeasured, problem)
        })?;
    }
    Ok(())
}
