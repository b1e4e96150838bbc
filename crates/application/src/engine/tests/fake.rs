//! Store in memory that records the calls of each thread, and fails on request.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use plumb_block::{
    Bytes, Clock, Errno, Error, ErrorKind, FileId, FileStore, Nanos, OpenOptions, Result, VirtualClock,
};

use crate::engine::lock;

/// Call at which the store fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailurePlan {
    pub(crate) verb: &'static str,
    /// Number of the failing call among those of the verb, from 1.
    pub(crate) call: usize,
    pub(crate) errno: Errno,
}

/// Recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreCall {
    pub(crate) thread: ThreadId,
    pub(crate) verb: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) offset: u64,
}

/// Existing files and recorded calls.
#[derive(Default)]
pub(crate) struct State {
    sizes: HashMap<PathBuf, u64>,
    open: HashMap<FileId, (PathBuf, bool)>,
    made: Vec<StoreCall>,
    calls: HashMap<&'static str, usize>,
    next: u64,
}

#[derive(Default)]
pub(crate) struct FakeStore {
    pub(crate) state: Mutex<State>,
    pub(crate) failing: Option<FailurePlan>,
    /// Number of calls after which the stop flag is set.
    pub(crate) stop_after: Option<usize>,
    pub(crate) stop: AtomicBool,
    pub(crate) refuses_direct: bool,
    /// Clock that each call advances by [`CALL_TAKES`](Self::CALL_TAKES).
    pub(crate) clock: VirtualClock,
}

impl FakeStore {
    pub(crate) const CALL_TAKES: Nanos = Nanos::micros(1);

    pub(crate) fn made(&self) -> Vec<StoreCall> {
        lock(&self.state).made.clone()
    }

    /// Returns the calls after the preparation, which ends with the first syncfs, as text.
    pub(crate) fn lines(&self) -> Vec<String> {
        let made = self.made();
        let prepared = made.iter().position(|made| made.verb == "syncfs").map_or(0, |place| place + 1);
        made[prepared..].iter().map(StoreCall::line).collect()
    }

    /// Returns the calls of each thread except the preparing one, in a stable order.
    pub(crate) fn lines_of_threads(&self) -> Vec<Vec<String>> {
        let mut threads: HashMap<ThreadId, Vec<String>> = HashMap::new();
        for made in self.made() {
            threads.entry(made.thread).or_default().push(made.line());
        }
        threads.remove(&std::thread::current().id());
        let mut lines: Vec<Vec<String>> = threads.into_values().collect();
        lines.sort();
        lines
    }

