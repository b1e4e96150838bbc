//! Time that programs waited for their data to be made durable: calls by process.

use std::collections::BTreeMap;

use plumb_measure::Histogram;
use plumb_report::document::observation::ObservedSync;

use crate::event::SyncCall;
use crate::syncs::FinishedSync;

/// Number of processes whose calls are listed individually. Each call of a process has a separate histogram,
/// and a machine may start millions of processes in a day of observation.
const KEYS_MAX: usize = 256;
/// Name of the row for all other processes.
const OTHERS: &str = "others";

/// Process number and name, system call, and whether the calls are known to be of the target.
type Key = (u32, String, SyncCall, bool);

/// Calls so far.
#[derive(Debug, Default)]
pub(crate) struct SyncFigures {
    by: BTreeMap<Key, Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    file: Option<String>,
    errors: u64,
    latency: Histogram,
}

impl SyncFigures {
    /// Counts a call.
    pub(crate) fn take(&mut self, sync: &FinishedSync) {
        let mut key = (sync.caller.process, sync.caller.name.clone(), sync.call, sync.counted);
        if self.by.len() >= KEYS_MAX && !self.by.contains_key(&key) {
            (key.0, key.1) = (0, OTHERS.to_owned());
        }
        let calls = self.by.entry(key).or_default();
        calls.latency.record(sync.took);
        calls.errors += u64::from(!sync.is_done);
        if calls.file.is_none() {
            calls.file = sync.caller.file.as_ref().map(|file| file.path.clone());
        }
    }

    /// Returns the latencies of all calls that may flush a device.
    pub(crate) fn latency(&self) -> Histogram {
        let mut all = Histogram::new();
        let flushing = self.by.iter().filter(|(key, _)| key.2 != SyncCall::SyncFileRange && key.3);
        flushing.for_each(|(_, calls)| all.merge(&calls.latency));
        all
    }

    /// Returns all calls, over `seconds`, in descending order of total time.
    pub(crate) fn finish(&self, seconds: f64) -> Vec<ObservedSync> {
        let mut all: Vec<_> = self.by.iter().collect();
        all.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.latency.sum_ns()));
        let one = |((process, name, call, counted), calls): (&Key, &Calls)| ObservedSync {
            process: *process,
            name: name.clone(),
            call: call.name().to_owned(),
            file: calls.file.clone(),
            counted: *counted,
            count: calls.latency.count(),
            per_second: if seconds > 0.0 { calls.latency.count() as f64 / seconds } else { 0.0 },
            errors: calls.errors,
            latency: calls.latency.summary(),
        };
        all.into_iter().map(one).collect()
    }
}
