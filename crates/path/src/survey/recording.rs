//! A recorded survey in a directory: all queries and answers, so that it can be judged again elsewhere.
//!
//! `DIR/tree.json`, `DIR/probe.json` and `DIR/recording.json` (the target and the version of this program)
//! are the input; `DIR/survey.json` is the result. A recording holds serial numbers and world-wide names of
//! drives, the relevant part of the mount table, properties and devices of ZFS pools, and otherwise nothing
//! from outside /proc and /sys except device numbers of paths. The probe overwrites keys of dm tables.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plumb_block::FailureKind;
use plumb_linux::probe::{Probe, RecordedProbe, RecordingProbe};
use plumb_linux::recorded::{self, RecordedError};
use plumb_linux::tree::process::numbers;
use plumb_linux::tree::{RecordedTree, RecordingTree, Tree};
use plumb_state::places::kernel_file_system;
use plumb_state::whole_file::parent_of;
use plumb_state::{OutputError, OutputFile};
use serde::{Deserialize, Serialize};

use super::mounts::MOUNTINFO;
use super::preload::is_interposer;
use super::{SurveyError, Target, survey};
use crate::model::{LayerKind, Survey};

/// Error of making or using a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The survey failed.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// A file of the recording is unusable.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// A file of the directory could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// An answer could not be encoded.
    #[error("cannot encode the recording")]
    Encode(#[from] serde_json::Error),
    /// Something else is at the path of the directory.
    #[error("{place} {what}: name an empty or a new directory")]
    Taken {
        /// Path of the directory.
        place: String,
        /// Description of the existing object, in words that follow the path.
        what: String,
    },
    /// The directory could not be made.
    #[error("cannot make {place}")]
    Directory {
        /// Path of the directory.
        place: String,
        /// Error from the system.
        source: std::io::Error,
    },
}

impl RecordingError {
    /// Returns the category of the failure: a missing target is the user's mistake, a file that cannot be
    /// written is not.
    pub fn failure(&self) -> FailureKind {
        match self {
            Self::Survey(_) | Self::Taken { .. } => FailureKind::Usage,
            Self::Output(error) => error.kind,
            Self::Directory { source, .. } => FailureKind::from_io(source),
            Self::Recorded(_) | Self::Encode(_) => FailureKind::Failed,
        }
    }
}

/// A loaded recording, which can be surveyed again.
#[derive(Debug, Clone)]
pub struct RecordedSurvey {
    /// Recorded answers of /proc, /sys and /dev.
    pub tree: RecordedTree,
    /// Recorded answers of ioctls.
    pub probe: RecordedProbe,
    /// Target requested when the survey was recorded.
    pub target: Target,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    schema: String,
    /// Target; null means all.
    target: Option<String>,
    version: String,
}

impl Header {
    const SCHEMA: &str = "plumb/recording/1";
}

/// Checks that a recording goes into a new or empty directory, or replaces an earlier recording. Individual
/// files are checked when they are written.
fn is_free(directory: &Path) -> Result<(), RecordingError> {
    let of_kernel = kernel_file_system(parent_of(directory));
    let what = match (of_kernel, directory.read_dir()) {
        (Some(system), _) => format!("is in a file system of the kernel ({system}), which stores nothing"),
        (None, Err(error)) if error.kind() == ErrorKind::NotADirectory => "is not a directory".to_owned(),
        (None, Err(_)) => return Ok(()),
        (None, Ok(mut entries)) => {
            match directory.join("recording.json").exists() || entries.next().is_none() {
                true => return Ok(()),
                false => "is not empty and not a recording".to_owned(),
            }
        }
    };
    Err(RecordingError::Taken { place: directory.display().to_string(), what })
}

