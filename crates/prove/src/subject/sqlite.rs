//! SQLite in process: the transactions of a [`History`], each acknowledged when COMMIT has returned.
//!
//! SQLite itself recovers a state, by rolling a journal back or a log forward. Here it recovers a copy in
//! memory, where it waits for no drive. The recovered contents are judged. A `-shm` file is not read: SQLite
//! creates it again after a crash.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use plumb_report::document::proof::FailureClass;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::history::{History, Transaction};
use super::options::{Settings, Values};
use super::{Outcome, Subject};
use crate::error::{Error, Result};

const DATABASE: &str = "plumb.sqlite";
/// Directory in memory on most Linux machines.
const MEMORY: &str = "/dev/shm";

/// Maximum number of cached outcomes.
const KNOWN_MAX: usize = 100_000;

/// Hash of the files, and the required acknowledgement.
type Key = ([u64; 2], Option<u64>);

/// SQLite in one journal mode.
pub(super) struct Sqlite {
    name: String,
    journal: String,
    synchronous: String,
    history: History,
    /// Outcomes by the contents of the files. Many states differ only elsewhere in the file system.
    known: Mutex<HashMap<Key, Outcome>>,
}

impl Sqlite {
    pub(super) const OPTIONS: &[(&str, Values)] = &[
        ("journal", Values::OneOf(&["delete", "truncate", "persist", "wal", "memory", "off"])),
        ("synchronous", Values::OneOf(&["full", "off", "normal", "extra"])),
        History::INSERTS,
        History::DELETES,
        History::ROW,
    ];

    pub(super) fn new(settings: &Settings<'_>) -> Result<Self> {
        Ok(Self {
            name: settings.typed.to_owned(),
            journal: settings.word("journal").to_owned(),
            synchronous: settings.word("synchronous").to_owned(),
            history: History::new(settings)?,
            known: Mutex::default(),
        })
    }

    fn failed(&self, what: &str, error: impl std::fmt::Display) -> Error {
        Error::failed(&self.name, format!("cannot {what}: {error}"))
    }

    /// Opens the database in the requested mode.
    fn open(&self, place: &Path) -> rusqlite::Result<Connection> {
        let connection = Connection::open(place.join(DATABASE))?;
        connection.pragma_update(None, "journal_mode", &self.journal)?;
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode != self.journal {
            // SQLite silently keeps its old mode if the file system cannot support the new one (no shared
            // memory for WAL).
            let what = format!("journal_mode={} (it stays {mode})", self.journal);
            return Err(rusqlite::Error::InvalidParameterName(what));
        }
        connection.pragma_update(None, "synchronous", &self.synchronous)?;
        Ok(connection)
    }

    /// Reads the files that SQLite would open at `place`, by the suffixes of their names. A read error is the
    /// outcome.
    fn read(place: &Path) -> std::result::Result<Vec<(&'static str, Vec<u8>)>, Outcome> {
        let mut files = Vec::new();
        for suffix in ["", "-journal", "-wal"] {
            let name = format!("{DATABASE}{suffix}");
            match std::fs::read(place.join(&name)) {
                Ok(bytes) => files.push((suffix, bytes)),
                Err(error) if error.kind() == ErrorKind::NotFound && !suffix.is_empty() => {}
                Err(error) => {
                    let words = format!("{name} cannot be read: {error}");
                    return Err(Outcome::failure(FailureClass::Corrupt, words));
                }
            }
        }
        Ok(files)
    }

    /// Checks a copy of these files.
    fn look_at_copy(&self, files: &[(&str, Vec<u8>)], required: Option<u64>) -> Result<Outcome> {
        let memory = Path::new(MEMORY);
        let within = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let copied = tempfile::tempdir_in(&within).and_then(|copy| {
            for (suffix, bytes) in files {
                std::fs::write(copy.path().join(format!("{DATABASE}{suffix}")), bytes)?;
            }
            Ok(copy)
        });
        let what = || format!("copy the database to a directory in {}", within.display());
        let copy = copied.map_err(|error| self.failed(&what(), error))?;
        match self.look(copy.path(), required) {
            Err(error) if is_of_the_machine(&error) => {
                Err(self.failed("check a copy of the database", error))
            }
            Err(error) => Ok(Outcome::failure(FailureClass::Corrupt, format!("SQLite says: {error}"))),
            Ok(outcome) => Ok(outcome),
        }
    }

