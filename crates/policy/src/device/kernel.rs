//! The kernel's view of a disk's cache, and the attributes with it.

use plumb_linux::tree::Tree;

use super::identity::text;
use crate::view::KernelSide;
use plumb_linux::inventory::Block;

/// Reads the kernel's view.
pub(super) fn read(tree: &dyn Tree, block: &Block) -> KernelSide {
    KernelSide {
        write_cache: text(tree, &write_cache(block)),
        cache_type: cache_type(tree, block).and_then(|path| text(tree, &path)),
        fua: match text(tree, &format!("{}/queue/fua", block.sysfs)).as_deref() {
            Some("1") => Some(true),
            Some("0") => Some(false),
            _ => None,
        },
    }
}

/// Paths of the kernel's view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelPaths {
    /// Path of queue/write_cache.
    pub write_cache: String,
    /// Path of cache_type, for SCSI and virtio disks.
    pub cache_type: Option<String>,
    /// Path of the attribute that makes sd read the drive again.
    pub rescan: Option<String>,
}

/// Returns the paths of `block`.
pub fn kernel_paths(tree: &dyn Tree, block: &Block) -> KernelPaths {
    KernelPaths {
        write_cache: write_cache(block),
        cache_type: cache_type(tree, block),
        rescan: rescan(tree, block),
    }
}

/// Returns the path of queue/write_cache.
pub(super) fn write_cache(block: &Block) -> String {
    format!("{}/queue/write_cache", block.sysfs)
}

/// Returns the path of `cache_type` of a SCSI disk (below `scsi_disk/H:C:T:L`) or of a virtio disk. It
/// contains no links, since it will be written to.
pub(super) fn cache_type(tree: &dyn Tree, block: &Block) -> Option<String> {
    if let Some(device) = scsi_device(tree, block) {
        return Some(format!("{}/scsi_disk/{}/cache_type", device.path, device.address));
    }
    let path = format!("{}/cache_type", block.sysfs);
    tree.text(&path).is_ok().then_some(path)
}

/// Returns the path of the attribute that makes sd read the drive again.
fn rescan(tree: &dyn Tree, block: &Block) -> Option<String> {
    scsi_device(tree, block).map(|device| format!("{}/rescan", device.path))
}

/// SCSI device of a disk of sd.
struct ScsiDevice {
    /// Directory of the SCSI device.
    path: String,
    /// `H:C:T:L`.
    address: String,
}

fn scsi_device(tree: &dyn Tree, block: &Block) -> Option<ScsiDevice> {
    // The disk is in the directory of its device, so that no link needs to be followed.
    let (path, _) = block.sysfs.rsplit_once("/block/")?;
    let address = tree.list(&format!("{path}/scsi_disk")).ok()?.into_iter().next()?;
    Some(ScsiDevice { path: path.to_owned(), address })
}
