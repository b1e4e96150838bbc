//! The disks beneath targets, on which levels are set.

use std::path::Path;

use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::{WritePath, survey_path};
use plumb_targets::Name;
use plumb_trial::TrialError;

use super::refused;

/// Refuses everybody but root.
pub(crate) fn need_root(what: &str) -> Result<(), TrialError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(refused(format!("only root may {what}; nothing was done: run it again as root")))
}

/// Returns the write path beneath each target; for a missing file, beneath its directory.
pub(crate) fn paths(targets: &[String]) -> Result<Vec<WritePath>, TrialError> {
    let path_of = |target: &String| match Name::parse(target)? {
        Name::Path(path) => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let place = if path.exists() { &path } else { directory.unwrap_or(Path::new(".")) };
            let surveyed = survey_path(&LiveTree::new(), &LiveProbe::new(), &place.to_string_lossy());
            surveyed.map_err(|error| TrialError::usage(plumb_block::in_one_line(&error)))
        }
        _ => Err(TrialError::usage(format!(
            "{target}: no disk of this machine is known beneath it; name a file or a block device"
        ))),
    };
    targets.iter().map(path_of).collect()
}

/// Returns the names that `names` returns for all paths, each once.
pub(crate) fn of_all(paths: &[WritePath], names: impl Fn(&WritePath) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = paths.iter().flat_map(names).collect();
    all.sort();
    all.dedup();
    all
}
