//! A cache whose backing device and log are parts of one drive: a proof records the drive as a whole, and
//! cuts its power once for both.

use std::str::FromStr;
use std::sync::Arc;

use plumb_block::{Bytes, Device, Lba, Nanos, Time};
use plumb_cache::driver::{self, CachedDevice, Members};
use plumb_cache::{DestageOptions, Layout, Mode, Options, Settings, Uuid};
use serde::{Deserialize, Serialize};

use crate::inline::word;
use crate::named::options_of;
use crate::part::Part;

/// Size of a segment: small, so that a short workload wraps around the log.
const SEGMENT: Bytes = Bytes::kib(256);
/// Thresholds for early destaging, so that a cut can fall between any two of its steps.
const DESTAGE: DestageOptions =
    DestageOptions { start: 0.02, age: Nanos::millis(20), idle: Nanos::millis(5), ..DestageOptions::DEFAULT };

/// Options of a cache on one drive. The backing device is at the start of the drive, the log at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheOnOneDrive {
    /// Length of the log.
    pub size: Bytes,
    /// Mode of the cache.
    pub mode: Mode,
}

impl Default for CacheOnOneDrive {
    fn default() -> Self {
        Self { size: Bytes::mib(8), mode: Mode::WriteBack }
    }
}

/// Error for text that is not a [`CacheOnOneDrive`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an option of a cache in a proof: expected size=SIZE or mode=MODE, such as \
     size=8M&mode=ordered"
)]
pub struct ParseCacheError(String);

/// Parses `size=8M&mode=ordered`, a part of it, or nothing.
impl FromStr for CacheOnOneDrive {
    type Err = ParseCacheError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut cache = Self::default();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let wrong = || ParseCacheError(part.to_owned());
            match part.split_once('=').ok_or_else(wrong)? {
                ("size", size) => cache.size = size.parse().map_err(|_| wrong())?,
                ("mode", mode) => cache.mode = word(mode).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        Ok(cache)
    }
}

impl CacheOnOneDrive {
    /// Returns the block at which the log begins.
    pub fn log_begins(self, drive: &dyn Device) -> Lba {
        let info = drive.info();
        Lba(info.size.0.saturating_sub(self.size.0) / info.logical_block.0)
    }

    /// Writes an empty log to a blank drive, and opens the cache.
    ///
    /// # Errors
    /// If the drive fails, or is too small for the log.
    pub fn create(self, drive: &Arc<dyn Device>, time: Time) -> plumb_block::Result<Arc<dyn Device>> {
        let (backing, log) = self.parts(drive);
        let settings = Settings {
            cache: Uuid([0; 16]),
            backing: Uuid([1; 16]),
            size: self.size,
            segment: SEGMENT,
            layout: Layout::Mirror,
        };
        driver::create(&settings, &[log], &backing.info())?;
        self.open(drive, time)
    }

    /// Recovers the log and serves. In virtual time the cache has no thread and no descriptor: polling its
    /// queues advances it.
    ///
    /// # Errors
    /// If the cache refuses the contents of the drive.
    pub fn open(self, drive: &Arc<dyn Device>, time: Time) -> plumb_block::Result<Arc<dyn Device>> {
        let (backing, log) = self.parts(drive);
        let options = Options { destage: DESTAGE, ..options_of(self.mode)? };
        let members = Members { legs: vec![Some(log)], backing };
        Ok(Arc::new(CachedDevice::open(options, members, time)?))
    }

    fn parts(self, drive: &Arc<dyn Device>) -> (Arc<dyn Device>, Arc<dyn Device>) {
        let first = self.log_begins(&**drive);
        let size = Bytes(first.0 * drive.info().logical_block.0);
        let backing = Part { device: Arc::clone(drive), first: Lba(0), size };
        let log = Part { device: Arc::clone(drive), first, size: self.size };
        (Arc::new(backing), Arc::new(log))
    }
}
