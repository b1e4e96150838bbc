//! Block device of this machine that holds one state after another.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_block::{Bytes, Device, Nanos, RealClock, Time, in_one_line, retry_until};
use plumb_caches::CacheOnOneDrive;
use plumb_linux::{block_ioctl, isolated_thread, pagecache};
use plumb_serve::attach::{AttachOptions, Attachment, MOUNTS_GO};
use rustix::mount::{UnmountFlags, mount_bind_recursive, unmount};

use super::directory::StateDirectory;
use super::parameters::Judge;
use super::switched::SwitchedDevice;
use crate::error::{Error, ErrorKind, Result, cannot};
use crate::explore::{Choice, OwnedState};
use crate::file_system::{FileSystem, FileSystemOptions, MountedFileSystem};
use crate::mount_point::MountPoint;
use crate::posix::Index;
use crate::recording::Recording;
use crate::roles::Roles;
use crate::session::attach;
use crate::state_device::StateDevice;

/// Time limit for dropping the kernel's cached pages.
const DROP_TIMEOUT: Nanos = Nanos::millis(250);

/// Maximum length of the reported words of a checker or of the kernel, in characters.
const WORDS_MAX: usize = 1000;

/// Attached device for states, and a directory to mount it at.
pub(super) struct AttachedStates {
    pub(super) place: Place,
    attachments: Vec<Attachment>,
    mount_point: MountPoint,
}

/// Attached devices and mount point, for a thread without the descriptors of others.
#[derive(Clone)]
pub(super) struct Place {
    device: StateDevice,
    /// Cache and device, if each state is one of drives below a cache, which recovers it.
    cache: Option<(CacheOnOneDrive, SwitchedDevice)>,
    /// Block device of each drive, with its capacity.
    drives: Vec<(PathBuf, Bytes)>,
    pub(super) mount_point: PathBuf,
    file_system: FileSystem,
    options: FileSystemOptions,
}

/// State that is mounted, or created in a directory. Dropping it removes it, except what is in use.
pub struct MountedState {
    held: HeldAs,
    /// Second directory at which the state is mounted.
    bound: Option<PathBuf>,
}

enum HeldAs {
    Mounted { mounted: Option<MountedFileSystem>, attached: Box<AttachedStates> },
    Directory(StateDirectory),
}

impl Judge<'_> {
    /// Mounts a state until it is released.
    ///
    /// # Errors
    /// If the state does not exist, or cannot be mounted.
    pub fn hold(&self, choice: &Choice) -> Result<MountedState> {
        self.may_mount()?;
        let state = self.explorer().show(choice, &mut |state| state.to_owned());
        let state = state.ok_or_else(|| self.no_such_state())?;
        if let Some(layout) = &self.recorded.layout {
            let directory = StateDirectory::new(self, layout)?;
            directory.site.make(&state)?;
            return Ok(MountedState { held: HeldAs::Directory(directory), bound: None });
        }
        AttachedStates::new(self)?.hold(state)
    }
}

impl Judge<'_> {
    /// Creates a state of the POSIX model in an empty directory, where it stays.
    ///
    /// # Errors
    /// If the state does not exist, belongs to a drive, or cannot be created.
    pub fn make_in(&self, choice: &Choice, directory: &Path) -> Result<()> {
        let layout = self.recorded.layout.as_ref().ok_or_else(|| self.no_such_state())?;
        let recording = &*self.recorded.recording;
        let index = Index::new(layout.clone());
        let tree = self.explorer().show(choice, &mut |state| {
            index.tree(&recording.contents, recording.logical_block, &mut |lba| state.content(lba))
        });
        let made = tree.ok_or_else(|| self.no_such_state())?.make_in(directory, &recording.contents);
        made.map_err(cannot(format!("make the state in {}", directory.display())))
    }
}

