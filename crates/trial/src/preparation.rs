//! Preparation of the files of a scenario, as fio does it before it begins.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use plumb_block::{Bytes, FailureKind, in_one_line};
use plumb_linux::pagecache;
use plumb_targets::{Name, size_of};
use plumb_workload::Scenario;

use crate::error::TrialError;

/// Makes the folders that names of files lead through, with the mode that fio gives them.
///
/// # Errors
/// If one cannot be made.
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

/// Takes the clean pages of all files out of the page cache. Returns why it could not for some; a file that
/// cannot be opened is said when it is.
pub fn forget_cached(scenario: &Scenario) -> Vec<String> {
    let forget = |target: String| {
        // Opening some things already does something; regular files are safe.
        let file = Path::new(&target).is_file().then(|| File::open(&target).ok())??;
        let dropped = pagecache::drop_clean(&file, Bytes(0), size_of(&target)?, &target);
        dropped.err().map(|error| in_one_line(&error))
    };
    scenario.targets().into_iter().filter_map(forget).collect()
}
