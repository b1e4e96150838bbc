//! Signatures at positions that depend on the size or block size, or that are more than fixed bytes.

use std::io;

use super::mark::{CACHE_BACKING, CACHE_LOG, Signature};
use super::source::{Source, all, bytes};

const KIB: u64 = 1 << 10;

/// `MD_SB_MAGIC`, include/uapi/linux/raid/md_p.h.
const MD: u32 = 0xa92b_4efc;
/// `UBERBLOCK_MAGIC` of OpenZFS, include/sys/uberblock_impl.h.
const UBERBLOCK: u64 = 0x00ba_b10c;
/// Signatures that the kernel and suspend-to-disk write at the end of the first page of swap space.
const SWAP: [&[u8]; 6] =
    [b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"];
/// `DRBD_MD_MAGIC_07` to `DRBD_MD_MAGIC_09`, drivers/block/drbd.
const DRBD: std::ops::RangeInclusive<u32> = 0x8374_026a..=0x8374_026d;

/// Returns all of these signatures in `source`.
pub(super) fn find(source: &dyn Source) -> io::Result<Vec<Signature>> {
    let mut found = Vec::new();
    for look in [
        ext,
        xfs_log,
        swap,
        gpt,
        boot_sector,
        md,
        zfs,
        drbd,
        nilfs,
        firmware_raid,
        cached,
        log_end,
        bcache,
        udf,
        sun,
        atari,
        ext_copy,
        xfs_copy,
        end_copy,
    ] {
        found.extend(look(source)?);
    }
    Ok(found)
}

type Look = io::Result<Option<Signature>>;

fn signature_at(name: &'static str, at: u64) -> Look {
    Ok(Some(Signature::new(name, at)))
}

/// fs/ext4/ext4.h: `s_magic` at 0x38 of the superblock, `s_feature_compat` at 0x5c, `s_feature_incompat` at
/// 0x60. `s_log_block_size` at 0x18 must be at most 6 (64 KiB), which distinguishes the two-byte magic from
/// noise.
fn ext(source: &dyn Source) -> Look {
    Ok(ext_at(source, KIB)?.map(|name| Signature::new(name, KIB + 0x38)))
}

/// Returns a copy of the ext superblock at the start of groups 1, 3, 5, 7 and 9, which `sparse_super` keeps
/// too. `s_block_group_nr` at 0x5a is the number of the group. A group has eight blocks for each byte of a
/// block, or fewer (`mkfs.ext4 -g`), or as many clusters (`bigalloc`): usually a power of two in bytes.
/// Blocks of 1 KiB are counted from 1.
fn ext_copy(source: &dyn Source) -> Look {
    if ext_at(source, KIB)?.is_some() {
        return Ok(None);
    }
    for size in (10..=26).map(|log| KIB << log) {
        for (group, first) in [1_u16, 3, 5, 7, 9].into_iter().flat_map(|group| [(group, 0), (group, KIB)]) {
            let at = u64::from(group) * size + first;
            let is_group = bytes::<2>(source, at + 0x5a)? == Some(group.to_le_bytes());
            if let Some(name) = ext_at(source, at)?.filter(|_| is_group) {
                return Ok(Some(Signature::copy(name, at + 0x38)));
            }
        }
    }
    Ok(None)
}

/// Returns the kind of ext file system or journal whose superblock is at `superblock`; `None` if there is
/// none.
fn ext_at(source: &dyn Source, superblock: u64) -> io::Result<Option<&'static str>> {
    let Some([0x53, 0xef]) = bytes::<2>(source, superblock + 0x38)? else { return Ok(None) };
    if bytes::<4>(source, superblock + 0x18)?.is_none_or(|log| u32::from_le_bytes(log) > 6) {
        return Ok(None);
    }
    let feature = |at| Ok::<_, io::Error>(bytes::<4>(source, superblock + at)?.map_or(0, u32::from_le_bytes));
    let (has_journal, is_journal, beyond_ext3) = (0x4, 0x8, !0x1f_u32);
    let (compatible, incompatible) = (feature(0x5c)?, feature(0x60)?);
    let name = if incompatible & is_journal != 0 {
        "an ext4 journal"
    } else if incompatible & beyond_ext3 != 0 {
        "ext4"
    } else if compatible & has_journal != 0 {
        "ext3"
    } else {
        "ext2"
    };
    Ok(Some(name))
}

