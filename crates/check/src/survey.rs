//! The survey beneath the place that is checked.

use std::path::Path;

use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::{LiveTree, Tree as _};
use plumb_path::{SurveyError, WritePath, survey_path};

/// What the survey gave.
pub(crate) struct Surveyed {
    /// The write path.
    pub(crate) path: WritePath,
    /// The kernel's release.
    pub(crate) kernel: Option<String>,
}

/// Surveys `directory` on this machine.
pub(crate) fn beneath(directory: &Path) -> Result<Surveyed, SurveyError> {
    let tree = LiveTree::new();
    let path = survey_path(&tree, &LiveProbe::new(), &directory.to_string_lossy())?;
    Ok(Surveyed { path, kernel: tree.text("/proc/sys/kernel/osrelease").ok() })
}

/// What only root could have been told, from the finding that says so.
pub(crate) fn root_would_add(path: &WritePath) -> Vec<String> {
    path.findings
        .iter()
        .filter(|finding| finding.id == "needs-root")
        .flat_map(|finding| finding.evidence.iter().cloned())
        .collect()
}
