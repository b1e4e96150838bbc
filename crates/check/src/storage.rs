//! The storage's side of a check: readings of the counters beneath the target, and the account of the whole run.

use std::sync::Arc;

use plumb_block::{Clock, StorageCounters as _, StorageSnapshot};
use plumb_linux::BlockCounters;
use plumb_measure::{FlushWrites, StorageSide, storage};
use plumb_report::Account;

/// Reads the counters of the devices beneath the target, or knows why it cannot.
pub(crate) struct Storage {
    counters: Result<BlockCounters, String>,
    flush_writes: FlushWrites,
    /// The reading with which the last account ended.
    last: Option<StorageSnapshot>,
    accounts: Vec<Account>,
}

/// What the storage did in a window, or why it is not known.
pub(crate) type Side = Result<StorageSide, String>;

impl Storage {
    /// The counters of the devices with these kernel names.
    pub(crate) fn beneath(devices: Vec<String>, clock: Arc<dyn Clock>) -> Self {
        let counters = if devices.is_empty() {
            Err("no block device of this machine is beneath the target".to_owned())
        } else {
            Ok(BlockCounters::new(devices, clock))
        };
        Self { counters, flush_writes: FlushWrites::Unknown, last: None, accounts: Vec::new() }
    }

    /// The counters now.
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
    ) -> Side {
        storage::storage_side(&before?, &after?, self.flush_writes).map_err(|error| error.to_string())
    }

    /// Learns from clean syncs how this kernel counts empty flushes.
    pub(crate) fn calibrate(
        &mut self,
        before: Result<StorageSnapshot, String>,
        after: Result<StorageSnapshot, String>,
        syncs: u64,
    ) {
        if let (Ok(before), Ok(after)) = (before, after) {
            self.flush_writes = storage::calibrate(&before, &after, syncs).unwrap_or(FlushWrites::Unknown);
        }
    }

    /// Books everything since the last booking under `phase`. Bookings follow one another without a gap, so their sum
    /// is what an outside observer of the counters sees.
    pub(crate) fn book(&mut self, phase: &str) {
        let Ok(now) = self.read() else { return };
        if let Some(last) = self.last.replace(now.clone())
            && let Ok(side) = storage::storage_side(&last, &now, self.flush_writes)
        {
            self.accounts.push(Account {
                phase: phase.to_owned(),
                seconds: now.at.since(last.at).as_secs_f64(),
                flushes: side.flushes,
                reads: side.reads,
                writes: side.writes,
                read_bytes: side.read_bytes,
                write_bytes: side.write_bytes,
            });
        }
    }

    /// The bookings so far.
    pub(crate) fn accounts(&self) -> &[Account] {
        &self.accounts
    }
}
