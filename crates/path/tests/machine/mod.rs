//! A hand-made machine for tests, from the kernel's documentation.

use plumb_linux::probe::wire::caching_page::{self, CachingPage};
use plumb_linux::probe::{PageControl, RecordedProbe, Request};
use plumb_linux::tree::{DeviceNumber, FileKind, RecordedTree, Stat};
use plumb_path::{Cache, Flush, LayerKind, Severity, WritePath, survey_path};

/// A hand-made machine.
#[derive(Default)]
pub(crate) struct Machine {
    pub(crate) tree: RecordedTree,
    pub(crate) probe: RecordedProbe,
    pub(crate) minors: u32,
    pub(crate) mounts: String,
}

pub(crate) const WB: &str = "write back\n";
pub(crate) const WT: &str = "write through\n";

impl Machine {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Creates a machine with the disk `sda` behind a plain host bus adapter: its queue says `view`, and its
    /// caching page `wce`.
    pub(crate) fn with_disk(view: &str, wce: bool) -> Self {
        let mut machine = Self::new();
        machine.scsi("sda", "mpt3sas", view, wce);
        machine
    }

    /// Adds a block device at `directory/name` whose queue says `view`. Returns its directory.
    pub(crate) fn device(&mut self, directory: &str, name: &str, view: &str) -> String {
        self.minors += 1;
        let block = format!("{directory}/{name}");
        let number = format!("8:{}", self.minors);
        self.tree.put_text(&format!("{block}/dev"), &format!("{number}\n"));
        self.tree.put_text(&format!("{block}/size"), "2048\n");
        self.tree.put_text(&format!("{block}/queue/write_cache"), view);
        self.tree.put_text(&format!("{block}/queue/fua"), "1\n");
        self.tree.put_link(&format!("/sys/class/block/{name}"), &block);
        self.tree.put_link(&format!("/sys/block/{name}"), &block);
        self.tree.put_link(&format!("/sys/dev/block/{number}"), &block);
        block
    }

    pub(crate) fn virtual_device(&mut self, name: &str, view: &str) -> String {
        self.device("/sys/devices/virtual/block", name, view)
    }

    /// Adds a SCSI disk behind the driver `driver`, with a caching page that says `wce`. Returns its
    /// directory.
    pub(crate) fn scsi(&mut self, name: &str, driver: &str, view: &str, wce: bool) -> String {
        self.disk_at(
            &format!("/sys/devices/pci0000:00/0000:00:03.0/host0/target0:0:{name}"),
            name,
            driver,
            view,
            wce,
        )
    }

    pub(crate) fn disk_at(
        &mut self,
        target: &str,
        name: &str,
        driver: &str,
        view: &str,
        wce: bool,
    ) -> String {
        let device = format!("{target}/0:2:0:0");
        let host = target
            .rsplit_once("/target")
            .or_else(|| target.rsplit_once("/rport-"))
            .map_or(target, |(host, _)| host);
        self.tree.put_text(&format!("{host}/scsi_host/host0/proc_name"), &format!("{driver}\n"));
        let block = self.device(&format!("{device}/block"), name, view);
        self.tree.put_link(&format!("{block}/device"), "../..");
        let cache_type = if wce { WB } else { WT };
        self.tree.put_text(&format!("{device}/scsi_disk/0:2:0:0/cache_type"), cache_type);
        self.page(name, wce, false);
        block
    }

    /// Sets a caching page with the write cache on and this NV_DIS; `None` is a page of the older, shorter
    /// form.
    pub(crate) fn nonvolatile(&mut self, name: &str, disabled: Option<bool>) {
        let page = CachingPage {
            saveable: false,
            write_cache: true,
            read_cache_disabled: false,
            nonvolatile_disabled: disabled,
            write_protected: false,
            dpofua: false,
        };
        let mut bytes = caching_page::encode(&page);
        if disabled.is_none() {
            // SCSI-2: ten bytes after the length.
            bytes[9] = 10;
            bytes.truncate(8 + 12);
        }
        self.probe.put(name, Request::CachingPage(PageControl::Current), Ok(bytes));
    }

    pub(crate) fn page(&mut self, name: &str, write_cache: bool, write_protected: bool) {
        let page = CachingPage {
            saveable: false,
            write_cache,
            read_cache_disabled: false,
            nonvolatile_disabled: None,
            write_protected,
            dpofua: false,
        };
        let reply = Ok(caching_page::encode(&page));
        self.probe.put(name, Request::CachingPage(PageControl::Current), reply);
    }

    pub(crate) fn slave(&mut self, block: &str, below: &str) {
        self.tree.put_link(&format!("{block}/slaves/{below}"), &format!("/sys/class/block/{below}"));
    }

    pub(crate) fn mount(&mut self, point: &str, device: &str, kind: &str, source: &str, options: &str) {
        let id = self.mounts.lines().count() + 1;
        self.mounts += &format!("{id} 1 {device} / {point} rw - {kind} {source} {options}\n");
        self.tree.put_text("/proc/self/mountinfo", &self.mounts);
        let device: DeviceNumber = device.parse().expect("a device number");
        self.tree.put_stat(point, Stat { kind: FileKind::Directory, device, node: None, mount: None });
    }

    pub(crate) fn guest(&mut self) {
        self.tree.put_text("/proc/cpuinfo", "flags\t\t: hypervisor\n");
        self.tree.put_text("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    }

    pub(crate) fn survey(&self, target: &str) -> WritePath {
        survey_path(&self.tree, &self.probe, target).expect("the target is there")
    }
}

/// Returns a machine with a device of the virtual kind `marker` over one SCSI disk with its cache on.
pub(crate) fn stacked(name: &str, marker: &str, view: &str) -> Machine {
    let mut machine = Machine::with_disk(WB, true);
    let block = machine.virtual_device(name, view);
    machine.tree.put_text(&format!("{block}/{marker}/uuid"), "\n");
    machine.slave(&block, "sda");
    machine
}

pub(crate) fn has(path: &WritePath, id: &str) -> Option<Severity> {
    path.findings.iter().find(|finding| finding.id == id).map(|finding| finding.severity)
}

#[track_caller]
pub(crate) fn layer(path: &WritePath, name: &str, kind: LayerKind, cache: Cache, flush: Flush) {
    let layer = path.layer(name).unwrap_or_else(|| panic!("no {name} in {:?}", names(path)));
    assert_eq!((layer.kind, layer.cache, layer.flush), (kind, cache, flush), "{name}");
}

pub(crate) fn names(path: &WritePath) -> Vec<&str> {
    path.layers.iter().map(|layer| layer.name.as_str()).collect()
}
