//! Loop devices: a file as a disk. drivers/block/loop.c.

use plumb_linux::probe::{Request, wire};
use plumb_linux::tree::FileKind;

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

impl Surveyor<'_> {
    /// Fills in a loop device. A flush becomes an fsync of the backing file, so the path continues with that
    /// file's file system.
    pub(super) fn loop_device(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::Loop;
        let file = format!("{}/loop/backing_file", place.sysfs);
        let backing = self.tree.text(&file).ok().filter(|path| !path.is_empty());
        let Some(backing) = backing else {
            node.cache = Cache::Unknown;
            node.saw(file, "not there", "no file is set up behind this loop device");
            node.mark(Mark::Unseen { what: format!("{} has no backing file", node.name) });
            return;
        };
        node.identity = Some(backing.clone());
        node.saw(file, &backing, "the file that stands for the disk; a flush becomes fsync of it");
        let file = format!("{}/loop/dio", place.sysfs);
        let direct = self.tree.text(&file).is_ok_and(|text| text == "1");
        // Without direct I/O every write stays in the file's page cache until the fsync.
        node.cache = if direct { Cache::None } else { Cache::Volatile };
        let means =
            if direct { "past the page cache of the file" } else { "through the page cache of the file" };
        node.saw(file, if direct { "1" } else { "0" }, means);
        if let Some(below) = self.backing(node, place, &backing) {
            node.below.push(below);
        } else {
            let what = format!("the backing file {backing} is not visible from here");
            node.mark(Mark::Unseen { what });
        }
    }

    /// Returns the block device at `path`, or the file system that holds the file at `path`.
    pub(super) fn beneath_path(&mut self, path: &str) -> Option<String> {
        let path = self.tree.canonical(path).ok()?;
        match self.tree.stat(&path).ok()? {
            stat if stat.kind == FileKind::Block => self.device_at(&path),
            stat => Some(self.file_system_at(&path, Some(&stat))),
        }
    }

    /// Finds the backing file by device and inode, as [`Inventory`](plumb_linux::inventory::Inventory) does,
    /// since the path may now lead to another file or belong to another mount namespace. The path is used
    /// only if the ioctl is not permitted.
    fn backing(&mut self, node: &mut Node, place: &Place, backing: &str) -> Option<String> {
        let reply = self.ask(node, place.number, Request::LoopStatus, "LOOP_GET_STATUS64");
        let Some(status) = reply.ok().and_then(|bytes| wire::loop_status::parse(&bytes)) else {
            return self.beneath_path(backing);
        };
        if let Some(device) = status.node {
            node.saw(
                "LOOP_GET_STATUS64 lo_rdevice",
                device.to_string(),
                "the device behind this loop device",
            );
            return Some(self.device_by_number(device, backing));
        }
        node.saw(
            "LOOP_GET_STATUS64 lo_device, lo_inode",
            format!("{}, {}", status.device, status.inode),
            "the device and inode of the file, whatever its name leads to",
        );
        let here = self.tree.canonical(backing).ok().and_then(|path| {
            let stat = self.tree.stat(&path).ok().filter(|stat| stat.device == status.device)?;
            self.mount_at(&path, Some(&stat))
        });
        let mount = here.or_else(|| self.mount_of_device(status.device))?;
        Some(self.file_system(&mount))
    }
}
