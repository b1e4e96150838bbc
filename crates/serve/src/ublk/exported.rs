//! An exported device, from start to end.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use plumb_block::Device;
use plumb_linux::block_ioctl::forget_cache;
use plumb_linux::ublk::{CharDevice, UblkQueue};
use rustix::fs::{Mode, OFlags};

use super::driver::{self, Driver, MARK};
use super::options::{Survives, UblkOptions};
use super::plan::Geometry;
use super::records::{Base, Record};
use super::served::ServedDisk;
use super::sweep::{sweep_locked, waiting_in};
use super::wire::{self, Info};
use super::worker::{DeviceQueue, Worker};
use crate::claim::{claim, readmit};
use crate::error::{ExportError, Result, at};
use crate::holders::users_of;
use plumb_state::Owner;

/// A device exported as `/dev/ublkbN`.
///
/// Dropping it removes the block device as cleanly as possible; if it is in use or cannot be flushed, users
/// get EIO.
pub struct UblkDevice {
    number: u32,
    path: PathBuf,
    served: Arc<ServedDisk>,
    live: Option<Live>,
}

struct Live {
    driver: Driver,
    workers: Vec<JoinHandle<io::Result<()>>>,
}

impl UblkDevice {
    /// Exports `device` under a free number, after [sweeping](super::sweep()) the remains of killed servers.
    /// The block device is usable on return.
    ///
    /// # Errors
    /// [`NoDriver`](ExportError::NoDriver), [`Geometry`](ExportError::Geometry) for a device that the block
    /// layer does not support, or a failed call: root is required. Nothing is left behind on failure.
    pub fn new(device: Arc<dyn Device>, name: &str, options: &UblkOptions) -> Result<Self> {
        let geometry = Geometry::new(&device.info())?;
        let mut driver = Driver::open()?;
        let base = Base::open(options.directory.as_deref())?;
        let locked = base.lock()?;
        sweep_locked(&mut driver, &base, &locked)?;
        let info = driver.add(&device_parameters(&geometry, options))?;
        let record = match base.create(info.number, name, &options.identity, &locked) {
            Ok(record) => record,
            Err(error) => {
                // The first error is more useful than one from cleaning up.
                driver.delete(info.number).unwrap_or_default();
                return Err(error);
            }
        };
        drop(locked);
        let served = Arc::new(ServedDisk::new(device, geometry, record, options.survives));
        let mut exported = Self::from_number(info.number, served);
        exported.live = Some(Live { driver, workers: Vec::new() });
        if let Err(error) = exported.start() {
            exported.end().unwrap_or_default();
            return Err(error);
        }
        Ok(exported)
    }

    /// Takes over `/dev/ublkbN` with `device`, which must have the contents of the killed server's device.
    /// Waiting requests are reissued, and the block device continues.
    ///
    /// # Errors
    /// [`NotRecoverable`](ExportError::NotRecoverable) if there is nothing of ours to take over, its server
    /// is alive, or the device is another one; otherwise as [`new`](Self::new). Unless stated otherwise, the
    /// block device stays unchanged.
    pub fn recover(device: Arc<dyn Device>, number: u32, options: &UblkOptions) -> Result<Self> {
        let geometry = Geometry::new(&device.info())?;
        let mut driver = Driver::open()?;
        let base = Base::open(options.directory.as_deref())?;
        let locked = base.lock()?;
        let record = match base.find(number, &locked)? {
            Owner::Dead(record) => record,
            Owner::Alive => {
                return Err(ExportError::not_recoverable(number, "the process that serves it is running"));
            }
            Owner::None => return Err(ExportError::not_recoverable(number, "plumb has no record of it")),
        };
        let geometry = recoverable(&mut driver, number, &geometry, &record, options)?;
        drop(locked);
        let served = Arc::new(ServedDisk::new(device, geometry, record, options.survives));
        driver.begin_recovery(number)?;
        let mut exported = Self::from_number(number, Arc::clone(&served));
        let mut live = Live { driver, workers: Vec::new() };
        live.serve(&served, number)?;
        live.driver.end_recovery(number)?;
        exported.live = Some(live);
        // If the kernel does not support it, the block device keeps its size.
        exported.follow_size().unwrap_or_default();
        Ok(exported)
    }

