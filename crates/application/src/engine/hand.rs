//! Calls of a file store that are available to a program. Each call is timed and recorded, a failed call ends
//! the run, and no call is made once the run is stopped.

use std::path::Path;
use std::sync::Mutex;

use plumb_block::wait::sleep_unless;
use plumb_block::{Bytes, Clock, ErrorKind, FileId, FileStore, Nanos, OpenOptions};
use plumb_load::{Event, Observer, Phase};

use super::halt::{Halts, Step};
use super::recording::{Book, Call, Took, lock};
use crate::chance::Chance;
use crate::error::Error;
use crate::noise::{AlignedBuffer, Noise};

/// State shared by all hands of a run.
#[derive(Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub(crate) store: &'a dyn FileStore,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) halts: &'a Halts<'a>,
    pub(crate) notes: &'a Mutex<Vec<String>>,
    pub(crate) seed: u64,
}

/// Interface to the calls of one thread.
pub(crate) struct Hand<'a> {
    meter: Meter<'a>,
    /// Random numbers of the thread.
    pub(crate) chance: Chance,
    noise: Noise,
    into: AlignedBuffer,
}

/// Maker and recorder of calls.
#[derive(Clone, Copy)]
struct Meter<'a> {
    bench: Bench<'a>,
    /// Record of the thread; `None`: nothing is recorded.
    book: Option<&'a Mutex<Book>>,
    /// Time excluded from the measurement so far.
    paused: Nanos,
}

impl Meter<'_> {
    /// Returns the time, without the excluded time.
    fn now(&self) -> Nanos {
        self.bench.clock.now().since(self.paused)
    }

    fn call<T>(
        &self,
        call: Call,
        bytes: usize,
        make: impl FnOnce(&dyn FileStore) -> plumb_block::Result<T>,
    ) -> Step<T> {
        self.bench.halts.check()?;
        let from = self.now();
        let answer = make(self.bench.store);
        let took = Took { from, until: self.now() };
        match answer {
            Ok(answer) => {
                if let Some(book) = self.book {
                    lock(book).done(call, took, Bytes(bytes as u64));
                }
                Ok(answer)
            }
            Err(error) => {
                if let Some(book) = self.book {
                    lock(book).failed(call, &error);
                }
                // Makes the other threads end at their next call, rather than after this thread's end.
                self.bench.halts.fail();
                Err(Error::of_call(error, call.is_sync()).into())
            }
        }
    }
}

impl<'a> Hand<'a> {
    /// Creates the hand for the preparation of the files.
    pub(crate) fn preparing(bench: Bench<'a>) -> Self {
        Self::new(bench, None, u64::from(u32::MAX))
    }

    /// Creates a hand with the random numbers of `stream`, which records into `book`.
    pub(crate) fn new(bench: Bench<'a>, book: Option<&'a Mutex<Book>>, stream: u64) -> Self {
        let mut chance = Chance::from_seed(bench.seed, stream);
        let noise = Noise::new(chance.below(u64::MAX));
        let meter = Meter { bench, book, paused: Nanos::ZERO };
        Self { meter, chance, noise, into: AlignedBuffer::default() }
    }

    /// Returns an error if the run must end.
    pub(crate) fn check(&self) -> Step<()> {
        self.meter.bench.halts.check()
    }

    /// Prepares memory and noise for calls of up to `bytes` bytes.
    pub(crate) fn warm(&mut self, bytes: u64) {
        self.noise.next(bytes as usize);
        self.into.first(bytes as usize).0.fill(1);
    }

    /// Returns the conditions that end the run, for threads that wait.
    pub(crate) fn halts(&self) -> &'a Halts<'a> {
        self.meter.bench.halts
    }

    /// Returns the start time of a transaction, or of data that will become durable.
    pub(crate) fn begin(&self) -> Nanos {
        self.meter.now()
    }

    /// Records the end of a transaction that may not be durable.
    pub(crate) fn end(&mut self, began: Nanos) {
        self.record_since(began, Book::transaction);
    }

    /// Records the end of a transaction that the last sync made durable.
    pub(crate) fn end_durable(&mut self, began: Nanos) {
        self.record_since(began, |book, took| {
            book.transaction(took);
            book.durable(took);
        });
    }

    /// Records that the last sync made data durable that was begun at `began`.
    pub(crate) fn durable_since(&mut self, began: Nanos) {
        self.record_since(began, Book::durable);
    }

    fn record_since(&mut self, began: Nanos, put: impl FnOnce(&mut Book, Took)) {
        let took = Took { from: began, until: self.meter.now() };
        if let Some(book) = self.meter.book {
            put(&mut lock(book), took);
        }
    }

    /// Runs `work` without recording it, and excludes its time from the measurement.
    pub(crate) fn unmeasured<T>(&mut self, work: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        let began = self.meter.bench.clock.now();
        let book = self.meter.book.take();
        let done = work(self);
        self.meter.book = book;
        self.meter.paused += self.meter.bench.clock.now().since(began);
        done
    }

    /// Starts the measurement: resets the excluded time.
    pub(crate) fn starts(&mut self) {
        self.meter.paused = Nanos::ZERO;
    }

    /// Returns the excluded time.
    pub(crate) fn paused(&self) -> Nanos {
        self.meter.paused
    }

