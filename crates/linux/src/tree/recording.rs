//! A tree that records every answer of another one.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::absence::{Absence, Answer};
use super::resolve::resolve;
use super::{Attributes, RecordedTree, Stat, Tree, WriteLimits};

/// Forwards every question to another tree and records the answers.
///
/// Answers are stored under the path without links, and the links separately, as in the tree itself.
#[derive(Debug)]
pub struct RecordingTree<'a, T: ?Sized> {
    tree: &'a T,
    record: Mutex<RecordedTree>,
}

impl<'a, T: Tree + ?Sized> RecordingTree<'a, T> {
    /// Creates a recorder for `tree` with an empty recording.
    pub fn new(tree: &'a T) -> Self {
        Self { tree, record: Mutex::new(RecordedTree::new()) }
    }

    /// Returns the recording.
    pub fn into_recorded(self) -> RecordedTree {
        self.record.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self) -> MutexGuard<'_, RecordedTree> {
        // A panic elsewhere leaves the recording consistent: each answer is added by one call.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `path` without links, and records the links on the way. Facts about this process stay under
    /// /proc/self, because its number means nothing to a reader of the recording.
    fn place(&self, path: &str) -> String {
        if path.starts_with("/proc/self/") {
            return path.to_owned();
        }
        resolve(path, |at| self.link_here(at)).unwrap_or_else(|_| path.to_owned())
    }

    /// Returns the link at `path`, whose parents must not be links.
    fn link_here(&self, path: &str) -> Answer<String> {
        let answer = self.tree.link(path);
        match &answer {
            Ok(target) => self.record().put_link(path, target),
            Err(Absence::NotThere | Absence::NotRecorded) => {}
            Err(absence) => self.record().put_absence(path, *absence),
        }
        answer
    }

    fn keep<A>(
        &self,
        path: &str,
        answer: Answer<A>,
        put: impl FnOnce(&mut RecordedTree, &str, &A),
    ) -> Answer<A> {
        let place = self.place(path);
        let mut record = self.record();
        match &answer {
            Ok(found) => put(&mut record, &place, found),
            Err(absence) => record.put_absence(&place, *absence),
        }
        answer
    }

    /// Records an answer unless it is an absence.
    fn keep_found<A: Copy>(
        &self,
        path: &str,
        answer: Answer<A>,
        put: fn(&mut RecordedTree, &str, A),
    ) -> Answer<A> {
        if let Ok(found) = answer {
            let place = self.place(path);
            put(&mut self.record(), &place, found);
        }
        answer
    }
}

impl<T: Tree + ?Sized> Tree for RecordingTree<'_, T> {
    fn read(&self, path: &str) -> Answer<Vec<u8>> {
        self.keep(path, self.tree.read(path), |record, place, bytes| record.put_bytes(place, bytes))
    }

    fn list(&self, path: &str) -> Answer<Vec<String>> {
        self.keep(path, self.tree.list(path), |record, place, names| record.put_names(place, names))
    }

    fn link(&self, path: &str) -> Answer<String> {
        let Some((parent, name)) = path.trim_end_matches('/').rsplit_once('/') else {
            return self.tree.link(path);
        };
        self.link_here(&format!("{}/{name}", self.place(parent).trim_end_matches('/')))
    }

    fn stat(&self, path: &str) -> Answer<Stat> {
        self.keep_found(path, self.tree.stat(path), RecordedTree::put_stat)
    }

    fn attributes(&self, path: &str) -> Answer<Attributes> {
        self.keep_found(path, self.tree.attributes(path), RecordedTree::put_attributes)
    }

    fn write_limits(&self, path: &str) -> Answer<WriteLimits> {
        self.keep_found(path, self.tree.write_limits(path), RecordedTree::put_write_limits)
    }

    fn canonical(&self, path: &str) -> Answer<String> {
        let answer = self.tree.canonical(path);
        if let Ok(found) = &answer {
            if path.starts_with('/') {
                self.place(path);
            } else {
                self.record().put_relative(path, found);
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_process_is_not_recorded() {
        let mut source = RecordedTree::new();
        source.put_link("/proc/self", "4711");
        source.put_text("/proc/4711/mountinfo", "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        let recorder = RecordingTree::new(&source);
        recorder.read("/proc/self/mountinfo").unwrap();
        assert_eq!(recorder.into_recorded().paths(), ["/proc/self/mountinfo"]);
    }

    #[test]
    fn a_recording_answers_as_the_tree_did() {
        let mut source = RecordedTree::new();
        source.put_link("/sys/block/sda", "../devices/sda");
        source.put_text("/sys/devices/sda/size", "8\n");
        source.put_text("/sys/devices/sda/other", "not asked");
        source.put_link("/sys/devices/sda/device", "../../bus/scsi");
        source.put_link("/sys/bus/scsi/driver", "../sd");
        source.put_absence("/sys/devices/sda/secret", Absence::Denied);
        let recorder = RecordingTree::new(&source);
        let ask = |tree: &dyn Tree| {
            (
                tree.list("/sys/block/sda"),
                tree.read("/sys/block/sda/size"),
                tree.read("/sys/block/sda/secret"),
                tree.read("/sys/block/sda/none"),
                tree.canonical("/sys/block/sda"),
                tree.link("/sys/block/sda"),
                tree.link("/sys/block/sda/device/driver"),
                tree.link("/sys/block/sda/device"),
            )
        };
        let answers = ask(&recorder);
        let recorded = recorder.into_recorded();
        assert_eq!(ask(&recorded), answers);
        assert_eq!(recorded.read("/sys/devices/sda/other"), Err(Absence::NotRecorded));
    }
}
