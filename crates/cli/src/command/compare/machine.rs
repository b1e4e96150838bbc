//! The machine on which levels are set.

use std::path::Path;

use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::{WritePath, survey_path};
use plumb_targets::Name;

use crate::exit::{Exit, Refusal, usage};

/// Refuses everybody but root.
pub(super) fn need_root(what: &str) -> Result<(), Refusal> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let problem = format!("only root may {what}; nothing was done: run it again as root");
    Err(Refusal::new(Exit::Refused, problem))
}

/// Returns the write path beneath each target; of a file that is not there yet, beneath its directory.
pub(super) fn paths(targets: &[String]) -> Result<Vec<WritePath>, Refusal> {
    let path_of = |target: &String| match Name::parse(target).map_err(usage)? {
        Name::Path(path) => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let place = if path.exists() { &path } else { directory.unwrap_or(Path::new(".")) };
            survey_path(&LiveTree::new(), &LiveProbe::new(), &place.to_string_lossy()).map_err(usage)
        }
        _ => {
            let problem = format!(
                "{target}: no disk of this machine is known beneath it; name a file or a block device"
            );
            Err(Refusal::new(Exit::Usage, problem))
        }
    };
    targets.iter().map(path_of).collect()
}

/// Collects what `names` gives for all paths, each once.
pub(super) fn of_all(paths: &[WritePath], names: impl Fn(&WritePath) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = paths.iter().flat_map(names).collect();
    all.sort();
    all.dedup();
    all
}
