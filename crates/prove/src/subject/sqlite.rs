//! The real SQLite, in process: rows are inserted and then deleted, one transaction each, and each is acknowledged when COMMIT
//! has returned.
//!
//! After acknowledgement `n` the table holds the rows 1 to `n`; where `n` is more than the `inserts`, it holds the rows from
//! `n - inserts + 1` on. A power cut may leave any such table from the last acknowledgement on, and nothing else.

use std::path::Path;

use rusqlite::{Connection, Error};

use super::named::{Settings, Values};
use super::{Outcome, Subject, SubjectError};

/// The file of the database.
const DATABASE: &str = "plumb.sqlite";
/// Most rows.
const INSERTS_MAX: u64 = 1_000_000;

/// SQLite in one journal mode.
pub(super) struct Sqlite {
    name: String,
    journal: String,
    synchronous: String,
    inserts: u64,
    deletes: u64,
    row_bytes: u64,
}

impl Sqlite {
    pub(super) const OPTIONS: &[(&str, Values)] = &[
        ("journal", Values::OneOf(&["delete", "truncate", "persist", "wal", "memory", "off"])),
        ("synchronous", Values::OneOf(&["full", "off", "normal", "extra"])),
        ("inserts", Values::Number { default: 20, max: INSERTS_MAX }),
        ("deletes", Values::Number { default: 0, max: INSERTS_MAX }),
        ("row", Values::Number { default: 100, max: 1 << 20 }),
    ];

    pub(super) fn of(settings: &Settings<'_>) -> Self {
        let inserts = settings.number("inserts");
        Self {
            name: settings.typed.to_owned(),
            journal: settings.word("journal").to_owned(),
            synchronous: settings.word("synchronous").to_owned(),
            inserts,
            deletes: settings.number("deletes").min(inserts),
            row_bytes: settings.number("row"),
        }
    }

    fn failed(&self, what: &str, error: &Error) -> SubjectError {
        SubjectError::Failed { subject: self.name.clone(), what: format!("cannot {what}: {error}") }
    }

    /// The database, in the mode that was asked for.
    fn open(&self, place: &Path) -> Result<Connection, Error> {
        let connection = Connection::open(place.join(DATABASE))?;
        connection.pragma_update(None, "journal_mode", &self.journal)?;
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode != self.journal {
            return Err(Error::InvalidParameterName(format!(
                "journal_mode={} (it stays {mode})",
                self.journal
            )));
        }
        connection.pragma_update(None, "synchronous", &self.synchronous)?;
        Ok(connection)
    }

    /// What a row holds: its number, over and over.
    fn text(&self, row: u64) -> String {
        let word = format!("row {row} ");
        word.chars().cycle().take(self.row_bytes as usize).collect()
    }
}

impl Subject for Sqlite {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn set_up(&self, place: &Path) -> Result<(), SubjectError> {
        let make = || {
            let connection = self.open(place)?;
            connection.execute_batch("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")?;
            connection.close().map_err(|(_connection, error)| error)
        };
        make().map_err(|error| self.failed("make the database", &error))
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<(), SubjectError> {
        let mut work = || {
            let connection = self.open(place)?;
            for row in 1..=self.inserts {
                connection
                    .execute("INSERT INTO entry (id, text) VALUES (?1, ?2)", (row as i64, self.text(row)))?;
                acknowledge(row);
            }
            for row in 1..=self.deletes {
                connection.execute("DELETE FROM entry WHERE id = ?1", [row as i64])?;
                acknowledge(self.inserts + row);
            }
            connection.close().map_err(|(_connection, error)| error)
        };
        work().map_err(|error| self.failed("do the work", &error))
    }

    fn check(&self, _place: &Path, _required: Option<u64>) -> Result<Outcome, SubjectError> {
        Err(SubjectError::Failed { subject: self.name.clone(), what: "there is no checker yet".to_owned() })
    }
}
