//! Claims on our own block devices before they are removed, or given to new users after a power loss, so that
//! nobody starts to use them at the last moment.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use plumb_block::{Device, Nanos, retry_until};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as Os;

use crate::error::{ExportError, Result, at};
use crate::holders::{self, LoopBinding};
use crate::served_device::KnownLosses;

/// Time for which a program that only probes a new or changed block device (udev) does not count as a user.
const PROBE_TIMEOUT: Nanos = Nanos::secs(1);

/// Opens `/dev/DISK` exclusively (against mounts and stacked devices), if it has no users except the
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

/// Returns true if a mount in any namespace, or another device, has claimed the block device at `path`.
pub(crate) fn is_claimed(path: &Path) -> rustix::io::Result<bool> {
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => Ok(false),
        Err(Os::BUSY) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns true if the loop device releases its file within the time allowed for probing.
pub(crate) fn is_free_soon(binding: &LoopBinding) -> bool {
    retry_until(PROBE_TIMEOUT, || (!binding.is_there()).then_some(())).is_some()
}

/// Accepts requests for `/dev/DISK` again after its drive lost power, once nobody has it open who may have
/// had it open at that time. Returns the users who must close it first; none while the power is off. Each
/// call drops the kernel's cache of the device, which is from before the loss; dirty data fails.
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
    // Dirty data must not be written: the write fails, and the data is dropped.
    forget_cache().unwrap_or_default();
    if users.is_empty() {
        known.update(power);
    }
    users
}

/// Creates the error that `/dev/DISK` is in use, with its users.
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
