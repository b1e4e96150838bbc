//! Storage side of a target around a window: the counters below it and how they count flushes, or the reason
//! why there are none.
//!
//! A failed reading is kept as its reason, so that a window has either figures or an explanation.

use std::sync::Arc;

use plumb_block::{StorageCounters, StorageSnapshot};

use crate::result::{FlushWrites, StorageSide};
use crate::storage::{self, CountsOfWrites, WriteSizes};

/// Counters at one moment, or the reason why they are unknown.
pub type Reading = Result<StorageSnapshot, String>;

/// Counters of the devices below a target.
#[derive(Clone)]
pub struct StorageWatch {
    counters: Result<Arc<dyn StorageCounters>, String>,
    writes: CountsOfWrites,
}

impl StorageWatch {
    /// Creates a watch over the devices with these names; `open` opens their counters.
    pub fn over(devices: Vec<String>, open: impl FnOnce(Vec<String>) -> Arc<dyn StorageCounters>) -> Self {
        if devices.is_empty() {
            return Self::unknown("no block device of this machine is beneath the target");
        }
        Self { counters: Ok(open(devices)), writes: FlushWrites::Unknown.into() }
    }

    /// Creates a watch over the counters of the target itself, which do not count flushes as writes.
    pub fn new(counters: Arc<dyn StorageCounters>) -> Self {
        Self { counters: Ok(counters), writes: FlushWrites::NotCounted.into() }
    }

    /// Creates a watch without counters, for this reason.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { counters: Err(reason.into()), writes: FlushWrites::Unknown.into() }
    }

    /// Reads the counters.
    ///
    /// # Errors
    /// The reason, if they are unknown.
    pub fn read(&self) -> Reading {
        match &self.counters {
            Ok(counters) => counters.read().map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        }
    }

    /// Calibrates the counting of flushes from two readings with `flushes` empty ones in between; `None` if
    /// inconclusive.
    pub fn how_flushes_count(&self, before: &Reading, after: &Reading, flushes: u64) -> Option<FlushWrites> {
        let (Ok(before), Ok(after)) = (before, after) else { return None };
        let found = storage::calibrate(before, after, flushes).ok()?;
        Some(found).filter(|found| *found != FlushWrites::Unknown)
    }

    /// Sets how flushes are counted from now on.
    pub fn set_flush_writes(&mut self, found: FlushWrites) {
        self.writes.flush_writes = found;
    }

    /// Sets the sizes of all writes to the devices.
    pub fn set_write_sizes(&mut self, sizes: WriteSizes) {
        self.writes.sizes = Some(sizes);
    }

    /// Returns the storage side between two readings.
    ///
    /// # Errors
    /// The reason, if it is unknown.
    pub fn between(&self, before: Reading, after: Reading) -> Result<StorageSide, String> {
        storage::storage_side(&before?, &after?, self.writes).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use plumb_block::{DeviceCounters, Nanos};

    use super::*;

    /// Counters that advance by one second and one flush with each reading; the flush counts as a write, too.
    struct Flushing(AtomicU64);

    impl StorageCounters for Flushing {
        fn read(&self) -> plumb_block::Result<StorageSnapshot> {
            let flushes = self.0.fetch_add(1, Ordering::Relaxed);
            let device = DeviceCounters {
                name: "vda".into(),
                flushes: Some(flushes),
                writes: flushes,
                ..DeviceCounters::default()
            };
            Ok(StorageSnapshot { at: Nanos::secs(flushes), devices: vec![device] })
        }
    }

    #[test]
    fn empty_flushes_are_no_writes_once_that_is_learnt() {
        let mut watch = StorageWatch::over(vec!["vda".into()], |_| Arc::new(Flushing(AtomicU64::new(0))));
        let (first, second) = (watch.read(), watch.read());
        assert_eq!(watch.between(first.clone(), second.clone()).unwrap().writes, 1);
        let found = watch.how_flushes_count(&first, &second, 1).unwrap();
        watch.set_flush_writes(found);
        assert_eq!(watch.between(first, second).unwrap().writes, 0);
    }

    #[test]
    fn what_is_not_known_has_its_reason() {
        let nothing = StorageWatch::over(Vec::new(), |_| Arc::new(Flushing(AtomicU64::new(0))));
        let reason = nothing.read().unwrap_err();
        assert!(reason.contains("no block device"), "{reason}");
        assert_eq!(nothing.between(nothing.read(), nothing.read()).unwrap_err(), reason);
        assert_eq!(StorageWatch::unknown("it is far").read().unwrap_err(), "it is far");
    }
}
