//! The real SQLite as a workload: one-row inserts, one transaction each, into a table with one index.
//!
//! What SQLite reads, writes and syncs is its own affair and not seen from here. A VFS that counts would need
//! unsafe code and would stand between SQLite and the system that is measured; the counters of the storage
//! side do it from outside.

use std::path::Path;
use std::sync::atomic::Ordering;

use plumb_block::{Bytes, Nanos};
use plumb_load::{Ending, Event, LoadOutcome, Observer, Progress, Totals};
use plumb_workload::Invalid;
use rusqlite::{Connection, Statement};

use crate::chance::Chance;
use crate::engine::{Book, Call, Conduct, Took, show};
use crate::error::Error;

/// The journal mode and how much it syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journal {
    /// A rollback journal that is removed at each commit.
    Delete(Synchronous),
    /// A write-ahead log.
    Wal(Synchronous),
}

/// SQLite's `PRAGMA synchronous`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synchronous {
    Normal,
    Full,
    Extra,
}

impl Synchronous {
    const fn name(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Full => "FULL",
            Self::Extra => "EXTRA",
        }
    }
}

impl Journal {
    /// Returns true if a transaction survives a power cut once COMMIT has returned. With a rollback journal
    /// in mode FULL it may not: the removal of the journal is not synced, and a journal that comes back rolls
    /// the transaction back.
    const fn is_durable(self) -> bool {
        matches!(self, Self::Delete(Synchronous::Extra) | Self::Wal(Synchronous::Full | Synchronous::Extra))
    }

    const fn mode(self) -> &'static str {
        match self {
            Self::Delete(_) => "delete",
            Self::Wal(_) => "wal",
        }
    }

    const fn synchronous(self) -> Synchronous {
        match self {
            Self::Delete(synchronous) | Self::Wal(synchronous) => synchronous,
        }
    }
}

/// How often the observer is shown the progress.
const TELL_EVERY: Nanos = Nanos::millis(100);
/// Letters of a row's text.
const TEXT: u64 = 100;

/// Runs SQLite in `directory`.
///
/// # Errors
/// The first thing that SQLite could not do.
pub(crate) fn perform(
    journal: Journal,
    directory: &Path,
    conduct: &Conduct<'_>,
    observer: &mut dyn Observer,
) -> Result<LoadOutcome, Error> {
    if conduct.threads != 1 {
        return Err(Invalid::new("threads", conduct.threads, "1: SQLite has one writer at a time").into());
    }
    let connection = open(journal, &directory.join("plumb.sqlite"))?;
    observer.on(&Event::WindowBegins { warmup: Nanos::ZERO, settled: true });
    let client = Client::new(&connection, journal, conduct)?;
    let (book, ending) = client.run(observer)?;
    let end = conduct.clock.now();
    observer.on(&Event::WindowEnds);
    connection.close().map_err(|(_connection, error)| Error::of_sqlite(error, "close the database"))?;
    let mut measured = book.finish(end, ending, 1);
    let notes = &mut measured.transactions.get_or_insert_default().notes;
    notes.push(format!(
        "SQLite {}, journal_mode={}, synchronous={}: plumb does not see the reads, writes and syncs of \
         SQLite itself",
        rusqlite::version(),
        journal.mode().to_uppercase(),
        journal.synchronous().name()
    ));
    if !journal.is_durable() {
        notes.push("a power cut may lose a transaction although its COMMIT has returned".to_owned());
    }
    Ok(measured)
}

/// SQLite shows no reads or writes: progress counts each COMMIT as a write.
fn progress(elapsed: Nanos, book: &Book) -> Progress {
    let total = Totals { writes: book.transactions(), ..Totals::default() };
    Progress::of_one(elapsed, total)
}

