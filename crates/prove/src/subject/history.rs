//! Rows that are inserted and then deleted, one transaction each: the work of a database subject, and its
//! permitted results.
//!
//! Acknowledgement `n` means that transaction `n` is committed. Up to `inserts` it inserts row `n`, beyond
//! that it deletes row `n - inserts`. So the rows show after which transaction they are. A power cut may
//! leave the rows after any transaction from the last acknowledged one on, and nothing else.

use plumb_report::document::proof::FailureClass;

use super::Outcome;
use super::options::{Settings, Values};
use crate::error::{Error, Result};

/// Number of transactions of each kind, and their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct History {
    pub(super) inserts: u64,
    pub(super) deletes: u64,
    pub(super) row_bytes: u64,
}

/// Operation of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transaction {
    Insert(u64),
    Delete(u64),
}

/// Maximum number of transactions of a kind.
const MAX: u64 = 1_000_000;

impl History {
    pub(super) const INSERTS: (&'static str, Values) = ("inserts", Values::Number { default: 20, max: MAX });
    /// Fewer than the inserts, since an empty table would be both the first and the last state.
    pub(super) const DELETES: (&'static str, Values) = ("deletes", Values::Number { default: 0, max: MAX });
    /// Length of a row in bytes.
    pub(super) const ROW: (&'static str, Values) = ("row", Values::Number { default: 100, max: 1 << 20 });

    pub(super) fn new(settings: &Settings<'_>) -> Result<Self> {
        let [inserts, deletes, row_bytes] = ["inserts", "deletes", "row"].map(|key| settings.number(key));
        if deletes >= inserts {
            return Err(Error::usage(format!("deletes={deletes} is not less than inserts={inserts}")));
        }
        Ok(Self { inserts, deletes, row_bytes })
    }

    /// Returns each transaction, with the number of its acknowledgement.
    pub(super) fn transactions(self) -> impl Iterator<Item = (u64, Transaction)> {
        let inserts = (1..=self.inserts).map(Transaction::Insert);
        (1..).zip(inserts.chain((1..=self.deletes).map(Transaction::Delete)))
    }

    /// Returns the text of a row: its number, repeated.
    pub(super) fn text(self, row: u64) -> Vec<u8> {
        format!("row {row} ").bytes().cycle().take(self.row_bytes as usize).collect()
    }

    /// Returns true if `text` is the text of the row.
    pub(super) fn is_text(self, row: i64, text: &[u8]) -> bool {
        let word = format!("row {row} ");
        text.len() as u64 == self.row_bytes && text.iter().copied().eq(word.bytes().cycle().take(text.len()))
    }

    /// Judges the rows found, in increasing order, each with whether its text is right.
    pub(super) fn judge(self, rows: &[(i64, bool)], required: Option<u64>) -> Outcome {
        if let Some((row, _)) = rows.iter().find(|(_, is_right)| !is_right) {
            return Outcome::failure(
                FailureClass::Corrupt,
                format!("row {row} does not hold what was written"),
            );
        }
        let numbers: Vec<u64> = rows.iter().map(|(row, _)| u64::try_from(*row).unwrap_or(0)).collect();
        if let Some(at) = numbers.iter().position(|row| !(1..=self.inserts).contains(row)) {
            let row = rows[at].0;
            return Outcome::failure(FailureClass::Corrupt, format!("row {row} was never written"));
        }
        let required = required.unwrap_or(0);
        let Some(after) = self.is_after(&numbers) else { return self.judge_broken(&numbers, required) };
        if after >= required {
            return Outcome::Intact;
        }
        let found = match after {
            0 => "the table is empty".to_owned(),
            _ => format!("the table is as it was after transaction {after}"),
        };
        if after < self.inserts {
            let missing = after + 1;
            let words =
                format!("{required} transactions were acknowledged, row {missing} is missing: {found}");
            return Outcome::failure(FailureClass::LostAcknowledged, words);
        }
        let back = required - self.inserts;
        let words =
            format!("{required} transactions were acknowledged, row {back} was deleted and is back: {found}");
        Outcome::failure(FailureClass::Resurrected, words)
    }

    /// Returns the transaction after which these are the rows; `None` if there is none.
    fn is_after(self, rows: &[u64]) -> Option<u64> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Some(0) };
        let is_whole = rows.len() as u64 == last - first + 1;
        match first - 1 {
            0 => is_whole.then_some(*last),
            deleted => (is_whole && *last == self.inserts && deleted <= self.deletes)
                .then_some(self.inserts + deleted),
        }
    }

    /// Judges rows that are not those after any transaction.
    fn judge_broken(self, rows: &[u64], required: u64) -> Outcome {
        let last = rows.last().copied().unwrap_or(0);
        let deleted = required.saturating_sub(self.inserts);
        // Later transactions may have deleted all rows before the first one found.
        let first = rows.first().copied().unwrap_or(1);
        let may_be_deleted = if last == self.inserts { self.deletes.min(first - 1) } else { 0 };
        let missing = |row: &u64| *row > may_be_deleted.max(deleted) && rows.binary_search(row).is_err();
        if let Some(row) = (1..=required.min(self.inserts)).find(missing) {
            let words = format!(
                "{required} transactions were acknowledged, row {row} is missing and row {last} is there"
            );
            return Outcome::failure(FailureClass::LostAcknowledged, words);
        }
        if first <= deleted {
            let words =
                format!("{required} transactions were acknowledged, row {first} was deleted and is back");
            return Outcome::failure(FailureClass::Resurrected, words);
        }
        let hole = (first..=last).find(|row| rows.binary_search(row).is_err()).unwrap_or(1);
        Outcome::failure(FailureClass::OutOfOrder, format!("row {hole} is missing and row {last} is there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: History = History { inserts: 5, deletes: 3, row_bytes: 10 };

    fn class(rows: &[i64], required: impl Into<Option<u64>>) -> Option<FailureClass> {
        let rows: Vec<_> = rows.iter().map(|row| (*row, true)).collect();
        HISTORY.judge(&rows, required.into()).class()
    }

    /// Checks every set of rows with every required acknowledgement: intact are exactly the tables after some
    /// transaction from that one on.
    #[test]
    fn intact_is_what_a_transaction_from_the_last_acknowledged_one_on_leaves() {
        let mut tables = vec![Vec::new()];
        for (_, transaction) in HISTORY.transactions() {
            let mut rows: Vec<i64> = tables.last().cloned().unwrap();
            match transaction {
                Transaction::Insert(row) => rows.push(row as i64),
                Transaction::Delete(row) => rows.retain(|there| *there != row as i64),
            }
            tables.push(rows);
        }
        assert_eq!(tables.len(), 9);
        for bits in 0..32_u32 {
            let rows: Vec<i64> = (1..=5).filter(|row| bits >> (row - 1) & 1 == 1).collect();
            for required in 0..9_u64 {
                let is_one = tables.iter().skip(required as usize).any(|table| *table == rows);
                assert_eq!(class(&rows, required).is_none(), is_one, "{rows:?} after {required}");
            }
        }
    }

    #[test]
    fn what_is_wrong_has_its_class() {
        for (rows, required, expected) in [
            (&[1, 2][..], 3, FailureClass::LostAcknowledged),
            (&[], 1, FailureClass::LostAcknowledged),
            (&[1, 3], 3, FailureClass::LostAcknowledged),
            (&[1, 3], 1, FailureClass::OutOfOrder),
            (&[2, 3], 0, FailureClass::OutOfOrder),
            (&[1, 2, 3, 4, 5], 6, FailureClass::Resurrected),
            (&[1, 3, 4, 5], 7, FailureClass::Resurrected),
            (&[3, 5], 7, FailureClass::LostAcknowledged),
            (&[1, 2, 6], 1, FailureClass::Corrupt),
            (&[0, 1], 1, FailureClass::Corrupt),
        ] {
            assert_eq!(class(rows, required), Some(expected), "{rows:?} after {required}");
        }
        assert_eq!(HISTORY.judge(&[(1, true), (2, false)], None).class(), Some(FailureClass::Corrupt));
    }
}
