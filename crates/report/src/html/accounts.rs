//! All that the devices were handed, phase by phase, with the sum.

use crate::document::Account;
use crate::figures::{may_lack, writes_without_flushes};
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
    let mut rows: Vec<AccountRow> = accounts.iter().map(|account| row(account, false)).collect();
    let mut total = row(&sum, true);
    if accounts.iter().any(|account| may_lack(account.writes, account.flushes)) {
        total.cells[2] = format!("at least {}", count(sum.writes));
    }
    rows.push(total);
    rows
}

fn row(account: &Account, total: bool) -> AccountRow {
    AccountRow {
        phase: printable(&account.phase),
        cells: [
            three_digits(account.seconds),
            or_dash(account.flushes, count),
            writes_without_flushes(account.writes, account.flushes),
            bytes(account.write_bytes as f64),
            count(account.reads),
            bytes(account.read_bytes as f64),
        ],
        total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(flushes: u64, writes: u64) -> Account {
        let phase = "overwrite-fdatasync".to_owned();
        let (flushes, bytes) = (Some(flushes), writes * 4096);
        Account { phase, seconds: 1.0, flushes, reads: 0, writes, read_bytes: 0, write_bytes: bytes }
    }

    #[test]
    fn a_sum_with_a_lower_bound_in_it_is_one_too() {
        let writes = |accounts: &[Account]| -> Vec<String> {
            rows(accounts).into_iter().map(|row| row.cells[2].clone()).collect()
        };
        assert_eq!(writes(&[account(1, 10), account(0, 0)]), ["10", "0", "10"]);
        assert_eq!(writes(&[account(10, 10), account(1, 1000)]), ["at least 10", "1,000", "at least 1,010"]);
    }
}
