//! Output of a reader, and a store of outputs by moment.

use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// Output of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) status: ExitStatus,
    /// SHA-256 of the stdout of the reader, in which the path of the tree is replaced.
    pub(crate) digest: Vec<u8>,
    /// End of the output, for a report.
    pub(crate) words: String,
}

impl Reading {
    /// Returns true if both readers printed the same and ended in the same way.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.status, &self.digest) == (other.status, &other.digest)
    }
}

/// Known outputs by moment.
#[derive(Debug, Default)]
pub(super) struct Readings {
    by_moment: Mutex<HashMap<usize, Reading>>,
    is_reliable: AtomicBool,
}

impl Readings {
    /// Checks once that the reader can distinguish states: `read`, which runs it on the files as the program
    /// left them, succeeds and gives the same output twice.
    ///
    /// # Errors
    /// The errors of `read`, and a sentence about a reader that fails or changes its output.
    pub(super) fn check(&self, read: impl Fn() -> Result<Reading>) -> Result<()> {
        if self.is_reliable.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (first, second) = (read()?, read()?);
        if !first.status.success() {
            let (status, words) = (first.status, first.words);
            let what = format!(
                "the command of --read ends with {status} on the files that the program left: {words}"
            );
            return Err(Error::missing(what, "name a command that reads them, and ends with 0 where it can"));
        }
        if !first.is_same(&second) {
            let what = "the reader of --read prints different output for the same files";
            return Err(Error::missing(
                what,
                "let it print nothing that changes by itself, such as the time",
            ));
        }
        self.is_reliable.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the output at a moment, from `read` unless it is known.
    pub(super) fn at(&self, moment: usize, read: impl FnOnce() -> Result<Reading>) -> Result<Reading> {
        let mut known = self.by_moment.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reading) = known.get(&moment) {
            return Ok(reading.clone());
        }
        let reading = read()?;
        known.insert(moment, reading.clone());
        Ok(reading)
    }
}
