//! The mounted file system and the threads that serve it.
//!
//! The order of descriptors matters when the process is killed. The kernel then releases its files by
//! descending number, and the last opener of a block device waits until what is dirty in its page cache is
//! written: to this very process, which serves nothing any more and could never end. So every file of the
//! connection gets a higher number than the descriptor that keeps the loop device: the connection is cut
//! first, and the writes fail. For the same reason nobody who has these descriptors ever waits for the file
//! system in the kernel: see [`plumb_linux::isolated_thread`].

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

/// Name of the file system in the mount table.
const FILE_SYSTEM: &str = "fuse.plumb";

/// A mounted file system of one file, or two. Dropping it cuts the connection.
pub(super) struct Session {
    mount_point: PathBuf,
    workers: Vec<JoinHandle<()>>,
    is_mounted: bool,
}

impl Session {
    /// Mounts at `mount_point` and serves, through rings if the kernel has them and their setting is on. All
    /// descriptors get higher numbers than `above`.
    pub(super) fn start(
        served: &Arc<ServedLoop>,
        mount_point: &Path,
        threads: Threads,
        above: BorrowedFd<'_>,
    ) -> Result<Self> {
        match Self::mounted(served, mount_point, threads, above) {
            // An agreement of a connection cannot be taken back: another one does without.
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

    /// Starts threads that serve the kernel's queues through rings, and waits until all are registered. What
    /// wants no answer still comes through the file.
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
            // Whoever waits for it has gone if another thread failed; the connection is then cut.
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

    /// Returns the path of the file.
    pub(super) fn disk(&self) -> PathBuf {
        self.mount_point.join(DISK_NAME)
    }

    /// Returns the path of the control file, if there is one.
    pub(super) fn control_file(&self) -> PathBuf {
        self.mount_point.join(CONTROL_NAME)
    }

    /// Cuts the connection: what is in flight fails, and whatever comes. Everything stays to be taken away.
    pub(super) fn cut(&self) {
        // The loop device uses the mount, so nothing is unmounted; that is expected, and so is a mount that
        // is gone already.
        unmounted(&self.mount_point, UnmountFlags::FORCE).unwrap_or_default();
    }

    /// Cuts the connection, unmounts, and waits for the threads. What is in flight fails.
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
        // Nobody can be told any more; a sweep takes up what is left.
        self.end().unwrap_or_default();
    }
}

/// Unmounts the file system at `mount_point` after cutting its connection (MNT_FORCE), so that its threads
/// end even if a copy of the mount lives on in another mount namespace. If somebody still has a file of it
/// open it goes out of sight now and away with the last user.
pub(super) fn cut_and_unmount(mount_point: &Path) -> Result<()> {
    match unmounted(mount_point, UnmountFlags::FORCE) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
            unmounted(mount_point, UnmountFlags::DETACH)
        }
        done => done,
    }
    .map_err(at("unmount", mount_point))
}

fn unmounted(mount_point: &Path, how: UnmountFlags) -> std::io::Result<()> {
    isolated_thread::among_mounts(|| unmount(mount_point, how | UnmountFlags::NOFOLLOW))
        .and_then(|done| Ok(done?))
}

/// Returns `file` with a number higher than that of `above`, duplicating it if necessary.
fn lifted(file: OwnedFd, above: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    if file.as_raw_fd() > above.as_raw_fd() {
        return Ok(file);
    }
    rustix::io::fcntl_dupfd_cloexec(&file, above.as_raw_fd() + 1)
}
