//! Limits of untorn writes, as reported by the kernel and the drives.
//!
//! The kernel computes the limits of a stacked device from those below (block/blk-settings.c,
//! `blk_stack_atomic_writes_limits`), and clears them for each target and level that may tear such writes
//! (`DM_TARGET_ATOMIC_WRITES`, `BLK_FEAT_ATOMIC_WRITES`). So the limits of each device are read rather than
//! computed again.

use plumb_linux::probe::Request;
use plumb_linux::probe::wire::nvme;
use plumb_linux::tree::mountinfo::Mount;
use plumb_linux::tree::{FileKind, WriteLimits};

use super::block_device::Place;
use super::mounts::MOUNTINFO;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node, Units, Untorn};
use crate::model::LayerKind;

/// Sector size of the block layer in bytes: the unit of `start` in sysfs.
const SECTOR: u64 = 512;
/// First release with untorn writes to block devices, and with the files in /sys.
const DEVICES_FROM: Release = Release(6, 11);
/// First release with untorn writes of one block on ext4 and XFS.
const FILES_FROM: Release = Release(6, 13);
/// First release with untorn writes of several blocks on ext4 (bigalloc) and XFS (copies).
const LARGE_FROM: Release = Release(6, 16);

/// Kernel release by its first two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Release(u32, u32);

