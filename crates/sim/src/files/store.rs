//! The calls of the file system.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Device, FileId, FileStore, OpenOptions, Result, VirtualClock};

use super::Host;
use super::io::Io;
use super::state::{PAGE, State};

/// A file system on a device in virtual time. See the [module](super) for what is modelled.
#[derive(Clone)]
pub struct SimulatedFiles(Arc<Mutex<State>>);

impl SimulatedFiles {
    /// Creates an empty file system on all of `device`, which uses `clock`.
    ///
    /// # Errors
    /// If the device cannot open a queue.
    pub fn new(device: Arc<dyn Device>, clock: &Arc<VirtualClock>, host: Host) -> Result<Self> {
        let io = Io::open(device, clock, host.request_max)?;
        Ok(Self(Arc::new(Mutex::new(State::new(io, host)))))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic of another caller no result may be based on the simulation, which that caller
        // reports.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the dirty bytes in memory of all files: data that a power cut loses and for which no
    /// write-back has started.
    pub fn dirty_bytes(&self) -> Bytes {
        Bytes(self.lock().dirty_pages() * PAGE.0)
    }

    fn called(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        state.spend(0)?;
        Ok(state)
    }
}

/// Returns the pages that contain a part of a file.
fn pages(offset: u64, length: u64) -> std::ops::Range<u64> {
    offset / PAGE.0..(offset + length).div_ceil(PAGE.0)
}

impl FileStore for SimulatedFiles {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<FileId> {
        self.called()?.open(path, options)
    }

    fn close(&self, file: FileId) -> Result<()> {
        self.called()?.close(file)
    }

    fn read_at(&self, file: FileId, offset: Bytes, into: &mut [u8]) -> Result<()> {
        let mut state = self.lock();
        let open = state.opened(file)?;
        let asked = pages(offset.0, into.len() as u64);
        if open.options.direct {
            state.spend(0)?;
            let runs = state.places(open.file, asked);
            state.io.read(&runs)?;
        } else {
            state.spend(into.len() as u64)?;
            state.bring_in(open.file, asked, true)?;
        }
        into.fill(0);
        Ok(())
    }

    fn write_at(&self, file: FileId, offset: Bytes, bytes: &[u8]) -> Result<()> {
        let mut state = self.lock();
        let (open, length) = (state.opened(file)?, bytes.len() as u64);
        if length == 0 {
            return state.spend(0);
        }
        if open.options.direct {
            state.spend(0)?;
            state.give_room(open.file, pages(offset.0, length))?;
            let runs = state.places(open.file, pages(offset.0, length));
            state.io.write(&runs)?;
        } else {
            state.spend(length)?;
            state.soil(open.file, offset.0, length)?;
        }
        if open.options.dsync { state.sync(open.file, false) } else { Ok(()) }
    }

    fn append(&self, file: FileId, bytes: &[u8]) -> Result<Bytes> {
        let at = {
            let mut state = self.lock();
            let open = state.opened(file)?;
            Bytes(state.file(open.file).size)
        };
        self.write_at(file, at, bytes)?;
        Ok(at)
    }

    fn truncate(&self, file: FileId, size: Bytes) -> Result<()> {
        let mut state = self.called()?;
        let open = state.opened(file)?;
        state.truncate(open.file, size.0);
        Ok(())
    }

    fn fsync(&self, file: FileId) -> Result<()> {
        let mut state = self.called()?;
        let open = state.opened(file)?;
        state.sync(open.file, true)
    }

    fn fdatasync(&self, file: FileId) -> Result<()> {
        let mut state = self.called()?;
        let open = state.opened(file)?;
        state.sync(open.file, false)
    }

    fn sync_file_range(&self, file: FileId, _offset: Bytes, _length: Bytes) -> Result<()> {
        let mut state = self.called()?;
        let open = state.opened(file)?;
        state.write_out(open.file)
    }

    fn syncfs(&self) -> Result<()> {
        self.called()?.sync_all()
    }

    fn fsync_directory(&self, _directory: &Path) -> Result<()> {
        self.called()?.sync_names()
    }

    fn create_directory(&self, _directory: &Path) -> Result<()> {
        self.called()?.made_directory();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.called()?.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        self.called()?.unlink(path)
    }
}