/// fs/xfs/libxfs/xfs_log_format.h: an external log has no superblock, but records at multiples of 512 bytes,
/// one of them in the first 256 KiB, the maximum length of a record.
fn xfs_log(source: &dyn Source) -> Look {
    // A file system has an internal log, whose old records may be anywhere in it.
    if bytes::<4>(source, 0)? == Some(*b"XFSB") {
        return Ok(None);
    }
    for at in (0..256 * KIB).step_by(512) {
        if bytes::<4>(source, at)? == Some([0xfe, 0xed, 0xba, 0xbe]) {
            return signature_at("an xfs log", at);
        }
    }
    Ok(None)
}

/// mm/swapfile.c: the last ten bytes of the first page, for any page size of the machine that created it.
fn swap(source: &dyn Source) -> Look {
    for page in [4, 8, 16, 32, 64] {
        let at = page * KIB - 10;
        if bytes::<10>(source, at)?.is_some_and(|mark| SWAP.iter().any(|known| mark.starts_with(known))) {
            return signature_at("swap space", at);
        }
    }
    Ok(None)
}

/// Returns the marker of a backing device that needs its cache, in the last 4096 bytes: [`crate::cache`].
fn cached(source: &dyn Source) -> Look {
    let Some(at) = source.size().checked_sub(4 * KIB) else { return Ok(None) };
    let head = bytes::<12>(source, at)?;
    if head.as_ref() == Some(b"plumb-cache ") { signature_at(CACHE_BACKING, at) } else { Ok(None) }
}

/// Returns the superblock of a cache's log in the last two whole blocks of 4096 bytes:
/// docs/ON_DISK_FORMAT.md.
fn log_end(source: &dyn Source) -> Look {
    let blocks = source.size() / (4 * KIB);
    for at in [1, 2].into_iter().filter_map(|back| Some(blocks.checked_sub(back)? * 4 * KIB)) {
        if bytes::<8>(source, at)?.as_ref() == Some(b"plumbwbc") {
            return signature_at(CACHE_LOG, at);
        }
    }
    Ok(None)
}

/// UEFI 2.10, 5.3.2: the header in the second logical block, its copy in the last.
fn gpt(source: &dyn Source) -> Look {
    for block in [512, KIB, 2 * KIB, 4 * KIB] {
        let last = (source.size() / block).checked_sub(1).map(|last| last * block);
        for at in [Some(block), last].into_iter().flatten() {
            if bytes::<8>(source, at)? == Some(*b"EFI PART") {
                return Ok(Some(Signature { name: "a GPT", at, is_copy: Some(at) == last }));
            }
        }
    }
    Ok(None)
}

/// Name of a first sector with the signature of a boot sector but without partitions.
pub(super) const BOOT_SECTOR: &str = "a boot sector";

/// Returns the contents of a first sector that ends in 55 AA: a FAT without its customary name, or a
/// partition table, possibly empty.
fn boot_sector(source: &dyn Source) -> Look {
    let Some(sector) = bytes::<512>(source, 0)? else { return Ok(None) };
    let jumps = matches!(sector[0], 0xe9 | 0xeb);
    let sector_bytes = u16::from_le_bytes([sector[11], sector[12]]);
    // NTFS and exFAT have no number of FATs there.
    if jumps && matches!(sector_bytes, 512 | 1024 | 2048 | 4096) && matches!(sector[16], 1 | 2) {
        return signature_at("FAT", 0);
    }
    let mut entries = sector[446..510].chunks_exact(16);
    let sane = entries.clone().all(|entry| entry[0] & 0x7f == 0);
    let is_used = |entry: &[u8]| entry[4] != 0 && entry[12..16] != [0; 4];
    let ends = sector[510..] == [0x55, 0xaa];
    match ends {
        true if sane && entries.any(is_used) => signature_at("MBR partitions", 510),
        true => signature_at(BOOT_SECTOR, 510),
        false => Ok(None),
    }
}

