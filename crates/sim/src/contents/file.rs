//! Backing file of a drive. Adjacent writes are combined.
//!
//! The first failure is kept: after it, the contents of the file are unknown.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use plumb_block::Errno;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};

use super::shape::BackingError;

/// Maximum size of a combined write in bytes.
const WRITE_MAX: usize = 1 << 20;

/// The file, with a write being combined.
#[derive(Debug)]
pub(super) struct BackingFile {
    file: File,
    /// Offset of the combined bytes.
    at: u64,
    collected: Vec<u8>,
    /// First failure.
    pub(super) failed: Option<BackingError>,
    has_unsynced: bool,
}

impl BackingFile {
    pub(super) const fn new(file: File) -> Self {
        Self { file, at: 0, collected: Vec::new(), failed: None, has_unsynced: false }
    }

    /// Writes with a delay, at the latest at the next [`drain`](Self::drain).
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let is_next = offset == self.at + self.collected.len() as u64;
        if !is_next || self.collected.len() + bytes.len() > WRITE_MAX {
            self.drain();
            self.at = offset;
        }
        self.collected.extend_from_slice(bytes);
    }

    /// Writes the combined bytes.
    pub(super) fn drain(&mut self) {
        if self.collected.is_empty() {
            return;
        }
        if self.failed.is_none() {
            self.has_unsynced = true;
            let written = self.file.write_all_at(&self.collected, self.at);
            self.note("write", self.at, written);
        }
        self.collected.clear();
    }

    /// Deallocates space, which then reads as zeroes.
    pub(super) fn punch(&mut self, offset: u64, length: u64) {
        self.drain();
        if self.failed.is_some() || length == 0 {
            return;
        }
        self.has_unsynced = true;
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, mode, offset, length) {
            // The file system does not support holes, so write zeroes.
            Err(rustix::io::Errno::OPNOTSUPP) => self.zero(offset, length),
            punched => self.note("punch a hole in", offset, punched.map_err(io::Error::from)),
        }
    }

    /// Writes zeroes that occupy space.
    pub(super) fn zero(&mut self, offset: u64, length: u64) {
        let zeroes = [0; 1 << 16];
        let mut at = offset;
        while at < offset + length && self.failed.is_none() {
            let part = (offset + length - at).min(zeroes.len() as u64) as usize;
            self.write(at, &zeroes[..part]);
            at += part as u64;
        }
        self.drain();
    }

    /// Reads; the part beyond the end of the file is zeroes. There must be no combined bytes pending.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), BackingError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => {
                    into[done..].fill(0);
                    break;
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failure("read", offset, &error)),
            }
        }
        Ok(())
    }

    /// Returns whether there is data at `offset`, and the end of that state; `None` if the file system does
    /// not report it.
    pub(super) fn state(&self, offset: u64) -> Option<(bool, u64)> {
        match seek(&self.file, SeekFrom::Data(offset)) {
            Err(rustix::io::Errno::NXIO) => Some((false, u64::MAX)),
            Ok(data) if data > offset => Some((false, data)),
            Ok(_) => Some((true, seek(&self.file, SeekFrom::Hole(offset)).ok()?)),
            Err(_) => None,
        }
    }

    /// Makes the file durable on the host.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.drain();
        if let Some(failed) = self.failed {
            return Err(io::Error::from_raw_os_error(failed.errno.0));
        }
        if std::mem::take(&mut self.has_unsynced) {
            let synced = self.file.sync_data();
            if let Err(error) = &synced {
                self.failed = Some(failure("sync", 0, error));
            }
            return synced;
        }
        Ok(())
    }

    fn note(&mut self, operation: &'static str, offset: u64, done: io::Result<()>) {
        if let Err(error) = done {
            self.failed.get_or_insert(failure(operation, offset, &error));
        }
    }
}

fn failure(operation: &'static str, offset: u64, error: &io::Error) -> BackingError {
    let errno = error.raw_os_error().map_or(Errno::EIO, Errno);
    BackingError { operation, offset, errno }
}
