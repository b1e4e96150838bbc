//! Search for the marker of a backing device: in an attribute of a file, and in blocks after the cached part
//! of a device.
//!
//! The marker is in the last block of the device when the cache is created. Later the device may grow
//! (`lvextend`, a larger virtual disk), appear in another form (the file of a loop device) or be copied
//! without its attributes. So the search covers:
//!
//! 1. the attribute;
//! 2. the last 4096 bytes;
//! 3. the end of each cached size in a [configuration](crate::cache::known);
//! 4. the end of the file system or GPT at the start of the device, which was created to fit the cached
//!    device.
//!
//! A marker counts only at the position that its own SIZE implies; copies within other data are ignored.
//!
//! # Limitations
//! The marker is not found on a device that has grown, has no configuration here, and begins with anything
//! other than GPT, ext2 to ext4, xfs or btrfs (a database straight on the device, LVM, LUKS).

use std::cell::RefCell;
use std::io;

use plumb_block::{Bytes, Device, Lba, LbaRange, Payload, Pool, PoolShape, Request, Tag};
use plumb_cache::driver::SerialRequests;

use crate::cache::marker::{BLOCK, HEAD, Marker, SECTOR};
use crate::signature::{Source, end_of_file_system};

/// Distance from the end of the contents that is searched, in bytes. mkfs leaves less than that unused.
const BEHIND: u64 = 1 << 20;

/// A marker in a block, and the position of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InBlock {
    /// The marker.
    pub marker: Marker,
    /// Offset of the block on the device, in bytes.
    pub at: u64,
}

/// Finds the markers in blocks of `source`; `sizes` are candidate sizes of the cached device.
///
/// # Errors
/// Fails if a part cannot be read.
pub fn find(source: &dyn Source, sizes: &[Bytes]) -> io::Result<Vec<InBlock>> {
    let end = source.size();
    let mut places = vec![(end.saturating_sub(BLOCK.0), BLOCK.0)];
    // The block begins up to one block after the cached part, at a multiple of its length.
    places.extend(sizes.iter().map(|size| (size.0, 2 * BLOCK.0)));
    let behind = [end_of_file_system(source)?, end_of_gpt(source)?];
    places.extend(behind.into_iter().flatten().map(|at| (at - at % SECTOR as u64, BEHIND)));
    let mut found: Vec<InBlock> = Vec::new();
    for (at, length) in places.into_iter().filter(|(at, _)| *at < end) {
        let mut bytes = vec![0; length.min(end - at) as usize];
        let read = source.read_at(at, &mut bytes)?;
        for (sector, bytes) in bytes[..read].chunks(SECTOR).enumerate() {
            let at = at + (sector * SECTOR) as u64;
            let marker = if bytes.starts_with(HEAD.as_bytes()) { Marker::parse(bytes) } else { None };
            let marker = marker.filter(|marker| (marker.size.0..marker.size.0 + BLOCK.0).contains(&at));
            found.extend(marker.map(|marker| InBlock { marker, at }).filter(|new| !found.contains(new)));
        }
    }
    Ok(found)
}

/// Returns the end of the backup table of a GPT, in bytes, from its header (UEFI specification, 5.3.2:
/// `AlternateLBA` at 32), for sectors of 512 and of 4096 bytes.
fn end_of_gpt(source: &dyn Source) -> io::Result<Option<u64>> {
    for sector in [512, 4096] {
        let mut header = [0; 40];
        let is_whole = source.read_at(sector, &mut header)? == header.len();
        if is_whole && header.starts_with(b"EFI PART") {
            let last = header.last_chunk::<8>().map_or(0, |lba| u64::from_le_bytes(*lba));
            return Ok(last.checked_add(1).and_then(|next| next.checked_mul(sector)));
        }
    }
    Ok(None)
}

/// A device as a source, read without the page cache, with its size at opening.
pub struct DeviceSource {
    blocks: u64,
    logical_block: u64,
    requests: RefCell<SerialRequests>,
}