impl AttachedStates {
    /// Attaches a device.
    pub(super) fn new(judge: &Judge<'_>) -> Result<Self> {
        let recording = &judge.recorded.recording;
        let mount_point = MountPoint::new(judge.directory)?;
        let device = StateDevice::new(Arc::clone(recording), Arc::new(RealClock::start()));
        device.set_varied(judge.explorer().varied());
        let options = AttachOptions { queues: 1, no_read_ahead: true, ..AttachOptions::default() };
        let mut attached: Arc<dyn Device> = Arc::new(device.clone());
        let mut cache = None;
        if let Some(of_profile) = judge.profile.cache {
            let cached = Bytes(recording.size.0.saturating_sub(of_profile.size.0));
            let blank = Arc::new(Recording::of_blank(cached, recording.logical_block));
            // Placeholder until the first state is set.
            let switched =
                SwitchedDevice::new(Arc::new(StateDevice::new(blank, Arc::new(RealClock::start()))));
            attached = Arc::new(switched.clone());
            cache = Some((of_profile, switched));
        }
        let file_system_options = judge.recorded.file_system_options.clone();
        let (mut attachments, mut drives) = (Vec::new(), Vec::new());
        for drive in file_system_options.drives(&attached) {
            let size = drive.info().size;
            let attachment = attach(drive, "state", &options)?;
            drives.push((attachment.path().to_owned(), size));
            attachments.push(attachment);
        }
        let place = Place {
            device,
            cache,
            drives,
            mount_point: mount_point.path().to_owned(),
            file_system: judge.file_system,
            options: file_system_options,
        };
        Ok(Self { place, attachments, mount_point })
    }

    pub(super) fn hold(self, state: OwnedState) -> Result<MountedState> {
        let describe = |attachment: &Attachment| attachment.describe(MOUNTS_GO);
        self.attachments.iter().try_for_each(describe)?;
        let place = &self.place;
        let mounted = isolated_thread::run(|| place.put(state).and_then(|drive| place.mount(&drive)));
        let mounted = mounted.map_err(cannot("start a thread"))??;
        let held = HeldAs::Mounted { mounted: Some(mounted), attached: Box::new(self) };
        Ok(MountedState { held, bound: None })
    }

    /// Unmounts and detaches the device.
    pub(super) fn detach(mut self) -> Result<()> {
        let detached = self.attachments.iter_mut().try_for_each(Attachment::detach);
        let removed = self.mount_point.close();
        detached?;
        removed
    }
}

impl Place {
    /// Sets the state, and drops everything cached of the previous one. Returns the device that records the
    /// reads.
    pub(super) fn put(&self, state: OwnedState) -> Result<StateDevice> {
        self.drop_cache()?;
        let drive = match &self.cache {
            None => self.device.clone(),
            // The cache of the previous state has its own device.
            Some(_) => self.device.another(),
        };
        drive.hold(state);
        Ok(drive)
    }

    fn drop_cache(&self) -> Result<()> {
        self.drives.iter().try_for_each(|(path, size)| {
            let name = path.display().to_string();
            let dropped = File::open(path).and_then(|file| Self::drop_cache_of(&file, *size, &name));
            dropped.map_err(cannot(format!("put a state on {name}")))
        })
    }

    fn drop_cache_of(file: &File, size: Bytes, name: &str) -> io::Result<()> {
        let is_empty = || -> io::Result<bool> {
            let pages = pagecache::residency(file, Bytes(0), size, name).map_err(io::Error::other)?;
            Ok(pages.resident.0 == 0)
        };
        if is_empty()? {
            return Ok(());
        }
        // A page stays until a read that is in progress has completed.
        let dropped = retry_until(DROP_TIMEOUT, || {
            // This call also writes dirty pages. States are in memory, so no flush is needed.
            let dropped = block_ioctl::forget_cache(file).and_then(|()| is_empty());
            Some(dropped).filter(|dropped| !matches!(dropped, Ok(false)))
        });
        let kept = "the kernel keeps blocks of the last state in memory; end what uses the device";
        dropped.unwrap_or_else(|| Err(io::Error::other(kept))).map(|_| ())
    }

