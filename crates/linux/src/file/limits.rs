//! Limits that a file or block device reports: statx(2), block ioctls and `/sys/dev/block/M:m/queue`.
//!
//! Sources: STATX_DIOALIGN in statx(2); Documentation/ABI/stable/sysfs-block; SBC-4, Block Device
//! Characteristics VPD page, which the kernel exposes as `device/vpd_pgb1` and builds for ATA drives from
//! IDENTIFY word 217 (drivers/ata/libata-scsi.c). The attribute `rotational` is ignored: virtual disks set it
//! arbitrarily, and only the drive itself can state a revolution time.

use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use plumb_block::{Bytes, Caching, DeviceInfo, Error, ErrorKind, Nanos, Result, VolatileCache};
use rustix::fs::{AtFlags, Statx, StatxFlags};

use super::{FileOptions, TargetKind, open};
use crate::block_ioctl;
use crate::tree::WRITE_ATOMIC;

/// Largest transfer: the largest power of two below MAX_RW_COUNT (include/linux/fs.h). The kernel splits it
/// for the driver.
const TRANSFER_MAX: Bytes = Bytes::gib(1);
/// Alignment of direct I/O that suits every block device with blocks of at most 4 KiB. For kernels before
/// 6.1, which do not report it.
const DIRECT_ALIGNMENT_GUESS: Bytes = Bytes::kib(4);
/// Default unit of addressing where any byte can be addressed.
const BUFFERED_BLOCK: Bytes = Bytes(512);

/// Queue limits of a block device in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct QueueLimits {
    write_back: Option<bool>,
    fua: bool,
    discard_max: Bytes,
    physical_block: Option<Bytes>,
    dma_alignment: Option<Bytes>,
    fast_zeroes: bool,
    revolution: Option<Nanos>,
}

impl QueueLimits {
    /// Returns the limits of device `major`:`minor`, all unknown if there is no such device, as below tmpfs
    /// or btrfs. A partition has the limits of its disk. `sys` is the mount point of sysfs.
    pub(super) fn read(sys: &Path, major: u32, minor: u32) -> Self {
        let device = sys.join(format!("dev/block/{major}:{minor}"));
        let queue = [device.join("queue"), device.join("../queue")].into_iter().find(|path| path.is_dir());
        queue.map(|queue| Self::parse(&queue)).unwrap_or_default()
    }

    fn parse(queue: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(queue.join(name)).ok();
        let number = |name: &str| text(name).and_then(|text| text.trim().parse::<u64>().ok());
        Self {
            write_back: text("write_cache").and_then(|text| match text.trim() {
                "write back" => Some(true),
                "write through" => Some(false),
                _ => None,
            }),
            fua: number("fua") == Some(1),
            discard_max: Bytes(number("discard_max_bytes").unwrap_or(0)),
            physical_block: number("physical_block_size").filter(|size| size.is_power_of_two()).map(Bytes),
            // The attribute is a mask of the address bits that must be zero.
            dma_alignment: number("dma_alignment")
                .and_then(|mask| mask.checked_add(1))
                .filter(|alignment| alignment.is_power_of_two())
                .map(Bytes),
            fast_zeroes: number("write_zeroes_max_bytes").is_some_and(|max| max > 0),
            revolution: fs::read(queue.join("../device/vpd_pgb1")).ok().and_then(|page| revolution(&page)),
        }
    }
}

/// Returns the time of one revolution from a Block Device Characteristics page. Rate 0 means "not reported"
/// and 1 "does not rotate".
fn revolution(page: &[u8]) -> Option<Nanos> {
    let &[_, 0xb1, _, _, high, low, ..] = page else { return None };
    let per_minute = u16::from_be_bytes([high, low]);
    (0x0401..0xffff).contains(&per_minute).then(|| Nanos::from_secs_f64(60.0 / f64::from(per_minute)))
}

/// All limits of a target, read at one time.
pub(super) struct Limits {
    pub(super) info: DeviceInfo,
    /// True if the device writes zeroes without a transfer. File systems mark ranges as zero, which is fast.
    pub(super) fast_zeroes: bool,
}