    /// Takes over the block device of a killed server with the same identity. If there is none, or an unused
    /// one of another device, exports `device` under a free number as [`new`](Self::new) does.
    ///
    /// # Errors
    /// Fails as [`recover`](Self::recover) and [`new`](Self::new) do.
    pub fn resume(device: Arc<dyn Device>, name: &str, options: &UblkOptions) -> Result<Self> {
        let Some(number) = waiting_in(options.directory.as_deref(), &options.identity)? else {
            return Self::new(device, name, options);
        };
        match Self::recover(Arc::clone(&device), number, options) {
            Err(ExportError::NotRecoverable { .. })
                if users_of(&format!("ublkb{number}"), &[]).is_empty() =>
            {
                Self::new(device, name, options)
            }
            outcome => outcome,
        }
    }

    /// Serves the queues, and creates the block device.
    fn start(&mut self) -> Result<()> {
        let Some(live) = &mut self.live else { return Ok(()) };
        live.driver.set_parameters(self.number, &self.served.geometry.parameters)?;
        live.serve(&self.served, self.number)?;
        live.driver.start(self.number)
    }

    fn from_number(number: u32, served: Arc<ServedDisk>) -> Self {
        Self { number, path: driver::block_path(number), served, live: None }
    }

    /// Returns `/dev/ublkbN`. After removal, the number may belong to another device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if acknowledged writes were lost with the previous server, so that no flush succeeds.
    pub(crate) fn is_lossy(&self) -> bool {
        self.served.device.is_lossy()
    }

    /// Returns true if a flush has failed, so that all later ones fail.
    pub fn has_failed_flush(&self) -> bool {
        self.served.device.has_failed_flush()
    }

    /// Returns true if a queue is no longer served.
    pub fn has_ended(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.workers.iter().any(JoinHandle::is_finished))
    }

    /// Resizes the block device to the current size of the device.
    ///
    /// # Errors
    /// If the kernel refuses; supported since Linux 6.16.
    pub fn follow_size(&mut self) -> Result<()> {
        match (&mut self.live, self.served.follow_size()) {
            (Some(live), Some(sectors)) => live.driver.update_size(self.number, sectors),
            _ => Ok(()),
        }
    }

    /// Appends a line to the record of the device.
    ///
    /// # Errors
    /// Fails as write(2) does.
    pub fn describe(&self, line: &str) -> Result<()> {
        self.served.describe(line)
    }

    /// Accepts requests again after the device lost power, once all users who had the block device open at
    /// that time have closed it; until then every request fails. Returns the remaining users; none while the
    /// power is off.
    pub(crate) fn readmit(&self) -> Vec<String> {
        if self.live.is_none() || self.has_ended() {
            return Vec::new();
        }
        let ServedDisk { device, known, .. } = &*self.served;
        let open = || rustix::fs::open(&self.path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        readmit(&format!("ublkb{}", self.number), &[], &*device.device, known, || forget_cache(open()?))
    }

    /// Flushes and removes the block device. Repeated calls have no effect.
    ///
    /// # Errors
    /// [`Held`](ExportError::Held) with the users, or [`Flush`](ExportError::Flush): the device is then still
    /// exported, and can be used, removed later, or dropped. [`Unserved`](ExportError::Unserved) if a queue
    /// is no longer served: then nothing can be flushed, and dropping removes it. Other errors mean that
    /// something could not be removed.
    pub fn detach(&mut self) -> Result<()> {
        if self.live.is_none() {
            return Ok(());
        }
        if self.has_ended() {
            let source = io::Error::other("its requests are not answered");
            return Err(ExportError::Unserved { device: self.path.clone(), source });
        }
        // Claim the block device until it is stopped, so that nobody opens it at the last moment.
        let claim = self.release()?;
        if let Some(live) = &mut self.live {
            live.driver.stop(self.number)?;
        }
        drop(claim);
        self.end()
    }

    /// Ensures that the block device is unused and everything written is durable.
    fn release(&self) -> Result<OwnedFd> {
        let claim = claim(&format!("ublkb{}", self.number), OFlags::RDONLY, &[])?;
        rustix::fs::fsync(&claim)
            .map_err(|errno| ExportError::Flush { device: self.path.clone(), source: errno.into() })?;
        Ok(claim)
    }

    /// Removes everything, even if it is in use.
    fn end(&mut self) -> Result<()> {
        let Some(Live { mut driver, workers }) = self.live.take() else { return Ok(()) };
        driver.stop(self.number)?;
        let mut served = Ok(());
        for worker in workers {
            let ended = worker.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            let unserved = |source| ExportError::Unserved { device: self.path.clone(), source };
            served = served.and(ended.map_err(unserved));
        }
        driver.delete(self.number)?;
        self.served.forget()?;
        served
    }
}