    /// Lets SQLite recover the database in `copy`, and reads all rows.
    fn look(&self, copy: &Path, required: Option<u64>) -> rusqlite::Result<Outcome> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(copy.join(DATABASE), flags)?;
        connection.execute_batch("PRAGMA locking_mode=exclusive; PRAGMA synchronous=off")?;
        let said: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if said != "ok" {
            return Ok(Outcome::failure(FailureClass::Corrupt, format!("integrity_check says: {said}")));
        }
        let mut select = connection.prepare("SELECT id, text FROM entry ORDER BY id")?;
        let rows = select.query_map([], |row| {
            let id = row.get(0)?;
            Ok((id, row.get_ref(1)?.as_str().is_ok_and(|text| self.history.is_text(id, text.as_bytes()))))
        })?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(self.history.judge(&rows, required))
    }
}

impl Subject for Sqlite {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn set_up(&self, place: &Path) -> Result<()> {
        let make = || {
            let connection = self.open(place)?;
            connection.execute_batch("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")?;
            connection.close().map_err(|(_connection, error)| error)
        };
        make().map_err(|error| self.failed(&format!("make a database in {}", place.display()), error))
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<()> {
        let mut work = || {
            let connection = self.open(place)?;
            for (number, transaction) in self.history.transactions() {
                match transaction {
                    Transaction::Insert(row) => {
                        let text = String::from_utf8_lossy(&self.history.text(row)).into_owned();
                        connection.execute("INSERT INTO entry VALUES (?1, ?2)", (row as i64, text))?
                    }
                    Transaction::Delete(row) => {
                        connection.execute("DELETE FROM entry WHERE id = ?1", [row as i64])?
                    }
                };
                acknowledge(number);
            }
            connection.close().map_err(|(_connection, error)| error)
        };
        work().map_err(|error| self.failed("do the work", error))
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome> {
        let files = match Self::read(place) {
            Ok(files) => files,
            Err(outcome) => return Ok(outcome),
        };
        let key = (digest_of(&files), required);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = known().get(&key) {
            return Ok(outcome.clone());
        }
        let outcome = self.look_at_copy(&files, required)?;
        let mut known = known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(key, outcome.clone());
        Ok(outcome)
    }
}

/// Returns a hash of the files with their names and lengths: two hashes of 64 bits with different seeds.
fn digest_of(files: &[(&str, Vec<u8>)]) -> [u64; 2] {
    [0_u8, 1].map(|first| {
        let mut hasher = DefaultHasher::new();
        (first, files).hash(&mut hasher);
        hasher.finish()
    })
}

/// Returns true if SQLite failed for reasons other than the data it read.
fn is_of_the_machine(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::OutOfMemory
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
        )
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::super::named;
    use super::*;

    fn name(suffix: &str) -> String {
        format!("{DATABASE}{suffix}")
    }

    /// Returns the database files that a power cut without losses would leave after the set-up and after each
    /// acknowledgement.
    fn states(options: &str) -> (std::sync::Arc<dyn Subject>, Vec<TempDir>) {
        let subject = named(&format!("sqlite:inserts=4,{options}")).unwrap();
        let place = tempfile::tempdir().unwrap();
        let copied = || {
            let copy = tempfile::tempdir().unwrap();
            for suffix in ["", "-journal", "-wal"] {
                if place.path().join(name(suffix)).exists() {
                    fs::copy(place.path().join(name(suffix)), copy.path().join(name(suffix))).unwrap();
                }
            }
            copy
        };
        subject.set_up(place.path()).unwrap();
        let mut states = vec![copied()];
        subject.work(place.path(), &mut |_| states.push(copied())).unwrap();
        (subject, states)
    }

    const MODES: [&str; 6] = ["delete", "truncate", "persist", "wal", "memory", "off"];

    #[test]
    fn each_state_satisfies_its_acknowledgement_and_no_later_one() {
        for mode in MODES {
            let (subject, states) = states(&format!("journal={mode},deletes=2"));
            assert_eq!(states.len(), 7);
            for (number, state) in states.iter().enumerate() {
                for required in 0..=6_usize {
                    let outcome = subject.check(state.path(), Some(required as u64)).unwrap();
                    let expected = match required {
                        _ if number >= required => None,
                        _ if number >= 4 => Some(FailureClass::Resurrected),
                        _ => Some(FailureClass::LostAcknowledged),
                    };
                    assert_eq!(outcome.class(), expected, "{mode}, state {number}, required {required}");
                }
                assert_eq!(subject.check(state.path(), None).unwrap(), Outcome::Intact);
            }
        }
    }

