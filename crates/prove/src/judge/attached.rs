//! A block device of this machine that holds one state after the other.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plumb_block::{Bytes, RealClock};
use plumb_linux::{apart, block_ioctl, pagecache};
use plumb_serve::attach::{AttachOptions, Attachment};

use super::Judge;
use crate::error::{Result, cannot};
use crate::explore::OwnedState;
use crate::file_system::{FileSystem, Mounted};
use crate::mount_point::MountPoint;
use crate::recording::Content;
use crate::session::attach;
use crate::state_device::StateDevice;

/// How often what the kernel has cached is dropped before it is said that it cannot be.
const DROPS_MAX: u32 = 8;

/// How many characters of the words of a checker or of the kernel are kept.
const WORDS_MAX: usize = 1000;

/// A device for states that is attached, and a directory to mount it at.
pub(super) struct Attached {
    pub(super) place: Place,
    attachment: Attachment,
    mount_point: MountPoint,
}

/// The same for a thread that has no descriptors of others.
#[derive(Clone)]
pub(super) struct Place {
    device: StateDevice,
    pub(super) block_device: PathBuf,
    pub(super) mount_point: PathBuf,
    file_system: FileSystem,
    size: Bytes,
}

/// A state that is mounted. Dropping it takes it away as far as nobody uses it.
pub struct Held {
    mounted: Option<Mounted>,
    attached: Attached,
}

impl Attached {
    /// Attaches a device.
    pub(super) fn new(judge: &Judge<'_>) -> Result<Self> {
        let recording = &judge.recorded.recording;
        let mount_point = MountPoint::new(judge.directory)?;
        let device = StateDevice::new(Arc::clone(recording), Arc::new(RealClock::start()));
        device.set_varied(judge.explorer().varied());
        let options = AttachOptions { queues: 1, no_read_ahead: true, ..AttachOptions::default() };
        let attachment = attach(Arc::new(device.clone()), "state", &options)?;
        let place = Place {
            device,
            block_device: attachment.path().to_owned(),
            mount_point: mount_point.path().to_owned(),
            file_system: judge.file_system,
            size: recording.size,
        };
        Ok(Self { place, attachment, mount_point })
    }

    /// Mounts a state.
    pub(super) fn hold(self, state: OwnedState) -> Result<Held> {
        let place = &self.place;
        let mounted = apart::run(|| place.put(state).and_then(|()| place.mount()));
        let mounted = mounted.map_err(cannot("start a thread"))??;
        Ok(Held { mounted: Some(mounted), attached: self })
    }

    /// Takes it away.
    pub(super) fn detach(mut self) -> Result<()> {
        let detached = self.attachment.detach();
        let removed = self.mount_point.close();
        detached?;
        removed
    }
}

impl Place {
    /// Gives the block device this state, and makes sure that nothing is left of the one before.
    pub(super) fn put(&self, state: OwnedState) -> Result<()> {
        let put = || {
            let file = File::open(&self.block_device)?;
            self.drop_cache(&file)?;
            self.device.hold(state);
            // What others have read meanwhile, such as udev.
            self.drop_cache(&file)
        };
        put().map_err(cannot(format!("put a state on {}", self.block_device.display())))
    }

    fn drop_cache(&self, file: &File) -> io::Result<()> {
        let name = self.block_device.display().to_string();
        for number in 0..DROPS_MAX {
            if pagecache::residency(file, Bytes(0), self.size, &name).map_err(io::Error::other)?.resident.0
                == 0
            {
                return Ok(());
            }
            if number > 0 {
                // Somebody reads just now, and a page stays until its read is answered.
                std::thread::sleep(Duration::from_millis(1 << number));
            }
            file.sync_all()?;
            block_ioctl::forget_cache(file)?;
        }
        Err(io::Error::other("the kernel keeps blocks of the last state in memory; end what uses the device"))
    }

    /// Mounts what it holds.
    pub(super) fn mount(&self) -> Result<Mounted> {
        self.file_system.mount(&self.block_device, &self.mount_point)
    }

    /// The kernel's name of the block device, such as `loop3`.
    pub(super) fn disk(&self) -> String {
        self.block_device.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Words in which the names that only this place has are the same as in every other one, cut to what a report can show.
    pub(super) fn without_names(&self, words: &str) -> String {
        let mount_point = self.mount_point.display().to_string();
        let words =
            words.replace(&mount_point, ".").replace(&self.block_device.display().to_string(), "the drive");
        words.replace(&self.disk(), "the drive").chars().take(WORDS_MAX).collect()
    }

    /// What was read of the state until now.
    pub(super) fn read(&self) -> Vec<(u64, Content)> {
        self.device.read()
    }
}

impl Held {
    /// Where it is mounted; the block device where there is no file system.
    pub fn path(&self) -> &Path {
        self.mounted.as_ref().map_or(&self.attached.place.block_device, Mounted::path)
    }

    /// The block device that holds it.
    pub fn block_device(&self) -> &Path {
        &self.attached.place.block_device
    }

    /// Unmounts it and takes the device away.
    ///
    /// # Errors
    /// If somebody uses it. It goes with the last who does.
    pub fn release(mut self) -> Result<()> {
        let mounted = self.mounted.take();
        apart::run(|| mounted.map_or(Ok(()), Mounted::unmount)).map_err(cannot("start a thread"))??;
        self.attached.detach()
    }
}