impl DeviceSource {
    /// Opens a queue of `device` for all reads.
    ///
    /// # Errors
    /// Fails if the device cannot open a queue.
    pub fn open(device: &dyn Device) -> io::Result<Self> {
        let requests = SerialRequests::open(device).map_err(|error| failed(&error))?;
        let info = device.info();
        let (blocks, logical_block) = (info.blocks(), info.logical_block.0);
        Ok(Self { blocks, logical_block, requests: RefCell::new(requests) })
    }
}

/// Converts an error of a device.
fn failed(error: &plumb_block::Error) -> io::Error {
    io::Error::other(error.to_string())
}

impl Source for DeviceSource {
    fn size(&self) -> u64 {
        self.blocks * self.logical_block
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let (block, end) = (self.logical_block, self.size());
        let to = (at + into.len() as u64).min(end);
        if to <= at {
            return Ok(0);
        }
        let (first, last) = (at / block, to.div_ceil(block));
        let length = Bytes((last - first) * block);
        let buffer = Bytes(length.0.next_multiple_of(BLOCK.0));
        let shape = PoolShape { buffer, count: 1, alignment: BLOCK };
        let pool = Pool::new(shape).map_err(|error| failed(&error))?;
        let buffer = pool.take(length).ok_or(io::ErrorKind::OutOfMemory)?;
        let range = LbaRange::new(Lba(first), last - first);
        let read = self.requests.borrow_mut().carry_out(Request::read_into(Tag(0), range, buffer));
        let Payload::Into(bytes) = read.map_err(|error| failed(&error))? else { return Ok(0) };
        let (from, length) = ((at - first * block) as usize, (to - at) as usize);
        into[..length].copy_from_slice(&bytes[from..from + length]);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use plumb_cache::Uuid;

    use super::*;

    fn image(size: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; size];
        parts.iter().for_each(|(at, part)| bytes[*at..*at + part.len()].copy_from_slice(part));
        bytes
    }

    fn places(bytes: &[u8], sizes: &[Bytes]) -> Vec<u64> {
        find(&bytes, sizes).unwrap().iter().map(|found| found.at).collect()
    }

    #[test]
    fn a_marker_is_found_at_the_end_at_a_known_end_and_behind_what_the_device_begins_with() {
        const CACHED: usize = 1 << 20;
        let line = Marker::new(Uuid([1; 16]), Uuid([2; 16]), Bytes(CACHED as u64)).to_string();
        let line = line.as_bytes();
        let end = CACHED as u64;
        assert_eq!(places(&image(CACHED + 4096, &[(CACHED, line)]), &[]), [end], "the last block");
        let grown = image(4 * CACHED, &[(CACHED, line)]);
        assert_eq!(places(&grown, &[]), [0_u64; 0], "nothing says where the device ended");
        assert_eq!(places(&grown, &[Bytes(7 << 20), Bytes(end)]), [end]);
        // A device of 512-byte sectors whose size is not a multiple of the block.
        assert_eq!(places(&image(4 * CACHED, &[(CACHED + 512, line)]), &[Bytes(end)]), [end + 512]);
        // ext4 with 250 blocks of 4096 bytes.
        let ext: &[(usize, &[u8])] =
            &[(CACHED, line), (1024 + 0x38, &[0x53, 0xef]), (1024 + 4, &[250]), (1024 + 0x18, &[2])];
        assert_eq!(places(&image(4 * CACHED, ext), &[]), [end]);
        let last = (end / 512 - 1).to_le_bytes();
        let gpt: &[(usize, &[u8])] = &[(CACHED, line), (512, b"EFI PART"), (512 + 32, &last)];
        assert_eq!(places(&image(4 * CACHED, gpt), &[]), [end]);
        // A copy of a marker at a position other than its own.
        let elsewhere = image(4 * CACHED, &[(2 * CACHED, line)]);
        assert_eq!(places(&elsewhere, &[Bytes(2 * end)]), [0_u64; 0]);
    }
}