/// drivers/md/md.c: version 1.0 is 8 to 12 KiB before the end; 0.90 in the last whole 64 KiB, in the byte
/// order of the machine that created it. 1.1 and 1.2 have fixed positions.
fn md(source: &dyn Source) -> Look {
    let sectors = source.size() / 512;
    let newer = sectors.checked_sub(16).map(|sector| (sector & !7) * 512);
    let older = (source.size() & !(64 * KIB - 1)).checked_sub(64 * KIB);
    for (at, name) in [(newer, "an md 1.0 member"), (older, "an md 0.90 member")] {
        let Some(at) = at else { continue };
        if let Some(mark) = bytes::<4>(source, at)?
            && (u32::from_le_bytes(mark) == MD || u32::from_be_bytes(mark) == MD)
        {
            return signature_at(name, at);
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
            return signature_at("ZFS", ring_at + slot as u64 * KIB);
        }
    }
    Ok(None)
}

/// Internal metadata in the last 4 KiB, with the magic at byte 60.
fn drbd(source: &dyn Source) -> Look {
    let Some(at) = (source.size() & !(4 * KIB - 1)).checked_sub(4 * KIB) else { return Ok(None) };
    match bytes::<4>(source, at.saturating_add(60))? {
        Some(mark) if DRBD.contains(&u32::from_be_bytes(mark)) => signature_at("DRBD", at + 60),
        _ => Ok(None),
    }
}

/// include/uapi/linux/nilfs2_ondisk.h: a superblock at 1 KiB and one in the last whole 4 KiB, with the magic
/// at byte 6. As two bytes are weak evidence, the revision before them must be a small number.
fn nilfs(source: &dyn Source) -> Look {
    let last = (source.size() & !(4 * KIB - 1)).checked_sub(4 * KIB);
    for at in [Some(KIB), last].into_iter().flatten() {
        if let Some([_, 0, 0, 0, _, _, 0x34, 0x34]) = bytes::<8>(source, at)? {
            return signature_at("NILFS2", at + 6);
        }
    }
    Ok(None)
}

/// Firmware RAID, with metadata a fixed number of sectors before the end and the magic at a fixed offset in
/// it.
fn firmware_raid(source: &dyn Source) -> Look {
    struct Mark(&'static str, u64, u64, &'static [u8]);
    const MARKS: [Mark; 10] = [
        // sys/geom: each class has its name at the start of its metadata, GEOM::ELI, GEOM::MIRROR.
        Mark("a FreeBSD GEOM member", 1, 0, b"GEOM::"),
        Mark("an Intel RAID member", 2, 0, b"Intel Raid ISM Cfg Sig. "),
        Mark("an NVIDIA RAID member", 2, 0, b"NVIDIA"),
        Mark("a DDF RAID member", 1, 0, &[0xde, 0x11, 0xde, 0x11]),
        Mark("an LSI RAID member", 1, 0, b"$XIDE$"),
        Mark("an Adaptec RAID member", 1, 0, &[0x37, 0xfc, 0x4d, 0x1e]),
        Mark("a HighPoint RAID member", 11, 0, &[0xf3, 0x16, 0x78, 0x5a]),
        Mark("a HighPoint RAID member", 11, 0, &[0xfd, 0x16, 0x78, 0x5a]),
        Mark("a JMicron RAID member", 1, 0, b"JM"),
        Mark("a Silicon Image RAID member", 1, 0x60, &[0, 0, 0, 0x2f]),
    ];
    for sector in [512, 4 * KIB] {
        for Mark(name, sectors, place, mark) in MARKS {
            let Some(at) = (source.size() / sector).checked_sub(sectors) else { continue };
            let at = at * sector + place;
            let mut there = [0; 24];
            let there = &mut there[..mark.len()];
            if all(source, at, there)? && there == mark {
                return signature_at(name, at);
            }
        }
    }
    match promise(source)? {
        None => via(source),
        found => Ok(found),
    }
}

