//! An open file of a store, and the record of failed syncs.

use std::collections::HashMap;
use std::io::IoSlice;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Error, ErrorKind, Result};
use rustix::io::{Errno, ReadWriteFlags};

use crate::sync_file_range;

/// Device and inode number of a file.
type Identity = (u64, u64);

/// Files whose sync failed, with the error number. Kept as long as the store lives.
#[derive(Default)]
pub(super) struct FailedSyncs {
    files: Mutex<HashMap<Identity, Errno>>,
    whole: Mutex<Option<Errno>>,
}

impl FailedSyncs {
    /// Runs a sync of one file, unless an earlier one failed; a failure is recorded.
    fn guard(&self, file: Identity, sync: impl FnOnce() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
        if let Some(errno) = lock(&self.files).get(&file) {
            return Err(*errno);
        }
        let synced = sync();
        if let Err(errno) = synced {
            self.keep(file, errno);
        }
        synced
    }

    fn keep(&self, file: Identity, errno: Errno) {
        lock(&self.files).entry(file).or_insert(errno);
    }

    /// Runs a sync of the whole file system; after a failure all later syncs fail.
    pub(super) fn guard_all(&self, sync: impl FnOnce() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
        if let Some(errno) = *lock(&self.whole) {
            return Err(errno);
        }
        let synced = sync();
        if let Err(errno) = synced {
            lock(&self.whole).get_or_insert(errno);
        }
        synced
    }
}

pub(super) struct OpenFile {
    file: OwnedFd,
    place: String,
    is_dsync: bool,
    identity: Identity,
    failed: Arc<FailedSyncs>,
    /// Held during an append, so that the file position after it is that of this append.
    append: Mutex<()>,
}

impl OpenFile {
    pub(super) fn new(
        file: OwnedFd,
        place: String,
        is_dsync: bool,
        failed: Arc<FailedSyncs>,
    ) -> Result<Self> {
        let stat =
            rustix::fs::fstat(&file).map_err(|errno| Error::io(&errno.into(), "look at", place.as_str()))?;
        let identity = (stat.st_dev, stat.st_ino);
        Ok(Self { file, place, is_dsync, identity, failed, append: Mutex::new(()) })
    }

    fn error(&self, errno: Errno, operation: &'static str) -> Error {
        Error::io(&errno.into(), operation, self.place.as_str())
    }

    fn error_at(&self, errno: Errno, operation: &'static str, offset: u64) -> Error {
        Error::io(&errno.into(), operation, format!("{} at byte {offset}", self.place))
    }

    pub(super) fn read_at(&self, offset: Bytes, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            let at = offset.0.saturating_add(done as u64);
            match rustix::io::pread(&self.file, &mut into[done..], at) {
                Ok(0) => {
                    let place = format!("{} at byte {at}", self.place);
                    return Err(
                        Error::new(ErrorKind::Invalid, "read", place).because("the file ends before that")
                    );
                }
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error_at(errno, "read", at)),
            }
        }
        Ok(())
    }

    pub(super) fn write_at(&self, offset: Bytes, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset.0.saturating_add(done as u64);
            match rustix::io::pwrite(&self.file, &bytes[done..], at) {
                Ok(0) => return Err(self.error_at(Errno::IO, "write", at)),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    self.keep_failed_write(errno);
                    return Err(self.error_at(errno, "write", at));
                }
            }
        }
        Ok(())
    }

    /// Records a failed write to a file opened with O_DSYNC, which may have failed in its sync.
    fn keep_failed_write(&self, errno: Errno) {
        if self.is_dsync && errno != Errno::INVAL {
            self.failed.keep(self.identity, errno);
        }
    }

    /// Appends `bytes` and returns their offset. The kernel chooses the offset (RWF_APPEND), so appends
    /// through several opens of one file do not overwrite each other. An append that the kernel cuts short,
    /// as on a full disk, fails, and the written part stays.
    pub(super) fn append(&self, bytes: &[u8]) -> Result<Bytes> {
        let _alone = lock(&self.append);
        let mut start = None;
        let mut done = 0;
        while done < bytes.len() {
            // u64::MAX: use and move the file position, which afterwards is the end of the appended bytes.
            let written = match rustix::io::pwritev2(
                &self.file,
                &[IoSlice::new(&bytes[done..])],
                u64::MAX,
                ReadWriteFlags::APPEND,
            ) {
                Ok(0) => return Err(self.error(Errno::IO, "append to")),
                Ok(written) => written,
                Err(Errno::INTR) => continue,
                Err(errno) => {
                    self.keep_failed_write(errno);
                    return Err(self.error(errno, "append to"));
                }
            };
            let end = rustix::fs::tell(&self.file).map_err(|errno| self.error(errno, "append to"))?;
            let at = end.saturating_sub(written as u64);
            let first = *start.get_or_insert(at);
            if at != first + done as u64 {
                return Err(self.error(Errno::IO, "append to").because("another append came in between"));
            }
            done += written;
        }
        match start {
            Some(start) => Ok(Bytes(start)),
            None => rustix::fs::fstat(&self.file)
                .map(|stat| Bytes(stat.st_size.cast_unsigned()))
                .map_err(|errno| self.error(errno, "append to")),
        }
    }

    pub(super) fn truncate(&self, size: Bytes) -> Result<()> {
        rustix::fs::ftruncate(&self.file, size.0).map_err(|errno| self.error(errno, "truncate"))
    }

    pub(super) fn fsync(&self) -> Result<()> {
        self.failed
            .guard(self.identity, || rustix::fs::fsync(&self.file))
            .map_err(|errno| self.error(errno, "fsync"))
    }

    pub(super) fn fdatasync(&self) -> Result<()> {
        self.failed
            .guard(self.identity, || rustix::fs::fdatasync(&self.file))
            .map_err(|errno| self.error(errno, "fdatasync"))
    }

    /// Like fsync, this consumes a write-back failure (fs/sync.c), so it is recorded in the same way.
    pub(super) fn sync_file_range(&self, offset: Bytes, length: Bytes) -> Result<()> {
        self.failed
            .guard(self.identity, || sync_file_range::write_back(self.file.as_fd(), offset, length))
            .map_err(|errno| self.error(errno, "sync_file_range"))
    }
}

/// Locks a mutex. A panic elsewhere cannot leave its value half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_sync_is_never_followed_by_a_good_one() {
        let failed = FailedSyncs::default();
        assert_eq!(failed.guard((1, 2), || Ok(())), Ok(()));
        assert_eq!(failed.guard((1, 2), || Err(Errno::IO)), Err(Errno::IO));
        assert_eq!(
            failed.guard((1, 2), || Ok(())),
            Err(Errno::IO),
            "the kernel has forgotten, the store has not"
        );
        assert_eq!(failed.guard((1, 3), || Ok(())), Ok(()), "another file");
        assert_eq!(failed.guard_all(|| Err(Errno::NOSPC)), Err(Errno::NOSPC));
        assert_eq!(failed.guard_all(|| Ok(())), Err(Errno::NOSPC));
    }
}
