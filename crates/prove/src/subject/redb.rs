//! redb in process: the transactions of a [`History`], each acknowledged when its commit has returned.
//!
//! redb repairs a file when it opens it. Here it opens a copy in memory, where it waits for no drive. The
//! repaired contents are judged.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use plumb_report::document::proof::FailureClass;
use redb::backends::InMemoryBackend;
use redb::{
    Builder, Database, Durability, ReadableDatabase as _, ReadableTable as _, StorageBackend as _,
    TableDefinition,
};

use super::history::{History, Transaction};
use super::options::{Settings, Values};
use super::{Outcome, Subject};
use crate::error::{Error, Result};

const DATABASE: &str = "plumb.redb";
/// The only table of the database: the number of a row, and its text.
const ENTRY: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("entry");

/// redb with one kind of commit.
pub(super) struct Redb {
    name: String,
    durability: Durability,
    is_two_phase: bool,
    history: History,
}

impl Redb {
    pub(super) const OPTIONS: &[(&str, Values)] = &[
        ("durability", Values::OneOf(&["immediate", "none"])),
        ("two-phase", Values::OneOf(&["no", "yes"])),
        History::INSERTS,
        History::DELETES,
        History::ROW,
    ];

    pub(super) fn new(settings: &Settings<'_>) -> Result<Self> {
        let durability = match settings.word("durability") {
            "none" => Durability::None,
            _ => Durability::Immediate,
        };
        Ok(Self {
            name: settings.typed.to_owned(),
            durability,
            is_two_phase: settings.word("two-phase") == "yes",
            history: History::new(settings)?,
        })
    }

    fn failed(&self, what: &str, error: impl std::fmt::Display) -> Error {
        Error::failed(&self.name, format!("cannot {what}: {error}"))
    }

    fn commit(&self, database: &Database, transaction: Transaction) -> std::result::Result<(), redb::Error> {
        let mut writing = database.begin_write()?;
        writing.set_durability(self.durability)?;
        writing.set_two_phase_commit(self.is_two_phase);
        {
            let mut table = writing.open_table(ENTRY)?;
            match transaction {
                Transaction::Insert(row) => table.insert(row, self.history.text(row).as_slice())?,
                Transaction::Delete(row) => table.remove(row)?,
            };
        }
        Ok(writing.commit()?)
    }

    /// Lets redb repair the database in `bytes`, and reads all rows.
    fn look(&self, bytes: &[u8], required: Option<u64>) -> std::result::Result<Outcome, redb::Error> {
        let copy = InMemoryBackend::new();
        copy.set_len(bytes.len() as u64)?;
        copy.write(0, bytes)?;
        let mut database = Builder::new().create_with_backend(copy)?;
        // Damage that redb repairs is not a failure; damage that it cannot repair is an error.
        database.check_integrity()?;
        let table = database.begin_read()?.open_table(ENTRY)?;
        let mut rows = Vec::new();
        for entry in table.iter()? {
            let (row, text) = entry?;
            let row = row.value() as i64;
            rows.push((row, self.history.is_text(row, text.value())));
        }
        Ok(self.history.judge(&rows, required))
    }
}

impl Subject for Redb {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn set_up(&self, place: &Path) -> Result<()> {
        let make = || -> std::result::Result<(), redb::Error> {
            let database = Database::create(place.join(DATABASE))?;
            let writing = database.begin_write()?;
            writing.open_table(ENTRY)?;
            Ok(writing.commit()?)
        };
        make().map_err(|error| self.failed(&format!("make a database in {}", place.display()), error))
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<()> {
        let mut work = || -> std::result::Result<(), redb::Error> {
            let database = Database::open(place.join(DATABASE))?;
            for (number, transaction) in self.history.transactions() {
                self.commit(&database, transaction)?;
                acknowledge(number);
            }
            Ok(())
        };
        work().map_err(|error| self.failed("do the work", error))
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome> {
        let corrupt = |words| Ok(Outcome::failure(FailureClass::Corrupt, words));
        let bytes = match std::fs::read(place.join(DATABASE)) {
            Ok(bytes) if bytes.is_empty() => return corrupt(format!("{DATABASE} is empty")),
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), ErrorKind::OutOfMemory) => {
                return Err(self.failed("read the database", error));
            }
            Err(error) => return corrupt(format!("{DATABASE} cannot be read: {error}")),
        };
        // redb panics on some malformed files; its users would see that, too.
        match catch_unwind(AssertUnwindSafe(|| self.look(&bytes, required))) {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(error)) => corrupt(format!("redb says: {error}")),
            Err(_panic) => corrupt("redb panics when it opens the database".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::named;
    use super::*;

    /// Returns the files that a power cut without losses would leave after the set-up and after each
    /// acknowledgement.
    fn states(options: &str) -> (std::sync::Arc<dyn Subject>, Vec<Vec<u8>>) {
        let subject = named(&format!("redb:inserts=4,deletes=2,{options}")).unwrap();
        let place = tempfile::tempdir().unwrap();
        let file = || fs::read(place.path().join(DATABASE)).unwrap();
        subject.set_up(place.path()).unwrap();
        let mut states = vec![file()];
        subject.work(place.path(), &mut |_| states.push(file())).unwrap();
        (subject, states)
    }

    fn check(subject: &dyn Subject, state: &[u8], required: u64) -> Outcome {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(DATABASE), state).unwrap();
        subject.check(place.path(), Some(required)).unwrap()
    }

    #[test]
    fn each_state_satisfies_its_acknowledgement_and_no_later_one() {
        for options in ["two-phase=no", "two-phase=yes"] {
            let (subject, states) = states(options);
            assert_eq!(states.len(), 7);
            for (number, state) in states.iter().enumerate() {
                for required in 0..=6_usize {
                    let expected = match required {
                        _ if number >= required => None,
                        _ if number >= 4 => Some(FailureClass::Resurrected),
                        _ => Some(FailureClass::LostAcknowledged),
                    };
                    let found = check(&*subject, state, required as u64).class();
                    assert_eq!(found, expected, "{options}, state {number}, required {required}");
                }
            }
        }
    }

    #[test]
    fn what_redb_cannot_read_is_corrupt() {
        let (subject, states) = states("two-phase=no");
        for state in [Vec::new(), vec![0; states[4].len()], states[4][..states[4].len() / 2].to_vec()] {
            assert_eq!(check(&*subject, &state, 4).class(), Some(FailureClass::Corrupt));
        }
    }
}
