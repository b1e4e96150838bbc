//! A device that is attached, from the first step to the last.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plumb_block::wait::LOOK_EVERY;
use plumb_block::{Bytes, Device, Nanos};
use plumb_linux::loop_device::LoopDevice;
use rustix::fs::{Mode, OFlags};

use super::directory::{AttachmentDirectory, Base};
use super::loop_queue::{self, LoopSettings};
use super::options::{AttachOptions, Threads};
use super::served::ServedLoop;
use super::session::Session;
use super::sweep::sweep_locked;
use crate::claim::{claim, held, is_free_soon, readmit};
use crate::error::{ExportError, Result, at};
use crate::records::Swept;
use crate::served_device::REQUEST_TIMEOUT_CLOSING;

/// How long all that is dirty may take once the device has to be taken away in any case.
const FLUSH_TIMEOUT_FORCED: Nanos = Nanos::secs(15);

/// A device that the kernel has as `/dev/loopN`.
///
/// Dropping it detaches as cleanly as time allows, as [`detach_forced_if`](Attachment::detach_forced_if) has
/// it: if somebody still uses the block device, or it cannot be flushed, the connection is cut, and they get
/// EIO.
pub struct Attachment {
    path: PathBuf,
    swept: Swept,
    served: Arc<ServedLoop>,
    live: Option<Live>,
}

/// Parts of an attachment that have to be taken away, in this order.
struct Live {
    changed: LoopSettings,
    loop_device: LoopDevice,
    session: Session,
    directory: AttachmentDirectory,
}

impl Attachment {
    /// Attaches `device` under `name`, and first [sweeps](super::sweep()) away what killed servers left. When
    /// this returns, the block device can be used.
    ///
    /// # Errors
    /// [`Name`](ExportError::Name), [`NameInUse`](ExportError::NameInUse), [`Left`](ExportError::Left),
    /// [`Geometry`](ExportError::Geometry) for a device that no loop device can stand for,
    /// [`Kernel`](ExportError::Kernel) if the kernel is too old, or a call that failed: it takes root,
    /// `/dev/fuse` and `/dev/loop-control`. Nothing is left behind then.
    pub fn new(device: Arc<dyn Device>, name: &str, options: &AttachOptions) -> Result<Self> {
        let served = Arc::new(ServedLoop::new(device, options)?);
        let base = Base::open(options.directory.as_deref())?;
        let (swept, directory) = {
            let locked = base.lock()?;
            let swept = sweep_locked(&base, &locked)?;
            if let Some((name, why)) = swept.kept.iter().find(|(kept, _)| kept == name) {
                return Err(ExportError::Left { name: name.clone(), why: why.clone() });
            }
            (swept, base.create(name, &locked)?)
        };
        let live = match attach(&served, options.threads(), directory.clone()) {
            Ok(live) => live,
            Err(error) => {
                // The first error tells more than one of clearing up; what stays is swept away later.
                directory.remove().unwrap_or_default();
                base.take_back();
                return Err(served.refusal().unwrap_or(error));
            }
        };
        let path = live.loop_device.path();
        Ok(Self { path, swept, served, live: Some(live) })
    }

    /// Returns `/dev/loopN`. Another's, perhaps, once detached.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the control file, for as long as it is attached; `None` if none was asked for.
    pub fn control_file(&self) -> Option<PathBuf> {
        let live = self.live.as_ref().filter(|_| self.served.control.is_some());
        live.map(|live| live.session.control_file())
    }

