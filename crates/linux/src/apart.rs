//! System calls that may wait for this very process, made by a thread with descriptors of its own.
//!
//! A process that serves a file system and also uses it may be killed while one of its threads waits in the kernel for an
//! answer, where no signal reaches it. The threads that would answer are dead by then. The kernel cuts the connection of
//! the file system when its last descriptor is closed, which it does with the last thread that shares them: the one that
//! waits. So such a wait must be done by a thread that does not share them. What it waits for then fails once
//! the process is killed, and it ends, too.

#![expect(unsafe_code, reason = "there is no safe call that gives a thread descriptors of its own")]

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

/// Standard input, output and error stay: what is opened next must not take the place of one.
const FIRST_CLOSED: libc::c_uint = 3;

/// What a thread apart will answer.
#[derive(Debug)]
pub struct Apart<T> {
    answer: Receiver<io::Result<T>>,
}

impl<T> Apart<T> {
    /// The answer, if it comes within `time`.
    pub fn within(&self, time: Duration) -> Option<io::Result<T>> {
        match self.answer.recv_timeout(time) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(io::Error::other("the thread panicked"))),
        }
    }

    /// The answer.
    ///
    /// # Errors
    /// As the call.
    pub fn wait(&self) -> io::Result<T> {
        self.answer.recv().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}

/// Writes `text` to the file at `path`, which exists.
///
/// # Errors
/// As open(2) and write(2).
pub fn write(path: PathBuf, text: String) -> io::Result<()> {
    let written = start(move |answer| {
        File::options().write(true).truncate(true).open(path)?.write_all(text.as_bytes())?;
        answer(());
        Ok(())
    })?;
    written.wait()
}

/// Lets a thread with no descriptors but the standard ones do `task`, which is told where to answer: it may go on after
/// that. It must neither use nor drop a descriptor that was made elsewhere, nor hand one out, for
/// the same number is another file, or none, on the other side.
///
/// # Errors
/// If there is no thread for it.
pub fn start<T: Send + 'static>(
    task: impl FnOnce(&dyn Fn(T)) -> io::Result<()> + Send + 'static,
) -> io::Result<Apart<T>> {
    // An answer, and an error behind it that nobody waits for any more.
    let (sender, answer) = sync_channel(2);
    Builder::new().name("apart".to_owned()).spawn(move || {
        if let Err(error) = leave_descriptors().and_then(|()| task(&|found| tell(&sender, Ok(found)))) {
            tell(&sender, Err(error));
        }
    })?;
    Ok(Apart { answer })
}

/// Runs `task` on a thread with no descriptors but the standard ones, and waits for it. What waits for a file system that
/// this very process serves belongs here, threads and programs that it starts as well. It must neither use nor drop a
/// descriptor that was made elsewhere, nor hand one out.
///
/// # Errors
/// If there is no such thread; then nothing was done.
pub fn run<T: Send>(task: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let apart = Builder::new().name("apart".to_owned());
        let thread = apart.spawn_scoped(scope, || leave_descriptors().map(|()| task()))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Whoever asked may have left.
fn tell<T>(sender: &SyncSender<io::Result<T>>, answer: io::Result<T>) {
    drop(sender.try_send(answer));
}

fn leave_descriptors() -> io::Result<()> {
    // SAFETY: the calling thread gets a table of its own, in which all but the standard descriptors are closed; those of
    // all other threads stay as they are. The thread is new, and `start` demands that it use none that it was given.
    let answer = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST_CLOSED, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE)
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;

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
        // It would wait for ever if the other thread still had the other end.
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
}
