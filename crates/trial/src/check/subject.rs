//! Subject of a check: a directory for a test file, a simulated drive, or a write-back cache. Anything else
//! is refused before anything is touched.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::{Bytes, Clock, FailureKind, RealClock, in_one_line};
use plumb_linux::FileOptions;
use plumb_linux::probe::LiveProbe;
use plumb_linux::space::space_at;
use plumb_linux::tree::LiveTree;
use plumb_path::{Layer, LayerKind, WritePath, is_kernel_state, survey_path, text_of};
use plumb_targets::{Intent, Name, Permission, Scheme, TargetRequest, open_all, time_of};
use plumb_text::shell_word;

use super::plan::On;
use super::size::{FREE_UNSIZED, drive_size, file_size};
use crate::error::TrialError;

/// Subject of a check, and its size.
pub(super) struct Subject {
    /// Name of the target in the scenario.
    pub(super) target: String,
    pub(super) on: On,
    /// Remark for the user on the subject.
    pub(super) remark: Option<String>,
    pub(super) path: WritePath,
    /// Size of the test file, or of the part of the drive; or the reason why nothing can be measured there.
    pub(super) size: Result<Bytes, String>,
}

impl Subject {
    /// Returns the subject named `target`.
    ///
    /// # Errors
    /// A refusal of any other kind of target; otherwise those of [`open_all`] for a simulated drive or a
    /// cache.
    pub(super) fn from_target(
        target: &Path,
        asked: Option<Bytes>,
        permission: &Permission,
    ) -> Result<Self, TrialError> {
        match Name::parse(target) {
            Ok(name @ Name::Scheme { scheme: Scheme::Sim | Scheme::Cache, .. }) => {
                Self::drive(name, asked, permission)
            }
            _ => Self::directory(target, asked),
        }
    }

    fn drive(name: Name, asked: Option<Bytes>, permission: &Permission) -> Result<Self, TrialError> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let time = time_of([&name], &clock);
        // A refusal comes before anything is done.
        let wanted = TargetRequest { name, intent: Intent::WRITE, options: FileOptions::write_direct() };
        let drive = open_all(&[wanted], permission, &time)?.swap_remove(0);
        let size = drive_size(&drive.shown, asked, drive.size)?;
        let path =
            plumb_targets::survey(&drive).map(|mut found| found.paths.swap_remove(0)).unwrap_or_default();
        Ok(Self { target: drive.shown, on: On::Drive, remark: None, path, size: Ok(size) })
    }

    fn directory(target: &Path, asked: Option<Bytes>) -> Result<Self, TrialError> {
        let (directory, remark) = directory_of(target)?;
        let surveyed = text_of(&directory).and_then(|shown| {
            Ok((shown.to_owned(), survey_path(&LiveTree::new(), &LiveProbe::new(), shown)?))
        });
        let (shown, path) =
            surveyed.map_err(|error| TrialError::new(FailureKind::Usage, in_one_line(&error)))?;
        let above = |layer: &&Layer| !matches!(layer.kind, LayerKind::Application | LayerKind::PageCache);
        let system = path.layers.iter().find(above).and_then(|layer| layer.name.split(' ').next());
        if let Some(kind) = system.filter(|kind| is_kernel_state(kind)) {
            let problem = format!(
                "{shown} is on {kind}, which shows state of the kernel and stores nothing: name a directory on a disk"
            );
            return Err(TrialError::new(FailureKind::Usage, problem));
        }
        let size = size_in(&directory, asked)?;
        // The name of a directory may look like that of another kind of target.
        let is_path = Name::parse(&shown).is_ok_and(|name| name == Name::Path(directory.clone()));
        let target = if is_path { shown } else { format!("./{shown}") };
        Ok(Self { target, on: On::TestFile, remark, path, size })
    }
}

/// Returns the directory for `target`, which is itself or that of a regular file, and a remark for the user
/// if they differ.
fn directory_of(target: &Path) -> Result<(PathBuf, Option<String>), TrialError> {
    let shown = target.display();
    let found = fs::metadata(target)
        .map_err(|error| TrialError::new(FailureKind::Usage, format!("cannot look at {shown}: {error}")))?;
    let kind = found.file_type();
    if kind.is_dir() {
        return Ok((target.to_owned(), None));
    }
    if kind.is_block_device() {
        let problem = format!(
            "{shown} is a block device, and a check writes: it would destroy what is on it. Check a directory on it, or look \
             at it with `plumb survey {}`",
            shell_word(&shown.to_string())
        );
        return Err(TrialError::new(FailureKind::Refused, problem));
    }
    if !kind.is_file() {
        let problem = format!("{shown} is neither a directory nor a file: name a directory");
        return Err(TrialError::new(FailureKind::Usage, problem));
    }
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let remark =
        format!("{shown} is a file: checking its directory {} with a file of plumb's own", parent.display());
    Ok((parent.to_owned(), Some(remark)))
}

fn size_in(directory: &Path, asked: Option<Bytes>) -> Result<Result<Bytes, String>, TrialError> {
    let target = directory.display().to_string();
    let space = match space_at(directory) {
        Ok(space) => space,
        Err(error) => return Ok(Err(in_one_line(&error))),
    };
    if space.read_only {
        return Ok(Err(format!(
            "cannot measure in {target}: its file system is mounted read-only; check a directory that can be written"
        )));
    }
    let free = if space.total == Bytes(0) { FREE_UNSIZED } else { space.free };
    match file_size(&target, asked, free) {
        Err(error) if error.failure() == FailureKind::NotMeasured => Ok(Err(in_one_line(&error))),
        size => size.map(Ok),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_for_its_directory_and_devices_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("database.db");
        fs::write(&file, b"x").unwrap();
        let (found, remark) = directory_of(&file).unwrap();
        assert_eq!(found, directory.path());
        assert!(remark.unwrap().contains("database.db"));
        let refused = |place: &Path| directory_of(place).unwrap_err().to_string();
        assert!(refused(&directory.path().join("gone")).starts_with("cannot look at"));
        for place in ["/proc", "/proc/self", "/sys"] {
            let refused = Subject::directory(Path::new(place), None).err().map(|error| error.to_string());
            assert!(refused.is_some_and(|why| why.contains("shows state of the kernel")), "{place}");
        }
        assert!(refused(Path::new("/dev/null")).contains("is neither a directory nor a file"));
    }
}
