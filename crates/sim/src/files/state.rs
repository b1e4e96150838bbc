//! Files and their pages: where each is on the device, and which are in memory, clean or dirty.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use plumb_block::{Bytes, Errno, Error, ErrorKind, FileId, Nanos, OpenOptions, Result};

use super::Host;
use super::io::{Io, Pages};

/// The unit of the page cache.
pub(super) const PAGE: Bytes = Bytes::kib(4);
/// The journal comes first on the device: 64 MiB, as mke2fs makes it on a small one.
const JOURNAL: u64 = (64 << 20) / PAGE.0;
/// A commit writes no more blocks of metadata than this, however many changes it has.
const COMMIT_BLOCKS_MAX: u64 = 64;
/// Dirty pages are written back at this age.
const EXPIRE: Nanos = Nanos::secs(30);
/// Interval of write-back (`dirty_writeback_centisecs`).
const WRITE_BACK_EVERY: Nanos = Nanos::secs(5);
/// Pages that a read brings in beside those that were requested, at most (`read_ahead_kb`).
const READ_AHEAD: u64 = (128 << 10) / PAGE.0;

/// One page of a file.
#[derive(Debug, Clone, Copy, Default)]
struct Page {
    /// Page of the device that holds it; 0, which is the journal's, if it has none.
    place: u64,
    cached: bool,
    dirty: bool,
}

#[derive(Debug, Default)]
pub(super) struct File {
    pages: Vec<Page>,
    pub(super) size: u64,
    dirty: u64,
    dirty_since: Nanos,
    /// True if size or blocks have changed since the last commit; and whether anything else has, such as the
    /// time of change.
    grown: bool,
    touched: bool,
}

impl File {
    /// Cuts or extends the file; what is beyond is no longer dirty.
    fn cut(&mut self, size: u64) -> u64 {
        let left = self.pages.len().min(size.div_ceil(PAGE.0) as usize);
        let gone = self.pages.drain(left..).filter(|page| page.dirty).count() as u64;
        self.dirty -= gone;
        (self.size, self.grown) = (size, true);
        gone
    }
}

/// An open file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) file: u64,
    pub(super) options: OpenOptions,
}

pub(super) struct State {
    pub(super) io: Io,
    host: Host,
    names: BTreeMap<PathBuf, u64>,
    files: HashMap<u64, File>,
    open: HashMap<FileId, Open>,
    numbers: u64,
    /// The next page of the device that nothing has.
    free: u64,
    /// Where the journal goes on.
    journal: u64,
    /// Blocks of metadata that were changed since the last commit.
    changes: u64,
    dirty: u64,
    looked: Nanos,
}

impl State {
    pub(super) fn new(io: Io, host: Host) -> Self {
        Self {
            io,
            host,
            names: BTreeMap::new(),
            files: HashMap::new(),
            open: HashMap::new(),
            numbers: 0,
            free: JOURNAL,
            journal: 0,
            changes: 0,
            dirty: 0,
            looked: Nanos::ZERO,
        }
    }

    /// Returns the number of dirty pages of all files.
    pub(super) fn dirty_pages(&self) -> u64 {
        self.dirty
    }

    /// Lets the time of a call pass that copies so many bytes, and write-back do what is due.
    pub(super) fn spend(&mut self, bytes: u64) -> Result<()> {
        let copying = bytes * 1_000_000_000 / self.host.copy_per_second.max(1);
        self.io.spend(Nanos(self.host.call.0 + copying))?;
        let now = self.io.now();
        let limit = self.host.memory.0 / PAGE.0;
        if self.dirty > limit / 10 {
            self.write_back(|_| true)?;
        } else if now.since(self.looked) >= WRITE_BACK_EVERY {
            self.looked = now;
            self.write_back(|file| now.since(file.dirty_since) >= EXPIRE)?;
        }
        // Pages that are being written are not clean yet.
        let request = self.host.request_max.0 / PAGE.0;
        while self.io.unwritten() as u64 * request > limit / 5 {
            self.io.wait_for_room()?;
        }
        Ok(())
    }

    fn write_back(&mut self, is_due: impl Fn(&File) -> bool) -> Result<()> {
        let mut due: Vec<u64> = Vec::new();
        due.extend(
            self.files.iter().filter(|(_, file)| file.dirty > 0 && is_due(file)).map(|(number, _)| *number),
        );
        due.sort_unstable();
        for number in due {
            let runs = self.take_dirty(number);
            let most = (self.host.request_max.0 / PAGE.0).max(1);
            let pieces = runs.into_iter().flat_map(move |run| {
                (0..run.count.div_ceil(most)).map(move |piece| Pages {
                    first: run.first + piece * most,
                    count: most.min(run.count - piece * most),
                })
            });
            self.io.write_back(pieces)?;
        }
        Ok(())
    }