impl Drop for UblkDevice {
    fn drop(&mut self) {
        if self.detach().is_err() {
            // Users get errors. Leftovers are swept later.
            self.end().unwrap_or_default();
        }
    }
}

impl Live {
    /// Starts a thread for each queue, and waits until all are offered to the kernel.
    fn serve(&mut self, served: &Arc<ServedDisk>, number: u32) -> Result<()> {
        let path = driver::char_path(number);
        let device = driver::patiently(|| CharDevice::open(&mut self.driver.0, number));
        let device = Arc::new(device.map_err(at("open", &path))?);
        let (ready, started) = mpsc::channel();
        for queue in 0..device.queues() {
            let (served, device, ready) = (Arc::clone(served), Arc::clone(&device), ready.clone());
            let thread = std::thread::Builder::new().name(format!("ublk{number}-{queue}"));
            let spawned = thread.spawn(move || match open(&served, &device, queue) {
                Ok(worker) => {
                    // The receiver is gone if another queue failed; the device is then stopped.
                    ready.send(Ok(())).unwrap_or_default();
                    drop((ready, device));
                    worker.run()
                }
                Err(error) => {
                    ready.send(Err(error)).unwrap_or_default();
                    Ok(())
                }
            });
            self.workers.push(spawned.map_err(at("start a thread for", &path))?);
        }
        drop((ready, device));
        for _ in 0..self.workers.len() {
            let gone = |_| Err(at("serve", &path)(io::Error::other("a thread has ended")));
            started.recv().unwrap_or_else(gone)?;
        }
        Ok(())
    }
}

fn open(served: &Arc<ServedDisk>, device: &Arc<CharDevice>, queue: u16) -> Result<Worker<UblkQueue>> {
    let path = driver::char_path(device.number());
    let depth = device.depth();
    let own = DeviceQueue::open(served, depth)?;
    let wakeups = own.wakeups().map_err(at("wait for requests through", &path))?;
    let kernel = UblkQueue::open(Arc::clone(device), queue, wakeups).map_err(at("map", &path))?;
    Worker::start(Arc::clone(served), kernel, own, depth).map_err(at("fetch from", &path))
}

fn device_parameters(geometry: &Geometry, options: &UblkOptions) -> Info {
    let flags = match options.survives {
        Survives::Nothing => 0,
        Survives::Durable | Survives::Acknowledged => wire::USER_RECOVERY | wire::REISSUE,
    };
    Info {
        queues: options.queues(),
        depth: options.depth(),
        // The transfer is at most 512 KiB, so it fits.
        request_max: geometry.grid.transfer_max.0 as u32,
        number: u32::MAX,
        pid: std::process::id().cast_signed(),
        flags,
        mark: MARK,
        ..Info::default()
    }
}

/// Checks that the kernel's device matches `record`, and can be served with a device of `geometry`, which may
/// have grown. Returns the kernel's geometry.
fn recoverable(
    driver: &mut Driver,
    number: u32,
    geometry: &Geometry,
    record: &Record,
    options: &UblkOptions,
) -> Result<Geometry> {
    let refused = |why: String| ExportError::not_recoverable(number, why);
    if options.survives == Survives::Nothing {
        return Err(refused("its contents went with the process that served it".to_owned()));
    }
    let info = driver.info(number)?.filter(|info| info.mark == MARK);
    let info = info.ok_or_else(|| refused("the kernel has no such device of plumb's".to_owned()))?;
    if info.flags & wire::USER_RECOVERY == 0 || !matches!(info.state, wire::LIVE | wire::QUIESCED) {
        return Err(refused("the kernel has ended it with the process that served it".to_owned()));
    }
    if record.identity != options.identity {
        return Err(refused(format!(
            "it was served as {} with {}, and this is {}",
            record.name, record.identity, options.identity
        )));
    }
    let (theirs, ours) = (driver.parameters(number)?, geometry.parameters);
    let before = geometry.sized_as(&theirs);
    let has_grown = theirs == before.parameters && theirs.sectors <= ours.sectors;
    if !has_grown || u64::from(info.request_max) != geometry.grid.transfer_max.0 {
        return Err(refused(format!("the kernel has it with {theirs:?}, and this device has {ours:?}")));
    }
    Ok(before)
}