    /// Sleeps like an application that computes or waits for a user.
    pub(crate) fn think(&self, time: Nanos) -> Step<()> {
        sleep_unless(|| self.check().is_err(), time);
        self.check()
    }

    /// Adds a note to the results, once.
    fn note(&self, note: String) {
        let mut notes = lock(self.meter.bench.notes);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Opens an existing file.
    pub(crate) fn open(&mut self, path: &Path) -> Step<FileId> {
        self.meter.call(Call::Open, 0, |store| store.open(path, OpenOptions::default()))
    }

    /// Opens an existing file for direct I/O. Where the file system does not support that, uses the page
    /// cache and adds a note.
    pub(crate) fn open_direct(&mut self, path: &Path) -> Step<FileId> {
        let options = OpenOptions { direct: true, ..OpenOptions::default() };
        let opened = self.meter.call(Call::Open, 0, |store| match store.open(path, options) {
            Err(error) if error.kind == ErrorKind::Unsupported => Ok(None),
            opened => opened.map(Some),
        })?;
        match opened {
            Some(file) => Ok(file),
            None => {
                self.note(
                    "the file system refused direct I/O: reads and writes went through the page cache".into(),
                );
                self.open(path)
            }
        }
    }

    /// Creates a file.
    pub(crate) fn create(&mut self, path: &Path) -> Step<FileId> {
        let options = OpenOptions { create: true, ..OpenOptions::default() };
        self.meter.call(Call::Create, 0, |store| store.open(path, options))
    }

    /// Closes a file.
    pub(crate) fn close(&mut self, file: FileId) -> Step<()> {
        self.meter.call(Call::Close, 0, |store| store.close(file))
    }

    /// Reads `length` bytes of a file from `offset`, and discards them.
    pub(crate) fn read(&mut self, file: FileId, offset: u64, length: u64) -> Step<()> {
        let (into, _) = self.into.first(length as usize);
        self.meter.call(Call::Read, into.len(), |store| store.read_at(file, Bytes(offset), into))
    }

    /// Writes `length` bytes of noise at `offset`.
    pub(crate) fn write(&mut self, file: FileId, offset: u64, length: u64) -> Step<()> {
        let bytes = self.noise.next(length as usize);
        self.meter.call(Call::Write, bytes.len(), |store| store.write_at(file, Bytes(offset), bytes))
    }

    /// Appends `length` bytes of noise.
    pub(crate) fn append(&mut self, file: FileId, length: u64) -> Step<()> {
        let bytes = self.noise.next(length as usize);
        self.meter.call(Call::Append, bytes.len(), |store| store.append(file, bytes).map(|_at| ()))
    }

    /// Makes the data and all metadata of a file durable.
    pub(crate) fn fsync(&mut self, file: FileId) -> Step<()> {
        self.meter.call(Call::Fsync, 0, |store| store.fsync(file))
    }

    /// Makes the data of a file durable.
    pub(crate) fn fdatasync(&mut self, file: FileId) -> Step<()> {
        self.meter.call(Call::Fdatasync, 0, |store| store.fdatasync(file))
    }

    /// Makes the whole file system durable.
    pub(crate) fn syncfs(&mut self) -> Step<()> {
        self.meter.call(Call::Syncfs, 0, |store| store.syncfs())
    }

    /// Makes the names in a directory durable.
    pub(crate) fn fsync_directory(&mut self, directory: &Path) -> Step<()> {
        self.meter.call(Call::FsyncDirectory, 0, |store| store.fsync_directory(directory))
    }

    /// Renames a file.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> Step<()> {
        self.meter.call(Call::Rename, 0, |store| store.rename(from, to))
    }

    /// Removes a file name.
    pub(crate) fn unlink(&mut self, path: &Path) -> Step<()> {
        self.meter.call(Call::Unlink, 0, |store| store.unlink(path))
    }

    /// Creates a directory.
    pub(crate) fn create_directory(&mut self, directory: &Path) -> Step<()> {
        self.meter.call(Call::CreateDirectory, 0, |store| store.create_directory(directory))
    }
}

/// Progress of the preparation.
pub(crate) struct Preparation<'a> {
    profile: &'a str,
    done: u64,
    of: u64,
    observer: &'a mut dyn Observer,
}

impl<'a> Preparation<'a> {
    /// Creates the progress of preparing the files of `profile`.
    pub(crate) fn new(profile: &'a str, observer: &'a mut dyn Observer) -> Self {
        Self { profile, done: 0, of: 0, observer }
    }

    /// Adds to the approximate number of bytes that will be written.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.of += bytes;
    }

    /// Creates a file with `length` bytes of noise, and closes it.
    pub(crate) fn file(&mut self, hand: &mut Hand<'_>, path: &Path, length: u64) -> Step<()> {
        const PIECE: u64 = 1 << 20;
        let file = hand.create(path)?;
        if self.done == 0 {
            let phase = Phase::LayingOut { path: self.profile.to_owned(), size: Bytes(self.of.max(length)) };
            self.observer.phase(0, &phase, None);
        }
        for offset in (0..length).step_by(PIECE as usize) {
            let piece = PIECE.min(length - offset);
            hand.write(file, offset, piece)?;
            self.done += piece;
            self.observer.on(&Event::Bytes(Bytes(self.done)));
        }
        hand.close(file)
    }
}
