//! Taking away what servers that were killed have left: dead mounts, their directories, and loop devices that
//! somebody still had open then.

use std::path::Path;

use plumb_linux::loop_device::LoopDevice;
use plumb_state::DirectoryLock;
use rustix::io::Errno as Os;

use super::directory::{AttachmentDirectory, Base};
use super::session;
use crate::claim::{held, is_claimed, is_free_soon};
use crate::error::{ExportError, Result, at};
use crate::holders;
use crate::records::Swept;

/// Removes the remains of attachments in `directory` (the default if `None`) whose server no longer runs.
/// What is another's, or whose server may live, is left alone.
///
/// # Errors
/// If the directory cannot be used. What cannot be removed is no error but [`kept`](Swept::kept).
pub fn sweep(directory: Option<&Path>) -> Result<Swept> {
    let base = Base::open(directory)?;
    let locked = base.lock()?;
    sweep_locked(&base, &locked)
}

/// Removes the remains of all attachments in the default directory whose server no longer runs, as root.
/// Returns why those of the service `name` must stay for now, if they must.
///
/// # Errors
/// See [`sweep`].
pub fn sweep_of(name: &str) -> Result<Option<String>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let kept = sweep(None)?.kept;
    Ok(kept.into_iter().find(|(kept, _)| kept == name).map(|(_, why)| why))
}

/// Returns the names of attachments in the default directory whose server no longer runs. Nothing is made or
/// changed.
///
/// # Errors
/// If there is such a directory, and it cannot be read.
pub fn unserved() -> Result<Vec<String>> {
    let Some(base) = Base::open_default()? else { return Ok(Vec::new()) };
    unserved_locked(&base, &base.lock()?)
}

/// Does what [`unserved`] does, without waiting for a process that attaches or detaches meanwhile: there are
/// none then.
///
/// # Errors
/// Fails as [`unserved`].
pub fn try_unserved() -> Result<Vec<String>> {
    let Some(base) = Base::open_default()? else { return Ok(Vec::new()) };
    base.try_lock()?.map_or_else(|| Ok(Vec::new()), |locked| unserved_locked(&base, &locked))
}

fn unserved_locked(base: &Base, locked: &DirectoryLock) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for attachment in base.attachments()? {
        if !attachment.is_served(locked)? {
            names.push(attachment.name);
        }
    }
    Ok(names)
}

pub(super) fn sweep_locked(base: &Base, locked: &DirectoryLock) -> Result<Swept> {
    let mut swept = Swept::default();
    for attachment in base.attachments()? {
        // Records are written while locked, so one that is missing now was never finished.
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
    let disk = mount_point.join(super::wire::DISK_NAME);
    for number in holders::bound_to(&disk) {
        free(number, &disk)?;
    }
    match session::cut_and_unmount(&mount_point) {
        // The mount point is not mounted, or not even there.
        Err(ExportError::Os { source, .. })
            if [Os::INVAL, Os::NOENT]
                .iter()
                .any(|errno| source.raw_os_error() == Some(errno.raw_os_error())) => {}
        outcome => outcome?,
    }
    attachment.remove()
}

/// Frees a loop device whose file is dead. It stays, and says so, if somebody uses it.
fn free(number: u32, disk: &Path) -> Result<()> {
    let path = std::path::PathBuf::from(format!("/dev/loop{number}"));
    let device = LoopDevice::open(number).map_err(at("open", &path))?;
    // The device may have been freed and bound anew since the name was read; while it is open it cannot be.
    if holders::backing_file(number).as_deref() != Some(disk) {
        return Ok(());
    }
    match device.clear() {
        Err(error) if error.raw_os_error() != Some(Os::NXIO.raw_os_error()) => {
            return Err(at("free", &path)(error));
        }
        _ => {}
    }
    // A mount does not go away by itself, unlike the look of udev at the device.
    let is_claimed = is_claimed(&path).map_err(at("claim", &path))?;
    drop(device);
    match !is_claimed && is_free_soon(number, disk) {
        true => Ok(()),
        false => Err(held(&format!("loop{number}"), &[])),
    }
}
