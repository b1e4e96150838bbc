//! Instances of tracing: buffers and events of our own (Documentation/trace/ftrace.rst, "Instances").
//!
//! An instance is removed when it is dropped; whoever opened one of its files closes it before. The next
//! plumb that traces removes what a killed process left, as does `plumb restore`.

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

/// Where tracefs is mounted.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Beginning of the names of all instances of this program; the process comes next.
const PREFIX: &str = "plumb-";
/// A file of an event is shorter.
const READ_MAX: usize = 1 << 16;
/// The inode of the first pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO): only there the kernel's
/// thread numbers are those of /proc.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The tracefs of this kernel.
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: PathBuf,
    /// A mount that nobody else sees, for as long as this is kept.
    _mount: Option<Arc<OwnedFd>>,
}

impl Tracefs {
    /// Returns the one that is mounted.
    ///
    /// # Errors
    /// If none is, or only others may look; if the kernel's thread numbers are not those of /proc here.
    pub fn mounted() -> Result<Self> {
        check_pid_namespace()?;
        let mounted = MOUNTED.iter().map(Path::new).find(|root| root.join("instances").is_dir());
        let root = mounted.ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "trace in", MOUNTED[0])
                .because(unseen(rustix::process::geteuid().is_root()))
        })?;
        Ok(Self { root: root.to_owned(), _mount: None })
    }

    /// Returns the one that is mounted, or else a mount of it that only this process sees, which is gone with
    /// it.
    ///
    /// # Errors
    /// As [`Self::mounted`]; if the kernel has none.
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

    /// Creates a tree of files that stands for one, in tests.
    #[cfg(test)]
    pub(crate) fn rooted(root: &Path) -> Self {
        Self { root: root.to_owned(), _mount: None }
    }
}

/// Returns why no tracefs is seen where it is usually mounted.
const fn unseen(is_root: bool) -> &'static str {
    match is_root {
        true => "no tracefs is mounted there (`mount -t tracefs tracefs /sys/kernel/tracing` mounts it)",
        false => "no tracefs is mounted there, or only root may look",
    }
}

/// Checks that threads have the same numbers here as in the kernel's tracing, which they do not have in a
/// container.
fn check_pid_namespace() -> Result<()> {
    const PLACE: &str = "/proc/self/ns/pid";
    let namespace = fs::read_link(PLACE).map_err(|error| failed(&error, PLACE))?;
    if namespace != Path::new(FIRST_PID_NAMESPACE) {
        let error = Error::new(ErrorKind::Unsupported, "trace from", "a pid namespace");
        return Err(error.because("threads have other numbers there"));
    }
    Ok(())
}

/// Returns a tracefs that is mounted nowhere.
fn detached() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// Events and buffers of our own.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    _tracefs: Tracefs,
}

impl Instance {
    /// Makes one; `what` is a part of its name. Those that killed processes have left are removed.
    ///
    /// # Errors
    /// As mkdir(2): it takes root.
    pub fn make(tracefs: &Tracefs, what: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let instances = tracefs.root.join("instances");
        // One that a process still has open stays.
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

    /// Writes `text` to one of its files.
    ///
    /// # Errors
    /// As write(2).
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|error| failed(&error, path.display()))
    }

    /// Returns one of its files. Some are there for one read alone, so that is a large one.
    ///
    /// # Errors
    /// As read(2).
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

/// An instance that a killed process left, which goes on recording.
#[derive(Debug)]
pub struct LeftInstance {
    path: PathBuf,
    _tracefs: Tracefs,
}

impl LeftInstance {
    /// Returns all there are; none where this process cannot look, as only root can.
    pub fn all() -> Vec<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let Some(tracefs) = is_root.then(Tracefs::open).and_then(Result::ok) else { return Vec::new() };
        let left = left(&tracefs.root.join("instances"));
        left.into_iter().map(|path| Self { path, _tracefs: tracefs.clone() }).collect()
    }

    /// Returns the name of its directory.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Removes it, unless another process has done so meanwhile.
    ///
    /// # Errors
    /// Fails as rmdir(2): with EBUSY while a process has one of its files open.
    pub fn remove(&self) -> std::io::Result<()> {
        match fs::remove_dir(&self.path).map_err(|error| (Errno::from_io_error(&error), error)) {
            // ENODEV comes from a removal that has begun (instance_rmdir in kernel/trace/trace.c).
            Ok(()) | Err((Some(Errno::NOENT | Errno::NODEV), _)) => Ok(()),
            Err((_, error)) => Err(error),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A directory that cannot be removed now is removed by the next instance.
        fs::remove_dir(&self.path).unwrap_or_default();
    }
}

/// Returns the instances whose processes are gone.
fn left(instances: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let process = name.and_then(|name| name.strip_prefix(PREFIX)?.split('-').nth(1)?.parse::<u32>().ok());
        process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists())
    };
    entries.map(|entry| entry.path()).filter(is_left).collect()
}

/// Returns the number of a block device as events have it: 12 bits of major above 20 of minor
/// (include/linux/kdev_t.h). `None` if there is no device of this name.
pub fn device_number(device: &str) -> Option<u32> {
    let text = fs::read_to_string(Path::new("/sys/class/block").join(device).join("dev")).ok()?;
    let number: DeviceNumber = text.parse().ok()?;
    Some(number.to_kernel())
}

/// Returns a filter of events (Documentation/trace/events.rst, "Event filtering") that lets those of these
/// devices pass.
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
