//! NVMe namespaces, on PCI and over fabrics.

use plumb_linux::probe::wire::nvme;
use plumb_linux::probe::{PageControl, Request};
use plumb_linux::tree::Tree;

use super::block_device::Place;
use super::controller::is_numbered;
use super::surveyor::Surveyor;
use crate::facts::{DriveCache, KernelView, Mark, Node};
use crate::model::{Cache, LayerKind};

/// Returns the directories of the controllers of the NVMe namespace at `sysfs`: its parent, or with native
/// multipath those linked from its subsystem.
pub fn nvme_controllers(tree: &dyn Tree, sysfs: &str) -> Vec<String> {
    let parent = sysfs.rsplit_once('/').map_or("", |(parent, _)| parent);
    if is_numbered(parent.rsplit('/').next().unwrap_or_default(), "nvme") {
        return vec![parent.to_owned()];
    }
    let names = tree.list(parent).unwrap_or_default();
    let controllers = names.iter().filter(|name| is_numbered(name, "nvme"));
    controllers.filter_map(|name| tree.canonical(&format!("{parent}/{name}")).ok()).collect()
}

impl Surveyor<'_> {
    /// Fills in an NVMe namespace. The kernel reads VWC of Identify Controller once and never feature 06h
    /// (trap H7).
    pub(super) fn nvme(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::NvmeNamespace;
        let controllers = nvme_controllers(self.tree, &place.sysfs);
        let read =
            |name: &str| controllers.first().and_then(|dir| self.tree.text(&format!("{dir}/{name}")).ok());
        let (model, serial, transport) = (read("model"), read("serial"), read("transport"));
        let wwid = self.tree.text(&format!("{}/wwid", place.sysfs)).ok();
        node.identity = wwid.clone().or_else(|| serial.clone());
        if let (Some(dir), Some(model)) = (controllers.first(), model) {
            node.saw(format!("{dir}/model"), model, "the drive");
        }
        self.ask_nvme(node, place);
        node.cache = match (node.drive, node.queue) {
            (DriveCache::On, _) => Cache::Volatile,
            (DriveCache::Protected, _) => Cache::Protected,
            (DriveCache::Off, _) => Cache::None,
            // The kernel sets write back only for a controller with VWC (a manual setting has no effect).
            (_, KernelView::WriteBack) => Cache::Volatile,
            _ => Cache::Unknown,
        };
        let transport = transport.unwrap_or_default();
        if matches!(transport.as_str(), "tcp" | "rdma" | "fc") {
            let address = read("address").unwrap_or_default();
            node.saw(
                "nvme transport, address",
                format!("{transport} {address}"),
                "the drive is behind a network",
            );
            let what = format!("the NVMe over Fabrics target of {} ({transport})", node.name);
            node.below = vec![self.remote(format!("remote end of {}", node.name), what)];
        } else if self.guest().name.is_some() {
            let identities = [wwid, serial].map(Option::unwrap_or_default);
            node.below = vec![self.provider(node, &identities.each_ref().map(|identity| identity.trim()))];
        }
    }

    fn ask_nvme(&self, node: &mut Node, place: &Place) {
        let reply = self.ask(node, place.number, Request::NvmeIdentifyController, "NVMe Identify Controller");
        let Ok(controller) = reply else { return };
        self.untorn_nvme(node, place, &controller);
        let Some(has_cache) = nvme::has_volatile_write_cache(&controller) else { return };
        if !has_cache {
            node.saw(
                "NVMe Identify Controller byte 525 bit 0",
                "VWC=0",
                "the drive declares no volatile write cache",
            );
            node.drive = DriveCache::Protected;
            return;
        }
        node.saw("NVMe Identify Controller byte 525 bit 0", "VWC=1", "the drive has a volatile write cache");
        let current = Request::NvmeWriteCache(PageControl::Current);
        let reply = self.ask(node, place.number, current, "NVMe Get Features 06h");
        match reply.ok().and_then(|bytes| nvme::write_cache_enabled(&bytes)) {
            Some(false) => {
                node.saw(
                    "NVMe Get Features 06h bit 0",
                    "WCE=0",
                    "the cache is off; the kernel never looks at this",
                );
                node.drive = DriveCache::Off;
                node.mark(Mark::FeatureOff);
            }
            Some(true) => {
                node.saw("NVMe Get Features 06h bit 0", "WCE=1", "the volatile write cache is on");
                node.drive = DriveCache::On;
            }
            // A cache that exists and does not report that it is disabled counts as enabled.
            None => node.drive = DriveCache::On,
        }
    }
}
