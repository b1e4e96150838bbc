//! Layers on disks: partitions, device mapper, md, file systems.

use plumb_linux::tree::{DeviceNumber, FileKind, Stat};

use super::machine::Machine;
use crate::gateway::{Disk, GatewayError};

/// A device stacked on others.
pub(super) struct StackedDevice {
    pub(super) below: Vec<String>,
    kind: StackedKind,
    uuid: String,
    number: DeviceNumber,
    /// State of the cache that the queue copied when it was set up.
    cache: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StackedKind {
    DeviceMapper,
    Md,
    Partition,
    Pseudo,
}

impl Machine {
    pub(super) fn device_mapper(&mut self, name: &str, uuid: &str, below: &[&str]) {
        self.stack(name, uuid, below, StackedKind::DeviceMapper);
        let dir = format!("/sys/devices/virtual/block/{name}");
        self.tree.put_text(&format!("{dir}/dm/uuid"), &format!("{uuid}\n"));
        self.tree.put_text(&format!("{dir}/dm/name"), &format!("{name}\n"));
    }

    pub(super) fn md(&mut self, name: &str, level: &str, below: &[&str]) {
        self.stack(name, "", below, StackedKind::Md);
        let dir = format!("/sys/devices/virtual/block/{name}/md");
        self.tree.put_text(&format!("{dir}/level"), &format!("{level}\n"));
        self.tree.put_text(&format!("{dir}/sync_action"), "idle\n");
    }

    pub(super) fn md_action(&mut self, name: &str, action: &str) {
        let path = format!("/sys/devices/virtual/block/{name}/md/sync_action");
        self.tree.put_text(&path, &format!("{action}\n"));
    }

    /// Adds a block device that is not a disk; its name determines its kind.
    pub(super) fn pseudo(&mut self, name: &str) {
        self.stack(name, "", &[], StackedKind::Pseudo);
    }

    pub(super) fn loop_over(&mut self, device: &str, file: &str, disk: &str) {
        let Some(number) = self.disk(disk).map(|disk| disk.number) else { return };
        self.pseudo(device);
        let backing = format!("/sys/devices/virtual/block/{device}/loop/backing_file");
        self.tree.put_text(&backing, &format!("{file}\n"));
        self.tree.put_stat(file, Stat { kind: FileKind::File, device: number, node: None, mount: None });
    }

    pub(super) fn cache(&mut self, device: &str, name: &str, mode: &str, [log, backing]: [&str; 2]) {
        for disk in [log, backing] {
            let Some(number) = self.disk(disk).map(|disk| disk.number) else { return };
            let stat = Stat { kind: FileKind::Block, device: number, node: Some(number), mount: None };
            self.tree.put_stat(&format!("/dev/{disk}"), stat);
        }
        let config = format!(
            r#"{{"uuid": "u", "mode": "{mode}", "backing": "/dev/{backing}", "legs": ["/dev/{log}"]}}"#
        );
        self.tree.put_text(&format!("/var/lib/plumb/cache/{name}.json"), &config);
        let point = format!("/run/plumb/attach/{name}/mount");
        let number = DeviceNumber { major: 0, minor: 51 };
        self.put_mount(number, &point, "fuse.plumb plumb rw");
        let file = Stat { kind: FileKind::File, device: number, node: None, mount: None };
        self.tree.put_stat(&format!("/run/plumb/cache/{name}.control"), file);
        self.tree.put_stat(&format!("{point}/disk"), file);
        self.pseudo(device);
        let dir = format!("/sys/devices/virtual/block/{device}");
        self.tree.put_text(&format!("{dir}/queue/write_cache"), "write back\n");
        self.tree.put_text(&format!("{dir}/loop/backing_file"), &format!("{point}/disk\n"));
        self.tree.put_text(&format!("{dir}/loop/dio"), "1\n");
    }

    /// Mounts a file system without a block device of this machine.
    pub(super) fn mount_elsewhere(&mut self, point: &str, kind: &str, source: &str) {
        let number = DeviceNumber { major: 0, minor: 50 };
        self.put_mount(number, point, &format!("{kind} {source} rw"));
    }

    pub(super) fn partition(&mut self, disk: &str, name: &str, label: &str) {
        let Some(parent) = self.disk(disk).map(|disk| disk.sysfs.clone()) else { return };
        let number = self.next_number();
        let dir = format!("{parent}/{name}");
        self.tree.put_text(&format!("{dir}/partition"), "1\n");
        self.tree.put_text(&format!("{dir}/dev"), &format!("{number}\n"));
        self.tree.put_text(&format!("{dir}/size"), "2048\n");
        self.tree.put_text(&format!("{dir}/uevent"), &format!("DEVTYPE=partition\nPARTNAME={label}\n"));
        self.links(name, number, &dir);
        let below = vec![disk.to_owned()];
        let kind = StackedKind::Partition;
        self.stacked
            .insert(name.to_owned(), StackedDevice { below, kind, uuid: String::new(), number, cache: true });
    }

