//! The mounted file system and the threads that serve it.
//!
//! When the process is killed, the order of descriptors matters. The kernel closes files by descending
//! number, and the last close of a block device waits for the write-back of its dirty pages: to this process
//! itself, which no longer serves and so could never end. Therefore every file of the connection has a higher
//! number than the loop device's descriptor: the connection is then aborted first, and the writes fail. For
//! the same reason no thread with these descriptors may wait for the file system in the kernel: see
//! [`plumb_linux::isolated_thread`].

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use plumb_block::in_one_line;
use plumb_linux::fuse_connection::{self, WhenIdle};
use plumb_linux::fuse_ring;
use plumb_linux::isolated_thread;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::files::Files;
use super::options::Threads;
use super::ring_worker::RingWorker;
use super::served::ServedLoop;
use super::wire::{CONTROL_NAME, DISK_NAME};
use super::worker::Worker;
use crate::error::{Result, at};

/// File system type in the mount table.
const FILE_SYSTEM: &str = "fuse.plumb";

/// A mounted file system with one or two files. Dropping it aborts the connection.
pub(super) struct Session {
    mount_point: PathBuf,
    workers: Vec<JoinHandle<()>>,
    is_mounted: bool,
}

impl Session {
    /// Mounts at `mount_point` and starts to serve, through rings if the kernel has them enabled. All
    /// descriptors get higher numbers than `above`.
    pub(super) fn start(
        served: &Arc<ServedLoop>,
        mount_point: &Path,
        threads: Threads,
        above: BorrowedFd<'_>,
    ) -> Result<Self> {
        match Self::mounted(served, mount_point, threads, above) {
            // The negotiated protocol is final, so mount again without rings.
            Err(error) if served.uses_ring.swap(false, Ordering::Relaxed) => {
                served.ring_refusal.get_or_init(|| in_one_line(&error));
                Self::mounted(served, mount_point, threads, above)
            }
            outcome => outcome,
        }
    }

    fn mounted(
        served: &Arc<ServedLoop>,
        mount_point: &Path,
        threads: Threads,
        above: BorrowedFd<'_>,
    ) -> Result<Self> {
        let fuse = Path::new("/dev/fuse");
        let connection = fuse_connection::open(WhenIdle::Wait).map_err(at("open", fuse))?;
        let options = format!(
            "fd={},rootmode=40000,user_id={},group_id={},max_read={}{}",
            connection.as_raw_fd(),
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
            served.transfer_max().0,
            if served.control.is_some() { ",allow_other" } else { "" }
        );
        let options = CString::new(options).unwrap_or_default();
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOATIME;
        isolated_thread::among_mounts(|| mount("plumb", mount_point, FILE_SYSTEM, flags, options.as_c_str()))
            .and_then(|mounted| Ok(mounted?))
            .map_err(at("mount a file system at", mount_point))?;
        let mut session = Self { mount_point: mount_point.to_owned(), workers: Vec::new(), is_mounted: true };
        let file = |when_idle| {
            let file = fuse_connection::another(connection.as_fd(), when_idle);
            file.and_then(|file| Ok(lifted(file, above)?)).map_err(at("connect again to", fuse))
        };
        let worker = |depth| {
            let files = Files { waiting: file(WhenIdle::Wait)?, returning: file(WhenIdle::Return)? };
            Worker::new(Arc::clone(served), files, depth)
        };
        let mut first = worker(1)?;
        first.greet().map_err(at("answer", fuse))?;
        if served.uses_ring.load(Ordering::Relaxed) {
            session.spawn("attach-0", || first.run())?;
            session.serve_rings(served, threads, || file(WhenIdle::Return))?;
            return Ok(session);
        }
        for index in 0..threads.queues {
            let worker = worker(threads.depth)?;
            session.spawn(&format!("attach-{index}"), || worker.run())?;
        }
        Ok(session)
    }

    /// Starts threads that serve the kernel's queues through rings, and waits until all are registered.
    /// Requests that need no answer still arrive through the file.
    fn serve_rings(
        &mut self,
        served: &Arc<ServedLoop>,
        threads: Threads,
        file: impl Fn() -> Result<OwnedFd>,
    ) -> Result<()> {
        let queues = fuse_ring::queues().unwrap_or(1);
        let (ready, started) = mpsc::channel();
        let count = threads.queues.min(queues.into()) as usize;
        for index in 0..count {
            let (served, ready, connection) = (Arc::clone(served), ready.clone(), file()?);
            let own = (0..queues).skip(index).step_by(count).collect();
            // The receiver is gone if another thread failed; the connection is then aborted.
            self.spawn(&format!("attach-ring-{index}"), move || {
                match RingWorker::register(served, connection, own, threads.depth) {
                    Ok(worker) => {
                        ready.send(Ok(())).unwrap_or_default();
                        worker.run();
                    }
                    Err(error) => ready.send(Err(error)).unwrap_or_default(),
                }
            })?;
        }
        drop(ready);
        started.iter().take(count).collect()
    }

    fn spawn(&mut self, name: &str, serve: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(serve);
        self.workers.push(thread.map_err(at("start a thread for", &self.mount_point))?);
        Ok(())
    }

    /// Returns the path of the device's file.
    pub(super) fn disk(&self) -> PathBuf {
        self.mount_point.join(DISK_NAME)
    }

    /// Returns the path of the control file, if there is one.
    pub(super) fn control_file(&self) -> PathBuf {
        self.mount_point.join(CONTROL_NAME)
    }

    /// Aborts the connection: requests in flight and later ones fail. Nothing is removed yet.
    pub(super) fn cut(&self) {
        // The unmount fails because the loop device uses the mount, which is expected; a missing mount is
        // fine too.
        unmounted(&self.mount_point, UnmountFlags::FORCE).unwrap_or_default();
    }

    /// Aborts the connection, unmounts, and waits for the threads. Requests in flight fail.
    pub(super) fn end(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_mounted) {
            cut_and_unmount(&self.mount_point)?;
        }
        for worker in self.workers.drain(..) {
            // A thread that panicked has closed its files, and the panic was printed.
            worker.join().unwrap_or_default();
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A destructor cannot report an error; leftovers are swept later.
        self.end().unwrap_or_default();
    }
}

/// Aborts the connection of the file system at `mount_point` and unmounts it (MNT_FORCE), so that its threads
/// end even if a copy of the mount exists in another namespace. If a file of it is open, the mount is
/// detached and vanishes with the last user.
pub(super) fn cut_and_unmount(mount_point: &Path) -> Result<()> {
    match unmounted(mount_point, UnmountFlags::FORCE) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
            unmounted(mount_point, UnmountFlags::DETACH)
        }
        done => done,
    }
    .map_err(at("unmount", mount_point))
}

/// Takes the mount out of the tree; the file system goes with its last user.
pub(super) fn unmount_lazily(mount_point: &Path) -> Result<()> {
    unmounted(mount_point, UnmountFlags::DETACH).map_err(at("unmount", mount_point))
}

fn unmounted(mount_point: &Path, how: UnmountFlags) -> std::io::Result<()> {
    isolated_thread::among_mounts(|| unmount(mount_point, how | UnmountFlags::NOFOLLOW))
        .and_then(|done| Ok(done?))
}

/// Returns `file` with a higher number than `above`, duplicating it if necessary.
fn lifted(file: OwnedFd, above: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    if file.as_raw_fd() > above.as_raw_fd() {
        return Ok(file);
    }
    rustix::io::fcntl_dupfd_cloexec(&file, above.as_raw_fd() + 1)
}
