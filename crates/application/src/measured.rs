//! What a profile measured.

use plumb_load::LoadOutcome;
use plumb_measure::Histogram;

/// What a profile measured.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Reads, writes and syncs (as flushes); `durable` has the transactions that ended in a sync, from their start to
    /// the end of that sync. Of SQLite only `durable` is known here: what it reads and writes, the storage side shows.
    pub outcome: LoadOutcome,
    /// How long the calls of each kind took, by name; kinds that did not occur are left out.
    pub operations: Vec<(String, Histogram)>,
    /// How long whole transactions took, as the application sees them.
    pub transactions: Histogram,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
}

impl Measured {
    /// Syncs per transaction; `None` if there was no transaction.
    pub fn syncs_per_transaction(&self) -> Option<f64> {
        let transactions = self.transactions.count();
        (transactions > 0).then(|| self.outcome.flush.operations() as f64 / transactions as f64)
    }

    /// Transactions per second; `None` if no time passed.
    pub fn transactions_per_second(&self) -> Option<f64> {
        let seconds = self.outcome.length.as_secs_f64();
        (seconds > 0.0).then(|| self.transactions.count() as f64 / seconds)
    }
}
