//! Users of a block device of ours, in words: what is mounted from it, what is built on it, who has it open.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use plumb_linux::inventory::Inventory;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_linux::tree::process::name;

/// Returns the file that a loop device is bound to, as the kernel names it; `None` if it is free.
pub(crate) fn backing_file(number: u32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/sys/block/loop{number}/loop/backing_file")).ok()?;
    Some(PathBuf::from(text.strip_suffix('\n').unwrap_or(&text)))
}

/// Returns the numbers of all loop devices that are bound to `file`.
pub(crate) fn bound_to(file: &Path) -> Vec<u32> {
    let Ok(devices) = fs::read_dir("/sys/block") else { return Vec::new() };
    devices
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix("loop")?.parse().ok())
        .filter(|number| backing_file(*number).is_some_and(|backing| backing == file))
        .collect()
}

/// Returns everybody who uses the device that /sys/block has as `disk`, but for the descriptors `own` of this
/// process. Where that cannot be read it counts as in use.
pub(crate) fn users_of(disk: &str, own: &[BorrowedFd<'_>]) -> Vec<String> {
    let unknown = |source: &dyn Display| vec![format!("perhaps in use: cannot read {source}")];
    let mut found = match Inventory::read(&LiveTree, &LiveProbe) {
        Ok(inventory) => inventory.uses(disk).iter().map(ToString::to_string).collect(),
        Err(error) => unknown(&error),
    };
    found.extend(
        openers(&format!("/dev/{disk}"), own).unwrap_or_else(|error| unknown(&format!("/proc ({error})"))),
    );
    found
}

fn openers(device: &str, own: &[BorrowedFd<'_>]) -> io::Result<Vec<String>> {
    let processes = fs::read_dir("/proc")?;
    let this = std::process::id();
    let mut found = Vec::new();
    for pid in processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()) {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        let is_user = files.flatten().any(|file| {
            let is_device = fs::read_link(file.path()).is_ok_and(|target| target == Path::new(device));
            let number = file.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            let is_own = pid == this && own.iter().any(|own| Some(own.as_raw_fd()) == number);
            is_device && !is_own
        });
        if is_user {
            found.push(format!("open in process {pid} ({})", name(&LiveTree, pid)));
        }
    }
    Ok(found)
}
