//! How a backing device says which cache it needs: one line of text, in an extended attribute of a file or in the last block of a
//! device.
//!
//! ```text
//! plumb-cache 1 CACHE-UUID BACKING-UUID SESSION SIZE\n
//! ```
//!
//! SESSION is the number of the last session: one begins when the cache is opened, and when a device of the log is lost. A log whose own number is lower is an old copy. SIZE is
//! that of the cached device in bytes. The line is shorter than a sector, so that a power cut leaves the old one or the new one.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use plumb_block::{Bytes, Device, Lba, LbaRange, Payload, Pool, PoolShape, Request, Tag};
use plumb_cache::Uuid;
use plumb_cache::driver::carry_out;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

/// The extended attribute.
const ATTRIBUTE: &str = "user.plumb.cache";
/// What the last block begins with; the guard knows it as a signature.
const HEAD: &str = "plumb-cache 1 ";
/// The length of the last block.
pub(super) const BLOCK: Bytes = Bytes::kib(4);

/// What the backing device says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) cache: Uuid,
    pub(super) backing: Uuid,
    pub(super) session: u64,
    pub(super) size: Bytes,
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}{} {} {} {}", self.cache, self.backing, self.session, self.size.0)
    }
}

impl Marker {
    /// What bytes say: `None` if they are no marker.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let line = bytes.split(|byte| *byte == b'\n').next().and_then(|line| str::from_utf8(line).ok())?;
        let mut words = line.strip_prefix(HEAD)?.split(' ');
        let marker = Self {
            cache: words.next()?.parse().ok()?,
            backing: words.next()?.parse().ok()?,
            session: words.next()?.parse().ok()?,
            size: Bytes(words.next()?.parse().ok()?),
        };
        words.next().is_none().then_some(marker)
    }

    /// What the attribute of a file says. `Err` where its file system has no attributes.
    pub(super) fn of_file(file: BorrowedFd<'_>) -> Result<Option<Self>, Errno> {
        let mut line = [0; 256];
        match rustix::fs::fgetxattr(file, ATTRIBUTE, &mut line) {
            Ok(length) => Ok(Self::parse(&line[..length])),
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Makes this the attribute of a file, durably; `None` takes it away.
    pub(super) fn set_on_file(marker: Option<&Self>, file: impl AsFd) -> io::Result<()> {
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

    /// What the last block of a device holds.
    pub(super) fn of_device(device: &dyn Device) -> plumb_block::Result<InLastBlock> {
        let (range, pool) = last_block(device)?;
        let Some(buffer) = pool.take(BLOCK) else { return Ok(InLastBlock::Other) };
        let read = carry_out(device, [Request::read_into(Tag(0), range, buffer)])?;
        Ok(match read.first() {
            Some(Payload::Into(bytes)) if bytes.iter().all(|byte| *byte == 0) => InLastBlock::Nothing,
            Some(Payload::Into(bytes)) => Self::parse(bytes).map_or(InLastBlock::Other, InLastBlock::Marker),
            _ => InLastBlock::Other,
        })
    }

    /// Writes this into the last block of a device, durably; `None` leaves zeroes there.
    pub(super) fn set_on_device(marker: Option<&Self>, device: &dyn Device) -> plumb_block::Result<()> {
        let (range, pool) = last_block(device)?;
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

/// Has a file say no more that it needs a cache, durably.
pub(crate) fn forget_marker(file: impl AsFd) -> io::Result<()> {
    if has_marker(file.as_fd()) { Marker::set_on_file(None, file) } else { Ok(()) }
}

/// Whether the attribute of a file says that it needs a cache.
pub(crate) fn has_marker(file: BorrowedFd<'_>) -> bool {
    matches!(Marker::of_file(file), Ok(Some(_)))
}

/// What the last block of a device holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InLastBlock {
    /// Zeroes.
    Nothing,
    /// A marker.
    Marker(Marker),
    /// Something else.
    Other,
}

fn last_block(device: &dyn Device) -> plumb_block::Result<(LbaRange, Pool)> {
    let info = device.info();
    let nlb = BLOCK.0 / info.logical_block.0;
    let pool = Pool::new(PoolShape { buffer: BLOCK, count: 1, alignment: BLOCK })?;
    Ok((LbaRange::new(Lba(info.blocks().saturating_sub(nlb)), nlb), pool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_reads_back_and_nothing_else_is_one() {
        let marker = Marker { cache: Uuid([1; 16]), backing: Uuid([2; 16]), session: 7, size: Bytes(4096) };
        let line = marker.to_string();
        let mut block = line.clone().into_bytes();
        block.resize(4096, 0);
        assert_eq!(Marker::parse(&block), Some(marker));
        for cut in 0..line.len() - 1 {
            let parsed = Marker::parse(&line.as_bytes()[..cut]);
            assert!(parsed.is_none_or(|parsed| parsed.size != marker.size), "{cut}");
        }
        for other in ["", "plumb-cache 2 x", "plumb-cache 1 x y 1 2", &line.replace(" 7 ", " -7 ")] {
            assert_eq!(Marker::parse(other.as_bytes()), None, "{other}");
        }
    }
}
