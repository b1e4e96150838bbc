//! Resolution of a name to a path: follows links, looks up `#N`, and checks for existence.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plumb_state::places::is_among_devices;

use crate::byte_extent::ByteExtent;
use crate::error::{Error, Kind, Result};
use crate::facts::Missing;
use crate::machine::{Machine, numbered};
use crate::name::Name;

/// A name and the path that it resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedName {
    /// Name for display: as typed, with the resolved path if it differs.
    pub shown: String,
    /// Absolute path without symbolic links, `.` and `..`, also of a missing file.
    pub path: PathBuf,
    /// Reason why nothing exists at the path; `None` if something does.
    pub missing: Option<Missing>,
    /// True if named by disk number (`#N`).
    pub(crate) by_number: bool,
    /// Part of the target; `None` for all of it.
    pub part: Option<ByteExtent>,
}

impl LocatedName {
    /// Returns this target restricted to `part`.
    pub fn within(self, part: Option<ByteExtent>) -> Self {
        match part {
            None => self,
            Some(known) => Self { shown: format!("{}@{known}", self.shown), part, ..self },
        }
    }
}

/// Resolves `name`. Opens nothing.
///
/// # Errors
/// [`Kind::Unsupported`] for schemes, [`Kind::NotFound`] for a number beyond the last disk, and the system's
/// error if a path cannot be resolved.
pub fn locate(machine: &Machine<'_>, name: &Name) -> Result<LocatedName> {
    match name {
        Name::Path(path) => locate_path(path, name.to_string()),
        Name::Disk(number) => locate_disk(machine, *number),
        Name::Scheme { .. } => Err(unsupported(name)),
    }
}

fn unsupported(name: &Name) -> Error {
    let remedy = format!("name a file or a block device (a file of that very name is ./{name})");
    Error::new(
        Kind::Unsupported,
        name.to_string(),
        "this build of plumb cannot open such devices here",
        remedy,
    )
}

fn locate_disk(machine: &Machine<'_>, number: usize) -> Result<LocatedName> {
    let inventory = machine.inventory().map_err(|error| {
        let found = format!("the disks of this machine cannot be listed: {error}");
        Error::new(Kind::NotFound, format!("#{number}"), found, "name the device")
    })?;
    let disks = numbered(inventory);
    let Some(disk) = disks.get(number) else {
        let list = disks.iter().enumerate().map(|(number, disk)| format!("#{number} {}", disk.name));
        let list: Vec<String> = list.collect();
        let remedy = if list.is_empty() {
            "name a device or a file".to_owned()
        } else {
            format!("there are: {}", list.join(", "))
        };
        return Err(Error::new(
            Kind::NotFound,
            format!("#{number}"),
            "there is no disk of this number",
            remedy,
        ));
    };
    let located = locate_path(Path::new(&disk.node()), format!("#{number} ({})", disk.node()))?;
    if located.missing.is_some() {
        let found = format!("the kernel has the disk {}, but there is no {}", disk.name, disk.node());
        return Err(Error::new(
            Kind::NotFound,
            located.shown,
            found,
            "run where /dev is that of the machine",
        ));
    }
    Ok(LocatedName { by_number: true, ..located })
}

/// Resolves the path `typed`, shown as `shown` in messages.
pub(crate) fn locate_path(typed: &Path, shown: String) -> Result<LocatedName> {
    let failed = |error: &io::Error| {
        let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
        Error::os(&shown, "reach", errno)
    };
    let shown_with = |path: &Path| {
        let known = shown.contains(&*path.to_string_lossy());
        if known || !typed.is_symlink() { shown.clone() } else { format!("{shown} ({})", path.display()) }
    };
    match fs::canonicalize(typed) {
        Ok(path) => {
            Ok(LocatedName { shown: shown_with(&path), path, missing: None, by_number: false, part: None })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (path, missing) = missing(typed).map_err(|error| failed(&error))?;
            Ok(LocatedName { shown, path, missing: Some(missing), by_number: false, part: None })
        }
        Err(error) => Err(failed(&error)),
    }
}