/// Reads the limits of an open file or block device. `sys` is the mount point of sysfs.
pub(super) fn look(
    file: BorrowedFd<'_>,
    kind: TargetKind,
    options: FileOptions,
    name: &str,
    sys: &Path,
) -> Result<Limits> {
    let failed = |error: std::io::Error| Error::io(&error, "look at", name);
    let flags = StatxFlags::BASIC_STATS | StatxFlags::DIOALIGN | WRITE_ATOMIC;
    let stat =
        rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, flags).map_err(|errno| failed(errno.into()))?;
    let untorn = options.opening.untorn.then(|| untorn_units(&stat, name)).transpose()?;
    let mut limits = match kind {
        TargetKind::BlockDevice => {
            let queue = QueueLimits::read(sys, stat.stx_rdev_major, stat.stx_rdev_minor);
            let size = block_ioctl::capacity(file).map_err(failed)?;
            let logical = block_ioctl::logical_block(file).map_err(failed)?;
            let physical = block_ioctl::physical_block(file).map_err(failed)?;
            of_device(DeviceInfo::plain(name, size, logical), physical, &stat, queue, options)
        }
        TargetKind::RegularFile => {
            let queue = QueueLimits::read(sys, stat.stx_dev_major, stat.stx_dev_minor);
            of_file(name, &stat, queue, options)?
        }
    };
    if let Some((smallest, largest)) = untorn {
        limits.info.atomic_unit_min = smallest;
        limits.info.atomic_unit = largest;
    }
    Ok(limits)
}

/// Returns the sizes of the smallest and the largest untorn write to a file or device, from statx(2).
fn untorn_units(stat: &Statx, name: &str) -> Result<(Bytes, Bytes)> {
    let is_known = StatxFlags::from_bits_retain(stat.stx_mask).contains(WRITE_ATOMIC);
    let bytes = |unit: u32| Bytes(u64::from(unit));
    match stat.stx_atomic_write_unit_max {
        largest if is_known && largest > 0 => Ok((bytes(stat.stx_atomic_write_unit_min), bytes(largest))),
        _ => Err(Error::new(ErrorKind::Unsupported, "write untorn to", name).because(
            "the kernel takes no untorn writes there (RWF_ATOMIC: it takes Linux 6.11 for block devices, 6.13 for ext4 and \
             xfs, and a drive that declares them); `plumb survey` of the file says which layer is the cause",
        )),
    }
}

fn of_device(
    plain: DeviceInfo,
    physical: Bytes,
    stat: &Statx,
    queue: QueueLimits,
    options: FileOptions,
) -> Limits {
    let direct = options.opening.caching == Caching::Direct;
    let sector = plain.logical_block;
    let logical = options.logical_block.filter(|_| !direct).unwrap_or(sector);
    let memory = Bytes(u64::from(stat.stx_dio_mem_align));
    let info = DeviceInfo {
        physical_block: physical.max(logical),
        dma_alignment: match (direct, memory) {
            (false, _) => Bytes(1),
            (true, Bytes(0)) => queue.dma_alignment.unwrap_or(logical),
            (true, memory) => memory,
        },
        transfer_max: TRANSFER_MAX,
        // Discards bypass the page cache, so they need the device's own block size.
        discard_max: if logical.0.is_multiple_of(sector.0) { queue.discard_max } else { Bytes(0) },
        volatile_cache: match (direct, queue.write_back) {
            // The page cache is volatile whatever the drive has.
            (false, _) | (true, Some(true)) => VolatileCache::Enabled,
            (true, Some(false)) => VolatileCache::None,
            (true, None) => VolatileCache::Unknown,
        },
        fua_native: direct && queue.fua,
        revolution: queue.revolution,
        ..DeviceInfo::plain(plain.name, plain.size, logical)
    };
    Limits { info, fast_zeroes: queue.fast_zeroes }
}