    pub(super) fn mount(&mut self, name: &str, point: &str, kind: &str, options: &str) {
        let stacked = self.stacked.get(name).map(|stacked| stacked.number);
        let Some(number) = stacked.or_else(|| self.disk(name).map(|disk| disk.number)) else { return };
        self.put_mount(number, point, &format!("{kind} /dev/{name} {options}"));
    }

    fn put_mount(&mut self, number: DeviceNumber, point: &str, what: &str) {
        let id = self.mounts.lines().count() + 1;
        self.mounts += &format!("{id} 1 {number} / {point} rw,relatime - {what}\n");
        self.tree.put_text("/proc/self/mountinfo", &self.mounts);
        let stat = Stat { kind: FileKind::Directory, device: number, node: None, mount: None };
        self.tree.put_text(&format!("{}/a-file", point.trim_end_matches('/')), "");
        self.tree.put_stat(point, stat);
    }

    fn stack(&mut self, name: &str, uuid: &str, below: &[&str], kind: StackedKind) {
        let number = self.next_number();
        let dir = format!("/sys/devices/virtual/block/{name}");
        self.tree.put_text(&format!("{dir}/dev"), &format!("{number}\n"));
        self.tree.put_text(&format!("{dir}/size"), "2048\n");
        self.tree.put_text(&format!("{dir}/queue/fua"), "1\n");
        for below in below {
            self.tree.put_link(&format!("{dir}/slaves/{below}"), &format!("/sys/class/block/{below}"));
        }
        self.links(name, number, &dir);
        let below = below.iter().map(|below| (*below).to_owned()).collect();
        let stacked = StackedDevice { below, kind, uuid: uuid.to_owned(), number, cache: true };
        self.stacked.insert(name.to_owned(), stacked);
        self.load(name);
    }

    fn links(&mut self, name: &str, number: DeviceNumber, dir: &str) {
        self.tree.put_link(&format!("/sys/class/block/{name}"), dir);
        self.tree.put_link(&format!("/sys/dev/block/{number}"), dir);
        if !dir.contains("/block/sd") {
            self.tree.put_link(&format!("/sys/block/{name}"), dir);
        }
    }

    /// Sets up the queue: dm copies the feature of the devices below, not the user's flag (H5); md always
    /// accepts flushes.
    pub(super) fn load(&mut self, name: &str) {
        let Some(stacked) = self.stacked.get(name) else { return };
        let cache = match stacked.kind {
            StackedKind::Partition => return,
            StackedKind::Md => true,
            StackedKind::Pseudo => false,
            StackedKind::DeviceMapper => stacked.below.iter().any(|below| self.feature(below)),
        };
        if let Some(stacked) = self.stacked.get_mut(name) {
            stacked.cache = cache;
        }
        let text = if cache { "write back\n" } else { "write through\n" };
        self.tree.put_text(&format!("/sys/devices/virtual/block/{name}/queue/write_cache"), text);
    }

    fn feature(&self, name: &str) -> bool {
        match self.stacked.get(name) {
            Some(stacked) if stacked.kind == StackedKind::Partition => {
                stacked.below.iter().any(|below| self.feature(below))
            }
            Some(stacked) => stacked.cache,
            None => self.disk(name).is_some_and(|disk| disk.kernel.cache),
        }
    }

    pub(super) fn reload(&mut self, meant: &Disk) -> Result<(), GatewayError> {
        let gone = || GatewayError::Gone { name: meant.name.clone() };
        let stacked = self.stacked.get(&meant.name).ok_or_else(gone)?;
        let identity = format!("dm.{}", stacked.uuid);
        if meant.identity != identity || meant.number != stacked.number {
            return Err(GatewayError::OtherDisk {
                name: meant.name.clone(),
                found: format!("{identity} ({})", stacked.number),
                expected: format!("{} ({})", meant.identity, meant.number),
            });
        }
        self.load(&meant.name);
        Ok(())
    }

    /// Returns true if a flush from `name` reaches every drive below whose cache is on.
    pub(super) fn flush_arrives(&self, name: &str) -> bool {
        match self.stacked.get(name) {
            Some(stacked) if stacked.cache => stacked.below.iter().all(|below| self.flush_arrives(below)),
            Some(stacked) => !stacked.below.iter().any(|below| self.holds(below)),
            None => self.disk(name).is_some_and(|disk| !disk.wce || disk.sends()),
        }
    }

    /// Returns true if something volatile is at or below `name`.
    fn holds(&self, name: &str) -> bool {
        match self.stacked.get(name) {
            Some(stacked) => stacked.below.iter().any(|below| self.holds(below)),
            None => self.disk(name).is_some_and(|disk| disk.wce),
        }
    }
}
