//! Calls of a file store that a program may make. Every call is timed and recorded, and fails the run if it
//! fails; none is made once the run was told to stop.

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

/// State that all hands of a run share.
#[derive(Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub(crate) store: &'a dyn FileStore,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) halts: &'a Halts<'a>,
    pub(crate) notes: &'a Mutex<Vec<String>>,
    pub(crate) seed: u64,
}

/// One thread's calls.
pub(crate) struct Hand<'a> {
    meter: Meter<'a>,
    /// The thread's own choices.
    pub(crate) chance: Chance,
    noise: Noise,
    into: AlignedBuffer,
}

/// Makes a call and records it.
#[derive(Clone, Copy)]
struct Meter<'a> {
    bench: Bench<'a>,
    /// `None`: nothing is recorded.
    book: Option<&'a Mutex<Book>>,
    /// How much time is taken out of the measurement.
    paused: Nanos,
}

impl Meter<'_> {
    /// Returns the time, without that which is not measured.
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
                // The other threads stop at their next call, not only when this one has come to its end.
                self.bench.halts.fail();
                Err(Error::of_call(error, call.is_sync()).into())
            }
        }
    }
}

impl<'a> Hand<'a> {
    /// Returns the hand that prepares the files.
    pub(crate) fn preparing(bench: Bench<'a>) -> Self {
        Self::new(bench, None, u64::from(u32::MAX))
    }

    /// Returns a hand with random numbers of its own by `stream`, that records into `book`.
    pub(crate) fn new(bench: Bench<'a>, book: Option<&'a Mutex<Book>>, stream: u64) -> Self {
        let mut chance = Chance::from_seed(bench.seed, stream);
        let noise = Noise::new(chance.below(u64::MAX));
        let meter = Meter { bench, book, paused: Nanos::ZERO };
        Self { meter, chance, noise, into: AlignedBuffer::default() }
    }

    /// Goes on only if nothing ends the run.
    pub(crate) fn check(&self) -> Step<()> {
        self.meter.bench.halts.check()
    }

    /// Makes memory and noise for calls of so many bytes.
    pub(crate) fn warm(&mut self, bytes: u64) {
        self.noise.next(bytes as usize);
        self.into.first(bytes as usize).0.fill(1);
    }

    /// Returns what ends the run, for those who wait.
    pub(crate) fn halts(&self) -> &'a Halts<'a> {
        self.meter.bench.halts
    }

    /// Returns the start of a transaction, or of what will be durable.
    pub(crate) fn begin(&self) -> Nanos {
        self.meter.now()
    }

    /// Records that a transaction is done; nothing is said of its durability.
    pub(crate) fn end(&mut self, began: Nanos) {
        self.put_down(began, Book::transaction);
    }

    /// Records that a transaction is done, and a sync just made all of it durable.
    pub(crate) fn end_durable(&mut self, began: Nanos) {
        self.put_down(began, |book, took| {
            book.transaction(took);
            book.durable(took);
        });
    }

    /// Records that a sync just made durable what was begun then.
    pub(crate) fn durable_since(&mut self, began: Nanos) {
        self.put_down(began, Book::durable);
    }

    fn put_down(&mut self, began: Nanos, put: impl FnOnce(&mut Book, Took)) {
        let took = Took { from: began, until: self.meter.now() };
        if let Some(book) = self.meter.book {
            put(&mut lock(book), took);
        }
    }

    /// Does something that belongs to no transaction and is not measured; the time it takes is taken out.
    pub(crate) fn unmeasured<T>(&mut self, work: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        let began = self.meter.bench.clock.now();
        let book = self.meter.book.take();
        let done = work(self);
        self.meter.book = book;
        self.meter.paused += self.meter.bench.clock.now().since(began);
        done
    }

    /// Begins measuring: what was not measured so far does not count as taken out.
    pub(crate) fn starts(&mut self) {
        self.meter.paused = Nanos::ZERO;
    }

    /// Returns how much time was taken out.
    pub(crate) fn paused(&self) -> Nanos {
        self.meter.paused
    }

    /// Sleeps, as an application that computes or waits for a user.
    pub(crate) fn think(&self, time: Nanos) -> Step<()> {
        sleep_unless(|| self.check().is_err(), time);
        self.check()
    }

    /// Says something to the reader of the figures, once.
    fn note(&self, note: String) {
        let mut notes = lock(self.meter.bench.notes);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// Opens a file that exists.
    pub(crate) fn open(&mut self, path: &Path) -> Step<FileId> {
        self.meter.call(Call::Open, 0, |store| store.open(path, OpenOptions::default()))
    }

    /// Opens a file that exists for direct I/O; through the page cache where the file system cannot, and says
    /// so.
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

    /// Makes a file.
    pub(crate) fn create(&mut self, path: &Path) -> Step<FileId> {
        let options = OpenOptions { create: true, ..OpenOptions::default() };
        self.meter.call(Call::Create, 0, |store| store.open(path, options))
    }

    /// Closes a file.
    pub(crate) fn close(&mut self, file: FileId) -> Step<()> {
        self.meter.call(Call::Close, 0, |store| store.close(file))
    }

    /// Reads `length` bytes of a file from `offset`; the bytes are thrown away.
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

    /// Makes a file durable with all metadata.
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

    /// Makes the names of a directory durable.
    pub(crate) fn fsync_directory(&mut self, directory: &Path) -> Step<()> {
        self.meter.call(Call::FsyncDirectory, 0, |store| store.fsync_directory(directory))
    }

    /// Gives a file another name.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> Step<()> {
        self.meter.call(Call::Rename, 0, |store| store.rename(from, to))
    }

    /// Removes a name.
    pub(crate) fn unlink(&mut self, path: &Path) -> Step<()> {
        self.meter.call(Call::Unlink, 0, |store| store.unlink(path))
    }

    /// Makes a directory.
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
    /// Returns a preparation of the files of `profile` that has written nothing.
    pub(crate) fn new(profile: &'a str, observer: &'a mut dyn Observer) -> Self {
        Self { profile, done: 0, of: 0, observer }
    }

    /// Adds to the bytes that will be written, about.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.of += bytes;
    }

    /// Makes a file of `length` bytes of noise, written in pieces, and closes it.
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
