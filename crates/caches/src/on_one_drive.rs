//! A cache whose backing device and log are parts of one drive: what a proof records, and cuts the power of,
//! all at once.

use std::str::FromStr;
use std::sync::Arc;

use plumb_block::{Bytes, Device, Lba, Nanos, Time};
use plumb_cache::driver::{self, CachedDevice, Members};
use plumb_cache::{DestageOptions, Layout, Mode, Options, Settings, Uuid};
use serde::{Deserialize, Serialize};

use crate::inline::word;
use crate::named::options_of;
use crate::part::Part;

/// Small segments, so that a short work goes round the log.
const SEGMENT: Bytes = Bytes::kib(256);
/// A short work shall be written back while it goes on: a cut then falls between any two steps of that.
const DESTAGE: DestageOptions =
    DestageOptions { start: 0.02, age: Nanos::millis(20), idle: Nanos::millis(5), ..DestageOptions::DEFAULT };

/// The backing device comes first on the drive, the log last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheOnOneDrive {
    /// The length of the log.
    pub size: Bytes,
    /// When a write is acknowledged.
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

/// `size=8M&mode=ordered`, or nothing.
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

    /// Writes an empty log on a blank drive, and opens the cache.
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

    /// Recovers the log, and serves. In virtual time no thread and no descriptor belongs to the cache:
    /// whoever polls moves it on.
    ///
    /// # Errors
    /// The sentence of the cache, if it refuses what is on the drive.
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
