//! Names of things in reports, the same in every format.

use plumb_block::SyncMethod;
use plumb_path::{Cache, Flush, Fua, Layer, LayerKind};

use crate::quantity::NONE;

/// Returns the name of a method in documents.
pub const fn method(method: SyncMethod) -> &'static str {
    match method {
        SyncMethod::OverwriteFdatasync => "overwrite-fdatasync",
        SyncMethod::OverwriteFsync => "overwrite-fsync",
        SyncMethod::AppendFdatasync => "append-fdatasync",
        SyncMethod::DirectDsync => "direct-dsync",
    }
}

/// Returns a short name of a method that distinguishes it from the others.
pub const fn method_short(method: SyncMethod) -> &'static str {
    match method {
        SyncMethod::OverwriteFsync => "overwrite with fsync",
        other => method_write(other),
    }
}

/// Returns the write of a method, before the call that makes it durable.
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

/// Returns the word for the cache of a layer.
pub const fn cache(cache: Cache) -> &'static str {
    match cache {
        Cache::None => "none",
        Cache::Volatile => "volatile",
        Cache::Protected => "protected",
        Cache::Unknown => "unknown",
    }
}

/// Returns the word for the state of a drive's write cache; `None` if the drive has none that can be
/// switched.
pub const fn write_cache(enabled: Option<bool>) -> &'static str {
    match enabled {
        None => cache(Cache::None),
        enabled => plumb_policy::state::on_off(enabled, ""),
    }
}

/// Returns the word for the fate of a FLUSH.
pub const fn flush(flush: Flush) -> &'static str {
    match flush {
        Flush::Forwarded => "forwarded",
        Flush::Absorbed => "absorbed",
        Flush::Dropped => "dropped",
        Flush::Unknown => "unknown",
    }
}

/// Returns the word for the fate of FUA at `layer`. A layer that absorbs a flush because nothing below is
/// volatile also absorbs FUA, without loss. Applications and the page cache have no FUA.
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

/// Returns the name of a kind of layer.
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

/// Returns true if the inside of this layer is invisible from this machine.
pub const fn is_beyond_sight(kind: LayerKind) -> bool {
    matches!(kind, LayerKind::Hypervisor | LayerKind::Remote | LayerKind::Controller | LayerKind::Unknown)
}

/// Returns true if this layer is above the block devices.
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
