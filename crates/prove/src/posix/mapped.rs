//! Files that a program has mapped shared and writable, so that stores change them.

use std::fs::File;
use std::ops::Range;

use super::arguments::{number, word};
use super::layout::Inode;
use super::mirror::Mirror;
use super::tasks::{self, Mapping};
use crate::trace::Call;

/// File with a shared writable mapping.
struct MappedFile {
    inode: Inode,
    number: u64,
    file: File,
}

/// All files that the program has mapped so far.
#[derive(Default)]
pub(super) struct MappedFiles(Vec<MappedFile>);

impl MappedFiles {
    /// Adds a file with this inode number in its file system, unless it is listed.
    pub(super) fn add(&mut self, inode: Inode, number: u64, file: File) {
        if !self.0.iter().any(|mapped| mapped.inode == inode) {
            self.0.push(MappedFile { inode, number, file });
        }
    }

    /// Returns true if no other thread can have stored to a mapped file during the call of `thread`.
    pub(super) fn is_alone(&self, thread: u32) -> bool {
        self.0.is_empty() || {
            let numbers: Vec<u64> = self.0.iter().map(|mapped| mapped.number).collect();
            tasks::mapping(thread, &numbers) <= 1
        }
    }

    /// Updates the model with the contents of all mapped files.
    pub(super) fn compare(&self, mirror: &mut Mirror) {
        self.0.iter().for_each(|mapped| mirror.compare_file(mapped.inode, &mapped.file, None));
    }

    /// Returns the parts of files that an msync(2) covers.
    pub(super) fn synced(&self, call: &Call, mirror: &Mirror) -> Vec<(Inode, Range<u64>)> {
        let argument = |place| word(call, place).and_then(number);
        let (Some(start), Some(length)) = (argument(0), argument(1)) else { return Vec::new() };
        let mut synced = Vec::new();
        for Mapping { memory, offset, inode } in Mapping::read(call.thread) {
            let within = memory.start.max(start)..memory.end.min(start.saturating_add(length));
            let Some(mapped) = self.0.iter().find(|mapped| mapped.number == inode) else { continue };
            if !within.is_empty() {
                let from = offset + (within.start - memory.start);
                let range = from..from + (within.end - within.start);
                let end = mirror.model.size(mapped.inode).min(range.end);
                synced.push((mapped.inode, range.start..end.max(range.start)));
            }
        }
        synced
    }
}
