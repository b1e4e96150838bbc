//! Trace instances: our own buffers and events (Documentation/trace/ftrace.rst, "Instances").
//!
//! Dropping an instance removes it; its open files must be closed before. The next trace by plumb removes the
//! instances of killed processes, as does `plumb restore`.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plumb_block::{Error, ErrorKind, Result};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::tree::DeviceNumber;

/// Usual mount points of tracefs.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Prefix of the names of plumb's instances; the process number follows.
const PREFIX: &str = "plumb-";
/// Size of the read buffer; files of an event are shorter.
const READ_MAX: usize = 1 << 16;
/// Inode of the initial pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO). Only there do the
/// kernel's thread numbers equal those of /proc.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The kernel's tracefs.
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: PathBuf,
    /// A private mount that lives as long as this value.
    _mount: Option<Arc<OwnedFd>>,
}

impl Tracefs {
    /// Returns the mounted tracefs.
    ///
    /// # Errors
    /// If none is mounted, access is denied, or the kernel's thread numbers differ from those of /proc.
    pub fn mounted() -> Result<Self> {
        check_pid_namespace()?;
        let mounted = MOUNTED.iter().map(Path::new).find(|root| root.join("instances").is_dir());
        let root = mounted.ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "trace in", MOUNTED[0])
                .because(unseen(rustix::process::geteuid().is_root()))
        })?;
        Ok(Self { root: root.to_owned(), _mount: None })
    }

    /// Returns the mounted tracefs, or else a private mount that vanishes with this process.
    ///
    /// # Errors
    /// Fails as [`Self::mounted`] does, or if the kernel has no tracefs.
    pub fn open() -> Result<Self> {
        Self::mounted().or_else(|error| {
            check_pid_namespace()?;
            let mount = detached().map_err(|why| {
                error.because(format!("no tracefs is mounted there, and none can be mounted: {why}"))
            })?;
            let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
            Ok(Self { root, _mount: Some(Arc::new(mount)) })
        })
    }

    /// Creates a fake tracefs from a directory tree, for tests.
    #[cfg(test)]
    pub(crate) fn rooted(root: &Path) -> Self {
        Self { root: root.to_owned(), _mount: None }
    }
}

/// Returns the reason why no tracefs is visible where it is usually mounted.
const fn unseen(is_root: bool) -> &'static str {
    match is_root {
        true => "no tracefs is mounted there (`mount -t tracefs tracefs /sys/kernel/tracing` mounts it)",
        false => "no tracefs is mounted there, or only root may look",
    }
}

/// Checks that threads have the same numbers in this process's pid namespace as in the kernel's tracing. In a
/// container they do not.
fn check_pid_namespace() -> Result<()> {
    const PLACE: &str = "/proc/self/ns/pid";
    let namespace = fs::read_link(PLACE).map_err(|error| failed(&error, PLACE))?;
    if namespace != Path::new(FIRST_PID_NAMESPACE) {
        let error = Error::new(ErrorKind::Unsupported, "trace from", "a pid namespace");
        return Err(error.because("threads have other numbers there"));
    }
    Ok(())
}

/// Mounts a tracefs that has no mount point.
fn detached() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// A trace instance of this process.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    _tracefs: Tracefs,
}

