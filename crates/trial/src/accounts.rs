//! State of a check before it measures, and the work that the devices beneath were handed from then on.

use plumb_block::StorageSnapshot;
use plumb_measure::StorageWatch;
use plumb_path::WritePath;
use plumb_report::document::Account;

use crate::counters::Beneath;

/// State of a check before anything is measured.
pub(crate) struct CheckBegun {
    /// Target as typed.
    pub(crate) target: String,
    /// Write path below the file.
    pub(crate) path: WritePath,
    /// Work that the devices were handed.
    pub(crate) accounts: Accounts,
    /// Size of the test file in bytes; 0 until it is made.
    pub(crate) file_bytes: u64,
}

/// Work that the devices beneath were handed, phase by phase. The bookings follow one another without a gap,
/// so their sum is what an outside observer of the counters sees.
pub(crate) struct Accounts {
    pub(crate) watch: StorageWatch,
    /// The reading with which the last account ended.
    pub(crate) last: Option<StorageSnapshot>,
    pub(crate) booked: Vec<Account>,
}

impl CheckBegun {
    /// Begins to count.
    pub(crate) fn begin(target: String, path: WritePath, beneath: &Beneath) -> Self {
        let mut accounts = Accounts { watch: beneath.watch.clone(), last: None, booked: Vec::new() };
        accounts.book("begin");
        Self { target, path, accounts, file_bytes: 0 }
    }
}

impl Accounts {
    /// Books what the devices were handed since the last booking under `phase`.
    pub(crate) fn book(&mut self, phase: &str) {
        let Ok(now) = self.watch.read() else { return };
        if let Some(last) = self.last.replace(now.clone())
            && let Ok(side) = self.watch.between(Ok(last.clone()), Ok(now.clone()))
        {
            self.booked.push(Account {
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
}
