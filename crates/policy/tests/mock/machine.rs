//! All disks with the tree of /sys, and virtual time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumb_block::Nanos;
use plumb_linux::tree::DeviceNumber;

use super::disk::{Kernel, MockDisk, MockKind, Trap};
use super::files::Files;
use super::layout;
use super::stack::StackedDevice;

pub(super) struct Machine {
    pub(super) disks: Vec<MockDisk>,
    pub(super) by_name: HashMap<String, usize>,
    pub(super) stacked: BTreeMap<String, StackedDevice>,
    pub(super) tree: Files,
    pub(super) mounts: String,
    pub(super) minors: u32,
    time: Nanos,
    /// Times of pending events, with the disk of each.
    due: BTreeSet<(Nanos, usize)>,
}

impl Machine {
    pub(super) fn new(disks: impl IntoIterator<Item = MockDisk>) -> Self {
        let mut machine = Self {
            disks: Vec::new(),
            by_name: HashMap::new(),
            stacked: BTreeMap::new(),
            tree: Files::default(),
            mounts: "1 0 0:21 / /proc rw - proc proc rw\n".to_owned(),
            minors: 0,
            time: Nanos::ZERO,
            due: BTreeSet::new(),
        };
        machine.tree.put_text("/proc/sys/kernel/osrelease", "6.12.0-mock\n");
        machine.tree.put_text("/proc/self/mountinfo", &machine.mounts);
        machine.tree.put_text(
            "/proc/filesystems",
            "nodev\tsysfs\nnodev\ttmpfs\nnodev\tnfs4\n\text4\n\txfs\n\tbtrfs\n",
        );
        for disk in disks {
            machine.add(disk);
        }
        machine
    }

    pub(super) fn add(&mut self, mut disk: MockDisk) {
        let index = self.disks.len();
        if disk.name.is_empty() {
            disk.name = layout::name(
                disk.kind,
                self.disks.iter().filter(|other| other.same_names(disk.kind)).count(),
            );
        }
        if disk.serial.is_empty() {
            disk.serial = format!("MOCK{index:06}");
        }
        disk.number = self.next_number();
        disk.kernel = Kernel { cache: disk.as_read(), overridden: false, disabled: false };
        match disk.trap {
            Some(Trap::Temporary) => disk.kernel = Kernel { cache: false, overridden: true, disabled: false },
            Some(Trap::Queue) => disk.kernel.disabled = true,
            Some(Trap::Stale) => disk.kernel.cache = false,
            None => {}
        }
        disk.sysfs = layout::build(&mut self.tree, &disk, index);
        layout::show(&mut self.tree, &disk);
        self.by_name.insert(disk.name.clone(), index);
        self.disks.push(disk);
    }

    pub(super) fn next_number(&mut self) -> DeviceNumber {
        self.minors += 1;
        DeviceNumber { major: 259, minor: self.minors }
    }

    pub(super) fn disk(&self, name: &str) -> Option<&MockDisk> {
        self.by_name.get(name).map(|index| &self.disks[*index]).filter(|disk| !disk.gone)
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied().filter(|index| !self.disks[*index].gone)
    }

    pub(super) fn tree(&self) -> &Files {
        &self.tree
    }

    pub(super) fn now(&self) -> Nanos {
        self.time
    }

    pub(super) fn sleep(&mut self, time: Nanos) {
        self.time = Nanos(self.time.0.saturating_add(time.0));
        self.settle();
    }

    /// Returns true if nothing is due.
    pub(super) fn is_settled(&self) -> bool {
        self.due.first().is_none_or(|(at, _)| *at > self.time)
    }

    /// Executes everything that is due by now.
    pub(super) fn settle(&mut self) {
        while let Some((at, index)) = self.due.first().copied()
            && at <= self.time
        {
            self.due.pop_first();
            self.refresh(index);
        }
    }

    /// Executes the due events of one disk, and updates /sys.
    pub(super) fn refresh(&mut self, index: usize) {
        let disk = &mut self.disks[index];
        disk.settle(self.time);
        let pending = [disk.pending_set.map(|(at, _)| at), disk.pending_read];
        self.due.extend(pending.into_iter().flatten().map(|at| (at, index)));
        if !disk.gone {
            layout::show(&mut self.tree, disk);
        }
    }

    pub(super) fn meddle(&mut self, name: &str, change: impl FnOnce(&mut MockDisk)) {
        if let Some(index) = self.index(name) {
            change(&mut self.disks[index]);
            layout::identify(&mut self.tree, &self.disks[index]);
            self.refresh(index);
        }
    }

    pub(super) fn nvme_path(&mut self, name: &str, controller: &str) {
        if let Some(index) = self.index(name) {
            layout::add_path(&mut self.tree, &self.disks[index], controller);
        }
    }

    pub(super) fn vanish(&mut self, name: &str) {
        let Some(index) = self.index(name) else { return };
        self.disks[index].gone = true;
        let (number, sysfs) = (self.disks[index].number, self.disks[index].sysfs.clone());
        for path in [
            format!("/sys/class/block/{name}"),
            format!("/sys/block/{name}"),
            format!("/sys/dev/block/{number}"),
            sysfs,
        ] {
            self.tree.remove(&path);
        }
    }

    pub(super) fn power_cycle(&mut self) {
        self.start_anew(MockDisk::power_cycle);
    }

    pub(super) fn reboot(&mut self) {
        self.start_anew(MockDisk::restart_kernel);
    }

    fn start_anew(&mut self, disk: fn(&mut MockDisk)) {
        for index in 0..self.disks.len() {
            disk(&mut self.disks[index]);
            self.refresh(index);
        }
        let names: Vec<String> = self.stacked.keys().cloned().collect();
        for name in names {
            self.load(&name);
        }
    }
}

impl MockDisk {
    /// Returns true if disks of `kind` are in one series of names with this one.
    fn same_names(&self, kind: MockKind) -> bool {
        let series = |kind| match kind {
            MockKind::Nvme => 1,
            MockKind::Virtio => 2,
            _ => 0,
        };
        series(self.kind) == series(kind)
    }
}
