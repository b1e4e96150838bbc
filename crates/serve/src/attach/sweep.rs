//! Removal of the remains of killed servers: dead mounts, their directories, and loop devices that were still
//! open.

use std::path::Path;

use plumb_linux::loop_device::LoopDevice;
use plumb_linux::tree::mountinfo::mounts_of;
use plumb_state::DirectoryLock;
use rustix::io::Errno as Os;

use super::directory::{AttachmentDirectory, Base};
use super::session;
use crate::claim::{held, is_claimed, is_free_soon};
use crate::error::{ExportError, Result, at};
use crate::holders::LoopBinding;
use crate::records::Swept;

/// Removes the remains of attachments in `directory` (the default if `None`) whose server has ended. Anything
/// of other users or of living servers is not touched.
///
/// # Errors
/// If the directory is unusable. Items that cannot be removed are not an error but listed in
/// [`kept`](Swept::kept).
pub fn sweep(directory: Option<&Path>) -> Result<Swept> {
    let base = Base::open(directory)?;
    let locked = base.lock()?;
    sweep_locked(&base, &locked)
}

/// Removes, as root, the remains of all attachments in the default directory whose server has ended. Returns
/// the reason why those of the service `name` must stay for now, if any.
///
/// # Errors
/// Fails as [`sweep`] does.
pub fn sweep_of(name: &str) -> Result<Option<String>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let kept = sweep(None)?.kept;
    Ok(kept.into_iter().find(|(kept, _)| kept == name).map(|(_, why)| why))
}

/// Returns the names of attachments in the default directory whose server no longer runs and had its control
/// socket in `sockets`. Changes nothing.
///
/// # Errors
/// If the directory exists but cannot be read.
pub fn unserved(sockets: &Path) -> Result<Vec<String>> {
    let Some(base) = Base::open_default()? else { return Ok(Vec::new()) };
    let mut unserved = unserved_locked(&base, &base.lock()?)?;
    unserved.retain(|attachment| attachment.is_of_service_in(sockets));
    Ok(names(unserved))
}

/// Returns the names of all attachments in the default directory whose server no longer runs. Does not wait
/// for a process that is attaching or detaching, and then returns none.
///
/// # Errors
/// Fails as [`unserved`] does.
pub fn try_unserved() -> Result<Vec<String>> {
    let Some(base) = Base::open_default()? else { return Ok(Vec::new()) };
    base.try_lock()?.map_or_else(|| Ok(Vec::new()), |locked| unserved_locked(&base, &locked).map(names))
}

fn unserved_locked(base: &Base, locked: &DirectoryLock) -> Result<Vec<AttachmentDirectory>> {
    let mut unserved = Vec::new();
    for attachment in base.attachments()? {
        if !attachment.is_served(locked)? {
            unserved.push(attachment);
        }
    }
    Ok(unserved)
}

fn names(attachments: Vec<AttachmentDirectory>) -> Vec<String> {
    attachments.into_iter().map(|attachment| attachment.name).collect()
}

pub(super) fn sweep_locked(base: &Base, locked: &DirectoryLock) -> Result<Swept> {
    let mut swept = Swept::default();
    for attachment in base.attachments()? {
        // Records are written under the lock, so a missing one was never completed.
        if attachment.is_served(locked)? {
            continue;
        }
        match remove(&attachment) {
            Ok(()) => swept.removed.push(attachment.name),
            Err(error) => swept.kept.push((attachment.name, plumb_block::in_one_line(&error))),
        }
    }
    Ok(swept)
}

fn remove(attachment: &AttachmentDirectory) -> Result<()> {
    let mount_point = attachment.mount_point();
    if let Some(binding) = attachment.binding() {
        if binding.is_there() && attachment.is_mounted_by_server() {
            unmount_all(&format!("/dev/loop{}", binding.number))?;
        }
        free(&binding)?;
    }
    match session::cut_and_unmount(&mount_point) {
        // The mount point is not mounted, or does not exist.
        Err(ExportError::Os { source, .. })
            if [Os::INVAL, Os::NOENT]
                .iter()
                .any(|errno| source.raw_os_error() == Some(errno.raw_os_error())) => {}
        outcome => outcome?,
    }
    attachment.remove()
}

fn unmount_all(device: &str) -> Result<()> {
    let mounts = mounts_of("self");
    let of_device = mounts.iter().rev().filter(|mount| mount.source == device);
    of_device.map(|mount| Path::new(&mount.point)).try_for_each(session::unmount_lazily)
}

/// Frees a loop device whose file is dead. Fails if somebody uses the device, which then stays.
fn free(binding: &LoopBinding) -> Result<()> {
    if !binding.is_there() {
        return Ok(());
    }
    let path = std::path::PathBuf::from(format!("/dev/loop{}", binding.number));
    let device = LoopDevice::open(binding.number).map_err(at("open", &path))?;
    // The device may have been bound anew in between, but not while it is open.
    if !binding.is_there() {
        return Ok(());
    }
    match device.clear() {
        Err(error) if error.raw_os_error() != Some(Os::NXIO.raw_os_error()) => {
            return Err(at("free", &path)(error));
        }
        _ => {}
    }
    // Unlike udev's probing, a mount does not go away by itself.
    let is_claimed = is_claimed(&path).map_err(at("claim", &path))?;
    drop(device);
    match !is_claimed && is_free_soon(binding) {
        true => Ok(()),
        false => Err(held(&format!("loop{}", binding.number), &[])),
    }
}
