//! Marker on a backing device that names its cache: one line of text, in an extended attribute of a file or
//! in a block behind the cached part of a device.
//!
//! ```text
//! plumb-cache 2 CACHE-UUID BACKING-UUID SESSION SIZE TAIL DURABLE WITNESSES\n
//! plumb-cache 3 CACHE-UUID BACKING-UUID SESSION SIZE TAIL DURABLE WITNESSES\n    of a sealed log
//! plumb-cache 1 CACHE-UUID BACKING-UUID SESSION SIZE\n                          as plumb wrote it before
//! ```
//!
//! SESSION is the number of the last session; one begins when the cache is opened, and when a log device is
//! lost. SIZE is that of the cached device in bytes. TAIL and DURABLE are sequence numbers of records
//! ([`Mark`]). WITNESSES has 8 hexadecimal digits for each witness, a block whose contents the mark states:
//! its CRC-32C; 8 dashes for a witness without a statement; 8 dots for one that was discarded and may change
//! by itself. The line is shorter than a sector, so a power cut leaves the old or the new one. A line of
//! version 1 states nothing of the log or the contents, and is replaced at the next opening. Version 3 means
//! that the log is sealed ([`Mark::is_sealed`]); versions of plumb that do not know it refuse the device.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use plumb_block::{Bytes, Device, Lba, LbaRange, Payload, Pool, PoolShape, Request, Tag};
use plumb_cache::driver::carry_out;
use plumb_cache::{Mark, Uuid, WITNESSES_MAX};
use rustix::fs::XattrFlags;
use rustix::io::Errno;

const ATTRIBUTE: &str = "user.plumb.cache";
/// Beginning of the line, also its signature.
pub(crate) const HEAD: &str = "plumb-cache ";
/// Length of the block that contains a marker.
pub const BLOCK: Bytes = Bytes::kib(4);
/// Length of a sector in bytes; a marker is not longer.
pub(crate) const SECTOR: usize = 512;

/// Placeholder for a witness without a statement.
const SILENT: &str = "--------";
const DISCARDED: &str = "........";

/// CRC-32C of each witness; `None` without a statement.
pub type Contents = [Option<u32>; WITNESSES_MAX];

/// Contents of the marker on the backing device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Identity of the cache.
    pub cache: Uuid,
    /// Identity of the backing device within the cache.
    pub backing: Uuid,
    /// Size of the cached device.
    pub size: Bytes,
    /// State of the log when the marker was written.
    pub mark: Mark,
    /// Checksums of the witnesses on the backing device at that time.
    pub contents: Contents,
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache, backing, size, mark: Mark { session, tail, durable, is_sealed, .. }, contents } =
            self;
        let version = if *is_sealed { 3 } else { 2 };
        write!(f, "{HEAD}{version} {cache} {backing} {session} {} {tail} {durable} ", size.0)?;
        for (index, content) in contents.iter().enumerate() {
            match content {
                Some(crc) => write!(f, "{crc:08x}")?,
                None if self.mark.discarded & 1 << index != 0 => f.write_str(DISCARDED)?,
                None => f.write_str(SILENT)?,
            }
        }
        f.write_str("\n")
    }
}

impl Marker {
    /// Creates the marker of a cache that has never been served.
    pub const fn new(cache: Uuid, backing: Uuid, size: Bytes) -> Self {
        let mark = Mark { session: 0, tail: 0, durable: 0, witnesses: 0, discarded: 0, is_sealed: false };
        Self { cache, backing, size, mark, contents: [None; WITNESSES_MAX] }
    }

    /// Parses the marker at the start of `bytes`; `None` if there is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let line = bytes.split(|byte| *byte == b'\n').next().and_then(|line| str::from_utf8(line).ok())?;
        let mut words = line.strip_prefix(HEAD)?.split(' ');
        let version = words.next()?;
        let (cache, backing) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let session = words.next()?.parse().ok()?;
        let mut marker = Self::new(cache, backing, Bytes(words.next()?.parse().ok()?));
        marker.mark.session = session;
        marker.mark.is_sealed = version == "3";
        if version != "1" {
            (marker.mark.tail, marker.mark.durable) =
                (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let (contents, discarded) = contents(words.next()?)?;
            marker.state(contents);
            marker.mark.discarded = discarded;
        }
        (matches!(version, "1" | "2" | "3") && words.next().is_none()).then_some(marker)
    }

    /// Sets the stated contents of the witnesses.
    pub fn state(&mut self, contents: Contents) {
        let bits = contents.iter().enumerate().filter(|(_, content)| content.is_some());
        (self.contents, self.mark.witnesses) = (contents, bits.fold(0, |bits, (index, _)| bits | 1 << index));
    }

