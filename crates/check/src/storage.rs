//! The storage's side of a check: readings of the counters beneath the target, and the account of the whole run.

use std::sync::Arc;

use plumb_block::{Clock, StorageCounters, StorageSnapshot};
use plumb_linux::BlockCounters;
use plumb_measure::{StorageSide, StorageWatch};
use plumb_report::Account;

/// The counters of the devices beneath the target, and what was booked of them.
pub(crate) struct Storage {
    /// The counters.
    pub(crate) watch: StorageWatch,
    /// The reading with which the last account ended.
    last: Option<StorageSnapshot>,
    accounts: Vec<Account>,
}

/// What the storage did in a window, or why it is not known.
pub(crate) type Side = Result<StorageSide, String>;

impl Storage {
    /// The counters of the devices with these kernel names.
    pub(crate) fn beneath(devices: Vec<String>, clock: Arc<dyn Clock>) -> Self {
        let watch = StorageWatch::over(devices, |devices| Arc::new(BlockCounters::new(devices, clock)));
        Self { watch, last: None, accounts: Vec::new() }
    }

    /// Over a target that counts for itself.
    pub(crate) fn of(counters: Arc<dyn StorageCounters>) -> Self {
        Self { watch: StorageWatch::of(counters), last: None, accounts: Vec::new() }
    }

    /// Books everything since the last booking under `phase`. Bookings follow one another without a gap, so their sum
    /// is what an outside observer of the counters sees.
    pub(crate) fn book(&mut self, phase: &str) {
        let Ok(now) = self.watch.read() else { return };
        if let Some(last) = self.last.replace(now.clone())
            && let Ok(side) = self.watch.between(Ok(last.clone()), Ok(now.clone()))
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