impl Instance {
    /// Creates an instance; `what` becomes part of its name. Removes the instances of killed processes.
    ///
    /// # Errors
    /// Fails as mkdir(2) does; requires root.
    pub fn make(tracefs: &Tracefs, what: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let instances = tracefs.root.join("instances");
        // An instance that a process still has open stays.
        left(&instances).iter().for_each(|left| fs::remove_dir(left).unwrap_or_default());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = instances.join(format!("{PREFIX}{what}-{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|error| failed(&error, path.display()))?;
        Ok(Self { path, _tracefs: tracefs.clone() })
    }

    /// Returns the directory of the instance.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` to a file of the instance.
    ///
    /// # Errors
    /// Fails as write(2) does.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|error| failed(&error, path.display()))
    }

    /// Returns the contents of a file of the instance. A single large read is used, since some files can be
    /// read only once.
    ///
    /// # Errors
    /// Fails as read(2) does.
    pub fn read(&self, name: &str) -> Result<String> {
        let path = self.path.join(name);
        let text = File::open(&path).and_then(|mut file| {
            let mut text = vec![0; READ_MAX];
            let length = file.read(&mut text)?;
            text.truncate(length);
            file.read_to_end(&mut text)?;
            Ok(text)
        });
        text.map(|text| String::from_utf8_lossy(&text).into_owned())
            .map_err(|error| failed(&error, path.display()))
    }
}

/// An instance of a killed process, which still records.
#[derive(Debug)]
pub struct LeftInstance {
    path: PathBuf,
    _tracefs: Tracefs,
}

impl LeftInstance {
    /// Returns all leftover instances; none if this process may not look (only root may).
    pub fn all() -> Vec<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let Some(tracefs) = is_root.then(Tracefs::open).and_then(Result::ok) else { return Vec::new() };
        let left = left(&tracefs.root.join("instances"));
        left.into_iter().map(|path| Self { path, _tracefs: tracefs.clone() }).collect()
    }

    /// Returns the directory name.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Removes the instance. Succeeds if another process has done so already.
    ///
    /// # Errors
    /// Fails as rmdir(2) does: with EBUSY while a process has one of its files open.
    pub fn remove(&self) -> std::io::Result<()> {
        match fs::remove_dir(&self.path).map_err(|error| (Errno::from_io_error(&error), error)) {
            // ENODEV: another removal has begun (instance_rmdir in kernel/trace/trace.c).
            Ok(()) | Err((Some(Errno::NOENT | Errno::NODEV), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // If removal fails now, the next instance removes it.
        fs::remove_dir(&self.path).unwrap_or_default();
    }
}

/// Returns the instances whose processes have ended.
fn left(instances: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let process = name.and_then(|name| name.strip_prefix(PREFIX)?.split('-').nth(1)?.parse::<u32>().ok());
        process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists())
    };
    entries.map(|entry| entry.path()).filter(is_left).collect()
}

/// Returns the device number as encoded in events: 12 bits of major above 20 of minor
/// (include/linux/kdev_t.h). `None` if there is no device of this name.
pub fn device_number(device: &str) -> Option<u32> {
    let text = fs::read_to_string(Path::new("/sys/class/block").join(device).join("dev")).ok()?;
    let number: DeviceNumber = text.parse().ok()?;
    Some(number.to_kernel())
}

/// Returns an event filter (Documentation/trace/events.rst, "Event filtering") that passes only events of
/// these devices.
pub fn device_filter(devices: impl IntoIterator<Item = u32>) -> String {
    let each: Vec<String> = devices.into_iter().map(|number| format!("dev == {number}")).collect();
    each.join(" || ")
}

pub(crate) fn failed(error: &std::io::Error, place: impl std::fmt::Display) -> Error {
    Error::io(error, "trace in", place.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_told_how_to_mount_tracefs_and_others_that_root_may_look() {
        assert!(unseen(true).contains(MOUNTED[0]) && !unseen(true).contains("only root"));
        assert!(unseen(false).contains("only root may look"));
    }

    #[test]
    fn what_killed_processes_left_is_removed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let instances = root.path().join("instances");
        let own = format!("plumb-flushes-{}-7", std::process::id());
        // No process has such a number (PID_MAX_LIMIT of include/linux/threads.h).
        let names = ["plumb-observe-4194305-0", "plumb-flushes-4194305-3", "plumb-x", "perf-4194305-0", &own];
        for name in names {
            fs::create_dir_all(instances.join(name)).unwrap();
        }
        let instance = Instance::make(&Tracefs::rooted(root.path()), "observe").unwrap();
        let left: Vec<bool> = names.iter().map(|name| instances.join(name).exists()).collect();
        assert_eq!(left, [false, false, true, true, true]);
        let path = instance.path().to_owned();
        assert!(path.exists());
        drop(instance);
        assert!(!path.exists());
        // Two processes that find the same instance both call it removed.
        let left = LeftInstance { path, _tracefs: Tracefs::rooted(root.path()) };
        left.remove().unwrap();
    }
}
