//! Files and their pages: their places on the device, and whether they are in memory, clean or dirty.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use plumb_block::{Bytes, Errno, Error, ErrorKind, FileId, Nanos, OpenOptions, Result};

use super::Host;
use super::io::{Io, Pages};

/// Size of a page of the page cache.
pub(super) const PAGE: Bytes = Bytes::kib(4);
/// Length of the journal at the start of the device in pages: 64 MiB, the size that mke2fs uses on a small
/// device.
const JOURNAL: u64 = (64 << 20) / PAGE.0;
/// Maximum number of metadata blocks in a commit, however many changes there are.
const COMMIT_BLOCKS_MAX: u64 = 64;
/// Age at which dirty pages are written back.
const EXPIRE: Nanos = Nanos::secs(30);
/// Interval of write-back (`dirty_writeback_centisecs`).
const WRITE_BACK_EVERY: Nanos = Nanos::secs(5);
/// Maximum number of additional pages that a read loads (`read_ahead_kb`).
const READ_AHEAD: u64 = (128 << 10) / PAGE.0;

/// A page of a file.
#[derive(Debug, Clone, Copy, Default)]
struct Page {
    /// Page of the device that holds it; 0, which belongs to the journal, if none.
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
    /// True if size or blocks have changed since the last commit.
    grown: bool,
    /// True if anything else has changed since the last commit, such as the modification time.
    touched: bool,
}

impl File {
    /// Truncates or extends the file; pages beyond the end are no longer dirty. Returns the number of dirty
    /// pages that this removes.
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
    /// Next unused page of the device.
    free: u64,
    /// Next page of the journal.
    journal: u64,
    /// Number of metadata blocks changed since the last commit.
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

    /// Lets the time of a call that copies this many bytes pass, and runs due write-back.
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
        // Pages being written are not clean yet.
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

    /// Marks the dirty pages of a file as clean and returns them as runs on the device.
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
            // The directory, the file's inode, and the inode bitmap.
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

    /// Removes a file without a name; its dirty pages are never written.
    fn forget(&mut self, number: u64) {
        if let Some(file) = self.files.remove(&number) {
            self.dirty -= file.dirty;
        }
    }

    /// Truncates or extends a file.
    pub(super) fn truncate(&mut self, number: u64, size: u64) {
        self.dirty -= self.file(number).cut(size);
        self.changes += 1;
    }

    /// Writes a file's dirty pages and waits for them; this makes nothing durable.
    pub(super) fn write_out(&mut self, number: u64) -> Result<()> {
        let runs = self.take_dirty(number);
        self.io.write(&runs)
    }

    /// Records that a directory was created.
    pub(super) fn made_directory(&mut self) {
        self.changes += 3;
    }

    /// Loads missing pages of a part of a file into memory, with read-ahead for a read.
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

    /// Marks a part of a file as dirty, and allocates space for it.
    pub(super) fn soil(&mut self, number: u64, offset: u64, length: u64) -> Result<()> {
        let (first, end) = (offset / PAGE.0, (offset + length).div_ceil(PAGE.0));
        self.give_room(number, first..end)?;
        // A partially written page must be read first, unless it is new.
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

    /// Allocates consecutive pages of the device for pages of a file.
    pub(super) fn give_room(&mut self, number: u64, pages: std::ops::Range<u64>) -> Result<()> {
        let (mut free, all) = (self.free, self.io.pages());
        let file = self.file(number);
        if (file.pages.len() as u64) < pages.end {
            file.pages.resize(pages.end as usize, Page::default());
        }
        for page in &mut file.pages[pages.start as usize..pages.end as usize] {
            if page.place == 0 {
                page.place = free;
                // A new page has nothing on the device to read.
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

    /// Returns the places of a part of a file on the device.
    pub(super) fn places(&mut self, number: u64, pages: std::ops::Range<u64>) -> Vec<Pages> {
        let file = self.file(number);
        let end = pages.end.min(file.pages.len() as u64);
        let places = file.pages[pages.start.min(end) as usize..end as usize].iter();
        runs(places.map(|page| page.place).filter(|place| *place != 0).collect())
    }

    /// Makes a file durable; with `all` including all of its metadata, otherwise only what is needed to read
    /// it back.
    pub(super) fn sync(&mut self, number: u64, all: bool) -> Result<()> {
        self.write_out(number)?;
        // Some of the file's pages may already be in write-back.
        self.io.drain()?;
        let file = self.file(number);
        let needs_commit = file.grown || (all && file.touched);
        if needs_commit {
            (file.grown, file.touched) = (false, false);
            self.changes += 1;
        }
        if needs_commit { self.commit() } else { self.io.flush() }
    }

    /// Makes all changes of names durable.
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

    /// Commits the journal: a descriptor and the changed blocks, then the commit block.
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

/// Combines places into runs, in device order.
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
