//! System calls that may wait for this process itself, made by a thread with its own descriptor table.
//!
//! A process that both serves and uses a file system may be killed while one of its threads waits in the
//! kernel for an answer, where no signal reaches it. The threads that would answer are already dead. The
//! kernel aborts the connection of the file system when its last descriptor is closed, which happens when the
//! last thread that shares the descriptor table ends: the waiting one. Such a wait therefore must happen in a
//! thread with a separate table. The wait then fails once the process is killed, and the thread ends too.

#![expect(unsafe_code, reason = "there is no safe call that gives a thread descriptors of its own")]

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use rustix::mount::MountPropagationFlags;
use rustix::thread::{LinkNameSpaceType, Pid, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Thread that keeps the private mounts alive.
static MOUNTS: OnceLock<Pid> = OnceLock::new();
/// First descriptor to close. Standard input, output and error stay open, so that no later file takes their
/// number.
const FIRST_CLOSED: libc::c_uint = 3;

/// Pending result of an isolated thread.
#[derive(Debug)]
pub struct IsolatedThread<T> {
    answer: Receiver<io::Result<T>>,
}

impl<T> IsolatedThread<T> {
    /// Returns the result if it arrives within `time`.
    pub fn within(&self, time: Duration) -> Option<io::Result<T>> {
        match self.answer.recv_timeout(time) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(io::Error::other("the thread panicked"))),
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// Fails as the task does.
    pub fn wait(&self) -> io::Result<T> {
        self.answer.recv().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}

/// Writes `text` to the existing file at `path`.
///
/// # Errors
/// Fails as open(2) and write(2) do.
pub fn write(path: PathBuf, text: String) -> io::Result<()> {
    let written = start(move |answer| {
        File::options().write(true).truncate(true).open(path)?.write_all(text.as_bytes())?;
        answer(());
        Ok(())
    })?;
    written.wait()
}

/// Runs `task` on a thread with only the standard descriptors. The task may continue after it has sent its
/// result through the callback. It must neither use, drop nor return a descriptor across the boundary: the
/// same number is another file, or none, on the other side.
///
/// # Errors
/// If the thread cannot be created.
pub fn start<T: Send + 'static>(
    task: impl FnOnce(&dyn Fn(T)) -> io::Result<()> + Send + 'static,
) -> io::Result<IsolatedThread<T>> {
    // Room for a result, and for a later error that nobody waits for.
    let (sender, answer) = sync_channel(2);
    Builder::new().name("isolated".to_owned()).spawn(move || {
        if let Err(error) = leave().and_then(|()| task(&|found| tell(&sender, Ok(found)))) {
            tell(&sender, Err(error));
        }
    })?;
    Ok(IsolatedThread { answer })
}

/// Runs `task` on a thread with only the standard descriptors, and waits for it. Use it for calls that wait
/// for a file system served by this process, including those of threads and programs that they start. The
/// task must neither use, drop nor return a descriptor across the boundary.
///
/// # Errors
/// If the thread cannot be created; then nothing was done.
pub fn run<T: Send>(task: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let builder = Builder::new().name("isolated".to_owned());
        let thread = builder.spawn_scoped(scope, || leave().map(|()| task()))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Gives isolated threads, and all processes that they start from now on, a private mount namespace: nobody
/// else sees their mounts, and these vanish with the process, however it ends. Mounts and unmounts by others
/// stay visible to them.
///
/// A thread without descriptors keeps the namespace alive, and no thread that serves a file system is ever in
/// it. The kernel unmounts in the last thread of the namespace to end, before it closes that thread's
/// descriptors. A thread that held the connection of the file system being unmounted would wait for itself
/// for ever, and block sync(2) of all other programs.
///
/// # Errors
/// Fails as unshare(2) and mount(2) do; requires `CAP_SYS_ADMIN`.
pub fn private_mounts() -> io::Result<()> {
    let holder = start(|answer| {
        unshare(UnshareFlags::NEWNS)?;
        let downstream = MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM;
        rustix::mount::mount_change("/", downstream)?;
        answer(rustix::thread::gettid());
        loop {
            std::thread::park();
        }
    })?;
    let holder = holder.wait()?;
    // Later calls have the namespace already; their extra thread has no effect.
    MOUNTS.get_or_init(|| holder);
    Ok(())
}

/// Runs `task`, which mounts or unmounts, with the caller's descriptors, in the private mount namespace if
/// there is one. It should not take long: see [`private_mounts`].
///
/// # Errors
/// If the thread cannot be created; then nothing was done.
pub fn among_mounts<T: Send>(task: impl FnOnce() -> T + Send) -> io::Result<T> {
    if MOUNTS.get().is_none() {
        return Ok(task());
    }
    std::thread::scope(|scope| {
        let visitor = Builder::new().name("mounts".to_owned());
        let thread = visitor.spawn_scoped(scope, || enter_private_mounts().map(|()| task()))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the calling thread to the private mount namespace, if there is one, in the same working directory.
fn enter_private_mounts() -> io::Result<()> {
    let Some(holder) = MOUNTS.get() else { return Ok(()) };
    let directory = std::env::current_dir();
    let mounts = File::open(format!("/proc/self/task/{}/ns/mnt", holder.as_raw_nonzero()))?;
    // Threads that share a working directory also share their mounts.
    unshare(UnshareFlags::FS)?;
    move_into_link_name_space(mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
    directory.map_or(Ok(()), std::env::set_current_dir)
}

/// Calls unshare(2), without `CLONE_FILES`.
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: descriptors stay shared; the thread gets its own copy of mounts and working directory.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Sends the result; the receiver may be gone.
fn tell<T>(sender: &SyncSender<io::Result<T>>, answer: io::Result<T>) {
    drop(sender.try_send(answer));
}

/// Gives the calling thread, which is new, its own copy of what it shares with others.
fn leave() -> io::Result<()> {
    leave_descriptors()?;
    enter_private_mounts()
}

fn leave_descriptors() -> io::Result<()> {
    // SAFETY: the calling thread gets a table of its own, in which all but the standard descriptors are
    // closed; those of all other threads stay as they are. The thread is new, and `start` demands that it use
    // none that it was given.
    let answer = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST_CLOSED, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE)
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;

    use rustix::mount::{MountFlags, UnmountFlags};

    use super::*;

    #[test]
    fn a_thread_apart_has_none_of_the_descriptors_and_takes_none_away() {
        let (mut reader, writer) = io::pipe().unwrap();
        let number = writer.as_raw_fd();
        let seen = start(move |answer| {
            // SAFETY: F_GETFD takes no argument.
            answer(unsafe { libc::fcntl(number, libc::F_GETFD) });
            Ok(())
        });
        assert_eq!(seen.unwrap().wait().unwrap(), -1, "it is closed there");
        drop(writer);
        // The read would block for ever if the other thread still had the other end open.
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
        File::open("/dev/null").unwrap();
    }

    #[test]
    fn a_failure_and_a_panic_are_answers() {
        let failed = start::<()>(|_| Err(io::ErrorKind::NotFound.into())).unwrap();
        assert_eq!(failed.wait().unwrap_err().kind(), io::ErrorKind::NotFound);
        let nothing = start::<()>(|_| Ok(())).unwrap();
        assert!(nothing.within(Duration::MAX).unwrap().is_err());
    }

    #[test]
    fn what_is_mounted_apart_only_threads_apart_see() {
        let mounts = || std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        match private_mounts() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return plumb_testkit::skip("it takes CAP_SYS_ADMIN to mount");
            }
            made => made.unwrap(),
        }
        private_mounts().unwrap();
        let directory = std::env::current_dir().unwrap();
        let mounted = run(|| {
            let none = MountFlags::empty();
            rustix::mount::mount("apart", "/dev/shm", "tmpfs", none, None).map(|()| std::env::current_dir())
        });
        assert_eq!(mounted.unwrap().unwrap().unwrap(), directory);
        let apart = run(mounts).unwrap();
        assert!(apart.contains(" apart "), "another isolated thread sees it: {apart}");
        assert!(!mounts().contains(" apart "));
        run(|| rustix::mount::unmount("/dev/shm", UnmountFlags::empty())).unwrap().unwrap();
    }
}
