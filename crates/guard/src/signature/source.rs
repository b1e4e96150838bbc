//! Bytes at an offset, from an open file or from memory.

use std::io;
use std::os::fd::BorrowedFd;

/// Source of bytes at offsets, read-only.
pub trait Source {
    /// Returns the length in bytes.
    fn size(&self) -> u64;

    /// Reads from offset `at`; returns fewer bytes than requested only at the end.
    ///
    /// # Errors
    /// Fails as pread(2).
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl Source for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

/// An open file or block device, read through the page cache.
pub struct FileSource<'a> {
    /// The descriptor, open for reading, without O_DIRECT.
    pub file: BorrowedFd<'a>,
    /// Length in bytes, given by the caller because stat(2) does not report that of a block device.
    pub size: u64,
}

impl Source for FileSource<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match rustix::io::pread(self.file, &mut into[done..], at + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(done)
    }
}

/// A source with both ends read in advance, one request each. They contain nearly all signatures; a slow disk
/// serves only a hundred requests per second.
pub(super) struct SourceEnds<'a> {
    source: &'a dyn Source,
    /// Offset and contents of each end. Empty if unreadable as a whole; each part is then read, and fails,
    /// alone.
    ends: [(u64, Vec<u8>); 2],
}

impl<'a> SourceEnds<'a> {
    /// Number of bytes read at each end: all signatures except distant copies. The last labels of ZFS begin
    /// at this distance from the end.
    const END: u64 = 768 << 10;

    /// Returns `source` with its ends read.
    pub(super) fn over(source: &'a dyn Source) -> Self {
        let end = |at: u64| {
            let mut bytes = vec![0; (source.size() - at).min(Self::END) as usize];
            let read = source.read_at(at, &mut bytes).unwrap_or(0);
            bytes.truncate(read);
            (at, bytes)
        };
        Self { source, ends: [end(0), end(source.size().saturating_sub(Self::END))] }
    }
}

impl Source for SourceEnds<'_> {
    fn size(&self) -> u64 {
        self.source.size()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let kept = self.ends.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(at.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(into.len())?)
        });
        match kept {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                Ok(bytes.len())
            }
            None => self.source.read_at(at, into),
        }
    }
}

/// Returns `N` bytes at `at`; `None` if they are not all within the source.
pub(super) fn bytes<const N: usize>(source: &dyn Source, at: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    Ok(if all(source, at, &mut bytes)? { Some(bytes) } else { None })
}

/// Fills `into` from offset `at`; returns false if the range is not all within the source.
pub(super) fn all(source: &dyn Source, at: u64, into: &mut [u8]) -> io::Result<bool> {
    if at.checked_add(into.len() as u64).is_none_or(|end| end > source.size() || end > i64::MAX as u64) {
        return Ok(false);
    }
    Ok(source.read_at(at, into)? == into.len())
}
