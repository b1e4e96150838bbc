//! An attached device, from start to end.

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
use crate::holders::LoopBinding;
use crate::records::Swept;
use crate::served_device::REQUEST_TIMEOUT_CLOSING;

/// Maximum time to write dirty data during a forced detach.
const FLUSH_TIMEOUT_FORCED: Nanos = Nanos::secs(15);

/// A device attached as `/dev/loopN`.
///
/// Dropping it detaches as cleanly as possible, like [`detach_forced_if`](Attachment::detach_forced_if): if
/// the block device is in use or cannot be flushed, the connection is aborted, and users get EIO.
pub struct Attachment {
    path: PathBuf,
    swept: Swept,
    served: Arc<ServedLoop>,
    live: Option<Live>,
}

/// Parts of an attachment, in the order of their removal.
struct Live {
    changed: LoopSettings,
    loop_device: LoopDevice,
    session: Session,
    directory: AttachmentDirectory,
}

impl Attachment {
    /// Attaches `device` under `name`, after [sweeping](super::sweep()) the remains of killed servers. The
    /// block device is usable on return.
    ///
    /// # Errors
    /// [`Name`](ExportError::Name), [`NameInUse`](ExportError::NameInUse), [`Left`](ExportError::Left),
    /// [`Geometry`](ExportError::Geometry) for a device that a loop device cannot represent,
    /// [`Kernel`](ExportError::Kernel) if the kernel is too old, or a failed call: root, `/dev/fuse` and
    /// `/dev/loop-control` are required. Nothing is left behind on failure.
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
                // The first error is more useful than one from cleaning up; leftovers are swept later.
                directory.remove().unwrap_or_default();
                base.take_back();
                return Err(served.refusal().unwrap_or(error));
            }
        };
        let path = live.loop_device.path();
        Ok(Self { path, swept, served, live: Some(live) })
    }

    /// Returns `/dev/loopN`. After detaching, the number may belong to another device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the control file while attached; `None` if none was requested.
    pub fn control_file(&self) -> Option<PathBuf> {
        let live = self.live.as_ref().filter(|_| self.served.control.is_some());
        live.map(|live| live.session.control_file())
    }

    /// Returns the name of the transport for requests.
    pub fn transport(&self) -> &'static str {
        if self.served.uses_ring.load(Ordering::Relaxed) { "fuse-io-uring" } else { "fuse" }
    }

    /// Returns the reason why io_uring is not used although the kernel offers it.
    pub fn ring_refusal(&self) -> Option<&str> {
        self.served.ring_refusal.get().map(String::as_str)
    }

    /// Returns what was swept before attaching.
    pub fn swept(&self) -> &Swept {
        &self.swept
    }

    /// Returns true if a flush has failed, so that all later ones fail.
    pub fn has_failed_flush(&self) -> bool {
        self.served.device.has_failed_flush()
    }

    /// Resizes the block device to the current size of the device.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn follow_size(&self) -> Result<()> {
        let Some(Live { loop_device, session, .. }) = &self.live else { return Ok(()) };
        self.served.follow_size();
        loop_device.follow_size(session.disk()).map_err(at("give its new size to", &self.path))
    }

    /// Appends a line to the record of the device.
    ///
    /// # Errors
    /// Fails as write(2) does.
    pub fn describe(&self, line: &str) -> Result<()> {
        self.live.iter().try_for_each(|live| live.directory.describe(line))
    }

    /// Accepts requests again after the device lost power, once all users who had the block device open at
    /// that time have closed it; until then every request fails. Returns the remaining users; none while the
    /// power is off.
    pub(crate) fn readmit(&self) -> Vec<String> {
        let Some(Live { loop_device, .. }) = &self.live else { return Vec::new() };
        let disk = format!("loop{}", loop_device.number());
        let ServedLoop { device, known, .. } = &*self.served;
        readmit(&disk, &[loop_device.as_fd()], &*device.device, known, || loop_device.drop_cache())
    }

    /// Flushes, frees the loop device, unmounts, and removes the directory. Repeated calls have no effect.
    ///
    /// # Errors
    /// [`Held`](ExportError::Held) with the users, or [`Flush`](ExportError::Flush): the device is then still
    /// attached, and can be used, detached later, or dropped. Other errors mean that something could not be
    /// removed; the next attachment sweeps it after this process has ended.
    pub fn detach(&mut self) -> Result<()> {
        self.detach_forced_if(&mut || false)
    }

    /// Detaches the device, by force once `is_forced`, which is called repeatedly during waits, returns true.
    /// From then on the device has 3 s for each request, and 15 s in total. Unanswered requests then fail
    /// with EIO, so that the call fails and the attachment can be dropped.
    ///
    /// # Errors
    /// Fails as [`detach`](Self::detach) does.
    pub fn detach_forced_if(&mut self, is_forced: &mut dyn FnMut() -> bool) -> Result<()> {
        let Some(live) = &self.live else { return Ok(()) };
        self.release(live, is_forced)?;
        let Some(Live { changed, loop_device, mut session, directory }) = self.live.take() else {
            return Ok(());
        };
        let number = loop_device.number();
        let binding = LoopBinding::read(number);
        let restored = changed.restore();
        // The check below shows whether the device was really closed.
        loop_device.close().unwrap_or_default();
        if !binding.is_none_or(|binding| is_free_soon(&binding)) {
            // A user came at the last moment. The device and its server stay until that user leaves.
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

    /// Ensures that the block device is unused and everything written is durable.
    fn release(&self, live: &Live, is_forced: &mut dyn FnMut() -> bool) -> Result<()> {
        let disk = format!("loop{}", live.loop_device.number());
        let _claim = claim(&disk, OFlags::RDWR, &[live.loop_device.as_fd()])?;
        self.flush(live, is_forced).map_err(|source| ExportError::Flush { device: self.path.clone(), source })
    }

    /// Flushes dirty data. A thread with the connection's descriptors must not wait for that in the kernel.
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
            // End the connection first: closing the loop device writes dirty data back, and must not wait for
            // an unresponsive device. Leftovers are swept later.
            session.end().unwrap_or_default();
            changed.restore().unwrap_or_default();
            loop_device.close().unwrap_or_default();
            directory.remove().unwrap_or_default();
        }
    }
}

fn attach(served: &Arc<ServedLoop>, threads: Threads, directory: AttachmentDirectory) -> Result<Live> {
    // Reserves the loop device's descriptor number, which must be lower than those of the connection, see
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
    if let Some(binding) = LoopBinding::read(loop_device.number()) {
        directory.describe(&format!("{binding}\n"))?;
    }
    let changed = loop_queue::set_up(loop_device.number(), served)?;
    Ok(Live { changed, loop_device, session, directory })
}
