//! Recorded drive, and its block device.
//!
//! With ublk, requests arrive as the block layer sends them: FUA as FUA, and writes concurrent with a flush.
//! Without, FUSE and a loop device are used, where FUA arrives as a write followed by a flush.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plumb_block::{Bytes, Clock, Device, Nanos, RealClock, Time, unix_time};
use plumb_caches::CacheOnOneDrive;
use plumb_serve::attach::{AttachOptions, Attachment, ControlFile};
use plumb_serve::ublk::{UblkDevice, UblkOptions};

use crate::error::Result;
use crate::file_system::FileSystemOptions;
use crate::recording::{Recorder, Recording};
use crate::state_device::StateDevice;

/// Minimum time that each command is in flight: that of a slow flash drive, so that concurrent commands are
/// recorded as concurrent.
pub(crate) const IN_FLIGHT_MIN: Nanos = Nanos::micros(200);

/// Recorded drive in memory, or several.
pub(super) struct Drive {
    pub(super) recorder: Recorder,
    device: Arc<dyn Device>,
    cache: Option<CacheOnOneDrive>,
    options: FileSystemOptions,
    pub(super) began: Nanos,
}

/// Drives attached as block devices, at least one.
pub(super) struct AttachedDrives(Vec<AttachedDrive>);

/// Drive attached as a block device.
struct AttachedDrive {
    /// Loop attachment; with ublk it only provides the control file.
    by_loop: Attachment,
    by_ublk: Option<UblkDevice>,
}

impl Drive {
    /// Creates a blank drive of `size`, followed by the further drives and the log of the cache.
    pub(super) fn blank(
        size: Bytes,
        logical_block: Bytes,
        options: &FileSystemOptions,
        cache: Option<CacheOnOneDrive>,
    ) -> Self {
        let (clock, began) = (Arc::new(RealClock::start()), unix_time());
        let further = options.further.iter().map(|drive| drive.size).chain(cache.map(|cache| cache.size));
        let size = Bytes(size.round_down(logical_block).0 + further.map(|size| size.0).sum::<u64>());
        let drive = blank(size, logical_block, &clock);
        let log = cache.map(|cache| cache.log_begins(&*drive).0);
        let further = options.further_begin(drive.info().size, logical_block).into_iter().chain(log);
        let recorder = Recorder::of_blank(&drive.info(), clock).with_in_flight_min(IN_FLIGHT_MIN);
        let recorder = recorder.with_further_drives(further.collect());
        let device = recorder.device(drive);
        Self { recorder, device, cache, options: options.clone(), began }
    }

    /// Attaches all drives, or a cache created on the drive, with a control file if `control` is given.
    pub(super) fn attach(&self, mut control: Option<ControlFile>) -> Result<AttachedDrives> {
        let drive = Arc::clone(&self.device);
        let device = self.cache.map_or(Ok(drive), |cache| cache.create(&self.device, Time::real()))?;
        let drives = self.options.drives(&device).into_iter();
        drives
            .map(|drive| AttachedDrive::new(drive, control.take()))
            .collect::<Result<_>>()
            .map(AttachedDrives)
    }
}

impl AttachedDrive {
    fn new(device: Arc<dyn Device>, control: Option<ControlFile>) -> Result<Self> {
        let options = AttachOptions { control, ..AttachOptions::default() };
        if Path::new("/dev/ublk-control").exists() {
            let beside = blank(Bytes::mib(1), Bytes(4096), &Arc::new(RealClock::start()));
            let by_loop = attach(beside, "prove", &options)?;
            let by_ublk = Some(UblkDevice::new(device, "prove", &UblkOptions::default())?);
            return Ok(Self { by_loop, by_ublk });
        }
        Ok(Self { by_loop: attach(device, "prove", &options)?, by_ublk: None })
    }

    fn path(&self) -> &Path {
        if let Some(device) = &self.by_ublk {
            return device.path();
        }
        self.by_loop.path()
    }

    fn detach(&mut self) -> Result<()> {
        if let Some(device) = &mut self.by_ublk {
            device.detach()?;
        }
        Ok(self.by_loop.detach()?)
    }
}

impl AttachedDrives {
    /// Returns the block devices, that of the first drive first.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.0.iter().map(|drive| drive.path().to_owned()).collect()
    }

    /// Returns the kind of attachment for reports.
    pub(super) fn by(&self) -> &'static str {
        if self.0[0].by_ublk.is_some() {
            return "ublk";
        }
        "loop"
    }

    /// Returns the control file, if there is one.
    pub(super) fn control_file(&self) -> PathBuf {
        self.0[0].by_loop.control_file().unwrap_or_default()
    }

    /// Flushes and detaches all drives.
    pub(super) fn detach(&mut self) -> Result<()> {
        self.0.iter_mut().try_for_each(AttachedDrive::detach)
    }
}

pub(super) fn blank(size: Bytes, logical_block: Bytes, clock: &Arc<RealClock>) -> Arc<StateDevice> {
    let recording = Arc::new(Recording::of_blank(size, logical_block));
    Arc::new(StateDevice::new(recording, Arc::clone(clock) as Arc<dyn Clock>))
}

/// Attaches a device through FUSE and loop under a unique name.
pub(crate) fn attach(device: Arc<dyn Device>, what: &str, options: &AttachOptions) -> Result<Attachment> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Ok(Attachment::new(device, &name, options)?)
}
