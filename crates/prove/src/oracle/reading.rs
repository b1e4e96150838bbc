//! Output of a reader, and a store of outputs by moment.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::error::Result;

/// Output of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Exit status in words.
    pub(crate) status: String,
    /// SHA-256 of what it wrote to stdout, in which its own place is replaced.
    pub(crate) digest: Vec<u8>,
    /// The end of its output, for a report.
    pub(crate) words: String,
}

impl Reading {
    /// Returns true if the reader printed the same and ended in the same way.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.status, &self.digest) == (&other.status, &other.digest)
    }
}

/// Outputs at moments, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Readings(Mutex<HashMap<usize, Reading>>);

impl Readings {
    /// Returns the output at a moment, which `read` finds unless it is known.
    pub(super) fn at(&self, moment: usize, read: impl FnOnce() -> Result<Reading>) -> Result<Reading> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reading) = known.get(&moment) {
            return Ok(reading.clone());
        }
        let reading = read()?;
        known.insert(moment, reading.clone());
        Ok(reading)
    }
}
