//! Names of things in a report: one word for each, the same in every format.

use plumb_block::SyncMethod;
use plumb_path::{Cache, Flush, Fua, Layer, LayerKind};

use crate::quantity::NONE;

/// Returns a method as it is named in documents.
pub const fn method(method: SyncMethod) -> &'static str {
    match method {
        SyncMethod::OverwriteFdatasync => "overwrite-fdatasync",
        SyncMethod::OverwriteFsync => "overwrite-fsync",
        SyncMethod::AppendFdatasync => "append-fdatasync",
        SyncMethod::DirectDsync => "direct-dsync",
    }
}

/// Returns a method where several stand side by side: short, and unlike the others.
pub const fn method_short(method: SyncMethod) -> &'static str {
    match method {
        SyncMethod::OverwriteFsync => "overwrite with fsync",
        other => method_write(other),
    }
}

/// Returns the write of a method, which its call makes durable.
pub const fn method_write(method: SyncMethod) -> &'static str {
    match method {
        SyncMethod::OverwriteFdatasync | SyncMethod::OverwriteFsync => "overwrite",
        SyncMethod::AppendFdatasync => "append",
        SyncMethod::DirectDsync => "direct",
    }
}

/// Returns the call that makes the write durable.
pub const fn method_call(method: SyncMethod) -> &'static str {
    match method {
        SyncMethod::OverwriteFdatasync | SyncMethod::AppendFdatasync => "fdatasync",
        SyncMethod::OverwriteFsync => "fsync",
        SyncMethod::DirectDsync => "O_DSYNC",
    }
}

/// Returns a layer's cache in a word.
pub const fn cache(cache: Cache) -> &'static str {
    match cache {
        Cache::None => "none",
        Cache::Volatile => "volatile",
        Cache::Protected => "protected",
        Cache::Unknown => "unknown",
    }
}

/// Returns the word for a drive's write cache: whether it is on; `None` if the drive has none that could be
/// switched.
pub const fn write_cache(enabled: Option<bool>) -> &'static str {
    match enabled {
        None => cache(Cache::None),
        enabled => plumb_policy::state::on_off(enabled, ""),
    }
}

/// Returns the word for what becomes of a FLUSH.
pub const fn flush(flush: Flush) -> &'static str {
    match flush {
        Flush::Forwarded => "forwarded",
        Flush::Absorbed => "absorbed",
        Flush::Dropped => "dropped",
        Flush::Unknown => "unknown",
    }
}

/// Returns the word for what becomes of FUA at `layer`. Where a flush ends because there is nothing that it
/// could empty, so does FUA, and no harm is done. Applications and the page cache have no FUA.
pub fn fua(layer: &Layer) -> &'static str {
    match layer.fua {
        _ if matches!(layer.kind, LayerKind::Application | LayerKind::PageCache) => NONE,
        Fua::Dropped if layer.flush == Flush::Absorbed => "absorbed",
        Fua::Native => "native",
        Fua::Emulated => "emulated",
        Fua::Dropped => "dropped",
        Fua::Unknown => "unknown",
    }
}

/// Returns a kind of layer for people.
pub const fn kind(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Application => "application",
        LayerKind::PageCache => "page cache",
        LayerKind::FileSystem => "file system",
        LayerKind::Overlay => "overlay file system",
        LayerKind::Tmpfs => "file system in memory",
        LayerKind::NetworkFileSystem => "network file system",
        LayerKind::Fuse => "file system in user space",
        LayerKind::Zfs => "ZFS",
        LayerKind::Zvol => "volume of ZFS",
        LayerKind::Partition => "partition",
        LayerKind::DmLinear => "logical volume",
        LayerKind::DmStriped => "striped volume",
        LayerKind::DmCrypt => "encryption",
        LayerKind::DmThin => "thin volume",
        LayerKind::DmThinPool => "thin pool",
        LayerKind::DmCache => "dm-cache",
        LayerKind::DmWritecache => "dm-writecache",
        LayerKind::DmMultipath => "multipath",
        LayerKind::DmMirror => "dm mirror",
        LayerKind::DmRaid => "dm RAID",
        LayerKind::DmIntegrity => "dm-integrity",
        LayerKind::DmVerity => "dm-verity",
        LayerKind::DmSnapshot => "snapshot",
        LayerKind::DmOther => "device mapper",
        LayerKind::Md => "software RAID",
        LayerKind::Bcache => "bcache",
        LayerKind::Loop => "loop device",
        LayerKind::Zram => "compressed memory",
        LayerKind::Ram => "RAM disk",
        LayerKind::NullBlk => "null device",
        LayerKind::Nbd => "network block device",
        LayerKind::Rbd => "Ceph RBD",
        LayerKind::Drbd => "DRBD",
        LayerKind::Ublk => "ublk device",
        LayerKind::VirtioDisk => "virtio disk",
        LayerKind::ScsiDisk => "SCSI disk",
        LayerKind::AtaDisk => "ATA disk",
        LayerKind::UsbDisk => "USB disk",
        LayerKind::OpticalDrive => "optical drive",
        LayerKind::NvmeNamespace => "NVMe drive",
        LayerKind::MmcDisk => "MMC card",
        LayerKind::Pmem => "persistent memory",
        LayerKind::SimulatedDrive => "simulated drive",
        LayerKind::WriteBackCache => "write-back cache of plumb",
        LayerKind::XenDisk => "Xen disk",
        LayerKind::Controller => "controller",
        LayerKind::VirtualMachine => "virtual machine",
        LayerKind::Hypervisor => "hypervisor",
        LayerKind::Remote => "remote server",
        LayerKind::Unknown => "unknown layer",
    }
}

/// Returns true if what is inside this layer cannot be seen from this machine.
pub const fn is_beyond_sight(kind: LayerKind) -> bool {
    matches!(kind, LayerKind::Hypervisor | LayerKind::Remote | LayerKind::Controller | LayerKind::Unknown)
}

/// Returns true if this layer lies above the block devices.
pub const fn is_above_devices(kind: LayerKind) -> bool {
    matches!(
        kind,
        LayerKind::Application
            | LayerKind::PageCache
            | LayerKind::FileSystem
            | LayerKind::Overlay
            | LayerKind::Tmpfs
            | LayerKind::NetworkFileSystem
            | LayerKind::Fuse
            | LayerKind::Zfs
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A check measures fsync beside fdatasync, and both overwrite.
    #[test]
    fn methods_side_by_side_are_told_apart() {
        let all = [
            SyncMethod::OverwriteFdatasync,
            SyncMethod::OverwriteFsync,
            SyncMethod::AppendFdatasync,
            SyncMethod::DirectDsync,
        ];
        assert_eq!(all.map(method_short).into_iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