impl Surveyor<'_> {
    fn is_before(&self, release: Release) -> bool {
        let text = self.tree.text("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = text.split(['.', '-']).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Release(major, minor) < release,
            _ => false,
        }
    }

    /// Reads the limits of a block device: Documentation/ABI/stable/sysfs-block, `atomic_write_*`.
    pub(super) fn untorn_device(&self, node: &mut Node, sysfs: &str) {
        let file = format!("{sysfs}/queue/atomic_write_unit_max_bytes");
        let number = |name: &str| {
            let text = self.tree.text(&format!("{sysfs}/queue/atomic_write_{name}_bytes"));
            text.ok().and_then(|text| text.parse::<u64>().ok())
        };
        let Some(max) = number("unit_max") else {
            node.untorn = match self.is_before(DEVICES_FROM) {
                true => Untorn::Torn { why: "Linux before 6.11 has no untorn writes".to_owned() },
                false => Untorn::unknown(format!("{file} cannot be read")),
            };
            return;
        };
        let (min, boundary) = (number("unit_min").unwrap_or(0), number("boundary").unwrap_or(0));
        let longest = number("max").unwrap_or(max);
        let means =
            if max == 0 { "no untorn writes" } else { "the largest untorn write (RWF_ATOMIC), in bytes" };
        node.saw(&file, max.to_string(), means);
        if max > 0 {
            let value = format!("unit_min={min} max={longest} boundary={boundary}");
            node.saw(
                format!("{sysfs}/queue/atomic_write_*_bytes"),
                value,
                "the other limits of untorn writes",
            );
        }
        node.untorn = Untorn::Units(Units { min, max, boundary });
    }

    /// Records the limits of a partition: those of its disk if its start is aligned for untorn writes
    /// (block/blk-settings.c and include/linux/blkdev.h, `bdev_can_atomic_write`).
    pub(super) fn untorn_partition(&self, node: &mut Node, place: &Place) {
        let disk = node.below.first().and_then(|disk| self.nodes.get(disk));
        let Some(Untorn::Units(units)) = disk.map(|disk| &disk.untorn) else { return };
        let start = self.tree.text(&format!("{}/start", place.sysfs)).ok();
        let Some(start) = start.and_then(|text| text.parse::<u64>().ok()) else { return };
        let alignment = units.min.max(units.boundary);
        if units.max > 0 && alignment > 0 && !start.saturating_mul(SECTOR).is_multiple_of(alignment) {
            let why = format!(
                "{} starts at sector {start}, which is not a multiple of {alignment} bytes",
                node.name
            );
            node.saw(
                format!("{}/start", place.sysfs),
                start.to_string(),
                "the kernel takes no untorn writes there",
            );
            node.untorn = Untorn::Torn { why };
        }
    }

    /// Reads the limits that an NVMe drive declares for a namespace.
    pub(super) fn untorn_nvme(&self, node: &mut Node, place: &Place, controller: &[u8]) {
        let what = "NVMe Identify Namespace";
        let reply = self.ask(node, place.number, Request::NvmeIdentifyNamespace, what);
        let Some(namespace) = reply.ok().and_then(|bytes| nvme::namespace(&bytes)) else { return };
        let awupf = nvme::atomic_write_unit_power_fail(controller);
        let block = namespace.block_bytes;
        if let Some(own) = namespace.atomic {
            node.saw(
                "NVMe Identify Namespace bytes 34 to 45",
                format!(
                    "NAWUN={} NAWUPF={} NACWU={} NABSN={} NABO={} NABSPF={}",
                    own.normal,
                    own.power_fail,
                    own.compare,
                    own.boundary,
                    own.boundary_offset,
                    own.boundary_power_fail
                ),
                "limits of untorn writes of this namespace, in blocks, one less; NAWUPF=0 stands for AWUPF",
            );
        }
        if let Some(awupf) = awupf {
            node.saw(
                "NVMe Identify Controller bytes 528 to 529",
                format!("AWUPF={awupf}"),
                "the largest write that a power cut does not tear, in blocks, one less",
            );
        }
        node.mark(Mark::DeclaresUntorn { units: nvme_units(block, namespace.atomic, awupf.unwrap_or(0)) });
    }

    /// Records a file system's handling of untorn writes before the file is known.
    pub(super) fn untorn_mount(&self, node: &mut Node, mount: &Mount) {
        let torn = |why: &str| Untorn::Torn { why: why.to_owned() };
        node.untorn = match (node.kind, mount.kind.as_str()) {
            (LayerKind::Tmpfs, _) => torn("a file system in memory keeps nothing"),
            (LayerKind::Zfs, _) => {
                let why = "the record size of ZFS is seen of a file only: name one".to_owned();
                Untorn::Unknown { why, is_told_of_files: true }
            }
            (LayerKind::FileSystem, "btrfs") => self.untorn_btrfs(node, mount),
            (LayerKind::FileSystem, "ext4" | "xfs") if self.is_before(FILES_FROM) => {
                Untorn::Torn { why: format!("{} takes untorn writes from Linux 6.13 on", mount.kind) }
            }
            (LayerKind::FileSystem, "ext4") if journals_data(node) => {
                torn("with data=journal direct writes go through the page cache")
            }
            (LayerKind::FileSystem, "ext4") => {
                Untorn::Directory { least: None, most: None, why: name_a_file("ext4"), by_copy: false }
            }
            (LayerKind::FileSystem, "xfs") => self.untorn_xfs(node, mount),
            (LayerKind::FileSystem, "bcachefs") => {
                Untorn::unknown("bcachefs promises nothing about the parts of a write")
            }
            (LayerKind::Unknown, kind) => Untorn::unknown(format!("nothing is known of writes to {kind}")),
            (_, kind) => Untorn::Torn { why: format!("{kind} takes no untorn writes") },
        };
    }

    /// Returns the handling by btrfs, which writes each block elsewhere; but a write of several blocks may
    /// become several extents, which transactions switch to one by one (fs/btrfs/inode.c, `cow_file_range`).
    fn untorn_btrfs(&self, node: &mut Node, mount: &Mount) -> Untorn {
        if mount.super_options.iter().any(|option| option == "nodatacow") {
            node.saw(MOUNTINFO, "nodatacow", "data is overwritten in place");
            return Untorn::Torn {
                why: "nodatacow overwrites in place, and btrfs takes no untorn writes".to_owned(),
            };
        }
        let uuid = node.identity.clone().unwrap_or_default();
        let file = format!("/sys/fs/btrfs/{uuid}/sectorsize");
        let block = self.tree.text(&file).ok().and_then(|text| text.parse::<u64>().ok());
        match block {
            Some(block) => {
                node.saw(file, block.to_string(), "each block is written elsewhere, and switched to as one");
                Untorn::CopyOnWrite { block }
            }
            None => Untorn::unknown(format!("{file} cannot be read")),
        }
    }

    /// Returns the handling by XFS. The option `max_atomic_write` is a guarantee for every file, of at least
    /// a block (Documentation/admin-guide/xfs.rst). The block size is read from a directory.
    fn untorn_xfs(&self, node: &mut Node, mount: &Mount) -> Untorn {
        let most = mount.super_option("max_atomic_write").and_then(bytes_of);
        if let Some(bytes) = most {
            node.saw(
                MOUNTINFO,
                format!("max_atomic_write={bytes}"),
                "XFS takes untorn writes (RWF_ATOMIC) up to this, by a copy where the device cannot",
            );
        }
        let by_copy = most.is_some() || !self.is_before(LARGE_FROM);
        Untorn::Directory { least: None, most, why: name_a_file("XFS"), by_copy }
    }

    /// Adds the kernel's report about one file or directory: statx(2), STATX_WRITE_ATOMIC and `stx_blksize`.
    pub(super) fn untorn_file(&mut self, system: &str, path: &str, kind: FileKind) {
        let name = system.split(' ').next().unwrap_or_default();
        let attributes = self.tree.attributes(path);
        let Some(node) = self.nodes.get_mut(system) else { return };
        // An unreadable attribute may be C, which database files often have.
        let unseen = match (&node.untorn, &attributes, kind) {
            (Untorn::CopyOnWrite { .. }, Err(absence), _) if name == "btrfs" => Some(format!(
                "whether a file has attribute C (chattr +C) cannot be read: {absence}; run as root"
            )),
            (Untorn::CopyOnWrite { .. }, Ok(of), FileKind::Directory)
                if name == "btrfs" && !of.no_copy_on_write =>
            {
                Some(name_a_file(system))
            }
            _ => None,
        };
        if let Some(why) = unseen {
            node.untorn = Untorn::Unknown { why, is_told_of_files: kind == FileKind::Directory };
            return;
        }
        let no_copies = attributes.is_ok_and(|attributes| attributes.no_copy_on_write);
        let limits = self.tree.write_limits(path);
        let Some(node) = self.nodes.get_mut(system) else { return };
        let limits = match (limits, &node.untorn) {
            (Ok(limits), _) => limits,
            // A file was already named, so do not request one again.
            (Err(absence), Untorn::Directory { .. } | Untorn::Unknown { is_told_of_files: true, .. })
                if kind == FileKind::File =>
            {
                node.untorn = Untorn::unknown(format!("statx(2) of the file is not available: {absence}"));
                return;
            }
            (Err(_), _) => return,
        };
        match (&node.untorn, name, kind) {
            (Untorn::CopyOnWrite { .. }, "btrfs", _) if no_copies => {
                node.saw("FS_IOC_GETFLAGS", "attribute C", "data is overwritten in place");
                let why = "attribute C (chattr +C) overwrites in place, and btrfs takes no untorn writes";
                node.untorn = Untorn::Torn { why: why.to_owned() };
            }
            (Untorn::Unknown { .. }, "zfs", FileKind::File) => {
                let block = u64::from(limits.block);
                node.saw(
                    "statx(2)",
                    format!("stx_blksize={block}"),
                    "a record of ZFS is written elsewhere, and switched to as one",
                );
                node.untorn = Untorn::CopyOnWrite { block };
            }
            // The kernel's report about the file takes precedence over the mount's guarantee for all files.
            (Untorn::Directory { .. }, _, FileKind::File) => stated(node, &limits),
            (Untorn::Directory { most, why, by_copy, .. }, _, FileKind::Directory)
                if name == "ext4" || most.is_some() =>
            {
                let (least, most) = (Some(u64::from(limits.block)), *most);
                let (why, by_copy) = (why.clone(), *by_copy);
                node.saw("statx(2)", format!("stx_blksize={}", limits.block), format!("the block of {name}"));
                node.untorn = Untorn::Directory { least, most, why, by_copy };
            }
            _ => {}
        }
    }
}

