//! Signatures at fixed positions from the start.
//!
//! Sources: the superblock structures in fs/*/ and drivers/md/ of Linux, include/uapi/linux/magic.h, and the
//! on-disk format documents of LVM2, LUKS2, BlueStore, VMFS, APFS, ASM, ReFS, HAMMER2, sanlock and VHDX.
//! Dynamic disks of Windows are described in block/partitions/ldm.h of Linux.

use std::io;

use super::mark::{CACHE_LOG, Signature};
use super::source::{Source, all};

/// A signature at fixed positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Magic {
    pub(super) name: &'static str,
    /// Possible positions, in bytes from the start.
    pub(super) at: &'static [u64],
    /// Positions of copies, which may remain when the first one is erased.
    pub(super) copies: &'static [u64],
    /// Bytes to compare, at most [`BYTES_MAX`].
    pub(super) bytes: &'static [u8],
}

/// Length of the longest signature, in bytes.
const BYTES_MAX: usize = 24;

const fn magic(name: &'static str, at: &'static [u64], bytes: &'static [u8]) -> Magic {
    Magic { name, at, copies: &[], bytes }
}

impl Magic {
    /// Returns the signature with copies at `copies`.
    const fn copied(self, copies: &'static [u64]) -> Self {
        Self { copies, ..self }
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// All signatures at fixed positions, except ext2 to ext4, whose name depends on feature flags.
pub(super) const MAGICS: &[Magic] = &[
    magic("xfs", &[0], b"XFSB"),
    magic("xfs", &[0], b"EXFS"),
    magic("btrfs", &[64 * KIB + 0x40], b"_BHRfS_M").copied(&[64 * MIB + 0x40, 256 * GIB + 0x40]),
    magic("f2fs", &[KIB], &[0x10, 0x20, 0xf5, 0xf2]).copied(&[5 * KIB]),
    magic("an LVM2 physical volume", &[0, 512, 1024, 1536], b"LABELONE"),
    magic("an LVM1 physical volume", &[0], b"HM\x01\0"),
    magic("an LVM1 physical volume", &[0], b"HM\x02\0"),
    magic("an md 1.1 member", &[0], &[0xfc, 0x4e, 0x2b, 0xa9]),
    magic("an md 1.2 member", &[4 * KIB], &[0xfc, 0x4e, 0x2b, 0xa9]),
    magic("LUKS", &[0], b"LUKS\xba\xbe"),
    magic("LUKS", &[], b"SKUL\xba\xbe").copied(&[
        16 * KIB,
        32 * KIB,
        64 * KIB,
        128 * KIB,
        256 * KIB,
        512 * KIB,
        MIB,
        2 * MIB,
        4 * MIB,
    ]),
    magic(CACHE_LOG, &[0, 4 * KIB], b"plumbwbc"),
    // The layout of the superblocks is in sector 7, the second superblock in sector 2056.
    magic("bcachefs", &[4 * KIB + 24], &BCACHEFS).copied(&[7 * 512, 2056 * 512 + 24]),
    magic("BlueStore", &[0], b"bluestore block device").copied(&[GIB, 10 * GIB, 100 * GIB, 1000 * GIB]),
    magic("NTFS", &[3], b"NTFS    "),
    // Copies of the boot sector: sector 12, and for FAT32 sector 6.
    magic("exFAT", &[3], b"EXFAT   ").copied(&[12 * 512 + 3, 12 * 4 * KIB + 3]),
    magic("ReFS", &[3], b"ReFS\0"),
    magic("BitLocker", &[3], b"-FVE-FS-"),
    magic("FAT", &[0x36], b"FAT12   "),
    magic("FAT", &[0x36], b"FAT16   "),
    magic("FAT", &[0x36], b"FAT     "),
    magic("FAT", &[0x36], b"MSDOS"),
    magic("FAT", &[0x52], b"FAT32   ").copied(&[6 * 512 + 0x52, 6 * 4 * KIB + 0x52]),
    magic("FAT", &[0x52], b"MSWIN"),
    magic("ISO 9660", &[32 * KIB + 1], b"CD001"),
    magic("ISO 9660", &[32 * KIB + 9], b"CDROM"),
    magic("JFS", &[32 * KIB], b"JFS1").copied(&[60 * KIB]),
    magic("ReiserFS", &[64 * KIB + 0x34, 8 * KIB + 0x34, 8 * KIB + 0x14], b"ReIsEr"),
    magic("Reiser4", &[64 * KIB], b"ReIsEr4"),
    magic("a VMFS volume", &[MIB], &[0x0d, 0xd0, 0x01, 0xc0]),
    magic("VMFS", &[2 * MIB], &[0x5e, 0xf1, 0xab, 0x2f]),
    magic("APFS", &[32], b"NXSB"),
    magic("HFS+", &[KIB], b"H+\0"),
    magic("HFS+", &[KIB], b"HX\0"),
    magic("HFS", &[KIB], b"BD"),
    magic("HPFS", &[8 * KIB], &[0x49, 0xe8, 0x95, 0xf9]),
    magic("BeFS", &[32, 512 + 32], b"BFS1"),
    magic("BeFS", &[32, 512 + 32], b"1SFB"),
    magic("SCO bfs", &[0], &[0xce, 0xfa, 0xad, 0x1b]),
    magic("NSS", &[4 * KIB], b"SPB5"),
    magic("UBI", &[0], b"UBI#"),
    magic("UBIFS", &[0], &[0x31, 0x18, 0x10, 0x06]),
    magic("minix", &[KIB + 16], &[0x7f, 0x13]),
    magic("minix", &[KIB + 16], &[0x8f, 0x13]),
    magic("minix", &[KIB + 16], &[0x68, 0x24]),
    magic("minix", &[KIB + 16], &[0x78, 0x24]),
    magic("minix", &[KIB + 24], b"ZM"),
    // Written by a machine of the opposite byte order.
    magic("minix", &[KIB + 16], &[0x13, 0x7f]),
    magic("minix", &[KIB + 16], &[0x13, 0x8f]),
    magic("minix", &[KIB + 16], &[0x24, 0x68]),
    magic("minix", &[KIB + 16], &[0x24, 0x78]),
    magic("minix", &[KIB + 24], b"MZ"),
    magic("squashfs", &[0], b"hsqs"),
    magic("squashfs", &[0], b"sqsh"),
    magic("erofs", &[KIB], &[0xe2, 0xe1, 0xf5, 0xe0]),
    magic("cramfs", &[0], &[0x45, 0x3d, 0xcd, 0x28]),
    magic("cramfs", &[0], &[0x28, 0xcd, 0x3d, 0x45]),
    magic("romfs", &[0], b"-rom1fs-"),
    magic("zonefs", &[0], b"SFOZ"),
    magic("OCFS2", &[KIB, 2 * KIB, 4 * KIB, 8 * KIB], b"OCFSV2").copied(&[
        GIB,
        4 * GIB,
        16 * GIB,
        64 * GIB,
        256 * GIB,
    ]),
    magic("OCFS", &[8 * KIB], b"OracleCFS"),
    magic("GFS2", &[64 * KIB], &[0x01, 0x16, 0x19, 0x70]),
    magic("UFS", &[8 * KIB + 1372], &[0x54, 0x19, 0x01, 0x00]),
    magic("UFS", &[64 * KIB + 1372, 256 * KIB + 1372], &[0x19, 0x01, 0x54, 0x19]),
    magic("UFS", &[8 * KIB + 1372], &[0x00, 0x01, 0x19, 0x54]),
    magic("UFS", &[64 * KIB + 1372, 256 * KIB + 1372], &[0x19, 0x54, 0x01, 0x19]),
    magic("HAMMER2", &[0], &0x4841_4d32_0517_2011_u64.to_le_bytes()).copied(&[2 * GIB, 4 * GIB, 6 * GIB]),
    magic("QNX6", &[0, 8 * KIB], &0x6819_1122_u32.to_le_bytes()),
    magic("QNX6", &[0, 8 * KIB], &0x6819_1122_u32.to_be_bytes()),
    magic("Xenix", &[KIB + 0x3f8], &0x002b_5544_u32.to_le_bytes()),
    magic("Xenix", &[KIB + 0x3f8], &0x002b_5544_u32.to_be_bytes()),
    // A node of type clean marker, directory entry or inode, in either byte order.
    magic("JFFS2", &[0], &[0x85, 0x19, 0x03, 0x20]),
    magic("JFFS2", &[0], &[0x85, 0x19, 0x01, 0xe0]),
    magic("JFFS2", &[0], &[0x85, 0x19, 0x02, 0xe0]),
    magic("JFFS2", &[0], &[0x19, 0x85, 0x20, 0x03]),
    magic("JFFS2", &[0], &[0x19, 0x85, 0xe0, 0x01]),
    magic("JFFS2", &[0], &[0x19, 0x85, 0xe0, 0x02]),
    magic("a VHDX image", &[0], b"vhdxfile"),
    magic("VxFS", &[KIB], &[0xf5, 0xfc, 0x01, 0xa5]),
    magic("VxFS", &[8 * KIB], &[0xa5, 0x01, 0xfc, 0xf5]),
    magic("an Oracle ASM disk", &[32], b"ORCLDISK"),
    magic("Stratis", &[512 + 4, 9 * 512 + 4], b"!Stra0tis\x86\xff\x02^\x41rh"),
    magic("VDO", &[0], b"dmvdo001"),
    magic("mpool", &[0], b"mpoolDev"),
    magic("a DRBD proxy log", &[0], b"DRBDdlh*"),
    magic("a HighPoint RAID member", &[9 * 512 + 32], &[0xf0, 0x16, 0x78, 0x5a]),
    magic("a HighPoint RAID member", &[9 * 512 + 32], &[0xfd, 0x16, 0x78, 0x5a]),
    magic("a TuxOnIce image", &[0], &[0xed, 0xc3, 0x02, 0xe9, 0x98, 0x56, 0xe5, 0x0c]),
    magic("dm-thin metadata", &[32], &[0xba, 0x52, 0x9c, 0x01]),
    magic("dm-cache metadata", &[32], &0o6142003_u64.to_le_bytes()),
    magic("dm-era metadata", &[32], &2_126_579_579_u64.to_le_bytes()),
    magic("dm-clone metadata", &[32], &0x8af2_7f64_u64.to_le_bytes()),
    magic("dm-writecache", &[0], &0x2348_9321_u32.to_le_bytes()),
    magic("a dm-log-writes log", &[0], &0x006a_7366_7773_6872_u64.to_le_bytes()),
    magic("dm-integrity", &[0], b"integrt\0"),
    magic("dm-verity", &[0], b"verity\0\0"),
    magic("dm-zoned", &[0], b"DBZD"),
    magic("NVDIMM BTT", &[0, 4 * KIB], b"BTT_ARENA_INFO"),
    magic("sanlock leases", &[0], &0x1221_2010_u32.to_le_bytes()),
    magic("sanlock leases", &[0], &0x0615_2010_u32.to_le_bytes()),
    magic("a dm-snapshot store", &[0], b"SnAp"),
    magic("a Windows dynamic disk", &[6 * 512], b"PRIVHEAD"),
    magic("Storage Spaces", &[0, 4 * KIB], b"SPACEDB "),
    magic("SGI partitions", &[0], &[0x0b, 0xe5, 0xa9, 0x41]),
    magic("a DASD label", DASD, &[0xe5, 0xd6, 0xd3, 0xf1]),
    magic("a DASD label", DASD, &[0xd3, 0xd5, 0xe7, 0xf1]),
    magic("a DASD label", DASD, &[0xc3, 0xd4, 0xe2, 0xf1]),
    magic("a BSD disk label", &[64, 128, 512], &[0x57, 0x45, 0x56, 0x82]),
    magic("Apple partition map", &[512], b"PM\0\0"),
    magic("Amiga partitions", AMIGA, b"RDSK"),
    magic("an AIX disk label", &[0], &[0xc9, 0xc2, 0xd4, 0xc1]),
];

/// block/partitions/ibm.c: VOL1, LNX1 and CMS1 in EBCDIC, at the second or third block of 512 to 4096 bytes,
/// with or without a key of four bytes before it.
const DASD: &[u64] =
    &[512, 516, KIB, KIB + 4, 2 * KIB, 2 * KIB + 4, 4 * KIB, 4 * KIB + 4, 8 * KIB, 8 * KIB + 4];
/// block/partitions/amiga.c: the rigid disk block is among the first 16 blocks.
const AMIGA: &[u64] = &[
    0,
    512,
    2 * 512,
    3 * 512,
    4 * 512,
    5 * 512,
    6 * 512,
    7 * 512,
    8 * 512,
    9 * 512,
    10 * 512,
    11 * 512,
    12 * 512,
    13 * 512,
    14 * 512,
    15 * 512,
];
/// fs/bcachefs/bcachefs_format.h.
const BCACHEFS: [u8; 16] =
    [0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef];

/// Returns the signatures of the table that `source` contains.
pub(super) fn find(source: &dyn Source) -> io::Result<Vec<Signature>> {
    let mut found = Vec::new();
    let mut bytes = [0; BYTES_MAX];
    for magic in MAGICS {
        let bytes = &mut bytes[..magic.bytes.len()];
        for &at in magic.at {
            if all(source, at, bytes)? && bytes == magic.bytes {
                found.push(Signature::new(magic.name, at));
            }
        }
        for &at in magic.copies {
            if all(source, at, bytes)? && bytes == magic.bytes {
                found.push(Signature::copy(magic.name, at));
            }
        }
    }
    Ok(found)
}
