//! The storage's side of the targets: which devices are beneath each, and what they were handed.

use std::sync::Arc;

use plumb_block::{Clock, Device, StorageCounters as _, StorageSnapshot};
use plumb_linux::BlockCounters;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_measure::{FlushWrites, StorageSide, storage};
use plumb_path::{WritePath, survey_path};

/// How many clean flushes a calibration makes.
const CALIBRATION_FLUSHES: u64 = 16;

/// What is beneath one target.
pub(crate) struct Beneath {
    /// The write path; `None` if it cannot be surveyed.
    pub(crate) path: Option<WritePath>,
    counters: Result<BlockCounters, String>,
    flush_writes: FlushWrites,
}

impl Beneath {
    /// Surveys what is beneath `target`.
    pub(crate) fn of(target: &str, clock: &Arc<dyn Clock>) -> Self {
        let (path, counters) = match survey_path(&LiveTree::new(), &LiveProbe::new(), target) {
            Ok(path) => {
                let devices = path.block_devices();
                let counters = if devices.is_empty() {
                    Err("no block device of this machine is beneath the target".to_owned())
                } else {
                    Ok(BlockCounters::new(devices, Arc::clone(clock)))
                };
                (Some(path), counters)
            }
            Err(error) => (None, Err(format!("the write path is not known: {error}"))),
        };
        Self { path, counters, flush_writes: FlushWrites::Unknown }
    }

    /// Learns how this kernel counts empty flushes, from some on `device`, of which everything is durable.
    ///
    /// # Errors
    /// If a flush fails.
    pub(crate) fn calibrate(&mut self, device: &dyn Device) -> Result<(), plumb_load::FlushError> {
        plumb_load::flush(device, 1)?;
        let before = self.read();
        plumb_load::flush(device, CALIBRATION_FLUSHES)?;
        if let (Ok(before), Ok(after)) = (before, self.read()) {
            let learnt = storage::calibrate(&before, &after, CALIBRATION_FLUSHES);
            self.flush_writes = learnt.unwrap_or(FlushWrites::Unknown);
        }
        Ok(())
    }

    /// The counters now, or why they are not known.
    pub(crate) fn read(&self) -> Result<StorageSnapshot, String> {
        match &self.counters {
            Ok(counters) => counters.read().map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        }
    }

    /// What happened between two readings.
    pub(crate) fn between(
        &self,
        before: Result<StorageSnapshot, String>,
        after: Result<StorageSnapshot, String>,
    ) -> Result<StorageSide, String> {
        storage::storage_side(&before?, &after?, self.flush_writes).map_err(|error| error.to_string())
    }
}