    /// A missing or truncated log loses its contents, and so does everything that a leftover journal rolls
    /// back.
    #[test]
    fn a_log_or_journal_of_another_moment_loses_what_was_acknowledged() {
        let (subject, states) = states("journal=wal");
        let wal = |number: usize| states[number].path().join(name("-wal"));
        let length = fs::metadata(wal(3)).unwrap().len();
        fs::File::options().write(true).open(wal(4)).unwrap().set_len(length).unwrap();
        assert_eq!(
            subject.check(states[4].path(), Some(4)).unwrap().class(),
            Some(FailureClass::LostAcknowledged)
        );
        assert_eq!(subject.check(states[4].path(), Some(3)).unwrap(), Outcome::Intact);
        fs::remove_file(wal(4)).unwrap();
        assert_eq!(
            subject.check(states[4].path(), Some(1)).unwrap().class(),
            Some(FailureClass::LostAcknowledged)
        );
    }

    #[test]
    fn a_journal_that_comes_back_rolls_a_commit_back() {
        let (subject, states) = states("journal=persist");
        // Journal of the last transaction, with the header from before the commit that zeroed it.
        let journal = states[4].path().join(name("-journal"));
        let mut bytes = fs::read(&journal).unwrap();
        assert_eq!(bytes[..28], [0; 28]);
        let pages = fs::metadata(states[3].path().join(name(""))).unwrap().len() / 4096;
        bytes[..8].copy_from_slice(&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
        bytes[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        // The checksums start from a number that only the header held. It is found from the checksum of the
        // first page.
        let nonce = nonce_of(&bytes[512..]);
        bytes[12..16].copy_from_slice(&nonce.to_be_bytes());
        bytes[16..20].copy_from_slice(&(pages as u32).to_be_bytes());
        bytes[20..24].copy_from_slice(&512_u32.to_be_bytes());
        bytes[24..28].copy_from_slice(&4096_u32.to_be_bytes());
        fs::write(&journal, &bytes).unwrap();
        let outcome = subject.check(states[4].path(), Some(4)).unwrap();
        assert_eq!(outcome.class(), Some(FailureClass::LostAcknowledged), "{outcome:?}");
        assert_eq!(subject.check(states[4].path(), Some(3)).unwrap(), Outcome::Intact);
    }

    /// Returns the nonce of a record: a page number, the page, and the nonce plus every 200th byte of the
    /// page from its end.
    fn nonce_of(record: &[u8]) -> u32 {
        let page = &record[4..4 + 4096];
        let sum: u32 = (1..)
            .map(|n| 4096 - 200 * n)
            .take_while(|at| *at > 0)
            .map(|at| u32::from(page[at as usize]))
            .sum();
        u32::from_be_bytes(record[4 + 4096..8 + 4096].try_into().unwrap()).wrapping_sub(sum)
    }

    #[test]
    fn what_sqlite_cannot_read_is_corrupt() {
        type Tampering = fn(&Path);
        let harms: [(&str, Tampering); 5] = [
            ("no database", |path| fs::remove_file(path).unwrap()),
            ("an empty database", |path| fs::write(path, []).unwrap()),
            ("no header", |path| {
                let mut bytes = fs::read(path).unwrap();
                bytes[..16].fill(0);
                fs::write(path, bytes).unwrap();
            }),
            ("a page of zeroes", |path| {
                let mut bytes = fs::read(path).unwrap();
                let last = bytes.len() - 4096;
                bytes[last..].fill(0);
                fs::write(path, bytes).unwrap();
            }),
            ("a changed row", |path| {
                let mut bytes = fs::read(path).unwrap();
                let at = bytes.windows(6).rposition(|window| window == b"row 3 ").unwrap();
                bytes[at + 4] = b'7';
                fs::write(path, bytes).unwrap();
            }),
        ];
        for (what, harm) in harms {
            let (subject, states) = states("journal=delete");
            harm(&states[4].path().join(DATABASE));
            let outcome = subject.check(states[4].path(), Some(4)).unwrap();
            assert_eq!(outcome.class(), Some(FailureClass::Corrupt), "{what}: {outcome:?}");
        }
    }
}
