//! Installation and removal of the files that persist policies.
//!
//! The desired state is written first and removed last: after any interruption, whatever the rule does is
//! desired. Each file is replaced atomically.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use plumb_state::places::{DESIRED_STATES, SYSTEMD_UNITS, UDEV_RULES};

use super::desired::{DesiredState, load_desired};
use super::error::PersistError;
use super::udev;
use super::unit::{BOOT_UNIT, RESUME_UNIT, SLEEPS, boot_unit, resume_unit};
use crate::file;

/// Locations of the files that persist policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallPaths {
    /// `/`, or a directory in its place.
    pub root: PathBuf,
    /// Absolute path of plumb for the rule and the units.
    pub program: String,
}

/// Result of an installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstallResult {
    /// Files that were written or removed.
    pub files: Vec<PathBuf>,
    /// Commands that make the change effective before the next start.
    pub then_run: Vec<&'static str>,
}

const THEN_RUN: [&str; 2] = ["udevadm control --reload", "systemctl daemon-reload"];

impl InstallPaths {
    /// Returns the directory of the desired states.
    pub fn desired_states(&self) -> PathBuf {
        self.below(DESIRED_STATES)
    }

    /// Returns the file of the rules.
    pub fn rules(&self) -> PathBuf {
        self.below(UDEV_RULES)
    }

    /// Returns the file of a unit.
    pub fn unit(&self, name: &str) -> PathBuf {
        self.below(SYSTEMD_UNITS).join(name)
    }

    fn below(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Returns the links by which systemd starts the units, as created by `systemctl enable`.
    fn links(&self) -> Vec<(PathBuf, String)> {
        let boot = std::iter::once(("multi-user.target", BOOT_UNIT));
        let resume = SLEEPS.into_iter().map(|target| (target, RESUME_UNIT));
        boot.chain(resume)
            .map(|(target, unit)| {
                let link = self.below(SYSTEMD_UNITS).join(format!("{target}.wants")).join(unit);
                (link, format!("{SYSTEMD_UNITS}/{unit}"))
            })
            .collect()
    }
}

/// Installs these desired states in addition to existing ones; replaces those for the same disks.
///
/// # Errors
/// If a file cannot be written. A repeated call repairs the rest.
pub fn install(
    places: &InstallPaths,
    desired_states: &[DesiredState],
) -> Result<InstallResult, PersistError> {
    let mut files = Vec::new();
    for desired in desired_states {
        let path = places.desired_states().join(desired.file_name());
        let encoded = toml::to_string(desired).map_err(io::Error::other);
        let text = encoded.map_err(file::failed("encode", &path))?;
        write(&path, &text, &mut files)?;
    }
    let all = load_desired(&places.desired_states())?;
    write(&places.unit(BOOT_UNIT), &boot_unit(&places.program, DESIRED_STATES), &mut files)?;
    write(&places.unit(RESUME_UNIT), &resume_unit(&places.program, DESIRED_STATES), &mut files)?;
    for (link, target) in places.links() {
        make_link(&link, &target, &mut files)?;
    }
    write(&places.rules(), &udev::rules(&all, &places.program, DESIRED_STATES), &mut files)?;
    Ok(InstallResult { files, then_run: THEN_RUN.to_vec() })
}

/// Removes the desired state of a disk, and with the last one everything else. The disk is not changed.
///
/// # Errors
/// If a file cannot be written or removed. A repeated call repairs the rest.
pub fn remove(places: &InstallPaths, identity: &str) -> Result<InstallResult, PersistError> {
    let all = load_desired(&places.desired_states())?;
    let (gone, rest): (Vec<DesiredState>, Vec<DesiredState>) =
        all.into_iter().partition(|desired| desired.identity == identity);
    let mut files = Vec::new();
    if rest.is_empty() {
        take_away(&places.rules(), &mut files)?;
        for (link, _) in places.links() {
            take_away(&link, &mut files)?;
        }
        for unit in [BOOT_UNIT, RESUME_UNIT] {
            take_away(&places.unit(unit), &mut files)?;
        }
    } else if !gone.is_empty() {
        write(&places.rules(), &udev::rules(&rest, &places.program, DESIRED_STATES), &mut files)?;
    }
    for desired in gone {
        take_away(&places.desired_states().join(desired.file_name()), &mut files)?;
    }
    Ok(InstallResult { files, then_run: THEN_RUN.to_vec() })
}

fn write(path: &Path, text: &str, files: &mut Vec<PathBuf>) -> Result<(), PersistError> {
    file::publish(path, text.as_bytes())?;
    files.push(path.to_owned());
    Ok(())
}

fn make_link(link: &Path, target: &str, files: &mut Vec<PathBuf>) -> Result<(), PersistError> {
    if let Some(directory) = link.parent() {
        file::make_directory(directory, 0o777)?;
    }
    match symlink(target, link) {
        Ok(()) => files.push(link.to_owned()),
        Err(there) if there.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(file::failed("make", link)(source).into()),
    }
    Ok(())
}

fn take_away(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), PersistError> {
    if path.parent().is_some_and(Path::is_dir) && file::remove(path)? {
        files.push(path.to_owned());
    }
    Ok(())
}
