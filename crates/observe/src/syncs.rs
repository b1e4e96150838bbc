//! Calls that make data durable: conversion of their begin and end events to finished calls with their
//! callers.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use plumb_block::Nanos;
use plumb_linux::tree::DeviceNumber;

use crate::event::{Inode, SyncCall};
use crate::file_systems::FileSystem;
use crate::tasks::Tasks;

/// Caller of a sync, and the file of the call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Process number; 0 if the process has ended.
    pub process: u32,
    /// Ancestors of the process, the nearest first.
    pub parents: Vec<u32>,
    /// Name of the process.
    pub name: String,
    /// Path of the process's cgroup, as in `/proc/PID/cgroup`; empty if unknown.
    pub cgroup: String,
    /// File of the call; `None` if the call has no file, or it is no longer open.
    pub file: Option<SyncedFile>,
}

/// A file that was made durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncedFile {
    /// Path as the kernel names it.
    pub path: String,
    /// Number of the device that holds the file, and for a device file also the number of the device that it
    /// stands for, as stat(2) returns them.
    pub devices: Vec<u64>,
}

/// Place of a file with a known inode number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// A path to the file, if known.
    pub path: Option<String>,
    /// Kernel name of the device of the file's file system; the source of the mount, or `MAJOR:MINOR`, if
    /// there is no single device.
    pub device: String,
    /// Mount point of the file's file system.
    pub mount_point: Option<String>,
    /// Type of the file's file system.
    pub file_system: Option<String>,
    /// Numbers of the device, as stat(2) returns them.
    pub devices: Vec<u64>,
}

/// Lookup of the processes and files of this machine.
pub trait Processes {
    /// Returns the process of a thread, and the file of its descriptor `fd`.
    fn caller(&mut self, thread: u32, fd: Option<u32>) -> Caller;

    /// Returns the process of a thread, without a file.
    fn process(&mut self, thread: u32) -> Arc<Caller> {
        Arc::new(self.caller(thread, None))
    }

    /// Returns the file system with this device number, as in events.
    fn file_system(&mut self, _: u32) -> Option<Arc<FileSystem>> {
        None
    }

    /// Returns the file system of a request of a device: by its sector there, or because it is the only one.
    fn file_system_at(&mut self, _: u32, _: Option<u64>) -> Option<Arc<FileSystem>> {
        None
    }

    /// Returns the path of a file that some process has open.
    fn open_file(&mut self, _: Inode) -> Option<String> {
        None
    }

    /// Returns the place of a file with this path, if known.
    fn place(&mut self, _: Inode, path: Option<String>) -> Place {
        Place { path, ..Place::default() }
    }
}

/// Returns the cgroup of a thread that has ended: that of its nearest ancestor that still runs; empty if
/// there is none. A child begins in the cgroup of its parent.
pub(crate) fn cgroup_of_ended(tasks: &Tasks, thread: u32, processes: &mut dyn Processes) -> String {
    let cgroups = tasks.lineage(thread).skip(1).map(|task| processes.process(task).cgroup.clone());
    cgroups.into_iter().find(|cgroup| !cgroup.is_empty()).unwrap_or_default()
}

/// Processes whose calls count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Calls of all processes.
    All,
    /// Calls of a process and of its descendants: the server processes of a database are children of the
    /// process that was started.
    Process(u32),
    /// Calls on files and devices with these numbers, as stat(2) returns them. sync(2), which affects all
    /// devices, and calls with an unknown file are listed too, but not counted among them.
    Devices(BTreeSet<u64>),
}

/// Location of the file of a call: on the target, or elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Here,
    Elsewhere,
    NotKnown,
}

impl Scope {
    /// Returns the location of the file of a call. The report of the file system has priority, then the
    /// descriptor; otherwise a thread that sends a request to a device during its sync is assumed to sync
    /// data on that device.
    fn side(&self, caller: &Caller, begun: &Begun) -> Side {
        let here = match self {
            Self::All => Some(true),
            Self::Process(process) => Some(caller.process == *process || caller.parents.contains(process)),
            Self::Devices(_) if begun.call == SyncCall::Sync => None,
            Self::Devices(devices) => {
                let opened = |file: &SyncedFile| file.devices.iter().any(|device| devices.contains(device));
                let by_file = || caller.file.as_ref().map(opened);
                begun.is_told_here.or_else(by_file).or_else(|| begun.asked_here.then_some(true))
            }
        };
        match here {
            Some(true) => Side::Here,
            Some(false) => Side::Elsewhere,
            None => Side::NotKnown,
        }
    }