    /// Reads the marker from the attribute of a file.
    ///
    /// # Errors
    /// Fails as fgetxattr(2), with EOPNOTSUPP if the file system has no attributes.
    pub fn of_file(file: BorrowedFd<'_>) -> Result<Option<Self>, Errno> {
        let mut line = [0; SECTOR];
        match rustix::fs::fgetxattr(file, ATTRIBUTE, &mut line) {
            Ok(length) => Ok(Self::parse(&line[..length])),
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Writes the marker to the attribute of a file, durably; `None` removes it.
    ///
    /// # Errors
    /// Fails as fsetxattr(2), fremovexattr(2) and fsync(2).
    pub fn set_on_file(marker: Option<&Self>, file: impl AsFd) -> io::Result<()> {
        match marker {
            Some(marker) => {
                let line = marker.to_string();
                rustix::fs::fsetxattr(&file, ATTRIBUTE, line.as_bytes(), XattrFlags::empty())?;
            }
            None => match rustix::fs::fremovexattr(&file, ATTRIBUTE) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(errno.into()),
            },
        }
        Ok(rustix::fs::fsync(&file)?)
    }

    /// Classifies the last block of a device.
    ///
    /// # Errors
    /// Fails if there is no memory, or the block cannot be read.
    pub fn of_device(device: &dyn Device) -> plumb_block::Result<InLastBlock> {
        let (range, pool) = block_at(device, last_block(device))?;
        let Some(buffer) = pool.take(BLOCK) else { return Ok(InLastBlock::Other) };
        let read = carry_out(device, [Request::read_into(Tag(0), range, buffer)])?;
        Ok(match read.first() {
            Some(Payload::Into(bytes)) if bytes.iter().all(|byte| *byte == 0) => InLastBlock::Nothing,
            Some(Payload::Into(bytes)) => {
                Self::parse(bytes).map_or(InLastBlock::Other, |_| InLastBlock::Marker)
            }
            _ => InLastBlock::Other,
        })
    }

    /// Writes the marker to the block at byte `at` of a device, durably; `None` writes zeroes.
    ///
    /// # Errors
    /// Fails if there is no memory, or the block cannot be written durably.
    pub fn set_on_device(marker: Option<&Self>, device: &dyn Device, at: u64) -> plumb_block::Result<()> {
        let (range, pool) = block_at(device, at)?;
        let Some(mut buffer) = pool.take(BLOCK) else { return Ok(()) };
        buffer.fill(0);
        if let Some(marker) = marker {
            let line = marker.to_string();
            buffer[..line.len()].copy_from_slice(line.as_bytes());
        }
        let write = Request::write(Tag(0), range, Payload::Bytes(buffer.freeze()));
        carry_out(device, [write, Request::flush(Tag(1))]).map(drop)
    }
}

/// Parses the stated contents of the witnesses, and the bit mask of discarded ones.
fn contents(text: &str) -> Option<(Contents, u32)> {
    let (mut contents, mut discarded) = ([None; WITNESSES_MAX], 0);
    let is_whole = text.len() == 8 * WITNESSES_MAX && text.is_ascii();
    for (index, content) in contents.iter_mut().enumerate().filter(|_| is_whole) {
        let word = &text[8 * index..8 * index + 8];
        discarded |= u32::from(word == DISCARDED) << index;
        let is_silent = word == SILENT || word == DISCARDED;
        *content = if is_silent { None } else { Some(u32::from_str_radix(word, 16).ok()?) };
    }
    is_whole.then_some((contents, discarded))
}

/// Removes the marker from the attribute of a file, durably.
pub(crate) fn forget_marker(file: impl AsFd) -> io::Result<()> {
    if has_marker(file.as_fd()) { Marker::set_on_file(None, file) } else { Ok(()) }
}

/// Returns true if a file has the marker attribute, in any version.
pub fn has_marker(file: BorrowedFd<'_>) -> bool {
    // An empty buffer queries the length only.
    rustix::fs::fgetxattr(file, ATTRIBUTE, &mut [] as &mut [u8]).is_ok()
}

/// Contents of the last block of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InLastBlock {
    /// Zeroes.
    Nothing,
    /// A marker.
    Marker,
    /// Other contents.
    Other,
}

/// Returns the offset in bytes of the last block of a device.
pub fn last_block(device: &dyn Device) -> u64 {
    let info = device.info();
    (info.blocks() * info.logical_block.0).saturating_sub(BLOCK.0)
}

/// Returns the block of a marker at byte `at`, and a buffer pool for it.
fn block_at(device: &dyn Device, at: u64) -> plumb_block::Result<(LbaRange, Pool)> {
    let block = device.info().logical_block.0;
    let pool = Pool::new(PoolShape { buffer: BLOCK, count: 1, alignment: BLOCK })?;
    Ok((LbaRange::new(Lba(at / block), BLOCK.0 / block), pool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_reads_back_and_nothing_else_is_one() {
        let mut marker = Marker::new(Uuid([1; 16]), Uuid([2; 16]), Bytes(u64::MAX));
        marker.mark = Mark {
            session: u64::MAX,
            tail: u64::MAX,
            durable: u64::MAX,
            discarded: 1 << 3,
            ..Mark::default()
        };
        let mut contents = [None; WITNESSES_MAX];
        (contents[0], contents[7], contents[WITNESSES_MAX - 1]) = (Some(0), Some(0xabcd), Some(u32::MAX));
        marker.state(contents);
        assert_eq!(marker.mark.witnesses, 1 | 1 << 7 | 1 << (WITNESSES_MAX - 1));
        let line = marker.to_string();
        assert!(line.len() <= SECTOR, "{} bytes do not fit into a sector", line.len());
        let mut block = line.clone().into_bytes();
        block.resize(4096, 0);
        assert_eq!(Marker::parse(&block), Some(marker));
        for cut in 0..line.len() - 1 {
            assert_eq!(Marker::parse(&line.as_bytes()[..cut]), None, "{cut}");
        }
        let one = "plumb-cache 1 01010101-0101-0101-0101-010101010101 02020202-0202-0202-0202-020202020202 7 4096\n";
        let parsed = Marker::parse(one.as_bytes()).expect("the version before is read");
        assert_eq!((parsed.mark, parsed.size), (Mark { session: 7, ..Mark::default() }, Bytes(4096)));
        marker.mark.is_sealed = true;
        assert_eq!(Marker::parse(marker.to_string().as_bytes()), Some(marker), "of a sealed log");
        for other in ["", "plumb-cache 4 x", "plumb-cache 1 x y 1 2", &one.replace(" 7 ", " -7 ")] {
            assert_eq!(Marker::parse(other.as_bytes()), None, "{other}");
        }
    }
}
