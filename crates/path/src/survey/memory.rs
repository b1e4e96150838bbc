//! Block devices in memory, which a power cut erases, and persistent memory, which it does not.

use super::block_device::Place;
use super::controller::is_numbered;
use super::surveyor::Surveyor;
use crate::facts::{KernelView, Mark, Node};
use crate::model::{Cache, LayerKind};

impl Surveyor<'_> {
    /// Fills in zram, brd and null_blk: the queue reports write through although a power cut loses
    /// everything.
    pub(super) fn memory_disk(&mut self, node: &mut Node, stem: &str) {
        let (kind, what) = match stem {
            "zram" => (LayerKind::Zram, "compressed memory (drivers/block/zram)"),
            "ram" => (LayerKind::Ram, "memory (drivers/block/brd.c)"),
            _ => (LayerKind::NullBlk, "nothing, or memory (drivers/block/null_blk)"),
        };
        node.kind = kind;
        node.cache = Cache::Volatile;
        node.mark(Mark::InMemory);
        node.saw("the kernel's name for it", node.name.clone(), what);
    }

    /// Fills in persistent memory: drivers/nvdimm/pmem.c. The driver always sets the queue to write back, so
    /// that means nothing; `dax/write_cache` is 0 if the platform declares that the processor's caches
    /// survive a power cut (nvdimm_has_cache in drivers/nvdimm/region_devs.c). With virtio-pmem the host
    /// holds the data until a flush.
    pub(super) fn pmem(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::Pmem;
        let by_host = place.sysfs.contains("/virtio");
        if self.is_volatile_region(node, place) {
            return;
        }
        let file = format!("{}/dax/write_cache", place.sysfs);
        let caches_flushed = self.tree.text(&file).ok();
        node.cache = match (node.queue, caches_flushed.as_deref()) {
            (_, Some("0")) if !by_host => Cache::Protected,
            (KernelView::WriteBack, _) if by_host => Cache::Volatile,
            _ => Cache::Unknown,
        };
        if let Some(value) = caches_flushed {
            let means = match value.as_str() {
                "0" => "the platform keeps what is in the processor's caches over a power cut",
                _ => "whether the platform keeps what is in the processor's caches is not declared",
            };
            node.saw(file, value, means);
        }
        if by_host || self.guest().name.is_some() {
            node.below = vec![self.hypervisor()];
        }
    }

    /// Returns true for a region of the type `nd_volatile` (drivers/nvdimm/region_devs.c), which is ordinary
    /// memory without a cache to lose.
    fn is_volatile_region(&self, node: &mut Node, place: &Place) -> bool {
        let mut parts: Vec<&str> = place.sysfs.split('/').collect();
        while parts.last().is_some_and(|part| !is_numbered(part, "region")) {
            parts.pop();
        }
        let file = format!("{}/devtype", parts.join("/"));
        let is_volatile = self.tree.text(&file).is_ok_and(|kind| kind == "nd_volatile");
        if is_volatile {
            node.cache = Cache::Volatile;
            node.saw(file, "nd_volatile", "memory that the platform does not keep over a power cut");
            node.mark(Mark::InMemory);
        }
        is_volatile
    }

    /// Fills in eMMC and SD cards: drivers/mmc/core/queue.c. The driver enables the cache of eMMC, which
    /// cannot be switched.
    pub(super) fn mmc(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::MmcDisk;
        let read = |name: &str| self.tree.text(&format!("{}/device/{name}", place.sysfs)).ok();
        node.identity = read("cid");
        let (kind, model) = (read("type").unwrap_or_default(), read("name").unwrap_or_default());
        if !kind.is_empty() {
            node.saw(format!("{}/device/{{type,name}}", place.sysfs), format!("{kind} {model}"), "the card");
        }
        // The card cannot be queried from user space without writing, so only the kernel's view is available.
        node.cache = match node.queue {
            KernelView::WriteBack => Cache::Volatile,
            _ => Cache::Unknown,
        };
        if self.guest().name.is_some() {
            node.below = vec![self.hypervisor()];
        }
    }
}