    /// Returns how requests come to this process.
    pub fn transport(&self) -> &'static str {
        if self.served.uses_ring.load(Ordering::Relaxed) { "fuse-io-uring" } else { "fuse" }
    }

    /// Returns why requests do not come through io_uring, although the kernel offers it.
    pub fn ring_refusal(&self) -> Option<&str> {
        self.served.ring_refusal.get().map(String::as_str)
    }

    /// Returns what was swept away before the device was attached.
    pub fn swept(&self) -> &Swept {
        &self.swept
    }

    /// Returns true if a flush has failed, so that all later ones do.
    pub fn has_failed_flush(&self) -> bool {
        self.served.device.has_failed_flush()
    }

    /// Has the block device take the size that the device has now.
    ///
    /// # Errors
    /// If the kernel does not take it.
    pub fn follow_size(&self) -> Result<()> {
        let Some(Live { loop_device, session, .. }) = &self.live else { return Ok(()) };
        self.served.follow_size();
        loop_device.follow_size(session.disk()).map_err(at("give its new size to", &self.path))
    }

    /// Adds a line to the record of the device.
    ///
    /// # Errors
    /// Fails as write(2).
    pub fn describe(&self, line: &str) -> Result<()> {
        self.live.iter().try_for_each(|live| live.directory.describe(line))
    }

    /// Lets requests through again after the device has lost power, once all have closed the block device who
    /// had it open then: until that every request fails. Those who have not; none while the power is off.
    pub fn readmit(&self) -> Vec<String> {
        let Some(Live { loop_device, .. }) = &self.live else { return Vec::new() };
        let disk = format!("loop{}", loop_device.number());
        let ServedLoop { device, known, .. } = &*self.served;
        readmit(&disk, &[loop_device.as_fd()], &*device.device, known, || loop_device.drop_cache())
    }

    /// Flushes, frees the loop device, unmounts, and removes the directory. Done once it returns; again it
    /// does nothing.
    ///
    /// # Errors
    /// [`Held`](ExportError::Held) with the users, or [`Flush`](ExportError::Flush): then the device is still
    /// attached, and can be used, detached later, or dropped. Other errors mean that something could not be
    /// taken away; what is left is swept away by the next attachment once this process has ended.
    pub fn detach(&mut self) -> Result<()> {
        self.detach_forced_if(&mut || false)
    }

    /// Detaches the device, by force once `is_forced` returns true; it is called again and again while
    /// something is waited for. From then on the device has 3 s for each request, and 15 s for all; what it
    /// leaves unanswered then is EIO, so that the call fails and the attachment can be dropped.
    ///
    /// # Errors
    /// As [`detach`](Self::detach).
    pub fn detach_forced_if(&mut self, is_forced: &mut dyn FnMut() -> bool) -> Result<()> {
        let Some(live) = &self.live else { return Ok(()) };
        self.release(live, is_forced)?;
        let Some(Live { changed, loop_device, mut session, directory }) = self.live.take() else {
            return Ok(());
        };
        let number = loop_device.number();
        let disk = session.disk();
        let restored = changed.restore();
        // The check below shows whether the device was closed.
        loop_device.close().unwrap_or_default();
        if !is_free_soon(number, &disk) {
            // Somebody came in the last moment. Their device stays until they leave, and so does its server.
            let loop_device = LoopDevice::open(number).map_err(at("open", &self.path))?;
            let changed = loop_queue::set_up(number, &self.served)?;
            self.live = Some(Live { changed, loop_device, session, directory });
            let own: Vec<_> = self.live.iter().map(|live| live.loop_device.as_fd()).collect();
            return Err(held(&format!("loop{number}"), &own));
        }
        session.end()?;
        directory.remove()?;
        restored
    }

    /// Makes sure that nobody uses the block device, and that all that was written is durable.
    fn release(&self, live: &Live, is_forced: &mut dyn FnMut() -> bool) -> Result<()> {
        let disk = format!("loop{}", live.loop_device.number());
        let _claim = claim(&disk, OFlags::RDWR, &[live.loop_device.as_fd()])?;
        self.flush(live, is_forced).map_err(|source| ExportError::Flush { device: self.path.clone(), source })
    }

    /// Makes what is dirty durable. Whoever has the connection must not wait for that in the kernel.
    fn flush(&self, live: &Live, is_forced: &mut dyn FnMut() -> bool) -> std::io::Result<()> {
        let flushed = live.loop_device.sync()?;
        let (clock, mut until) = (&self.served.device.clock, None);
        loop {
            if let Some(outcome) = flushed.within(LOOK_EVERY.into()) {
                return outcome;
            }
            match until {
                None if is_forced() => {
                    self.served.device.shorten_request_timeout(REQUEST_TIMEOUT_CLOSING);
                    until = Some(clock.now().saturating_add(FLUSH_TIMEOUT_FORCED));
                }
                Some(until) if clock.now() >= until => live.session.cut(),
                _ => {}
            }
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if self.detach_forced_if(&mut || true).is_ok() {
            return;
        }
        if let Some(Live { changed, loop_device, mut session, directory }) = self.live.take() {
            // The connection first: closing the loop device writes back what is dirty, and must not wait for
            // a device that may not answer. What cannot be removed now is swept away later.
            session.end().unwrap_or_default();
            changed.restore().unwrap_or_default();
            loop_device.close().unwrap_or_default();
            directory.remove().unwrap_or_default();
        }
    }
}

fn attach(served: &Arc<ServedLoop>, threads: Threads, directory: AttachmentDirectory) -> Result<Live> {
    // The number of this descriptor is the loop device's later: lower than those of the connection, see
    // `session`.
    let null = Path::new("/dev/null");
    let place =
        rustix::fs::open(null, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(at("open", null))?;
    let session = Session::start(served, &directory.mount_point(), threads, place.as_fd())?;
    let block = Bytes(served.geometry.block.into());
    let control = Path::new("/dev/loop-control");
    let label = format!("plumb:{}", directory.name);
    let loop_device = LoopDevice::bind(session.disk(), block, label, place)
        .map_err(at("bind a loop device through", control))?;
    let changed = loop_queue::set_up(loop_device.number(), served)?;
    Ok(Live { changed, loop_device, session, directory })
}
