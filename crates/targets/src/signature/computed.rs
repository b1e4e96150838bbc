//! Marks whose place depends on the size or the block size, or that are more than fixed bytes.

use std::io;

use super::Signature;
use super::source::{Source, all, bytes};

const KIB: u64 = 1 << 10;

/// `MD_SB_MAGIC`, include/uapi/linux/raid/md_p.h.
const MD: u32 = 0xa92b_4efc;
/// `UBERBLOCK_MAGIC` of OpenZFS, include/sys/uberblock_impl.h.
const UBERBLOCK: u64 = 0x00ba_b10c;
/// What the kernel and suspend-to-disk write at the end of the first page of swap space.
const SWAP: [&[u8]; 6] =
    [b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"];
/// `DRBD_MD_MAGIC_07` to `DRBD_MD_MAGIC_09`, drivers/block/drbd.
const DRBD: std::ops::RangeInclusive<u32> = 0x8374_026a..=0x8374_026d;

/// All that `source` bears of them.
pub(super) fn find(source: &dyn Source) -> io::Result<Vec<Signature>> {
    let mut found = Vec::new();
    for look in [ext, xfs_log, swap, gpt, boot_sector, md, zfs, drbd, nilfs, firmware_raid, cached, log_end] {
        found.extend(look(source)?);
    }
    Ok(found)
}

type Look = io::Result<Option<Signature>>;

fn found(name: &'static str, at: u64) -> Look {
    Ok(Some(Signature { name, at }))
}

/// fs/ext4/ext4.h: `s_magic` at 0x38 of the superblock, `s_feature_compat` at 0x5c, `s_feature_incompat` at 0x60; and
/// `s_log_block_size` at 0x18 is at most 6 (64 KiB), which tells the two bytes of the mark from noise.
fn ext(source: &dyn Source) -> Look {
    const SUPERBLOCK: u64 = 1024;
    let Some([0x53, 0xef]) = bytes::<2>(source, SUPERBLOCK + 0x38)? else { return Ok(None) };
    if bytes::<4>(source, SUPERBLOCK + 0x18)?.is_none_or(|log| u32::from_le_bytes(log) > 6) {
        return Ok(None);
    }
    let feature = |at| Ok::<_, io::Error>(bytes::<4>(source, SUPERBLOCK + at)?.map_or(0, u32::from_le_bytes));
    let (has_journal, is_journal, beyond_ext3) = (0x4, 0x8, !0x1f_u32);
    let (compatible, incompatible) = (feature(0x5c)?, feature(0x60)?);
    let name = if incompatible & is_journal != 0 {
        "ext4 journal"
    } else if incompatible & beyond_ext3 != 0 {
        "ext4"
    } else if compatible & has_journal != 0 {
        "ext3"
    } else {
        "ext2"
    };
    found(name, SUPERBLOCK + 0x38)
}

/// fs/xfs/libxfs/xfs_log_format.h: a log on a device of its own has no superblock, but records at multiples of 512 bytes.
/// One is in the first 256 KiB, the largest that a record can be.
fn xfs_log(source: &dyn Source) -> Look {
    for at in (0..256 * KIB).step_by(512) {
        if bytes::<4>(source, at)? == Some([0xfe, 0xed, 0xba, 0xbe]) {
            return found("xfs log", at);
        }
    }
    Ok(None)
}

/// mm/swapfile.c: the last ten bytes of the first page, whatever the size of a page where it was made.
fn swap(source: &dyn Source) -> Look {
    for page in [4, 8, 16, 32, 64] {
        let at = page * KIB - 10;
        if bytes::<10>(source, at)?.is_some_and(|mark| SWAP.iter().any(|known| mark.starts_with(known))) {
            return found("swap space", at);
        }
    }
    Ok(None)
}

/// The marker of a device that needs its cache, in its last 4096 bytes: [`crate::cache`].
fn cached(source: &dyn Source) -> Look {
    let Some(at) = source.size().checked_sub(4 * KIB) else { return Ok(None) };
    let head = bytes::<12>(source, at)?;
    if head.as_ref() == Some(b"plumb-cache ") { found(super::CACHE_BACKING, at) } else { Ok(None) }
}

/// The superblocks in the last two whole blocks of 4096 bytes of a device of the log: docs/ON_DISK_FORMAT.md.
fn log_end(source: &dyn Source) -> Look {
    let blocks = source.size() / (4 * KIB);
    for at in [1, 2].into_iter().filter_map(|back| Some(blocks.checked_sub(back)? * 4 * KIB)) {
        if bytes::<8>(source, at)?.as_ref() == Some(b"plumbwbc") {
            return found(super::CACHE_LOG, at);
        }
    }
    Ok(None)
}

/// UEFI 2.10, 5.3.2: the header in the second logical block and its copy in the last.
fn gpt(source: &dyn Source) -> Look {
    for block in [512, KIB, 2 * KIB, 4 * KIB] {
        let last = (source.size() / block).checked_sub(1).map(|last| last * block);
        for at in [Some(block), last].into_iter().flatten() {
            if bytes::<8>(source, at)? == Some(*b"EFI PART") {
                return found("GPT", at);
            }
        }
    }
    Ok(None)
}

/// The first sector: a FAT without its customary name, or a partition table, which ends in 55 AA.
fn boot_sector(source: &dyn Source) -> Look {
    let Some(sector) = bytes::<512>(source, 0)? else { return Ok(None) };
    let jumps = matches!(sector[0], 0xe9 | 0xeb);
    let sector_bytes = u16::from_le_bytes([sector[11], sector[12]]);
    // NTFS and exFAT have no count of FATs there.
    if jumps && matches!(sector_bytes, 512 | 1024 | 2048 | 4096) && matches!(sector[16], 1 | 2) {
        return found("FAT", 0);
    }
    let mut entries = sector[446..510].chunks_exact(16);
    let sane = entries.clone().all(|entry| entry[0] & 0x7f == 0);
    let is_used = |entry: &[u8]| entry[4] != 0 && entry[12..16] != [0; 4];
    let ends = sector[510..] == [0x55, 0xaa];
    if ends && sane && entries.any(is_used) { found("MBR partitions", 510) } else { Ok(None) }
}

/// drivers/md/md.c: version 1.0 is 8 to 12 KiB before the end, 0.90 in the last whole 64 KiB, in the byte order of
/// the machine that made it. 1.1 and 1.2 have fixed places.
fn md(source: &dyn Source) -> Look {
    let sectors = source.size() / 512;
    let newer = sectors.checked_sub(16).map(|sector| (sector & !7) * 512);
    let older = (source.size() & !(64 * KIB - 1)).checked_sub(64 * KIB);
    for (at, name) in [(newer, "md 1.0 member"), (older, "md 0.90 member")] {
        let Some(at) = at else { continue };
        if let Some(mark) = bytes::<4>(source, at)?
            && (u32::from_le_bytes(mark) == MD || u32::from_be_bytes(mark) == MD)
        {
            return found(name, at);
        }
    }
    Ok(None)
}

/// Four labels of 256 KiB, two at each end; the upper half of each is a ring of uberblocks of at least 1 KiB.
fn zfs(source: &dyn Source) -> Look {
    const LABEL: u64 = 256 * KIB;
    let whole = source.size() / LABEL * LABEL;
    let labels = [Some(0), Some(LABEL), whole.checked_sub(2 * LABEL), whole.checked_sub(LABEL)];
    let mut ring = vec![0; (LABEL / 2) as usize];
    for ring_at in labels.into_iter().flatten().map(|label| label.saturating_add(LABEL / 2)) {
        if !all(source, ring_at, &mut ring)? {
            continue;
        }
        let is_mark =
            |slot: &[u8]| slot[..8] == UBERBLOCK.to_le_bytes() || slot[..8] == UBERBLOCK.to_be_bytes();
        if let Some(slot) = ring.chunks_exact(KIB as usize).position(is_mark) {
            return found("ZFS", ring_at + slot as u64 * KIB);
        }
    }
    Ok(None)
}

/// Internal metadata in the last 4 KiB; the mark is at byte 60 of it.
fn drbd(source: &dyn Source) -> Look {
    let Some(at) = (source.size() & !(4 * KIB - 1)).checked_sub(4 * KIB) else { return Ok(None) };
    match bytes::<4>(source, at.saturating_add(60))? {
        Some(mark) if DRBD.contains(&u32::from_be_bytes(mark)) => found("DRBD", at + 60),
        _ => Ok(None),
    }
}

/// include/uapi/linux/nilfs2_ondisk.h: a superblock at 1 KiB and one in the last whole 4 KiB, the mark at byte 6. Two
/// bytes are little, so the revision before them must be a small number.
fn nilfs(source: &dyn Source) -> Look {
    let last = (source.size() & !(4 * KIB - 1)).checked_sub(4 * KIB);
    for at in [Some(KIB), last].into_iter().flatten() {
        if let Some([_, 0, 0, 0, _, _, 0x34, 0x34]) = bytes::<8>(source, at)? {
            return found("NILFS2", at + 6);
        }
    }
    Ok(None)
}

/// RAID that a disk controller's firmware keeps in the last sectors.
fn firmware_raid(source: &dyn Source) -> Look {
    const MARKS: [(&str, u64, &[u8]); 4] = [
        ("Intel RAID member", 2, b"Intel Raid ISM Cfg Sig. "),
        ("NVIDIA RAID member", 2, b"NVIDIA"),
        ("DDF RAID member", 1, &[0xde, 0x11, 0xde, 0x11]),
        ("LSI RAID member", 1, b"$XIDE$"),
    ];
    for sector in [512, 4 * KIB] {
        for (name, sectors, mark) in MARKS {
            let Some(at) = source.size().checked_sub(sectors * sector) else { continue };
            let mut there = [0; 24];
            let there = &mut there[..mark.len()];
            if all(source, at, there)? && there == mark {
                return found(name, at);
            }
        }
    }
    Ok(None)
}
