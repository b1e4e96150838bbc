//! Block devices that are this machine's memory, and persistent memory, which is not.

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{KernelView, Mark, Node};
use crate::model::{Cache, LayerKind};

impl Surveyor<'_> {
    /// zram, brd and null_blk: the queue says write through although everything is lost with the power.
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

    /// Persistent memory: drivers/nvdimm/pmem.c. A write-back queue means that the platform does not empty the
    /// processor's caches at a power cut (no ADR or eADR), or that a host holds the data (virtio-pmem).
    pub(super) fn pmem(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::Pmem;
        let by_host = place.sysfs.contains("/virtio");
        node.cache = match node.queue {
            KernelView::WriteThrough if !by_host => Cache::Protected,
            KernelView::WriteBack => Cache::Volatile,
            _ => Cache::Unknown,
        };
        if node.cache == Cache::Protected {
            node.saw(
                &place.sysfs,
                "persistent memory",
                "the platform empties its write queues at a power cut",
            );
        }
        if by_host || self.guest().name().is_some() {
            node.below = vec![self.hypervisor()];
        }
    }

    /// eMMC and SD cards: drivers/mmc/core/queue.c. The cache of eMMC is switched on by the driver and has no switch.
    pub(super) fn mmc(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::MmcDisk;
        let read = |name: &str| self.tree.text(&format!("{}/device/{name}", place.sysfs)).ok();
        node.identity = read("cid");
        let (kind, model) = (read("type").unwrap_or_default(), read("name").unwrap_or_default());
        if !kind.is_empty() {
            node.saw(format!("{}/device/{{type,name}}", place.sysfs), format!("{kind} {model}"), "the card");
        }
        // The card itself cannot be asked from user space without writing, so the kernel's word stands alone.
        node.cache = match node.queue {
            KernelView::WriteBack => Cache::Volatile,
            _ => Cache::Unknown,
        };
        if self.guest().name().is_some() {
            node.below = vec![self.hypervisor()];
        }
    }
}