/// Promise: metadata at one of several positions before the end, depending on the size of the disk.
fn promise(source: &dyn Source) -> Look {
    const SECTORS: [u64; 13] = [63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087];
    for back in SECTORS {
        let Some(at) = (source.size() / 512).checked_sub(back).map(|sector| sector * 512) else { continue };
        if bytes::<24>(source, at)?.as_ref() == Some(b"Promise Technology, Inc.") {
            return signature_at("a Promise RAID member", at);
        }
    }
    Ok(None)
}

/// VIA: the two bytes of a boot sector at the start of the last sector, a version of at most 2, and the sum
/// of the first 50 bytes after them, which distinguishes it from a copy of a boot sector.
fn via(source: &dyn Source) -> Look {
    let Some(at) = (source.size() / 512).checked_sub(1).map(|sector| sector * 512) else { return Ok(None) };
    let Some(metadata) = bytes::<51>(source, at)? else { return Ok(None) };
    let sum = metadata[..50].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let is_via = metadata[..2] == [0x55, 0xaa] && metadata[2] <= 2 && sum == metadata[50];
    if is_via { signature_at("a VIA RAID member", at) } else { Ok(None) }
}

/// drivers/md/bcache: the UUID that serves as magic, at byte 24 of the superblock at 4 KiB.
pub(super) const BCACHE: [u8; 16] =
    [0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81];

/// bcache, and bcachefs from before it had its own magic. The superblock contains its own sector number, at
/// byte 8 for bcache and byte 104 for bcachefs.
fn bcache(source: &dyn Source) -> Look {
    let says_sector = |at| Ok::<_, io::Error>(bytes::<8>(source, 4 * KIB + at)? == Some(8_u64.to_le_bytes()));
    if bytes::<16>(source, 4 * KIB + 24)? != Some(BCACHE) {
        return Ok(None);
    }
    let is_file_system = !says_sector(8)? && says_sector(104)?;
    signature_at(if is_file_system { "bcachefs" } else { "bcache" }, 4 * KIB + 24)
}

/// ECMA-167 part 2, 8 and 9: volume structure descriptors from 32 KiB on, each 2 KiB or one larger block
/// long. NSR02 or NSR03 among them means UDF, also beside those of ISO 9660.
fn udf(source: &dyn Source) -> Look {
    const DESCRIPTORS: u64 = 64;
    for at in (0..DESCRIPTORS).map(|number| (32 + 2 * number) * KIB + 1) {
        if bytes::<4>(source, at)? == Some(*b"NSR0") {
            return signature_at("UDF", at);
        }
    }
    if bytes::<5>(source, 32 * KIB + 1)? == Some(*b"BEA01") {
        signature_at("UDF", 32 * KIB + 1)
    } else {
        Ok(None)
    }
}

/// block/partitions/sun.h: the label is the first sector, with the magic DABE at byte 508; the exclusive or
/// of all its 16-bit words is zero.
fn sun(source: &dyn Source) -> Look {
    let Some(sector) = bytes::<512>(source, 0)? else { return Ok(None) };
    let sum = sector.chunks_exact(2).fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    if sector[508..510] == [0xda, 0xbe] && sum == [0, 0] {
        signature_at("Sun partitions", 508)
    } else {
        Ok(None)
    }
}