    /// Returns the dirty pages of a file, which are clean from now on, as runs on the device.
    fn take_dirty(&mut self, number: u64) -> Vec<Pages> {
        let Some(file) = self.files.get_mut(&number).filter(|file| file.dirty > 0) else { return Vec::new() };
        let mut places: Vec<u64> = Vec::with_capacity(file.dirty as usize);
        for page in file.pages.iter_mut().filter(|page| page.dirty) {
            page.dirty = false;
            places.push(page.place);
        }
        self.dirty -= std::mem::take(&mut file.dirty);
        runs(places)
    }

    pub(super) fn path_of(&self, path: &Path) -> Result<u64> {
        self.names.get(path).copied().ok_or_else(|| missing(path))
    }

    pub(super) fn open(&mut self, path: &Path, options: OpenOptions) -> Result<FileId> {
        let file = if options.create {
            if self.names.contains_key(path) {
                let exists = ErrorKind::Os(Errno(17));
                return Err(Error::new(exists, "create", path.display().to_string()));
            }
            self.numbers += 1;
            self.names.insert(path.to_owned(), self.numbers);
            self.files.insert(self.numbers, File::default());
            // The directory, the file's own block, the map of files.
            self.changes += 3;
            self.numbers
        } else {
            self.path_of(path)?
        };
        self.numbers += 1;
        let id = FileId(self.numbers);
        self.open.insert(id, Open { file, options });
        Ok(id)
    }

    pub(super) fn close(&mut self, id: FileId) -> Result<()> {
        self.open.remove(&id).map(drop).ok_or_else(|| not_open(id))
    }

    pub(super) fn opened(&self, id: FileId) -> Result<Open> {
        self.open
            .get(&id)
            .copied()
            .filter(|open| self.files.contains_key(&open.file))
            .ok_or_else(|| not_open(id))
    }

