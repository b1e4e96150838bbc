//! A test file that grows: what a database's log does. Each append changes the file's size, so making it durable
//! takes metadata too.

use std::os::fd::AsFd as _;
use std::path::Path;

use plumb_block::{Bytes, Error, ErrorKind, Result};

use crate::test_file::TestFile;

/// A file that is appended to and synced. Removed on drop.
///
/// Invariant: after a failed sync every later one fails, because the kernel has forgotten which pages were lost.
pub struct AppendFile {
    file: TestFile,
    length: u64,
    latched: bool,
}

impl AppendFile {
    /// An empty file in `directory`.
    ///
    /// # Errors
    /// As [`TestFile::create_empty`].
    pub fn create(directory: &Path) -> Result<Self> {
        Ok(Self { file: TestFile::create_empty(directory)?, length: 0, latched: false })
    }

    /// How long it is.
    pub fn length(&self) -> Bytes {
        Bytes(self.length)
    }

    /// Writes all of `bytes` at the end. Visible when it returns.
    ///
    /// # Errors
    /// As pwrite(2).
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::io::pwrite(self.file.as_fd(), rest, self.length) {
                Ok(0) => return Err(self.failed(rustix::io::Errno::NOSPC, "append to")),
                Ok(written) => {
                    rest = &rest[written..];
                    self.length += written as u64;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(self.failed(errno, "append to")),
            }
        }
        Ok(())
    }

    /// Makes what was appended durable, with the size that says where it ends.
    ///
    /// # Errors
    /// [`FlushLatched`](ErrorKind::FlushLatched) if it fails, whatever the number, and ever after: what was appended
    /// since the last good sync cannot be trusted.
    pub fn fdatasync(&mut self) -> Result<()> {
        if self.latched {
            return Err(Error::new(ErrorKind::FlushLatched, "sync", self.file.place()));
        }
        rustix::fs::fdatasync(self.file.as_fd()).map_err(|errno| {
            self.latched = true;
            Error::new(ErrorKind::FlushLatched, "sync", self.file.place())
                .because(format!("{errno}; nothing written since the last good sync can be trusted"))
        })
    }

    /// Makes it empty again, so that it does not fill the disk. Nothing is durable.
    ///
    /// # Errors
    /// As ftruncate(2).
    pub fn restart(&mut self) -> Result<()> {
        rustix::fs::ftruncate(self.file.as_fd(), 0).map_err(|errno| self.failed(errno, "empty"))?;
        self.length = 0;
        Ok(())
    }

    fn failed(&self, errno: rustix::io::Errno, operation: &'static str) -> Error {
        Error::io(&errno.into(), operation, self.file.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_and_starts_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = AppendFile::create(directory.path()).unwrap();
        file.append(&[1; 4096]).unwrap();
        file.append(&[2; 512]).unwrap();
        file.fdatasync().unwrap();
        assert_eq!(file.length(), Bytes(4608));
        file.restart().unwrap();
        assert_eq!(file.length(), Bytes(0));
        drop(file);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
