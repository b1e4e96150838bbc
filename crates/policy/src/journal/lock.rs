//! Lock that permits only one apply, resume or rollback at a time.

use std::path::Path;

use plumb_state::LockedRecord;
use plumb_state::whole_file;

use super::error::JournalError;
use super::store::make_root;

/// The lock of a directory of journals, held while policies are changed.
#[derive(Debug)]
pub struct Lock {
    _record: LockedRecord,
}

impl Lock {
    /// Takes the lock of `root`, the directory of all journals.
    ///
    /// # Errors
    /// [`JournalError::Busy`] if another process holds it.
    pub fn take(root: &Path) -> Result<Self, JournalError> {
        make_root(root)?;
        let path = root.join("lock");
        let Some(record) = LockedRecord::hold(&path)? else {
            let holder = whole_file::read(&path)?.unwrap_or_default();
            let holder = String::from_utf8_lossy(&holder).trim().to_owned();
            return Err(JournalError::Busy { path, holder });
        };
        record.rewrite(format!("{}\n", std::process::id()).as_bytes())?;
        Ok(Self { _record: record })
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
