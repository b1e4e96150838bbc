//! `fs=ext4,xfs`: file systems in files, each behind a loop device of its own, mounted below the same
//! directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::{Bytes, FailureKind};
use plumb_linux::file_system::{FileSystem, Mount};
use plumb_linux::loop_device::LoopDevice;
use plumb_trial::TrialError;

use super::record::Changes;
use super::undo::{Machine, Undo};
use super::{Setting, failed};

/// Logical block size of the loop devices.
const BLOCK: Bytes = Bytes::kib(4);

/// Setting of file systems, which are created when they are first needed, and removed at the end.
pub struct FileSystemSetting {
    changes: Changes,
    places: Vec<Place>,
    size: Bytes,
}

struct Place {
    system: FileSystem,
    at: PathBuf,
    mounted: Option<(Mount, LoopDevice)>,
}

/// Returns the mount point of the file system of level `number`.
pub(crate) fn mount_point(directory: &Path, number: usize, level: &str) -> PathBuf {
    directory.join(format!("plumb-compare-{}-{number}-{level}", std::process::id()))
}

impl FileSystemSetting {
    /// Creates the setting of these file systems, in files of `size` in `directory`.
    ///
    /// # Errors
    /// If a file system is unknown or too small, or its mkfs is missing.
    pub fn new(
        machine: Arc<Machine>,
        directory: &Path,
        levels: &[String],
        size: Bytes,
    ) -> Result<Self, TrialError> {
        let place = |(number, level): (usize, &String)| {
            let system: FileSystem = level.parse().map_err(|error| failed(&error))?;
            system.find_tool().map_err(|error| failed(&error))?;
            let least = Bytes::mib(system.size_min_mib());
            if size < least {
                return Err(TrialError::usage(format!("--fs-size {size}: {level} takes {least} at least")));
            }
            Ok(Place { system, at: mount_point(directory, number, level), mounted: None })
        };
        let places = levels.iter().enumerate().map(place).collect::<Result<_, _>>()?;
        Ok(Self { changes: Changes::new(machine), places, size })
    }
}

impl Place {
    fn image(&self) -> PathBuf {
        let mut name = self.at.clone().into_os_string();
        name.push(".img");
        name.into()
    }

    fn make(&mut self, size: Bytes) -> Result<(), TrialError> {
        let path = self.image();
        let io = |error: std::io::Error, what: &str, path: &Path| {
            TrialError::new(FailureKind::Failed, format!("cannot {what} {}: {error}", path.display()))
        };
        let image = File::create_new(&path).map_err(|error| io(error, "make", &path))?;
        plumb_linux::space::reserve(&image, Bytes(0)..size)
            .map_err(|errno| io(errno.into(), &format!("reserve {size} for"), &path))?;
        std::fs::create_dir(&self.at).map_err(|error| io(error, "make the directory", &self.at))?;
        let null = Path::new("/dev/null");
        let place = File::open(null).map_err(|error| io(error, "open", null))?;
        let label = self.at.display().to_string();
        let device = LoopDevice::bind(path.clone(), BLOCK, label, place.into());
        let device = device.map_err(|error| io(error, "put a loop device over", &path))?;
        let made = self.system.make(&device.path(), &[]);
        let mounted = made.and_then(|()| self.system.mount(&device.path(), &self.at, ""));
        self.mounted = Some((mounted.map_err(|error| failed(&error))?, device));
        Ok(())
    }
}

impl Setting for FileSystemSetting {
    fn set(&mut self, level: usize) -> Result<(), TrialError> {
        let place = &mut self.places[level];
        if place.mounted.is_some() {
            return Ok(());
        }
        self.changes.promise(Undo::Mount { at: place.at.clone(), image: place.image() })?;
        place.make(self.size)
    }

    fn restore(&mut self) -> Result<(), TrialError> {
        for (mounted, device) in self.places.iter_mut().filter_map(|place| place.mounted.take()) {
            mounted.unmount().map_err(|error| failed(&error))?;
            // The device goes away with its last opener.
            drop(device);
        }
        self.changes.restore()
    }
}