/// Applies the kernel's report about one file. Writes that it accepts stay whole; where the devices do not
/// accept them, the file system makes a copy, which only XFS does.
fn stated(node: &mut Node, limits: &WriteLimits) {
    let Some(untorn) = limits.untorn else {
        node.untorn = Untorn::unknown(
            "statx(2) says nothing of untorn writes to this file (STATX_WRITE_ATOMIC is not set)",
        );
        return;
    };
    node.saw(
        // The path of the file is omitted, so that files with equal paths below them share one write path.
        "statx(2), STATX_WRITE_ATOMIC",
        format!(
            "unit_min={} unit_max={} unit_max_opt={} segments_max={}",
            untorn.unit_min, untorn.unit_max, untorn.unit_max_optimised, untorn.segments_max
        ),
        "limits of untorn writes to this file, in bytes",
    );
    let (min, max) = (u64::from(untorn.unit_min), u64::from(untorn.unit_max));
    let by_copy = matches!(node.untorn, Untorn::Directory { by_copy: true, .. });
    node.untorn = Untorn::File { units: Units { min, max, boundary: 0 }, by_copy };
}

/// Returns the limits of an NVMe namespace across a power cut, from its block size in bytes, its own fields
/// and the controller's AWUPF. NVM Command Set 1.0, figure 97: NAWUPF applies if NSFEAT bit 1 is set, and 0
/// in it means AWUPF; a write that crosses a multiple of NABSPF plus one may be torn. As in the kernel
/// (`nvme_configure_atomic_write` in drivers/nvme/host/core.c), a namespace whose boundaries start at an
/// offset is limited to one block.
fn nvme_units(block: u64, own: Option<nvme::NamespaceAtomic>, awupf: u16) -> Units {
    let bytes = |one_less: u16| (u64::from(one_less) + 1) * block;
    let own = own.unwrap_or_default();
    let power_fail = if own.power_fail > 0 { own.power_fail } else { awupf };
    Units {
        min: block,
        max: if own.boundary_offset > 0 { block } else { bytes(power_fail) },
        boundary: if own.boundary_power_fail > 0 { bytes(own.boundary_power_fail) } else { 0 },
    }
}

fn name_a_file(system: &str) -> String {
    format!("{system} says it of a file only: name one")
}

fn journals_data(node: &Node) -> bool {
    node.evidence.iter().any(|line| line.value == "data=journal")
}

/// Parses a size in a mount option: `16k`, `16384`, `1M`.
fn bytes_of(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
