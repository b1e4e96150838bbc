//! All that the devices were handed, phase by phase, with the sum.

use crate::document::Account;
use crate::printable::printable;
use crate::quantity::{bytes, count, or_dash, three_digits};

/// One phase, or the sum of all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AccountRow {
    /// The phase.
    pub(super) phase: String,
    /// Seconds, flushes, writes, bytes written, reads, bytes read.
    pub(super) cells: [String; 6],
    /// Whether it is the sum.
    pub(super) total: bool,
}

/// The rows of `accounts`, the sum last; none if there are none.
pub(super) fn rows(accounts: &[Account]) -> Vec<AccountRow> {
    if accounts.is_empty() {
        return Vec::new();
    }
    let sum = accounts.iter().fold(
        Account {
            phase: "all".to_owned(),
            seconds: 0.0,
            flushes: Some(0),
            reads: 0,
            writes: 0,
            read_bytes: 0,
            write_bytes: 0,
        },
        |sum, account| Account {
            phase: sum.phase,
            seconds: sum.seconds + account.seconds,
            flushes: sum.flushes.zip(account.flushes).map(|(sum, flushes)| sum.saturating_add(flushes)),
            reads: sum.reads.saturating_add(account.reads),
            writes: sum.writes.saturating_add(account.writes),
            read_bytes: sum.read_bytes.saturating_add(account.read_bytes),
            write_bytes: sum.write_bytes.saturating_add(account.write_bytes),
        },
    );
    accounts.iter().map(|account| row(account, false)).chain([row(&sum, true)]).collect()
}

fn row(account: &Account, total: bool) -> AccountRow {
    AccountRow {
        phase: printable(&account.phase),
        cells: [
            three_digits(account.seconds),
            or_dash(account.flushes, count),
            count(account.writes),
            bytes(account.write_bytes as f64),
            count(account.reads),
            bytes(account.read_bytes as f64),
        ],
        total,
    }
}
