//! Record of a run: calls by kind, and transactions. Memory is allocated only at the first call of a kind.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Nanos};
use plumb_load::{Direction, Ending, Failure, LiveLatency, LoadOutcome, Totals, Transactions};
use plumb_measure::{Histogram, Series, SeriesEvent};

/// Kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Open,
    Create,
    Close,
    Read,
    Write,
    Append,
    Fsync,
    Fdatasync,
    Syncfs,
    FsyncDirectory,
    Rename,
    Unlink,
    CreateDirectory,
    /// SQLite's BEGIN and INSERT.
    Insert,
    /// SQLite's COMMIT.
    Commit,
}

/// Start and end of a call or a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
}

/// All kinds in order of their discriminants, with their names in reports.
const NAMES: [(Call, &str); 15] = [
    (Call::Open, "open"),
    (Call::Create, "create"),
    (Call::Close, "close"),
    (Call::Read, "read"),
    (Call::Write, "write"),
    (Call::Append, "append"),
    (Call::Fsync, "fsync"),
    (Call::Fdatasync, "fdatasync"),
    (Call::Syncfs, "syncfs"),
    (Call::FsyncDirectory, "fsync-directory"),
    (Call::Rename, "rename"),
    (Call::Unlink, "unlink"),
    (Call::CreateDirectory, "create-directory"),
    (Call::Insert, "insert"),
    (Call::Commit, "commit"),
];

impl Call {
    /// Returns true if a successful call makes something durable.
    pub(crate) const fn is_sync(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync | Self::Syncfs | Self::FsyncDirectory)
    }
}

impl Took {
    pub(crate) fn latency(self) -> Nanos {
        self.until.since(self.from)
    }
}

/// Record of one or more threads.
#[derive(Debug, Clone)]
pub(crate) struct Book {
    outcome: LoadOutcome,
    calls: [Option<Box<Histogram>>; NAMES.len()],
    transactions: Histogram,
    start: Nanos,
}

impl Book {
    /// Creates an empty record. `expected` is the length of the run, as far as known.
    pub(crate) fn starting_at(start: Nanos, expected: Nanos) -> Self {
        let mut outcome = LoadOutcome::empty();
        for direction in [&mut outcome.read, &mut outcome.write, &mut outcome.trim, &mut outcome.flush] {
            direction.series = Series::starting_at(start, expected);
        }
        Self { outcome, calls: [const { None }; NAMES.len()], transactions: Histogram::new(), start }
    }

    /// Records a successful call that moved `bytes`.
    pub(crate) fn done(&mut self, call: Call, took: Took, bytes: Bytes) {
        self.calls[call as usize].get_or_insert_default().record(took.latency());
        if let Some(direction) = self.direction(call) {
            direction.latency.record(took.latency());
            direction.bytes += bytes;
            let event = SeriesEvent { at: took.until, bytes: bytes.0, latency: took.latency() };
            direction.series.record(event);
        }
    }

    /// Records a failed call.
    pub(crate) fn failed(&mut self, call: Call, error: &plumb_block::Error) {
        let failure = error.errno().map_or(Failure::Unknown, Failure::Errno);
        if let Some(direction) = self.direction(call) {
            direction.errors.push((failure, 1));
        }
    }

    /// Records a complete transaction.
    pub(crate) fn transaction(&mut self, took: Took) {
        self.transactions.record(took.latency());
    }

    /// Records data that became durable at the end of `took`, from its start.
    pub(crate) fn durable(&mut self, took: Took) {
        self.outcome.durable.record(took.latency());
    }

    fn direction(&mut self, call: Call) -> Option<&mut Direction> {
        match call {
            Call::Read => Some(&mut self.outcome.read),
            Call::Write | Call::Append => Some(&mut self.outcome.write),
            call if call.is_sync() => Some(&mut self.outcome.flush),
            _ => None,
        }
    }

    /// Returns the totals of all completed calls.
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            reads: self.outcome.read.operations(),
            writes: self.outcome.write.operations(),
            flushes: self.outcome.flush.operations(),
            read_bytes: self.outcome.read.bytes,
            write_bytes: self.outcome.write.bytes,
            flush_latency: LiveLatency::from_histogram(&self.outcome.flush.latency),
            ..Totals::default()
        }
    }

    /// Returns the number of completed transactions.
    pub(crate) fn transactions(&self) -> u64 {
        self.transactions.count()
    }

    fn merge(&mut self, other: &Self) {
        self.outcome.merge(&other.outcome);
        self.transactions.merge(&other.transactions);
        for (mine, theirs) in self.calls.iter_mut().zip(&other.calls) {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(theirs);
            }
        }
    }

    /// Returns the results of a run that ended at `end` with up to `threads` calls in flight.
    pub(crate) fn finish(mut self, end: Nanos, ending: Ending, threads: u32) -> LoadOutcome {
        self.outcome.length = end.since(self.start);
        self.outcome.ending = ending;
        self.outcome.in_flight_max = u64::from(threads);
        let calls = NAMES.iter().zip(self.calls);
        let calls =
            calls.filter_map(|((_, name), histogram)| Some(((*name).to_owned(), *histogram?))).collect();
        let transactions = Transactions { latency: self.transactions, calls, notes: Vec::new() };
        LoadOutcome { transactions: Some(Box::new(transactions)), ..self.outcome }
    }
}

/// Records of all threads. A histogram is large, so several threads may share a record.
#[derive(Debug)]
pub(crate) struct Recording {
    books: Vec<Mutex<Book>>,
}

impl Recording {
    /// Largest number of records; more threads share them.
    const BOOKS_MAX: u32 = 8;

    /// Creates the records for `threads` threads.
    pub(crate) fn starting_at(start: Nanos, expected: Nanos, threads: u32) -> Self {
        let books =
            (0..threads.clamp(1, Self::BOOKS_MAX)).map(|_| Mutex::new(Book::starting_at(start, expected)));
        Self { books: books.collect() }
    }

    /// Clears all records for a measurement that starts at `start`.
    pub(crate) fn restart(&self, start: Nanos, expected: Nanos) {
        for book in &self.books {
            *lock(book) = Book::starting_at(start, expected);
        }
    }

    /// Returns the record of a thread.
    pub(crate) fn book(&self, thread: u32) -> &Mutex<Book> {
        &self.books[thread as usize % self.books.len()]
    }

    /// Returns the totals of all completed calls.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for book in &self.books {
            totals.add(&lock(book).totals());
        }
        totals
    }

    /// Returns the sum of all records, for a run that began at `start`.
    pub(crate) fn together(&self, start: Nanos) -> Book {
        let mut together = Book::starting_at(start, Nanos::ZERO);
        for book in &self.books {
            together.merge(&lock(book));
        }
        together
    }
}

/// Locks a mutex even if a thread panicked while holding it. A record is valid after each statement, and the
/// panic itself ends the run.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_at_its_own_place() {
        for (place, (call, name)) in NAMES.iter().enumerate() {
            assert_eq!(*call as usize, place, "{name}");
        }
    }
}
