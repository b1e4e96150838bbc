//! Failed writes that the page cache had accepted: their files, and the threads that were told.
//!
//! The kernel keeps such an error with the file until the file is synced, and reports it once to each
//! descriptor that was open at that time (Documentation/filesystems/vfs.rst, "Handling errors during
//! writeback"). Afterwards the pages count as clean: they are not written again.

use std::collections::{BTreeMap, BTreeSet};

use plumb_block::{Errno, Nanos};
use plumb_report::document::observation::{Recipient, WritebackError};

use crate::event::Inode;
use crate::syncs::{Place, Processes, Scope};

/// Number of files that are listed individually: a failing device affects all files being written to it.
const FILES_MAX: usize = 1000;
/// Text for an error that the kernel did not report.
const UNKNOWN: &str = "unknown error";

/// Failures so far.
#[derive(Debug, Default)]
pub(crate) struct WritebackErrors {
    by_file: BTreeMap<Inode, Failures>,
    /// Number of failures of further files.
    pub(crate) left_out: u64,
    /// Files with a failure that was not taken yet: the first one, or the first since a report. In the order
    /// of the failures: data fails first, and then the metadata of the file system.
    fresh: Vec<Inode>,
}

/// Failures of one file.
#[derive(Debug)]
struct Failures {
    /// Last error; `None` if the kernel did not report it.
    error: Option<Errno>,
    count: u64,
    first: Nanos,
    last: Nanos,
    /// Path of the file at its first failure, since its last descriptor may be closed at the end.
    path: Option<String>,
    told: BTreeSet<(u32, String)>,
    told_at: Option<Nanos>,
}

impl Failures {
    /// Returns true if the last failure was reported to a thread.
    fn is_reported(&self) -> bool {
        self.told_at.is_some_and(|told| told >= self.last)
    }

    /// Returns the failures in words; times since `start`.
    fn describe(&self, inode: Inode, file: Place, start: Nanos) -> WritebackError {
        let recipient = |(process, name): &(u32, String)| Recipient { process: *process, name: name.clone() };
        WritebackError {
            device: file.device,
            mount_point: file.mount_point,
            file_system: file.file_system,
            inode: inode.number,
            path: file.path,
            error: self.error.map_or_else(|| UNKNOWN.to_owned(), |error| error.to_string()),
            failures: self.count,
            first_at: self.first.since(start).as_secs_f64(),
            last_at: self.last.since(start).as_secs_f64(),
            reported: self.is_reported(),
            reported_to: self.told.iter().map(recipient).collect(),
        }
    }
}

impl WritebackErrors {
    /// Records the failure of a write. Failures of files beyond [`FILES_MAX`] are only counted.
    pub(crate) fn failed(
        &mut self,
        at: Nanos,
        inode: Inode,
        error: Option<Errno>,
        processes: &mut dyn Processes,
    ) {
        let is_room = self.by_file.len() < FILES_MAX || self.by_file.contains_key(&inode);
        if !is_room {
            self.left_out += 1;
            return;
        }
        let failures = self.by_file.entry(inode).or_insert_with(|| Failures {
            error,
            count: 0,
            first: at,
            last: at,
            path: processes.open_file(inode),
            told: BTreeSet::new(),
            told_at: None,
        });
        if failures.count == 0 || failures.is_reported() {
            if !self.fresh.contains(&inode) {
                self.fresh.push(inode);
            }
            failures.error = error;
        }
        failures.count += 1;
        failures.error = error.or(failures.error);
        failures.last = at;
    }

    /// Takes the files in `scope` whose writes have failed since the last call, or since a report; times
    /// since `start`.
    pub(crate) fn take_fresh(
        &mut self,
        start: Nanos,
        scope: &Scope,
        processes: &mut dyn Processes,
    ) -> Vec<WritebackError> {
        let mut errors = Vec::new();
        for inode in std::mem::take(&mut self.fresh) {
            let Some(failures) = self.by_file.get_mut(&inode) else { continue };
            let file = processes.place(inode, failures.path.clone());
            // The path is searched only once: a file system that was shut down shows no names later.
            failures.path.clone_from(&file.path);
            if scope.holds(inode, &file.devices) {
                errors.push(failures.describe(inode, file, start));
            }
        }
        errors
    }

    /// Returns the number of files with a failure that nobody was told of, by device.
    pub(crate) fn unreported(&self) -> impl Iterator<Item = (u32, u64)> {
        let mut by_device = BTreeMap::<u32, u64>::new();
        for (inode, failures) in &self.by_file {
            *by_device.entry(inode.device).or_default() += u64::from(!failures.is_reported());
        }
        by_device.into_iter()
    }

