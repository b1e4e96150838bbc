//! Files by their inode numbers: the mount of a file, and a path to it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use plumb_linux::tree::mountinfo::{Mount, mounts_of};
use plumb_linux::tree::process::{field, numbers};
use plumb_linux::tree::{DeviceNumber, LiveTree, Tree as _};

use crate::event::Inode;
use crate::syncs::Place;

/// Number of directory entries that an observation reads to find files that no process has open any longer.
pub(crate) const NAMES_MAX: usize = 200_000;

/// Returns the path of a file that a process has open. Descriptors are compared by the file system of their
/// mount, since stat(2) shows another number for each subvolume of btrfs.
pub(crate) fn open_file(inode: Inode) -> Option<String> {
    numbers(&LiveTree, "/proc").into_iter().find_map(|process| open_file_of(process, inode))
}

fn open_file_of(process: u32, inode: Inode) -> Option<String> {
    let mut mounts = None;
    for entry in fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten() {
        let info = || {
            let number = entry.file_name();
            LiveTree.text(&format!("/proc/{process}/fdinfo/{}", number.display())).unwrap_or_default()
        };
        // A file system that was shut down refuses stat(2); since Linux 5.14 the descriptor also shows the
        // number.
        let number = match fs::metadata(entry.path()) {
            Ok(found) => Some(found.ino()),
            Err(_) => field(&info(), "ino:"),
        };
        if number == Some(inode.number) {
            let mount = field(&info(), "mnt_id:");
            let mounts = mounts.get_or_insert_with(|| mounts_of(&process.to_string()));
            let is_there = |of: &Mount| Some(of.id) == mount && of.device == self::number(inode);
            if mounts.iter().any(is_there) {
                return Some(fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned());
            }
        }
    }
    None
}

/// Returns the place of a file, with the path `known` or one found below its mount point within the remaining
/// number of entries.
pub(crate) fn place(inode: Inode, known: Option<String>, names_left: &mut usize) -> Place {
    let number = number(inode);
    let mounts = mounts_of("self");
    // The mount of the root of the file system reaches all of its files.
    let mut on = mounts.iter().filter(|mount| mount.device == number);
    let mount = on.clone().find(|mount| mount.root == "/").or_else(|| on.next_back());
    let Some(mount) = mount else { return unmounted(inode, known) };
    let point = Path::new(&mount.point);
    Place {
        path: known.or_else(|| below(point, inode.number, names_left)),
        device: number.name(&LiveTree).unwrap_or_else(|| mount.source.clone()),
        mount_point: Some(mount.point.clone()),
        file_system: Some(mount.kind.clone()),
        devices: [number.to_stat()].into_iter().chain(fs::metadata(point).map(|found| found.dev())).collect(),
    }
}

/// Returns the place of a file without a visible mount: a block device itself, whose inode has its number
/// (`bdev_add` of block/bdev.c), or a file of another mount namespace.
fn unmounted(inode: Inode, known: Option<String>) -> Place {
    let itself = DeviceNumber::from_kernel(inode.number as u32);
    // On file systems with virtual device numbers, inode numbers are larger.
    let is_one = number(inode).is_anonymous() && u32::try_from(inode.number).is_ok();
    let of_device = is_one.then(|| itself.name(&LiveTree)).flatten();
    match of_device {
        Some(name) => Place {
            path: Some(format!("/dev/{name}")),
            devices: vec![itself.to_stat()],
            device: name,
            ..Place::default()
        },
        None => Place {
            path: known,
            device: number(inode).name(&LiveTree).unwrap_or_else(|| number(inode).to_string()),
            devices: vec![number(inode).to_stat()],
            ..Place::default()
        },
    }
}

fn number(inode: Inode) -> DeviceNumber {
    DeviceNumber::from_kernel(inode.device)
}

/// Returns the path of an inode below a directory on the same file system, and subtracts the entries read
/// from the remaining number.
fn below(root: &Path, inode: u64, names_left: &mut usize) -> Option<String> {
    let device = fs::symlink_metadata(root).ok()?.dev();
    let mut directories = vec![PathBuf::from(root)];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            *names_left = names_left.checked_sub(1)?;
            let Ok(found) = entry.metadata() else { continue };
            if found.ino() == inode && found.dev() == device {
                return Some(entry.path().to_string_lossy().into_owned());
            }
            if found.is_dir() && found.dev() == device {
                directories.push(entry.path());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_inode_open_or_not() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("a")).unwrap();
        let path = directory.path().join("a/file");
        let file = fs::File::create(&path).unwrap();
        let found = file.metadata().unwrap();
        let mounts = mounts_of("self");
        let info =
            fs::read_to_string(format!("/proc/self/fdinfo/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
        let id = field(&info.unwrap(), "mnt_id:");
        let mount = mounts.iter().find(|mount| Some(mount.id) == id).unwrap();
        let inode = Inode { device: mount.device.to_kernel(), number: found.ino() };
        let shown = path.to_str().map(str::to_owned);
        assert_eq!(open_file(inode), shown);
        let place = place(inode, shown.clone(), &mut 0);
        assert_eq!((place.file_system.as_ref(), &place.path), (Some(&mount.kind), &shown));
        drop(file);
        assert_eq!(open_file(inode), None);
        assert_eq!(below(directory.path(), found.ino(), &mut 9), shown);
        assert_eq!(below(directory.path(), found.ino(), &mut 1), None, "too many names");
        assert_eq!(below(&directory.path().join("a"), 0, &mut 9), None);
    }
}