    pub(super) fn file(&mut self, number: u64) -> &mut File {
        self.files.entry(number).or_default()
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<()> {
        let file = self.names.remove(from).ok_or_else(|| missing(from))?;
        if let Some(replaced) = self.names.insert(to.to_owned(), file) {
            self.forget(replaced);
        }
        self.changes += 2;
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &Path) -> Result<()> {
        let file = self.names.remove(path).ok_or_else(|| missing(path))?;
        self.forget(file);
        self.changes += 3;
        Ok(())
    }

    /// Forgets a file that nobody can name any more: its dirty pages are never written.
    fn forget(&mut self, number: u64) {
        if let Some(file) = self.files.remove(&number) {
            self.dirty -= file.dirty;
        }
    }

    /// Cuts or extends a file.
    pub(super) fn truncate(&mut self, number: u64, size: u64) {
        self.dirty -= self.file(number).cut(size);
        self.changes += 1;
    }

    /// Writes a file's dirty pages, and waits for them; nothing is durable by that.
    pub(super) fn write_out(&mut self, number: u64) -> Result<()> {
        let runs = self.take_dirty(number);
        self.io.write(&runs)
    }

    /// Notes that a directory was made.
    pub(super) fn made_directory(&mut self) {
        self.changes += 3;
    }

    /// Takes part of a file into memory, as far as it is not there: with read-ahead for a read.
    pub(super) fn bring_in(
        &mut self,
        number: u64,
        pages: std::ops::Range<u64>,
        reads_ahead: bool,
    ) -> Result<()> {
        let file = self.file(number);
        let is_missing = |page: &Page| page.place != 0 && !page.cached;
        let there = file.pages.len() as u64;
        let end = pages.end.min(there);
        let misses = (pages.start.min(end)..end).any(|page| is_missing(&file.pages[page as usize]));
        if !misses {
            return Ok(());
        }
        let ahead = if reads_ahead { READ_AHEAD } else { 0 };
        let mut places = Vec::new();
        for page in &mut file.pages[pages.start as usize..(end + ahead).min(there) as usize] {
            if is_missing(page) {
                page.cached = true;
                places.push(page.place);
            }
        }
        self.io.read(&runs(places))
    }

    /// Makes part of a file dirty, and gives it room on the device.
    pub(super) fn soil(&mut self, number: u64, offset: u64, length: u64) -> Result<()> {
        let (first, end) = (offset / PAGE.0, (offset + length).div_ceil(PAGE.0));
        self.give_room(number, first..end)?;
        // A page that is written in part has to be read first, if it is not new.
        let is_part = |page: u64| page * PAGE.0 < offset || (page + 1) * PAGE.0 > offset + length;
        for page in [first, end - 1] {
            if is_part(page) && page * PAGE.0 < self.file(number).size {
                self.bring_in(number, page..page + 1, false)?;
            }
        }
        let now = self.io.now();
        let file = self.file(number);
        let mut soiled = 0;
        for page in &mut file.pages[first as usize..end as usize] {
            soiled += u64::from(!page.dirty);
            (page.cached, page.dirty) = (true, true);
        }
        if file.dirty == 0 {
            file.dirty_since = now;
        }
        file.dirty += soiled;
        file.touched = true;
        if offset + length > file.size {
            file.size = offset + length;
            file.grown = true;
        }
        self.dirty += soiled;
        Ok(())
    }

    /// Gives pages of a file room on the device, one after the other.
    pub(super) fn give_room(&mut self, number: u64, pages: std::ops::Range<u64>) -> Result<()> {
        let (mut free, all) = (self.free, self.io.pages());
        let file = self.file(number);
        if (file.pages.len() as u64) < pages.end {
            file.pages.resize(pages.end as usize, Page::default());
        }
        for page in &mut file.pages[pages.start as usize..pages.end as usize] {
            if page.place == 0 {
                page.place = free;
                // Nothing of it is on the device that would have to be read.
                page.cached = true;
                file.grown = true;
                free += 1;
            }
        }
        self.free = free;
        if free > all {
            return Err(Error::new(ErrorKind::Os(Errno::ENOSPC), "write", "the simulated file system"));
        }
        Ok(())
    }

    /// Returns where part of a file is on the device.
    pub(super) fn places(&mut self, number: u64, pages: std::ops::Range<u64>) -> Vec<Pages> {
        let file = self.file(number);
        let end = pages.end.min(file.pages.len() as u64);
        let places = file.pages[pages.start.min(end) as usize..end as usize].iter();
        runs(places.map(|page| page.place).filter(|place| *place != 0).collect())
    }

    /// Makes a file durable; with `all` its metadata too, and not only those without which it cannot be read
    /// back.
    pub(super) fn sync(&mut self, number: u64, all: bool) -> Result<()> {
        self.write_out(number)?;
        // Some of it may be on the way already.
        self.io.drain()?;
        let file = self.file(number);
        let needs_commit = file.grown || (all && file.touched);
        if needs_commit {
            (file.grown, file.touched) = (false, false);
            self.changes += 1;
        }
        if needs_commit { self.commit() } else { self.io.flush() }
    }

    /// Makes all names durable that were made, changed or removed.
    pub(super) fn sync_names(&mut self) -> Result<()> {
        if self.changes > 0 { self.commit() } else { self.io.flush() }
    }

    /// Makes everything durable.
    pub(super) fn sync_all(&mut self) -> Result<()> {
        self.write_back(|_| true)?;
        self.io.drain()?;
        self.changes += 1;
        self.commit()?;
        for file in self.files.values_mut() {
            (file.grown, file.touched) = (false, false);
            if self.host.cold_after_syncfs {
                file.pages.iter_mut().for_each(|page| page.cached = false);
            }
        }
        Ok(())
    }

    /// A commit of the journal: a descriptor and the blocks that have changed, then the block that makes them
    /// count.
    fn commit(&mut self) -> Result<()> {
        let blocks = 1 + std::mem::take(&mut self.changes).min(COMMIT_BLOCKS_MAX);
        if self.journal + blocks + 1 > JOURNAL {
            self.journal = 0;
        }
        self.io.write(&[Pages { first: self.journal, count: blocks }])?;
        self.io.flush()?;
        self.io.write_durable(self.journal + blocks)?;
        self.journal += blocks + 1;
        Ok(())
    }
}

/// Places as runs, in the order of the device.
fn runs(mut places: Vec<u64>) -> Vec<Pages> {
    places.sort_unstable();
    let mut runs: Vec<Pages> = Vec::new();
    for place in places {
        match runs.last_mut() {
            Some(run) if run.first + run.count == place => run.count += 1,
            _ => runs.push(Pages { first: place, count: 1 }),
        }
    }
    runs
}

fn missing(path: &Path) -> Error {
    Error::new(ErrorKind::Os(Errno(2)), "open", path.display().to_string())
}

fn not_open(id: FileId) -> Error {
    Error::new(ErrorKind::Invalid, "use", format!("file {}", id.0)).because("it is not open, or was removed")
}
