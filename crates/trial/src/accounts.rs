//! What a check knows before it measures, and what the devices beneath were handed from then on.

use plumb_block::StorageSnapshot;
use plumb_measure::StorageWatch;
use plumb_path::WritePath;
use plumb_report::document::Account;

use crate::counters::Beneath;

/// What a check knows before anything is measured.
pub(crate) struct CheckBegun {
    /// As typed.
    pub(crate) target: String,
    /// Beneath it.
    pub(crate) path: WritePath,
    /// What the devices were handed.
    pub(crate) accounts: Accounts,
    /// Of the test file; 0 until it is made.
    pub(crate) file_bytes: u64,
}

/// What the devices beneath were handed, phase by phase. The bookings follow one another without a gap, so
/// their sum is what an outside observer of the counters sees.
pub(crate) struct Accounts {
    pub(crate) watch: StorageWatch,
    /// The reading with which the last account ended.
    pub(crate) last: Option<StorageSnapshot>,
    pub(crate) booked: Vec<Account>,
}

impl CheckBegun {
    /// Counting begins.
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