/// Returns a new database in that mode, with its table.
fn open(journal: Journal, path: &Path) -> Result<Connection, Error> {
    let failed = |error| Error::of_sqlite(error, "set up the database");
    let connection = Connection::open(path).map_err(failed)?;
    connection.pragma_update(None, "page_size", 4096).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", journal.mode()).map_err(failed)?;
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(failed)?;
    if mode != journal.mode() {
        // SQLite keeps its old mode and says nothing where the file system cannot (no shared memory for WAL).
        let error = rusqlite::Error::InvalidParameterName(format!(
            "journal_mode={} (it stays {mode})",
            journal.mode()
        ));
        return Err(Error::of_sqlite(error, "use the journal mode on this file system"));
    }
    connection.pragma_update(None, "synchronous", journal.synchronous().name()).map_err(failed)?;
    connection
        .execute_batch(
            "CREATE TABLE entry (id INTEGER PRIMARY KEY, key INTEGER NOT NULL, text TEXT NOT NULL);
             CREATE INDEX entry_key ON entry (key);",
        )
        .map_err(failed)?;
    Ok(connection)
}

/// One writer and its measurements.
struct Client<'a> {
    begin: Statement<'a>,
    insert: Statement<'a>,
    commit: Statement<'a>,
    is_durable: bool,
    conduct: &'a Conduct<'a>,
    chance: Chance,
    start: Nanos,
    book: Book,
}

impl<'a> Client<'a> {
    fn new(connection: &'a Connection, journal: Journal, conduct: &'a Conduct<'a>) -> Result<Self, Error> {
        let prepare = |text| connection.prepare(text).map_err(|error| Error::of_sqlite(error, "prepare"));
        let start = conduct.clock.now();
        Ok(Self {
            begin: prepare("BEGIN IMMEDIATE")?,
            insert: prepare("INSERT INTO entry (key, text) VALUES (?1, ?2)")?,
            commit: prepare("COMMIT")?,
            is_durable: journal.is_durable(),
            conduct,
            chance: Chance::from_seed(conduct.seed, 0),
            start,
            book: Book::starting_at(start, conduct.duration.unwrap_or(Nanos::ZERO)),
        })
    }

    /// Transaction after transaction, until the limits end it or it is stopped.
    fn run(mut self, observer: &mut dyn Observer) -> Result<(Book, Ending), Error> {
        let mut told = self.start;
        loop {
            let now = self.conduct.clock.now();
            let ending = self.ending(now);
            if ending.is_some() || now.since(told) >= TELL_EVERY {
                told = now;
                let progress = progress(now.since(self.start), &self.book);
                show(observer, &progress, || self.book.clone().finish(now, Ending::Interrupted, 1));
            }
            if let Some(ending) = ending {
                return Ok((self.book, ending));
            }
            self.insert_one()?;
        }
    }

    /// Returns how it ends, if it ends now.
    fn ending(&self, now: Nanos) -> Option<Ending> {
        let Conduct { duration, count, stop, .. } = self.conduct;
        if stop.load(Ordering::Acquire) {
            return Some(Ending::Interrupted);
        }
        let is_over = duration.is_some_and(|duration| now.since(self.start) >= duration)
            || count.is_some_and(|count| self.book.transactions() >= count);
        is_over.then_some(Ending::Complete)
    }

    fn insert_one(&mut self) -> Result<(), Error> {
        let key = self.chance.below(1 << 40) as i64;
        let text: String = (0..TEXT).map(|_| char::from(b'a' + self.chance.below(26) as u8)).collect();
        let failed = |error| Error::of_sqlite(error, "insert a row");
        let clock = self.conduct.clock;
        let from = clock.now();
        self.begin.execute([]).map_err(failed)?;
        self.insert.execute((key, text)).map_err(failed)?;
        let inserted = clock.now();
        self.commit.execute([]).map_err(|error| Error::of_sqlite(error, "commit a transaction"))?;
        let whole = Took { from, until: clock.now() };
        self.book.done(Call::Insert, Took { until: inserted, ..whole }, Bytes(0));
        self.book.done(Call::Commit, Took { from: inserted, ..whole }, Bytes(0));
        self.book.transaction(whole);
        if self.is_durable {
            self.book.durable(whole);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