fn of_file(name: &str, stat: &Statx, queue: QueueLimits, options: FileOptions) -> Result<Limits> {
    let (logical, memory) = match options.opening.caching {
        Caching::Cached | Caching::DropBehind | Caching::Mapped => {
            (options.logical_block.unwrap_or(BUFFERED_BLOCK), Bytes(1))
        }
        Caching::Direct if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 => {
            (DIRECT_ALIGNMENT_GUESS, DIRECT_ALIGNMENT_GUESS)
        }
        Caching::Direct if stat.stx_dio_offset_align == 0 => return Err(open::direct_refused(name)),
        Caching::Direct => {
            let offset = Bytes(u64::from(stat.stx_dio_offset_align));
            (offset.max(BUFFERED_BLOCK), Bytes(u64::from(stat.stx_dio_mem_align.max(1))))
        }
    };
    let size = options.append.unwrap_or(Bytes(stat.stx_size));
    let info = DeviceInfo {
        physical_block: queue.physical_block.unwrap_or(logical).max(logical),
        dma_alignment: memory,
        transfer_max: TRANSFER_MAX,
        discard_max: size.round_down(logical),
        // Holes of a file read as zeroes, as fallocate(2) guarantees.
        discard_zeroes: true,
        // Even with direct I/O, metadata needed to find a block of a file is in memory until a sync.
        volatile_cache: VolatileCache::Enabled,
        fua_native: options.opening.caching == Caching::Direct && queue.fua,
        ..DeviceInfo::plain(name, size, logical)
    };
    Ok(Limits { info, fast_zeroes: true })
}

/// Returns the usual mount point of sysfs.
pub(super) fn sysfs() -> PathBuf {
    PathBuf::from("/sys")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let queue = root.path().join("dev/block/8:0/queue");
        fs::create_dir_all(&queue).unwrap();
        for (name, text) in files {
            fs::write(queue.join(name), text).unwrap();
        }
        root
    }

    #[test]
    fn a_drive_rotates_by_its_own_word_only() {
        let page = |rate: [u8; 2]| [0, 0xb1, 0, 0x3c, rate[0], rate[1], 0, 0];
        assert_eq!(revolution(&page([0x1c, 0x20])), Some(Nanos::from_secs_f64(60.0 / 7200.0)));
        for rate in [[0, 0], [0, 1], [4, 0], [0xff, 0xff]] {
            assert_eq!(revolution(&page(rate)), None, "{rate:?}");
        }
        assert_eq!(revolution(&[0, 0xb1]), None);
        let root = tree(&[("rotational", "1\n")]);
        assert_eq!(QueueLimits::read(root.path(), 8, 0).revolution, None);
        let device = root.path().join("dev/block/8:0/device");
        fs::create_dir(&device).unwrap();
        fs::write(device.join("vpd_pgb1"), page([0x15, 0x18])).unwrap();
        let stated = QueueLimits::read(root.path(), 8, 0).revolution;
        assert_eq!(stated, Some(Nanos::from_secs_f64(60.0 / 5400.0)));
    }

    #[test]
    fn queue_limits_are_read_from_sysfs() {
        let root = tree(&[
            ("write_cache", "write back\n"),
            ("fua", "1\n"),
            ("discard_max_bytes", "2147450880\n"),
            ("physical_block_size", "4096\n"),
            ("dma_alignment", "511\n"),
            ("write_zeroes_max_bytes", "33553920\n"),
        ]);
        let limits = QueueLimits::read(root.path(), 8, 0);
        assert_eq!(limits.write_back, Some(true));
        assert!(limits.fua && limits.fast_zeroes);
        assert_eq!(limits.discard_max, Bytes(2_147_450_880));
        assert_eq!((limits.physical_block, limits.dma_alignment), (Some(Bytes(4096)), Some(Bytes(512))));
        // A partition's directory has no queue of its own.
        fs::create_dir_all(root.path().join("dev/block/8:1")).unwrap();
        assert_eq!(QueueLimits::read(root.path(), 9, 9), QueueLimits::default());
    }

    #[test]
    fn hostile_attributes_are_unknown_not_trusted() {
        let root = tree(&[
            ("write_cache", "write sideways\n"),
            ("fua", "yes"),
            ("discard_max_bytes", "-1"),
            ("physical_block_size", "0"),
            ("dma_alignment", "18446744073709551615"),
        ]);
        assert_eq!(QueueLimits::read(root.path(), 8, 0), QueueLimits::default());
    }
}
