//! The storage's side of a target, read around a window: the counters beneath it and how they count flushes,
//! or the reason why there is none.
//!
//! A reading that failed is kept as its reason, so that a window has a figure or says why not.

use std::sync::Arc;

use plumb_block::{StorageCounters, StorageSnapshot};

use crate::result::{FlushWrites, StorageSide};
use crate::storage::{self, CountsOfWrites, WriteSizes};

/// The counters at one moment, or why they are not known.
pub type Reading = Result<StorageSnapshot, String>;

/// The counters of the devices beneath a target.
#[derive(Clone)]
pub struct StorageWatch {
    counters: Result<Arc<dyn StorageCounters>, String>,
    writes: CountsOfWrites,
}

impl StorageWatch {
    /// Creates a watch over the devices of these names, which `open` finds the counters of.
    pub fn over(devices: Vec<String>, open: impl FnOnce(Vec<String>) -> Arc<dyn StorageCounters>) -> Self {
        if devices.is_empty() {
            return Self::unknown("no block device of this machine is beneath the target");
        }
        Self { counters: Ok(open(devices)), writes: FlushWrites::Unknown.into() }
    }

    /// Creates a watch over the target itself, which counts what reaches it; flushes are no writes there.
    pub fn new(counters: Arc<dyn StorageCounters>) -> Self {
        Self { counters: Ok(counters), writes: FlushWrites::NotCounted.into() }
    }

    /// Creates a watch over nothing that can be read, for this reason.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { counters: Err(reason.into()), writes: FlushWrites::Unknown.into() }
    }

    /// Returns the counters now.
    ///
    /// # Errors
    /// The reason, if they are not known.
    pub fn read(&self) -> Reading {
        match &self.counters {
            Ok(counters) => counters.read().map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        }
    }

    /// Returns how two readings with `flushes` empty ones in between show that this kernel counts them;
    /// `None` if they do not.
    pub fn how_flushes_count(&self, before: &Reading, after: &Reading, flushes: u64) -> Option<FlushWrites> {
        let (Ok(before), Ok(after)) = (before, after) else { return None };
        let found = storage::calibrate(before, after, flushes).ok()?;
        Some(found).filter(|found| *found != FlushWrites::Unknown)
    }

    /// Goes by this from now on.
    pub fn set_flush_writes(&mut self, found: FlushWrites) {
        self.writes.flush_writes = found;
    }

    /// Notes the sizes of all writes to the devices.
    pub fn set_write_sizes(&mut self, sizes: WriteSizes) {
        self.writes.sizes = Some(sizes);
    }

    /// Returns the storage's activity between two readings.
    ///
    /// # Errors
    /// The reason, if that is not known.
    pub fn between(&self, before: Reading, after: Reading) -> Result<StorageSide, String> {
        storage::storage_side(&before?, &after?, self.writes).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use plumb_block::{DeviceCounters, Nanos};

    use super::*;

    /// Each reading is one second and one flush later, which was counted among the writes too.
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