    /// Returns true if a file on these devices, by their numbers as stat(2) returns them, is part of the
    /// target. If the target is a process all files are, since the writer of a failed write is unknown.
    pub(crate) fn holds(&self, inode: Inode, numbers: &[u64]) -> bool {
        match self {
            Self::All | Self::Process(_) => true,
            Self::Devices(devices) => {
                self.is_of(inode.device) || numbers.iter().any(|number| devices.contains(number))
            }
        }
    }

    /// Returns true if this device, by its number in events, is observed as a whole.
    fn is_of(&self, device: u32) -> bool {
        let number = DeviceNumber::from_kernel(device).to_stat();
        matches!(self, Self::Devices(devices) if devices.contains(&number))
    }
}

/// Calls so far.
#[derive(Debug)]
pub(crate) struct Syncs {
    /// Scope of the calls that count.
    pub(crate) scope: Scope,
    /// Process that is ignored: plumb itself.
    except: u32,
    begun: HashMap<u32, Begun>,
    pub(crate) tasks: Tasks,
}

/// A call that has ended.
#[derive(Debug, Clone)]
pub struct FinishedSync {
    /// System call.
    pub call: SyncCall,
    /// Length of the call.
    pub took: Nanos,
    /// True if the call succeeded.
    pub is_done: bool,
    /// Caller of the call.
    pub caller: Caller,
    /// True if the call is known to be of the target.
    pub counted: bool,
    /// Device number of the synced file system, as in events, if known.
    pub device: Option<u32>,
}

/// Name of a process that has ended and had begun before the observation.
const NOT_KNOWN: &str = "ended";

#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Nanos,
    call: SyncCall,
    fd: Option<u32>,
    /// True if the file is on the target; `None` until its file system has reported its location.
    is_told_here: Option<bool>,
    /// Device number of the file's file system, as the file system reported it.
    device: Option<u32>,
    /// True if the thread has sent a request to an observed device.
    asked_here: bool,
    /// Last device to which the thread sent a request.
    asked: Option<u32>,
}

/// End of a call.
#[derive(Debug, Clone, Copy)]
struct SyncEnd {
    at: Nanos,
    thread: u32,
    is_done: bool,
}

impl Syncs {
    /// Creates an empty record of calls. Syncs of the process `except` are left out.
    pub(crate) fn new(scope: Scope, except: u32) -> Self {
        Self { scope, except, begun: HashMap::new(), tasks: Tasks::default() }
    }

    /// Records that a thread begins a sync.
    pub(crate) fn began(&mut self, at: Nanos, thread: u32, call: SyncCall, fd: Option<u32>) {
        self.begun.insert(
            thread,
            Begun { at, call, fd, is_told_here: None, device: None, asked_here: false, asked: None },
        );
    }

    /// Records the file system's report of the device of a file that a thread makes durable, perhaps without
    /// a call. An msync may affect several files.
    pub(crate) fn told(&mut self, at: Nanos, thread: u32, device: u32) {
        let is_here = self.scope.is_of(device);
        match self.begun.get_mut(&thread).filter(|begun| begun.call != SyncCall::None) {
            Some(begun) => {
                begun.is_told_here = Some(begun.is_told_here == Some(true) || is_here);
                begun.device = Some(device);
            }
            None => {
                let (call, is_told_here, device) = (SyncCall::None, Some(is_here), Some(device));
                let begun =
                    Begun { at, call, fd: None, is_told_here, device, asked_here: false, asked: None };
                self.begun.insert(thread, begun);
            }
        }
    }

    /// Records that the file system finished a sync: a sync without a call ends here.
    pub(crate) fn synced(
        &mut self,
        at: Nanos,
        thread: u32,
        is_done: bool,
        processes: &mut dyn Processes,
    ) -> Option<FinishedSync> {
        let begun = self.begun.get(&thread).copied().filter(|begun| begun.call == SyncCall::None)?;
        self.begun.remove(&thread);
        self.finished(SyncEnd { at, thread, is_done }, begun, processes)
    }

