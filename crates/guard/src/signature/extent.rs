//! Size of a file system, from its superblock.

use std::io;

use super::source::{Source, bytes};

/// Names of the file systems known to [`end_of_file_system`]. If it finds none, other signatures of them are
/// leftover copies.
pub const OF_KNOWN_LENGTH: [&str; 5] = ["ext2", "ext3", "ext4", "xfs", "btrfs"];

/// Returns the end, in bytes, of the file system at the start of `source`: ext2 to ext4, xfs, btrfs. `None`
/// for other contents. Reads only the first 68 KiB.
///
/// # Errors
/// Fails if a part cannot be read.
pub fn end_of_file_system(source: &dyn Source) -> io::Result<Option<u64>> {
    for end in [ext, xfs, btrfs] {
        if let Some(end) = end(source)? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// fs/ext4/ext4.h: the magic at 0x38 of the superblock, `s_blocks_count_lo` at 0x4, `s_log_block_size` at
/// 0x18, `s_feature_incompat` at 0x60 (0x80: 64bit), `s_blocks_count_hi` at 0x150.
fn ext(source: &dyn Source) -> io::Result<Option<u64>> {
    const SUPERBLOCK: u64 = 1024;
    let word = |at| Ok::<_, io::Error>(bytes::<4>(source, SUPERBLOCK + at)?.map_or(0, u32::from_le_bytes));
    if bytes::<2>(source, SUPERBLOCK + 0x38)? != Some([0x53, 0xef]) || word(0x18)? > 6 {
        return Ok(None);
    }
    let high = if word(0x60)? & 0x80 == 0 { 0 } else { word(0x150)? };
    let blocks = u64::from(high) << 32 | u64::from(word(4)?);
    Ok(Some(blocks.saturating_mul(1024 << word(0x18)?)))
}

/// fs/xfs/libxfs/xfs_format.h, `struct xfs_dsb`, big endian: `sb_blocksize` at 4, `sb_dblocks` at 8.
fn xfs(source: &dyn Source) -> io::Result<Option<u64>> {
    if bytes::<4>(source, 0)? != Some(*b"XFSB") {
        return Ok(None);
    }
    let block = bytes::<4>(source, 4)?.map(u32::from_be_bytes);
    let blocks = bytes::<8>(source, 8)?.map(u64::from_be_bytes);
    Ok(block.zip(blocks).map(|(block, blocks)| blocks.saturating_mul(block.into())))
}

/// fs/btrfs/accessors.h, `struct btrfs_super_block` at 64 KiB: the magic at 0x40, `dev_item` at 0xc9, whose
/// `total_bytes` is at 8.
fn btrfs(source: &dyn Source) -> io::Result<Option<u64>> {
    const SUPERBLOCK: u64 = 64 << 10;
    if bytes::<8>(source, SUPERBLOCK + 0x40)? != Some(*b"_BHRfS_M") {
        return Ok(None);
    }
    Ok(bytes::<8>(source, SUPERBLOCK + 0xd1)?.map(u64::from_le_bytes))
}