/// Returns the path of a missing file, and whether it can be created.
fn missing(typed: &Path) -> io::Result<(PathBuf, Missing)> {
    if typed.symlink_metadata().is_ok() {
        return Ok((std::path::absolute(typed)?, Missing::DanglingLink));
    }
    let directory = match typed.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    // A trailing slash requests a directory.
    let is_directory = typed.to_string_lossy().ends_with('/');
    match (fs::canonicalize(directory), typed.file_name()) {
        (Ok(directory), Some(name)) if !is_directory && directory.is_dir() => {
            let missing = if is_among_devices(&directory) { Missing::InDev } else { Missing::CanBeMade };
            Ok((directory.join(name), missing))
        }
        (Err(error), _) if error.kind() != io::ErrorKind::NotFound => Err(error),
        // The kernel creates directories in /dev with their first device, so the name is meant as a device.
        (Err(_), _) if is_among_devices(&std::path::absolute(typed)?) => {
            Ok((std::path::absolute(typed)?, Missing::InDev))
        }
        _ => Ok((std::path::absolute(typed)?, Missing::NoDirectory)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_which_device_it_became() {
        use plumb_linux::{probe::RecordedProbe, tree::RecordedTree};
        let mut tree = RecordedTree::new();
        tree.put_text("/proc/self/mountinfo", "1 0 0:9 / / rw - tmpfs none rw\n");
        for (name, number) in [("none-such", "8:0"), ("null", "8:16")] {
            tree.put_text(&format!("/sys/devices/{name}/dev"), number);
            tree.put_text(&format!("/sys/devices/{name}/size"), "8");
            tree.put_link(&format!("/sys/block/{name}"), &format!("/sys/devices/{name}"));
            tree.put_link(&format!("/sys/class/block/{name}"), &format!("/sys/devices/{name}"));
        }
        let probe = RecordedProbe::new();
        let machine = Machine::new(&tree, &probe);
        let located = locate(&machine, &Name::Disk(1)).unwrap();
        assert_eq!((located.shown.as_str(), located.by_number), ("#1 (/dev/null)", true));
        let error = locate(&machine, &Name::Disk(0)).unwrap_err();
        assert!(error.to_string().contains("the kernel has the disk none-such"), "{error}");
        let error = locate(&machine, &Name::Disk(2)).unwrap_err();
        assert_eq!(error.remedy(), "there are: #0 none-such, #1 null");
    }

    fn missing_at(path: &Path) -> (PathBuf, Option<Missing>) {
        let located = locate_path(path, path.display().to_string()).unwrap();
        (located.path, located.missing)
    }

    #[test]
    fn links_are_followed_and_missing_places_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::write(root.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(root.join("file"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("none"), root.join("dangling")).unwrap();
        let link = locate_path(&root.join("link"), "link".to_owned()).unwrap();
        assert_eq!((link.path, link.missing), (root.join("file"), None));
        assert!(link.shown.contains("file)"), "{}", link.shown);
        assert_eq!(missing_at(&root.join("./a/../new")).1, Some(Missing::NoDirectory));
        assert_eq!(missing_at(&root.join("./new")), (root.join("new"), Some(Missing::CanBeMade)));
        assert_eq!(missing_at(&root.join("a/new")).1, Some(Missing::NoDirectory));
        assert_eq!(missing_at(&root.join("new/")).1, Some(Missing::NoDirectory));
        assert_eq!(missing_at(&root.join("dangling")).1, Some(Missing::DanglingLink));
        assert_eq!(missing_at(Path::new("/dev/none-such")).1, Some(Missing::InDev));
        assert_eq!(missing_at(Path::new("/dev/none-such/8:0")).1, Some(Missing::InDev));
        assert_eq!(missing_at(Path::new("/dev/shm/none-such/x")).1, Some(Missing::NoDirectory));
        let error = locate_path(&root.join("file/below"), "file/below".to_owned());
        assert!(error.is_err(), "a file is not a directory: {error:?}");
    }
}