    /// Records that a thread sends a request to a device.
    pub(crate) fn asked(&mut self, thread: u32, device: u32) {
        if let Some(begun) = self.begun.get_mut(&thread) {
            begun.asked_here |= self.scope.is_of(device);
            begun.asked = Some(device);
        }
    }

    /// Sets the known facts of a caller that has ended: its name, and its ancestors if the scope needs them.
    fn put_ended(&self, caller: &mut Caller, thread: u32, processes: &mut dyn Processes) {
        caller.name = self.tasks.name(thread).unwrap_or_else(|| NOT_KNOWN.to_owned());
        caller.cgroup = cgroup_of_ended(&self.tasks, thread, processes);
        if matches!(self.scope, Scope::Process(_)) {
            caller.parents = self.tasks.lineage(thread).collect();
            if let Some(oldest) = caller.parents.last() {
                let oldest = processes.caller(*oldest, None);
                caller.parents.push(oldest.process);
                caller.parents.extend(oldest.parents);
            }
        }
    }

    /// Returns the sync of a thread that has ended; `None` if it is not relevant.
    pub(crate) fn ended(
        &mut self,
        at: Nanos,
        thread: u32,
        is_done: bool,
        processes: &mut dyn Processes,
    ) -> Option<FinishedSync> {
        // Not every file system reports the end of a sync without a call.
        let begun = self.begun.remove(&thread).filter(|begun| begun.call != SyncCall::None)?;
        self.finished(SyncEnd { at, thread, is_done }, begun, processes)
    }

    fn finished(
        &mut self,
        ended: SyncEnd,
        begun: Begun,
        processes: &mut dyn Processes,
    ) -> Option<FinishedSync> {
        let mut caller = processes.caller(ended.thread, begun.fd);
        if caller.name.is_empty() {
            self.put_ended(&mut caller, ended.thread, processes);
        }
        let side = self.scope.side(&caller, &begun);
        if caller.process == self.except || side == Side::Elsewhere {
            return None;
        }
        let opened = || {
            caller.file.as_ref()?.devices.first().copied().map(|of| DeviceNumber::from_stat(of).to_kernel())
        };
        Some(FinishedSync {
            call: begun.call,
            took: ended.at.since(begun.at),
            is_done: ended.is_done,
            counted: side == Side::Here,
            device: begun.device.or_else(opened).or(begun.asked),
            caller,
        })
    }

    /// Records that a thread has ended. Not every file system reports the end of a sync without a call, and
    /// no other event would show it.
    pub(crate) fn thread_ended(&mut self, thread: u32) {
        self.begun.remove(&thread);
        self.tasks.ended(thread);
    }

    /// Records that events were lost: the calls in progress are no longer known.
    pub(crate) fn forget(&mut self) {
        self.begun.clear();
        self.tasks.forget();
    }
}

#[cfg(test)]
mod tests {
    use std::ops::{Deref, DerefMut};

    use super::*;
    use crate::sync_figures::SyncFigures;

    /// Syncs, with their figures.
    struct CountedSyncs(Syncs, SyncFigures);

    impl Deref for CountedSyncs {
        type Target = Syncs;

        fn deref(&self) -> &Syncs {
            &self.0
        }
    }

    impl DerefMut for CountedSyncs {
        fn deref_mut(&mut self) -> &mut Syncs {
            &mut self.0
        }
    }

    impl CountedSyncs {
        fn new(scope: Scope, except: u32) -> Self {
            Self(Syncs::new(scope, except), SyncFigures::default())
        }

        fn ended(&mut self, at: Nanos, thread: u32, is_done: bool, processes: &mut dyn Processes) {
            let sync = self.0.ended(at, thread, is_done, processes);
            sync.iter().for_each(|sync| self.1.take(sync));
        }

        fn synced(&mut self, at: Nanos, thread: u32, is_done: bool, processes: &mut dyn Processes) {
            let sync = self.0.synced(at, thread, is_done, processes);
            sync.iter().for_each(|sync| self.1.take(sync));
        }

