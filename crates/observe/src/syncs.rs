//! How long programs waited for their data to be made durable: calls by process, from the events of their beginning and end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plumb_block::Nanos;
use plumb_measure::{Histogram, Latency};
use plumb_report::document::observation::ObservedSync;

use crate::event::SyncCall;

/// Who made a call, and on what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The process; 0 if it is gone.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// The file; `None` if the call names none, or it is not open any more.
    pub file: Option<SyncedFile>,
}

/// A file that was made durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncedFile {
    /// As the kernel names it.
    pub path: String,
    /// The number of the device that it is on, and, if it is a device itself, that device's, as stat(2) has them.
    pub devices: Vec<u64>,
}

/// Knows the processes of this machine.
pub trait Processes {
    /// Whose thread this is, and what its descriptor `fd` stands for.
    fn caller(&mut self, thread: u32, fd: Option<u32>) -> Caller;
}

/// Whose calls count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's.
    All,
    /// Those of a process.
    Process(u32),
    /// Those on files and devices with these numbers, as stat(2) has them; those that name no file; and those of which the file is
    /// not known any more.
    Devices(BTreeSet<u64>),
}

impl Scope {
    fn holds(&self, caller: &Caller, call: SyncCall) -> bool {
        match (self, &caller.file) {
            (Self::All, _) => true,
            (Self::Process(process), _) => caller.process == *process,
            (Self::Devices(devices), Some(file)) => {
                file.devices.iter().any(|device| devices.contains(device))
            }
            // An address says nothing of a file.
            (Self::Devices(_), None) => call != SyncCall::Msync,
        }
    }
}

/// The calls so far.
#[derive(Debug)]
pub(crate) struct Syncs {
    scope: Scope,
    /// Not looked at: plumb itself.
    except: u32,
    begun: HashMap<u32, Begun>,
    /// By process and call, and whether it is known on which file.
    by: BTreeMap<(u32, SyncCall, bool), Calls>,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Nanos,
    call: SyncCall,
    fd: Option<u32>,
}

#[derive(Debug, Default)]
struct Calls {
    name: String,
    file: Option<String>,
    errors: u64,
    latency: Histogram,
}

impl Syncs {
    /// None so far. Those of the process `except` are left out.
    pub(crate) fn new(scope: Scope, except: u32) -> Self {
        Self { scope, except, begun: HashMap::new(), by: BTreeMap::new() }
    }

    /// A thread begins one.
    pub(crate) fn began(&mut self, at: Nanos, thread: u32, call: SyncCall, fd: Option<u32>) {
        self.begun.insert(thread, Begun { at, call, fd });
    }

    /// It is done.
    pub(crate) fn ended(&mut self, at: Nanos, thread: u32, is_done: bool, processes: &mut dyn Processes) {
        let Some(begun) = self.begun.remove(&thread) else { return };
        let caller = processes.caller(thread, begun.fd);
        if caller.process == self.except || !self.scope.holds(&caller, begun.call) {
            return;
        }
        let calls = self.by.entry((caller.process, begun.call, caller.file.is_some())).or_default();
        calls.latency.record(at.since(begun.at));
        calls.errors += u64::from(!is_done);
        if calls.name.is_empty() {
            calls.name = caller.name;
        }
        if calls.file.is_none() {
            calls.file = caller.file.map(|file| file.path);
        }
    }

    /// Events were lost: which calls go on is not known any more.
    pub(crate) fn forget(&mut self) {
        self.begun.clear();
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.by.values().map(|calls| calls.latency.count()).sum()
    }

    /// How long all of them took that may flush a device.
    pub(crate) fn latency(&self) -> Option<Latency> {
        let mut all = Histogram::new();
        let flushing = self.by.iter().filter(|((_, call, _), _)| *call != SyncCall::SyncFileRange);
        flushing.for_each(|(_, calls)| all.merge(&calls.latency));
        all.summary()
    }

    /// All of them, in so many seconds; those first on which most time was spent.
    pub(crate) fn finish(&self, seconds: f64) -> Vec<ObservedSync> {
        let mut all: Vec<_> = self.by.iter().collect();
        all.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.latency.sum_ns()));
        let one = |((process, call, _), calls): (&(u32, SyncCall, bool), &Calls)| ObservedSync {
            process: *process,
            name: calls.name.clone(),
            call: call.name().to_owned(),
            file: calls.file.clone(),
            count: calls.latency.count(),
            per_second: if seconds > 0.0 { calls.latency.count() as f64 / seconds } else { 0.0 },
            errors: calls.errors,
            latency: calls.latency.summary(),
        };
        all.into_iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;

    impl Processes for Two {
        fn caller(&mut self, thread: u32, fd: Option<u32>) -> Caller {
            let file = fd.map(|fd| SyncedFile { path: format!("/f{fd}"), devices: vec![u64::from(fd)] });
            Caller { process: thread / 10, name: format!("p{}", thread / 10), file }
        }
    }

    fn seen(scope: Scope) -> Vec<(u32, String, u64, u64)> {
        let mut syncs = Syncs::new(scope, 9);
        // Threads 11 and 12 of process 1 at the same time, one of process 2, one of plumb.
        syncs.began(Nanos::millis(1), 11, SyncCall::Fsync, Some(3));
        syncs.began(Nanos::millis(2), 12, SyncCall::Fsync, Some(4));
        syncs.began(Nanos::millis(2), 21, SyncCall::Msync, None);
        syncs.began(Nanos::millis(2), 91, SyncCall::Fsync, Some(3));
        for thread in [12, 11, 21, 91, 55] {
            syncs.ended(Nanos::millis(5), thread, thread != 12, &mut Two);
        }
        let rows = syncs.finish(1.0).into_iter();
        rows.map(|row| (row.process, row.call, row.count, row.errors)).collect()
    }

    #[test]
    fn calls_are_told_apart_by_process_and_call() {
        assert_eq!(seen(Scope::All), [(1, "fsync".to_owned(), 2, 1), (2, "msync".to_owned(), 1, 0)]);
        assert_eq!(seen(Scope::Process(2)), [(2, "msync".to_owned(), 1, 0)]);
        assert_eq!(seen(Scope::Devices(BTreeSet::from([4]))), [(1, "fsync".to_owned(), 1, 1)]);
    }

    #[test]
    fn the_time_is_that_from_the_beginning_to_the_end() {
        let mut syncs = Syncs::new(Scope::All, 0);
        syncs.began(Nanos::millis(1), 11, SyncCall::Fdatasync, Some(3));
        syncs.ended(Nanos::millis(8), 11, true, &mut Two);
        let row = syncs.finish(2.0).remove(0);
        assert_eq!(
            (row.latency.unwrap().mean, row.per_second, row.file.as_deref()),
            (0.007, 0.5, Some("/f3"))
        );
    }
}
