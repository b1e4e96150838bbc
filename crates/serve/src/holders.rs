//! Who uses a block device of ours, in words: what is mounted from it, what is built on it, who has it open.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use plumb_linux::tree::mountinfo;

/// The file that a loop device is bound to, as the kernel names it; `None` if it is free.
pub(crate) fn backing_file(number: u32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/sys/block/loop{number}/loop/backing_file")).ok()?;
    Some(PathBuf::from(text.strip_suffix('\n').unwrap_or(&text)))
}

/// The numbers of all loop devices that are bound to `file`.
pub(crate) fn bound_to(file: &Path) -> Vec<u32> {
    let Ok(devices) = fs::read_dir("/sys/block") else { return Vec::new() };
    devices
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix("loop")?.parse().ok())
        .filter(|number| backing_file(*number).is_some_and(|backing| backing == file))
        .collect()
}

/// Everybody who uses `/dev/loopN`, but for the descriptors `own` of this process.
pub(crate) fn users(number: u32, own: &[BorrowedFd<'_>]) -> Vec<String> {
    users_of(&format!("loop{number}"), own)
}

/// Everybody who uses the device that /sys/block has as `disk`, but for the descriptors `own` of this process.
pub(crate) fn users_of(disk: &str, own: &[BorrowedFd<'_>]) -> Vec<String> {
    let device = format!("/dev/{disk}");
    let mut found = mounts(disk, &device);
    found.extend(swap(&device));
    found.extend(stacked(disk));
    found.extend(openers(&device, own));
    found
}

/// In this mount namespace. A file system of several devices has a device number of its own, but names one as its source.
fn mounts(disk: &str, device: &str) -> Vec<String> {
    let Ok(text) = fs::read("/proc/self/mountinfo") else { return Vec::new() };
    // "7:3\n"
    let number = fs::read_to_string(format!("/sys/block/{disk}/dev")).unwrap_or_default();
    let number: Option<(u32, u32)> = number
        .trim()
        .split_once(':')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let is_of_device = |mount: &mountinfo::Mount| {
        number == Some((mount.device.major, mount.device.minor)) || mount.source == device
    };
    let mounts = mountinfo::parse(&text).into_iter().filter(is_of_device);
    mounts.map(|mount| format!("mounted at {}", mount.point)).collect()
}

fn swap(device: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/swaps").ok()?;
    text.lines().any(|line| line.split_whitespace().next() == Some(device)).then(|| "used as swap".to_owned())
}

fn stacked(disk: &str) -> Vec<String> {
    let Ok(holders) = fs::read_dir(format!("/sys/block/{disk}/holders")) else { return Vec::new() };
    holders.flatten().map(|entry| format!("a part of {}", entry.file_name().display())).collect()
}

fn openers(device: &str, own: &[BorrowedFd<'_>]) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
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
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            found.push(format!("open in process {pid} ({})", name.trim()));
        }
    }
    found
}