        fn count(&self) -> u64 {
            self.1.finish(1.0).iter().filter(|row| row.counted).map(|row| row.count).sum()
        }
    }

    struct Two;

    impl Processes for Two {
        fn caller(&mut self, thread: u32, fd: Option<u32>) -> Caller {
            let file = fd.map(|fd| SyncedFile { path: format!("/f{fd}"), devices: vec![u64::from(fd)] });
            let parents = if thread / 10 == 2 { vec![5, 1] } else { Vec::new() };
            Caller {
                process: thread / 10,
                parents,
                name: format!("p{}", thread / 10),
                file,
                ..Caller::default()
            }
        }
    }

    fn seen(scope: Scope) -> Vec<(u32, String, u64, u64)> {
        let mut syncs = CountedSyncs::new(scope, 9);
        // Threads 11 and 12 of process 1 at the same time, one of process 2, one of plumb.
        syncs.began(Nanos::millis(1), 11, SyncCall::Fsync, Some(3));
        syncs.began(Nanos::millis(2), 12, SyncCall::Fsync, Some(4));
        syncs.began(Nanos::millis(2), 21, SyncCall::Msync, None);
        syncs.began(Nanos::millis(2), 91, SyncCall::Fsync, Some(3));
        for thread in [12, 11, 21, 91, 55] {
            syncs.ended(Nanos::millis(5), thread, thread != 12, &mut Two);
        }
        let rows = syncs.1.finish(1.0).into_iter();
        rows.map(|row| (row.process, row.call, row.count, row.errors)).collect()
    }

    #[test]
    fn calls_are_told_apart_by_process_and_call() {
        assert_eq!(seen(Scope::All), [(1, "fsync".to_owned(), 2, 1), (2, "msync".to_owned(), 1, 0)]);
        assert_eq!(seen(Scope::Process(2)), [(2, "msync".to_owned(), 1, 0)]);
        assert_eq!(seen(Scope::Process(5)), [(2, "msync".to_owned(), 1, 0)], "a child's");
        let of_device = [(1, "fsync".to_owned(), 1, 1), (2, "msync".to_owned(), 1, 0)];
        assert_eq!(seen(Scope::Devices(BTreeSet::from([4]))), of_device, "an address says nothing of a file");
    }

    struct ProcessGone;

    impl Processes for ProcessGone {
        fn caller(&mut self, thread: u32, _: Option<u32>) -> Caller {
            // The shell that made them is still there.
            match thread {
                5 => Caller { process: 5, name: "sh".to_owned(), parents: vec![3, 1], ..Caller::default() },
                _ => Caller::default(),
            }
        }
    }

    /// Takes a sync of each of these threads, which end at once; calls `during` within it.
    fn ended(syncs: &mut CountedSyncs, threads: &[u32], during: fn(&mut CountedSyncs, u32)) {
        for thread in threads {
            syncs.began(Nanos::millis(1), *thread, SyncCall::Fdatasync, Some(3));
            during(syncs, *thread);
            syncs.ended(Nanos::millis(2), *thread, true, &mut ProcessGone);
            syncs.tasks.ended(*thread);
        }
    }

    /// Returns the syncs of a device with the number 7:4.
    fn of_device() -> CountedSyncs {
        CountedSyncs::new(Scope::Devices(BTreeSet::from([rustix::fs::makedev(7, 4)])), 9)
    }

    #[test]
    fn who_has_ended_is_known_by_name_and_told_apart_where_its_file_is_not_known() {
        let mut syncs = of_device();
        syncs.tasks.began(Nanos::ZERO, 5, 11, *b"sqlite3\0\0\0\0\0\0\0\0\0");
        ended(&mut syncs, &[11, 12], |_, _| ());
        let rows = syncs.1.finish(1.0).into_iter();
        let mut rows: Vec<_> = rows.map(|row| (row.name, row.process, row.count, row.counted)).collect();
        rows.sort();
        assert_eq!(
            rows,
            [(NOT_KNOWN.to_owned(), 0, 1, false), ("sqlite3".to_owned(), 0, 1, false)],
            "whether they are of the device is not known"
        );
        assert_eq!((syncs.count(), syncs.1.latency().count()), (0, 0));
    }