/// Surveys `target`, and writes all answers to `directory`, which is created if needed. Existing files,
/// including those of an earlier recording, are replaced only with `overwrite`.
///
/// # Errors
/// [`RecordingError`] if the target does not exist or a file cannot be written.
pub fn record(
    tree: &dyn Tree,
    probe: &dyn Probe,
    target: &Target,
    directory: &Path,
    overwrite: bool,
) -> Result<Survey, RecordingError> {
    is_free(directory)?;
    let tree = RecordingTree::new(tree);
    let probe = RecordingProbe::new(probe);
    let found = survey(&tree, &probe, target)?;
    let mut tree = tree.into_recorded();
    if matches!(target, Target::Named(_)) {
        keep_mounts(&mut tree, &found);
    }
    keep_one_flag(&mut tree);
    let name = match target {
        Target::Named(name) => Some(name.clone()),
        Target::All => None,
    };
    let header = Header {
        schema: Header::SCHEMA.to_owned(),
        target: name,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let files = [
        ("tree.json", tree.to_json()?),
        ("probe.json", probe.into_recorded().to_json()?),
        ("recording.json", recorded::encode(&header)?),
        ("survey.json", recorded::encode(&found)?),
    ];
    let files = files.map(|(name, bytes)| (directory.join(name), bytes));
    // On a failure new files are removed again: an incomplete recording is useless.
    let new_files: Vec<&Path> =
        files.iter().map(|(path, _)| path.as_path()).filter(|path| !path.exists()).collect();
    let is_missing = |at: &&Path| !at.as_os_str().is_empty() && !at.exists();
    let new_directories: Vec<&Path> = directory.ancestors().take_while(is_missing).collect();
    write_all(directory, &files, overwrite).inspect_err(|_| {
        new_files.iter().for_each(|path| std::fs::remove_file(path).unwrap_or_default());
        new_directories.iter().for_each(|path| std::fs::remove_dir(path).unwrap_or_default());
    })?;
    Ok(found)
}

/// Writes the files of a recording; none if one is refused, since they belong together.
fn write_all(directory: &Path, files: &[(PathBuf, Vec<u8>)], overwrite: bool) -> Result<(), RecordingError> {
    std::fs::create_dir_all(directory)
        .map_err(|source| RecordingError::Directory { place: directory.display().to_string(), source })?;
    for (path, _) in files {
        OutputFile { path, overwrite }.check()?;
    }
    files.iter().try_for_each(|(path, bytes)| Ok(OutputFile { path, overwrite }.write(bytes)?))
}

/// Loads a recording made by [`record`].
///
/// # Errors
/// [`RecordingError`] names the missing or malformed file.
pub fn load(directory: &Path) -> Result<RecordedSurvey, RecordingError> {
    let header: Header = recorded::load(&directory.join("recording.json"), Header::SCHEMA)?;
    Ok(RecordedSurvey {
        tree: RecordedTree::load(&directory.join("tree.json"))?,
        probe: RecordedProbe::load(&directory.join("probe.json"))?,
        target: header.target.map_or(Target::All, Target::Named),
    })
}

/// Removes mounts that the survey did not use, for privacy, and mount tables of other processes that did not
/// contain the target's mount.
fn keep_mounts(tree: &mut RecordedTree, found: &Survey) {
    let systems: Vec<&str> = found
        .paths
        .iter()
        .flat_map(|path| &path.layers)
        .filter(|layer| !matches!(layer.kind, LayerKind::Application | LayerKind::PageCache))
        .map(|layer| layer.name.as_str())
        .collect();
    for process in numbers(tree, "/proc") {
        let directory = format!("/proc/{process}");
        keep_interposers(tree, &format!("{directory}/maps"));
        if !keep_mounts_of(tree, &format!("{directory}/mountinfo"), &systems) {
            tree.remove(&directory);
        }
    }
    keep_mounts_of(tree, MOUNTINFO, &systems);
}

/// Removes from a list of mapped files all but libraries that disable syncs.
fn keep_interposers(tree: &mut RecordedTree, maps: &str) {
    let Ok(text) = tree.text(maps) else { return };
    let kept: Vec<&str> = text.split_whitespace().filter(|word| is_interposer(word)).collect();
    tree.put_text(maps, &kept.join("\n"));
}

/// Keeps only the mounts of these file systems in a mount table. Returns true if there is one.
fn keep_mounts_of(tree: &mut RecordedTree, table: &str, systems: &[&str]) -> bool {
    let Ok(bytes) = tree.read(table) else { return false };
    let kept: Vec<&[u8]> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| {
            let mount = plumb_linux::tree::mountinfo::parse_line(line.trim_ascii_end());
            mount.is_some_and(|mount| {
                let name = format!("{} {}", mount.kind, mount.point);
                systems.iter().any(|system| system.starts_with(&name))
            })
        })
        .collect();
    tree.put_bytes(table, &kept.concat());
    !kept.is_empty()
}

/// Removes all processor flags but the one that matters.
fn keep_one_flag(tree: &mut RecordedTree) {
    const CPUINFO: &str = "/proc/cpuinfo";
    let Ok(text) = tree.text(CPUINFO) else { return };
    if let Some(flags) = text.lines().find(|line| line.starts_with("flags")) {
        let flag = flags.split_ascii_whitespace().find(|flag| *flag == "hypervisor").unwrap_or_default();
        tree.put_text(CPUINFO, &format!("flags\t\t: {flag}\n"));
    }
}