    fn make(&self, verb: &'static str, path: &Path, offset: u64, bytes: u64) -> Result<()> {
        let mut state = lock(&self.state);
        self.clock.advance_to(self.clock.now() + Self::CALL_TAKES);
        state.made.push(StoreCall {
            thread: std::thread::current().id(),
            verb,
            path: path.to_owned(),
            bytes,
            offset,
        });
        if self.stop_after == Some(state.made.len()) {
            self.stop.store(true, Ordering::Release);
        }
        let calls = state.calls.entry(verb).or_default();
        *calls += 1;
        match self.failing {
            Some(failing) if failing.verb == verb && failing.call == *calls => {
                Err(Error::new(ErrorKind::Os(failing.errno), verb, path.display().to_string()))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, file: FileId) -> PathBuf {
        lock(&self.state).open.get(&file).expect("the file is open").0.clone()
    }

    fn is_direct(&self, file: FileId) -> bool {
        lock(&self.state).open.get(&file).expect("the file is open").1
    }

    fn check_direct(&self, file: FileId, offset: u64, bytes: &[u8]) {
        if self.is_direct(file) {
            assert_eq!(bytes.as_ptr().align_offset(4096), 0, "memory of direct I/O is aligned");
            assert!(
                offset.is_multiple_of(4096) && bytes.len().is_multiple_of(4096),
                "{offset} {}",
                bytes.len()
            );
        }
    }
}

impl StoreCall {
    fn line(&self) -> String {
        let path = self.path.display();
        match self.verb {
            "read" | "write" => format!("{} {path} {}+{}", self.verb, self.offset, self.bytes),
            "append" => format!("append {path} {}", self.bytes),
            verb => format!("{verb} {path}").trim_end().to_owned(),
        }
    }
}

impl FileStore for FakeStore {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<FileId> {
        let verb = if options.create { "create" } else { "open" };
        self.make(verb, path, 0, 0)?;
        if options.direct && self.refuses_direct {
            return Err(Error::new(ErrorKind::Unsupported, "open", path.display().to_string()));
        }
        let mut state = lock(&self.state);
        assert_eq!(options.create, !state.sizes.contains_key(path), "{verb} {}", path.display());
        state.sizes.entry(path.to_owned()).or_insert(0);
        state.next += 1;
        let id = FileId(state.next);
        state.open.insert(id, (path.to_owned(), options.direct));
        Ok(id)
    }

    fn close(&self, file: FileId) -> Result<()> {
        self.make("close", &self.path(file), 0, 0)?;
        lock(&self.state).open.remove(&file);
        Ok(())
    }

    fn read_at(&self, file: FileId, offset: Bytes, into: &mut [u8]) -> Result<()> {
        let path = self.path(file);
        self.check_direct(file, offset.0, into);
        let size = lock(&self.state).sizes[&path];
        assert!(offset.0 + into.len() as u64 <= size, "read past the end of {}: {size}", path.display());
        self.make("read", &path, offset.0, into.len() as u64)
    }

    fn write_at(&self, file: FileId, offset: Bytes, bytes: &[u8]) -> Result<()> {
        let path = self.path(file);
        self.check_direct(file, offset.0, bytes);
        self.make("write", &path, offset.0, bytes.len() as u64)?;
        let mut state = lock(&self.state);
        let size = state.sizes.get_mut(&path).expect("an open file has a size");
        *size = (*size).max(offset.0 + bytes.len() as u64);
        Ok(())
    }

    fn append(&self, file: FileId, bytes: &[u8]) -> Result<Bytes> {
        let path = self.path(file);
        self.make("append", &path, 0, bytes.len() as u64)?;
        let mut state = lock(&self.state);
        let size = state.sizes.get_mut(&path).expect("an open file has a size");
        let at = *size;
        *size += bytes.len() as u64;
        Ok(Bytes(at))
    }

    fn truncate(&self, file: FileId, size: Bytes) -> Result<()> {
        self.make("truncate", &self.path(file), 0, size.0)
    }

    fn fsync(&self, file: FileId) -> Result<()> {
        self.make("fsync", &self.path(file), 0, 0)
    }

    fn fdatasync(&self, file: FileId) -> Result<()> {
        self.make("fdatasync", &self.path(file), 0, 0)
    }

    fn sync_file_range(&self, file: FileId, offset: Bytes, length: Bytes) -> Result<()> {
        self.make("sync_file_range", &self.path(file), offset.0, length.0)
    }

    fn syncfs(&self) -> Result<()> {
        self.make("syncfs", Path::new(""), 0, 0)
    }

    fn fsync_directory(&self, directory: &Path) -> Result<()> {
        self.make("fsync-directory", directory, 0, 0)
    }

    fn create_directory(&self, directory: &Path) -> Result<()> {
        self.make("mkdir", directory, 0, 0)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.make("rename", Path::new(&format!("{} -> {}", from.display(), to.display())), 0, 0)?;
        let mut state = lock(&self.state);
        let size = state.sizes.remove(from).expect("what is renamed exists");
        state.sizes.insert(to.to_owned(), size);
        Ok(())
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        self.make("unlink", path, 0, 0)?;
        lock(&self.state).sizes.remove(path).expect("what is removed exists");
        Ok(())
    }
}