    #[test]
    fn of_who_has_ended_the_file_system_or_its_requests_say_where_it_was() {
        const HERE: u32 = 7 << 20 | 4;
        let mut syncs = of_device();
        ended(&mut syncs, &[11], |syncs, thread| syncs.told(Nanos::millis(1), thread, HERE));
        ended(&mut syncs, &[12], |syncs, thread| syncs.asked(thread, HERE));
        assert_eq!(syncs.count(), 2);
        // The file system of another device knows better than what a thread asks for beside.
        ended(&mut syncs, &[13], |syncs, thread| {
            syncs.asked(thread, HERE);
            syncs.told(Nanos::millis(1), thread, HERE + 1);
        });
        assert_eq!((syncs.count(), syncs.1.finish(1.0).len()), (2, 1), "those of other devices are not told");
        ended(&mut syncs, &[14], |syncs, thread| syncs.asked(thread, HERE + 1));
        assert_eq!((syncs.count(), syncs.1.finish(1.0).len()), (2, 2), "and this may be of either");
    }

    #[test]
    fn what_no_call_asks_for_ends_with_the_file_system() {
        const HERE: u32 = 7 << 20 | 4;
        let mut syncs = of_device();
        // A write with O_DSYNC; the same on another device.
        for (thread, device) in [(11, HERE), (12, HERE + 1)] {
            syncs.told(Nanos::millis(1), thread, device);
            syncs.synced(Nanos::millis(3), thread, true, &mut Two);
        }
        // A call ends with itself; its file system may have been asked several times.
        syncs.began(Nanos::millis(4), 11, SyncCall::Msync, None);
        for end in [5, 7] {
            syncs.told(Nanos::millis(4), 11, HERE);
            syncs.synced(Nanos::millis(end), 11, true, &mut Two);
        }
        syncs.ended(Nanos::millis(8), 11, true, &mut Two);
        // Nothing is known of a call that began before it was observed, and on a file system that does not
        // say when it is done.
        syncs.told(Nanos::millis(9), 11, HERE);
        syncs.ended(Nanos::millis(20), 11, true, &mut Two);
        let rows = syncs.1.finish(1.0).into_iter();
        let rows: Vec<_> = rows.map(|row| (row.call, row.count, row.latency.unwrap().mean)).collect();
        assert_eq!(rows, [("msync".to_owned(), 1, 0.004), ("no call".to_owned(), 1, 0.002)]);
    }

    #[test]
    fn a_thread_that_ends_takes_no_room_whatever_its_file_system_left_open() {
        let mut syncs = of_device();
        for thread in 100..10_100 {
            syncs.tasks.began(Nanos(1), 1, thread, [0; 16]);
            // XFS says that it makes an O_DSYNC write durable, and not when it has.
            syncs.told(Nanos(2), thread, 7 << 20 | 4);
            syncs.thread_ended(thread);
        }
        assert_eq!((syncs.begun.len(), syncs.tasks.name(100)), (0, None));
    }

    #[test]
    fn who_has_ended_descends_from_those_that_made_it() {
        for (process, seen) in [(5, 2), (3, 2), (11, 2), (12, 1), (4, 0)] {
            let mut syncs = CountedSyncs::new(Scope::Process(process), 9);
            for (task, parent) in [(11, 5), (12, 11)] {
                syncs.tasks.began(Nanos(u64::from(task)), parent, task, [0; 16]);
            }
            ended(&mut syncs, &[12, 11], |_, _| ());
            assert_eq!(syncs.count(), seen, "{process}");
        }
    }

    #[test]
    fn the_time_is_that_from_the_beginning_to_the_end() {
        let mut syncs = CountedSyncs::new(Scope::All, 0);
        syncs.began(Nanos::millis(1), 11, SyncCall::Fdatasync, Some(3));
        syncs.ended(Nanos::millis(8), 11, true, &mut Two);
        let row = syncs.1.finish(2.0).remove(0);
        assert_eq!(
            (row.latency.unwrap().mean, row.per_second, row.file.as_deref()),
            (0.007, 0.5, Some("/f3"))
        );
    }
}
