//! Paravirtual disks: virtio-blk and Xen. Their properties are claims of the host.

use super::block_device::Place;
use super::surveyor::Surveyor;
use crate::facts::{KernelView, Mark, Node};
use crate::model::{Cache, LayerKind};

/// VIRTIO_BLK_F_FLUSH: Virtual I/O Device 1.2, 5.2.3.
const FEATURE_FLUSH: usize = 9;

impl Surveyor<'_> {
    /// Fills in a virtio-blk disk: drivers/block/virtio_blk.c. cache_type is the device's WCE field if it
    /// offers CONFIG_WCE, else whether it offers FLUSH.
    pub(super) fn virtio_disk(&mut self, node: &mut Node, place: &Place) {
        node.kind = LayerKind::VirtioDisk;
        node.identity =
            self.tree.text(&format!("{}/serial", place.sysfs)).ok().filter(|serial| !serial.is_empty());
        let file = format!("{}/cache_type", place.sysfs);
        if let Ok(text) = self.tree.text(&file) {
            node.cache_type = KernelView::parse(&text);
            node.saw(file, text, "what the host says about the cache behind this disk");
        }
        let file = format!("{}/device/features", place.sysfs);
        let features = self.tree.text(&file).unwrap_or_default();
        let offers_flush = features.as_bytes().get(FEATURE_FLUSH).map(|bit| *bit == b'1');
        match offers_flush {
            Some(true) => node.saw(file, "bit 9 is set", "the disk takes VIRTIO_BLK_T_FLUSH"),
            Some(false) => {
                node.saw(
                    file,
                    "bit 9 is clear",
                    "the disk offers no flush, so none can ever be sent to the host",
                );
                node.mark(Mark::NoFlushCommand);
            }
            None => {}
        }
        node.cache = match (node.cache_type, node.queue) {
            (KernelView::WriteBack, _) => Cache::Volatile,
            // By the specification, a device without flush promises to write through. But Firecracker also
            // omits it with its default cache_type "Unsafe", where the host's page cache holds the data.
            (KernelView::WriteThrough, _) if offers_flush == Some(false) && self.guest().is_firecracker() => {
                Cache::Unknown
            }
            (KernelView::WriteThrough, _) => Cache::None,
            (_, KernelView::WriteBack) => Cache::Volatile,
            _ => Cache::Unknown,
        };
        let serial = node.identity.clone().unwrap_or_default();
        node.below = vec![self.provider(node, &[&serial])];
    }

    /// Fills in a Xen disk: drivers/block/xen-blkfront.c sets the queue to write back if the backend offers
    /// feature-flush-cache.
    pub(super) fn xen_disk(&mut self, node: &mut Node) {
        node.kind = LayerKind::XenDisk;
        node.cache = match node.queue {
            KernelView::WriteBack => Cache::Volatile,
            _ => Cache::Unknown,
        };
        node.below = vec![self.hypervisor()];
    }
}