    /// Mounts the state that was set, after the cache above it has recovered it. A state that the cache
    /// refuses counts as unmountable, like one that the kernel refuses.
    pub(super) fn mount(&self, drive: &StateDevice) -> Result<MountedFileSystem> {
        if let Some((cache, switched)) = &self.cache {
            let (device, time) = (Arc::new(drive.clone()) as Arc<dyn Device>, Time::Virtual(Arc::default()));
            let recovered = cache.open(&device, time.clone());
            let refused = |error| Error::new(ErrorKind::Unmountable, in_one_line(&error));
            switched.show(recovered.map_err(refused)?, time);
        }
        // Pages that others, such as udev, have read meanwhile must not be used.
        self.drop_cache()?;
        let devices: Vec<PathBuf> = self.drives.iter().map(|(path, _)| path.clone()).collect();
        self.file_system.mount_all(&devices, &self.mount_point, &self.options)
    }

    /// Returns the block device of the first drive.
    pub(super) fn block_device(&self) -> &Path {
        &self.drives[0].0
    }

    /// Returns the kernel's names of the block devices, such as `loop3`.
    pub(super) fn disks(&self) -> Vec<String> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.drives.iter().map(|(path, _)| name(path)).collect()
    }

    /// Returns `words` with the names of this place replaced by neutral ones, so that all places give the
    /// same text, cut to a length for reports.
    pub(super) fn without_names(&self, words: &str) -> String {
        let mount_point = self.mount_point.display().to_string();
        let mut words = words.replace(&mount_point, ".");
        for ((path, _), disk) in self.drives.iter().zip(self.disks()) {
            words = words.replace(&path.display().to_string(), "the drive").replace(&disk, "the drive");
        }
        words.chars().take(WORDS_MAX).collect()
    }
}

impl MountedState {
    /// Returns the directory of the state, or the block device without a file system.
    pub fn path(&self) -> &Path {
        match &self.held {
            HeldAs::Mounted { mounted, attached } => {
                mounted.as_ref().map_or(attached.place.block_device(), MountedFileSystem::path)
            }
            HeldAs::Directory(directory) => directory.path(),
        }
    }

    /// Returns the roles of the blocks of each drive; empty for a state in a directory.
    pub(crate) fn roles(&self) -> Vec<Roles> {
        let HeldAs::Mounted { mounted: Some(mounted), attached } = &self.held else { return Vec::new() };
        let Place { drives, file_system, options, .. } = &attached.place;
        let further: Vec<&Path> = options.further.iter().map(|drive| &*drive.directory).collect();
        let places = mounted.paths().zip(drives);
        places.map(|(path, (device, _))| Roles::without(path, device, *file_system, &further)).collect()
    }

    /// Mounts the state also at the directory `at`, until it is released.
    ///
    /// # Errors
    /// Those of mount(2).
    pub fn bind_at(&mut self, at: &Path) -> Result<()> {
        let bound = isolated_thread::run(|| mount_bind_recursive(self.path(), at))
            .map_err(cannot("start a thread"))?;
        bound.map_err(cannot(format!("mount at {}", at.display())))?;
        self.bound = Some(at.to_owned());
        Ok(())
    }

    /// Unmounts the state and detaches the device.
    ///
    /// # Errors
    /// If it is in use. The device is removed with its last user then.
    pub fn release(self) -> Result<()> {
        if let Some(at) = &self.bound {
            let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
            let unbound = isolated_thread::run(|| unmount(at, flags)).map_err(cannot("start a thread"))?;
            unbound.map_err(cannot(format!("unmount {}", at.display())))?;
        }
        match self.held {
            HeldAs::Directory(directory) => directory.close(),
            HeldAs::Mounted { mounted, attached } => {
                isolated_thread::run(|| mounted.map_or(Ok(()), MountedFileSystem::unmount))
                    .map_err(cannot("start a thread"))??;
                attached.detach()
            }
        }
    }
}