    /// Records that a thread received the error. The report of an error from before the observation is not a
    /// new loss.
    pub(crate) fn reported(
        &mut self,
        at: Nanos,
        thread: u32,
        inode: Inode,
        error: Option<Errno>,
        processes: &mut dyn Processes,
    ) {
        if let Some(failures) = self.by_file.get_mut(&inode) {
            let caller = processes.caller(thread, None);
            failures.told.insert((caller.process, caller.name));
            failures.told_at = Some(at);
            failures.error = error.or(failures.error);
        }
    }

    /// Returns the failures in `scope` by file, unreported ones first, and files before devices; times since
    /// `start`.
    pub(crate) fn finish(
        &self,
        start: Nanos,
        scope: &Scope,
        processes: &mut dyn Processes,
    ) -> Vec<WritebackError> {
        let mut errors: Vec<WritebackError> = Vec::new();
        for (inode, failures) in &self.by_file {
            let file = processes.place(*inode, failures.path.clone());
            if !scope.holds(*inode, &file.devices) {
                continue;
            }
            errors.push(failures.describe(*inode, file, start));
        }
        errors.sort_by_key(|error| (error.reported, error.mount_point.is_none()));
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syncs::Caller;

    struct Two;

    impl Processes for Two {
        fn caller(&mut self, thread: u32, _: Option<u32>) -> Caller {
            Caller { process: thread / 10, name: format!("p{}", thread / 10), ..Caller::default() }
        }

        fn open_file(&mut self, inode: Inode) -> Option<String> {
            (inode.number == 12).then(|| "/data/open".to_owned())
        }

        fn place(&mut self, inode: Inode, path: Option<String>) -> Place {
            let devices = vec![rustix::fs::makedev(7, inode.device & 0xff)];
            Place { path, device: "loop0".to_owned(), devices, ..Place::default() }
        }
    }

    fn inode(minor: u32, number: u64) -> Inode {
        Inode { device: 7 << 20 | minor, number }
    }

    #[test]
    fn an_error_is_told_apart_by_file_and_by_whether_anybody_heard_of_it() {
        let mut errors = WritebackErrors::default();
        errors.reported(Nanos::millis(1), 11, inode(0, 99), None, &mut Two);
        errors.failed(Nanos::millis(2), inode(0, 12), Some(Errno::EIO), &mut Two);
        errors.failed(Nanos::millis(4), inode(0, 12), None, &mut Two);
        errors.failed(Nanos::millis(5), inode(0, 13), Some(Errno::EIO), &mut Two);
        let fresh = |errors: &mut WritebackErrors| {
            let taken = errors.take_fresh(Nanos::millis(1), &Scope::All, &mut Two).into_iter();
            taken.map(|error| (error.inode, error.error)).collect::<Vec<_>>()
        };
        let input_output = Errno::EIO.to_string();
        assert_eq!(fresh(&mut errors), [(12, input_output.clone()), (13, input_output)]);
        assert_eq!(fresh(&mut errors), [], "each once");
        errors.reported(Nanos::millis(6), 21, inode(0, 12), Some(Errno(28)), &mut Two);
        let seen = |errors: &WritebackErrors, scope: Scope| {
            let all = errors.finish(Nanos::millis(1), &scope, &mut Two).into_iter();
            all.map(|error| (error.inode, error.failures, error.reported, error.reported_to))
                .collect::<Vec<_>>()
        };
        let told = vec![Recipient { process: 2, name: "p2".to_owned() }];
        let both = [(13, 1, false, Vec::new()), (12, 2, true, told.clone())];
        assert_eq!(seen(&errors, Scope::All), both);
        assert_eq!(
            errors.finish(Nanos::millis(1), &Scope::All, &mut Two)[1].path.as_deref(),
            Some("/data/open")
        );
        let last = |errors: &WritebackErrors| {
            let mut all = errors.finish(Nanos::millis(1), &Scope::All, &mut Two).into_iter();
            all.find(|error| error.inode == 12).map(|error| error.error)
        };
        assert_eq!(last(&errors), Some(Errno(28).to_string()), "the error that was told");
        // Nobody knows of a failure after that.
        errors.failed(Nanos::millis(9), inode(0, 12), None, &mut Two);
        assert_eq!(
            (last(&errors), fresh(&mut errors)),
            (Some(UNKNOWN.to_owned()), vec![(12, UNKNOWN.to_owned())])
        );
        assert_eq!(seen(&errors, Scope::All)[0], (12, 3, false, told));
        let of = |minor| Scope::Devices(BTreeSet::from([rustix::fs::makedev(7, minor)]));
        assert_eq!((seen(&errors, of(0)).len(), seen(&errors, of(1)).len()), (2, 0));
    }

    #[test]
    fn a_device_that_fails_with_many_files_takes_no_more_memory_than_for_so_many() {
        let mut errors = WritebackErrors::default();
        (0..5000).for_each(|number| errors.failed(Nanos(1), inode(0, number), None, &mut Two));
        assert_eq!((errors.by_file.len(), errors.left_out), (FILES_MAX, 4000));
    }
}
