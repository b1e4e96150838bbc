//! One apply, resume or rollback at a time.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::JournalError;
use super::store::make_root;
use crate::file::failed;

/// Held while policies are changed. The kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of `root`, the directory of all journals.
    ///
    /// # Errors
    /// [`JournalError::Busy`] if another process holds it.
    pub fn take(root: &Path) -> Result<Self, JournalError> {
        make_root(root)?;
        let path = root.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(failed("read", &path))?;
                return Err(JournalError::Busy { path, holder: holder.trim().to_owned() });
            }
            Err(errno) => return Err(failed("lock", &path)(errno.into()).into()),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed("write", &path))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_told_who_holds_it() {
        let root = tempfile::tempdir().unwrap();
        let held = Lock::take(root.path()).unwrap();
        let refused = Lock::take(root.path()).unwrap_err();
        let JournalError::Busy { holder, .. } = &refused else { panic!("{refused}") };
        assert_eq!(*holder, std::process::id().to_string());
        drop(held);
        Lock::take(root.path()).unwrap();
    }
}