/// block/partitions/atari.c: there is no magic, so an entry must be active, have a known type, and lie on the
/// disk.
fn atari(source: &dyn Source) -> Look {
    const TYPES: [&[u8]; 9] = [b"GEM", b"BGM", b"LNX", b"SWP", b"RAW", b"XGM", b"F32", b"UNX", b"MNX"];
    let Some(sector) = bytes::<512>(source, 0)? else { return Ok(None) };
    let number = |entry: &[u8], at: usize| {
        entry[at..at + 4].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    for (index, entry) in sector[0x1c6..0x1f6].chunks_exact(12).enumerate() {
        let (start, sectors) = (number(entry, 4), number(entry, 8));
        let is_on_disk = sectors > 0 && start + sectors <= source.size() / 512;
        if entry[0] & 1 == 1 && TYPES.contains(&&entry[1..4]) && is_on_disk {
            return signature_at("Atari partitions", 0x1c6 + 12 * index as u64);
        }
    }
    Ok(None)
}

/// Returns a superblock of another allocation group of xfs. Only the first superblock states the length of a
/// group, so copies are searched at the group boundaries that mkfs.xfs creates: up to 64 groups on the
/// device, rounded to blocks of 4 KiB; 8, 16 or 32 on a striped disk, rounded to its unit and moved by one;
/// at each TiB; and for a file system that has grown, at each MiB of the first GiB. These 1,200 reads take 10
/// s on a hard disk that needs 8 ms for a seek and half a turn.
///
/// # Limitations
/// With a user-defined group length (`agsize=`), copies are found only if it is a whole number of MiB and at
/// most 1 GiB.
fn xfs_copy(source: &dyn Source) -> Look {
    const BLOCK: u64 = 4 * KIB;
    const MIB: u64 = KIB * KIB;
    const TIB: u64 = 1 << 40;
    if bytes::<4>(source, 0)? == Some(*b"XFSB") {
        return Ok(None);
    }
    let part = |groups: u64| (source.size() / BLOCK).div_ceil(groups) * BLOCK;
    let striped = [4, 8, 16, 32].into_iter().map(part).flat_map(|group| {
        let units = (4..=10).map(|log| KIB << log);
        units.flat_map(move |unit| {
            let (down, up) = (group / unit * unit, group.next_multiple_of(unit));
            [down.saturating_sub(unit), down, up, up + unit]
        })
    });
    let grown = (1..=KIB).map(|number| number * MIB);
    let groups = (2..=64).map(part).chain([TIB - BLOCK, TIB]).chain(striped).chain(grown);
    for at in groups.filter(|at| *at > 0) {
        if bytes::<4>(source, at)? == Some(*b"XFSB") {
            return Ok(Some(Signature::copy("xfs", at)));
        }
    }
    Ok(None)
}

/// Copies in the last sectors: the boot sector of NTFS and ReFS, the volume header of HFS and HFS+, the
/// header of a dynamic disk.
fn end_copy(source: &dyn Source) -> Look {
    struct Mark(&'static str, u64, u64, &'static [u8]);
    const MARKS: [Mark; 8] = [
        Mark("ReFS", 512, 3, b"ReFS\0"),
        Mark("ReFS", 4 * KIB, 3, b"ReFS\0"),
        Mark("HFS", KIB, 0, b"BD"),
        Mark("NTFS", 512, 3, b"NTFS    "),
        Mark("NTFS", 4 * KIB, 3, b"NTFS    "),
        Mark("HFS+", KIB, 0, b"H+\0"),
        Mark("HFS+", KIB, 0, b"HX\0"),
        Mark("a Windows dynamic disk", 512, 0, b"PRIVHEAD"),
    ];
    for Mark(name, back, place, mark) in MARKS {
        let Some(at) = (source.size() & !511).checked_sub(back) else { continue };
        let mut there = [0; 8];
        let there = &mut there[..mark.len()];
        if all(source, at.saturating_add(place), there)? && there == mark {
            return Ok(Some(Signature::copy(name, at + place)));
        }
    }
    Ok(None)
}
