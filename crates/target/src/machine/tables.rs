//! The kernel's tables of uses: mounts, swap, loop devices, and the members of mounted btrfs.

use std::os::unix::fs::MetadataExt as _;

use plumb_linux::probe::{ProbedDevice, Request, wire::loop_status};
use plumb_linux::tree::mountinfo::{self, Mount};
use plumb_linux::tree::{Absence, DeviceNumber};

use super::Machine;

/// A file, whatever its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// What swap space or a loop device is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// As the kernel names it.
    pub(super) path: String,
    /// The device, if it is one.
    pub(super) number: Option<DeviceNumber>,
    /// The file, if it is one and can be found.
    pub(super) file: Option<FileId>,
}

/// A loop device that is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoopDevice {
    pub(super) name: String,
    pub(super) backing: Place,
}

/// All uses that the kernel lists.
pub(crate) struct Tables {
    pub(super) mounts: Vec<Mount>,
    pub(super) swaps: Vec<Place>,
    pub(super) loops: Vec<LoopDevice>,
    /// The kernel names of the members of each mounted btrfs: its mounts have an anonymous device number.
    pub(super) btrfs: Vec<Vec<String>>,
}

impl Tables {
    /// Reads them all.
    ///
    /// # Errors
    /// Which of them cannot be read, so that uses cannot be excluded. A kernel without swap or loop devices has no such
    /// table, which is none.
    pub(crate) fn read(machine: &Machine<'_>) -> Result<Self, String> {
        let tree = machine.tree;
        let mounts = "/proc/self/mountinfo";
        let mounts = mountinfo::parse(&tree.read(mounts).map_err(|absence| format!("{mounts} ({absence})"))?);
        if mounts.is_empty() {
            return Err("/proc/self/mountinfo (empty)".to_owned());
        }
        let swaps = match tree.read("/proc/swaps") {
            Ok(bytes) => bytes,
            Err(Absence::NotThere) => Vec::new(),
            Err(absence) => return Err(format!("/proc/swaps ({absence})")),
        };
        let lines = swaps.split(|byte| *byte == b'\n').skip(1);
        let paths = lines.filter_map(|line| line.split(u8::is_ascii_whitespace).next());
        let paths = paths.filter(|path| !path.is_empty());
        let swaps = paths.map(|path| machine.place(mountinfo::unescape(path))).collect();
        Ok(Self { mounts, swaps, loops: machine.loops()?, btrfs: machine.btrfs_members() })
    }
}

impl Machine<'_> {
    fn place(&self, path: String) -> Place {
        let number = self.tree.stat(&path).ok().and_then(|stat| stat.node);
        let file = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file);
        let file = file.map(|file| FileId { device: file.dev(), inode: file.ino() });
        Place { path, number, file }
    }

    fn loops(&self) -> Result<Vec<LoopDevice>, String> {
        let names = match self.tree.list("/sys/block") {
            Ok(names) => names,
            // A kernel without block devices (a sandbox) has a /sys without them.
            Err(Absence::NotThere) if self.tree.list("/sys").is_ok_and(|names| !names.is_empty()) => {
                Vec::new()
            }
            Err(absence) => return Err(format!("/sys/block ({absence})")),
        };
        let names = names.into_iter().filter(|name| name.starts_with("loop"));
        Ok(names.filter_map(|name| self.loop_device(name)).collect())
    }

    fn loop_device(&self, name: String) -> Option<LoopDevice> {
        let path = self.tree.text(&format!("/sys/block/{name}/loop/backing_file")).ok()?;
        let mut backing = self.place(path);
        // The ioctl knows the file even where its name leads elsewhere: deleted, or of another mount namespace.
        if let Some(block) = self.block_named(&name)
            && let Ok(reply) =
                self.probe.ask(ProbedDevice { name: &name, number: block.number }, Request::LoopStatus)
            && let Some(status) = loop_status::parse(&reply)
            && backing.number.is_none()
        {
            let device = rustix::fs::makedev(status.device.major, status.device.minor);
            backing.file = Some(FileId { device, inode: status.inode });
        }
        Some(LoopDevice { name, backing })
    }

    fn btrfs_members(&self) -> Vec<Vec<String>> {
        let systems = self.tree.list("/sys/fs/btrfs").unwrap_or_default();
        let members = |system: &String| self.tree.list(&format!("/sys/fs/btrfs/{system}/devices")).ok();
        systems.iter().filter_map(members).collect()
    }
}
