//! Claiming a block device of ours before it is taken away, or given to new users after a loss of power, so
//! that nobody begins to use it in the last moment.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use plumb_block::{Device, Nanos, retry_until};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as Os;

use crate::error::{ExportError, Result, at};
use crate::holders;
use crate::served_device::KnownLosses;

/// How long somebody who only looks at a new or changed block device (udev) may take before it counts as a
/// user.
const PROBE_TIMEOUT: Nanos = Nanos::secs(1);

/// Opens `/dev/DISK` so that no other can claim it (mount it, or build upon it), when nobody uses it but the
/// descriptors `own` of this process.
///
/// # Errors
/// [`Held`](ExportError::Held) with the users.
pub(crate) fn claim(disk: &str, access: OFlags, own: &[BorrowedFd<'_>]) -> Result<OwnedFd> {
    let path = PathBuf::from(format!("/dev/{disk}"));
    let flags = access | OFlags::EXCL | OFlags::CLOEXEC;
    let opened = retry_until(PROBE_TIMEOUT, || match rustix::fs::open(&path, flags, Mode::empty()) {
        Err(Os::BUSY) => None,
        outcome => Some(outcome),
    });
    let claim = opened.ok_or_else(|| held(disk, own))?.map_err(at("claim", &path))?;
    let own = [own, &[claim.as_fd()]].concat();
    match retry_until(PROBE_TIMEOUT, || holders::users_of(disk, &own).is_empty().then_some(())) {
        Some(()) => Ok(claim),
        None => Err(held(disk, &own)),
    }
}

/// Returns true if a mount or another device has claimed the block device at `path`, in whatever namespace.
pub(crate) fn is_claimed(path: &Path) -> rustix::io::Result<bool> {
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => Ok(false),
        Err(Os::BUSY) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns true if the loop device lets go of `disk` within the time for those who only look.
pub(crate) fn is_free_soon(number: u32, disk: &Path) -> bool {
    let is_free = || (holders::backing_file(number).as_deref() != Some(disk)).then_some(());
    retry_until(PROBE_TIMEOUT, is_free).is_some()
}

/// Lets requests for `/dev/DISK` through again after its drive has lost power, once nobody has it open who
/// may have had it open then. Those who must close it first; none also while the power is off. Each time the
/// kernel forgets what it has cached of the device, which is of before the loss: what is dirty fails.
pub(crate) fn readmit(
    disk: &str,
    own: &[BorrowedFd<'_>],
    device: &dyn Device,
    known: &KnownLosses,
    forget_cache: impl FnOnce() -> std::io::Result<()>,
) -> Vec<String> {
    let power = device.power();
    if known.is_all(device) || !power.is_on {
        return Vec::new();
    }
    let access = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    let claim = rustix::fs::open(format!("/dev/{disk}"), access, Mode::empty());
    let users = match &claim {
        Ok(claim) => holders::users_of(disk, &[own, &[claim.as_fd()]].concat()),
        Err(Os::BUSY) => users_or_unknown(disk, own),
        Err(error) => vec![format!("perhaps in use: cannot claim /dev/{disk} ({error})")],
    };
    // Data that cannot be written must not be written: the write fails, and the data is forgotten.
    forget_cache().unwrap_or_default();
    if users.is_empty() {
        known.update(power);
    }
    users
}

/// Builds the error that `/dev/DISK` is in use, with its users.
pub(crate) fn held(disk: &str, own: &[BorrowedFd<'_>]) -> ExportError {
    ExportError::Held { device: format!("/dev/{disk}").into(), by: users_or_unknown(disk, own) }
}

fn users_or_unknown(disk: &str, own: &[BorrowedFd<'_>]) -> Vec<String> {
    let mut by = holders::users_of(disk, own);
    if by.is_empty() {
        by.push("claimed by something in another mount or process namespace".to_owned());
    }
    by
}
