//! A device that is exported, from the first step to the last.

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

/// A device that the kernel has as `/dev/ublkbN`.
///
/// Dropping it takes the block device away as cleanly as possible: if somebody still uses it, or it cannot be
/// flushed, they get EIO.
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
    /// Exports `device` under a free number, and first [sweeps](super::sweep()) away what killed servers
    /// left. When this returns, the block device can be used.
    ///
    /// # Errors
    /// [`NoDriver`](ExportError::NoDriver), [`Geometry`](ExportError::Geometry) for a device that the block
    /// layer cannot have, or a call that failed: it takes root. Nothing is left behind then.
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
                // The first error tells more than one of clearing up.
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

    /// Takes over `/dev/ublkbN` with `device`, which has the contents that the killed server's had. What
    /// waits is asked again, and the block device works on.
    ///
    /// # Errors
    /// [`NotRecoverable`](ExportError::NotRecoverable) if there is nothing of ours to take over, its server
    /// lives, or the device is another one; else as [`new`](Self::new). The block device stays as it was, if
    /// nothing else is said.
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
        // Where the kernel cannot take it, the block device is as large as it was.
        exported.follow_size().unwrap_or_default();
        Ok(exported)
    }

    /// Takes over the block device that a killed server with the same identity has left; exports `device`
    /// under a free number, as [`new`](Self::new) does, if there is none, or nobody uses it and it is
    /// another.
    ///
    /// # Errors
    /// The errors of [`recover`](Self::recover) and [`new`](Self::new).
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

    /// Serves its queues, and has the kernel make the block device.
    fn start(&mut self) -> Result<()> {
        let Some(live) = &mut self.live else { return Ok(()) };
        live.driver.set_parameters(self.number, &self.served.geometry.parameters)?;
        live.serve(&self.served, self.number)?;
        live.driver.start(self.number)
    }

    fn from_number(number: u32, served: Arc<ServedDisk>) -> Self {
        Self { number, path: driver::block_path(number), served, live: None }
    }

    /// Returns `/dev/ublkbN`. Another's, perhaps, once taken away.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if acknowledged writes went with the server from which it was taken over, so that no
    /// flush succeeds.
    pub fn is_lossy(&self) -> bool {
        self.served.device.is_lossy()
    }

    /// Returns true if a flush has failed, so that all later ones do.
    pub fn has_failed_flush(&self) -> bool {
        self.served.device.has_failed_flush()
    }

    /// Returns true if a queue is no longer served.
    pub fn has_ended(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.workers.iter().any(JoinHandle::is_finished))
    }

    /// Has the block device take the size that the device has now.
    ///
    /// # Errors
    /// If the kernel does not take it: it can from Linux 6.16 on.
    pub fn follow_size(&mut self) -> Result<()> {
        match (&mut self.live, self.served.follow_size()) {
            (Some(live), Some(sectors)) => live.driver.update_size(self.number, sectors),
            _ => Ok(()),
        }
    }

    /// Adds a line to the record of the device.
    ///
    /// # Errors
    /// Fails as write(2).
    pub fn describe(&self, line: &str) -> Result<()> {
        self.served.describe(line)
    }

    /// Lets requests through again after the device has lost power, once all have closed the block device who
    /// had it open then: until that every request fails. Those who have not; none while the power is off.
    pub fn readmit(&self) -> Vec<String> {
        if self.live.is_none() || self.has_ended() {
            return Vec::new();
        }
        let ServedDisk { device, known, .. } = &*self.served;
        let open = || rustix::fs::open(&self.path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        readmit(&format!("ublkb{}", self.number), &[], &*device.device, known, || forget_cache(open()?))
    }

    /// Flushes, and takes the block device away. Done once it returns; again it does nothing.
    ///
    /// # Errors
    /// [`Held`](ExportError::Held) with the users, or [`Flush`](ExportError::Flush): then the device is still
    /// exported, and can be used, taken away later, or dropped. [`Unserved`](ExportError::Unserved) if a
    /// queue is no longer served: nothing can be flushed, and dropping takes it away. Other errors mean that
    /// something could not be taken away.
    pub fn detach(&mut self) -> Result<()> {
        if self.live.is_none() {
            return Ok(());
        }
        if self.has_ended() {
            let source = io::Error::other("its requests are not answered");
            return Err(ExportError::Unserved { device: self.path.clone(), source });
        }
        // Claimed until it is stopped, so that nobody comes in the last moment.
        let claim = self.release()?;
        if let Some(live) = &mut self.live {
            live.driver.stop(self.number)?;
        }
        drop(claim);
        self.end()
    }

    /// Makes sure that nobody uses the block device, and that all that was written is durable.
    fn release(&self) -> Result<OwnedFd> {
        let claim = claim(&format!("ublkb{}", self.number), OFlags::RDONLY, &[])?;
        rustix::fs::fsync(&claim)
            .map_err(|errno| ExportError::Flush { device: self.path.clone(), source: errno.into() })?;
        Ok(claim)
    }

    /// Takes everything away, whoever uses it.
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
            // Whoever uses it gets errors, which tells them. What stays is swept away later.
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
                    // Whoever waited for it has gone if another queue failed; the device is then stopped.
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
        // At most 512 KiB.
        request_max: geometry.grid.transfer_max.0 as u32,
        number: u32::MAX,
        pid: std::process::id().cast_signed(),
        flags,
        mark: MARK,
        ..Info::default()
    }
}

/// Checks that the kernel's device is the one of `record`, and can be served with a device of `geometry`,
/// which may have grown. Returns the geometry that the kernel has.
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
