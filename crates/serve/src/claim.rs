//! Claiming a block device of ours before it is taken away, so that nobody begins to use it in the last moment.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as Os;

use crate::error::{ExportError, Result, at};
use crate::holders;

/// How long somebody who only looks at a new or changed block device (udev) may take before it counts as a user.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The kernel has no event for "closed by everybody".
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Opens `/dev/DISK` so that no other can claim it (mount it, or build upon it), when nobody uses it but the descriptors
/// `own` of this process.
///
/// # Errors
/// [`Held`](ExportError::Held) with the users.
pub(crate) fn claim(disk: &str, access: OFlags, own: &[BorrowedFd<'_>]) -> Result<OwnedFd> {
    let path = PathBuf::from(format!("/dev/{disk}"));
    let until = Instant::now() + PROBE_TIMEOUT;
    let claim = loop {
        match rustix::fs::open(&path, access | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty()) {
            Err(Os::BUSY) if Instant::now() < until => std::thread::sleep(LOOK_AGAIN),
            Err(Os::BUSY) => return Err(held(disk, own)),
            outcome => break outcome.map_err(at("claim", &path))?,
        }
    };
    let own = [own, &[claim.as_fd()]].concat();
    while !holders::users_of(disk, &own).is_empty() {
        if Instant::now() >= until {
            return Err(held(disk, &own));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(claim)
}

/// That `/dev/DISK` is in use, by whom.
pub(crate) fn held(disk: &str, own: &[BorrowedFd<'_>]) -> ExportError {
    let mut by = holders::users_of(disk, own);
    if by.is_empty() {
        by.push("claimed by something in another mount or process namespace".to_owned());
    }
    ExportError::Held { device: format!("/dev/{disk}").into(), by }
}
