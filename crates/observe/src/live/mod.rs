//! Continuous observation in bounded memory: times under the busiest names, failed writes, and the slowest
//! events.

mod names;
mod place;
mod slow;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plumb_block::Nanos;
use plumb_report::document::live::{
    DeviceActivity, LiveObservation, LostWrites, NamedTimes, SlowDocument, SlowEvent, TimesBy,
};

use self::names::{Names, Time, Times};
use self::slow::{Activity, SlowEvents};
use crate::device::WatchedDevice;
use crate::event::{Inode, Op, Request};
use crate::file_systems::FileSystem;
use crate::fold::SoFar;
use crate::fold::{Identities, Sink};
use crate::matcher::{FinishedRequest, Step};
use crate::syncs::{Caller, FinishedSync};

/// Name of a process that had ended before it could be looked up.
const ENDED: &str = "ended";
/// Prefix of the names of the kernel's workers; the current work follows.
const WORKER: &str = "kworker";
/// Number of file systems whose failed writes are counted individually; those of further ones are counted
/// together.
const LOST_WRITES_MAX: usize = 64;

/// Counters of the results of the fold.
#[derive(Debug)]
pub struct Meter {
    devices: HashMap<u32, DeviceMeter>,
    by_device: Names<String>,
    by_file_system: Names<FileSystem>,
    by_process: Names<String>,
    by_cgroup: Names<String>,
    slow: SlowEvents,
    lost_writes: BTreeMap<u32, LostWrites>,
}

/// An observed device.
#[derive(Debug)]
struct DeviceMeter {
    name: Arc<str>,
    activity: Activity,
}

/// One reading of two clocks; events use the monotonic one.
#[derive(Debug, Clone, Copy)]
pub struct ClockReading {
    /// Time of the monotonic clock.
    pub monotonic: Nanos,
    /// Seconds since 1970 at the same time.
    pub unix_seconds: f64,
}

impl ClockReading {
    /// Converts a time of the monotonic clock to seconds since 1970.
    fn unix_seconds(&self, at: Nanos) -> f64 {
        self.unix_seconds - self.monotonic.since(at).as_secs_f64() + at.since(self.monotonic).as_secs_f64()
    }
}

impl Meter {
    /// Creates a meter for the devices `watched`. Events that take `threshold` or longer are also kept for
    /// [`Self::take_slow`].
    pub fn new(watched: &[WatchedDevice], threshold: Option<Nanos>) -> Self {
        let device = |of: &WatchedDevice| {
            (of.number, DeviceMeter { name: of.name.as_str().into(), activity: Activity::default() })
        };
        Self {
            devices: watched.iter().map(device).collect(),
            by_device: Names::default(),
            by_file_system: Names::default(),
            by_process: Names::default(),
            by_cgroup: Names::default(),
            slow: SlowEvents::new(threshold),
            lost_writes: BTreeMap::new(),
        }
    }

    /// Returns the events since the last call that reached the threshold, in order of their ends.
    pub fn take_slow(&mut self, clocks: ClockReading) -> Vec<SlowEvent> {
        self.slow.take_fresh().into_iter().map(|(at, event)| dated(&event, at, clocks)).collect()
    }

    /// Returns the slowest events of the last minutes.
    pub fn slowest(&self, clocks: ClockReading) -> SlowDocument {
        let mut events: Vec<_> = self.slow.all().map(|(at, event)| dated(event, *at, clocks)).collect();
        events.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        SlowDocument { schema: SlowDocument::SCHEMA.to_owned(), events }
    }

    /// Sets the number of files with failed writes that nobody was told of.
    pub(crate) fn put_unreported(&mut self, files: impl Iterator<Item = (u32, u64)>) {
        for (device, files) in files {
            if let Some(lost) = self.lost_writes.get_mut(&device) {
                lost.files_unreported = files;
            }
        }
    }

    /// Returns all counters; the caller adds processor time and exposure.
    pub fn observation(&self, so_far: SoFar) -> LiveObservation {
        let by = |label: &'static str, names: &Names<String>| {
            names.each(|name| vec![(label, name.cloned().unwrap_or_else(names::other))])
        };
        let by_cgroup = self.by_cgroup.each(|name| {
            let path = name.cloned().unwrap_or_else(names::other);
            let (pod, container) = place::pod_and_container(&path);
            vec![("cgroup", path), ("pod", pod), ("container", container)]
        });
        let respect = |name, help, names: Vec<NamedTimes>| TimesBy { name, help, names };
        LiveObservation {
            times: vec![
                respect("device", "by device", by("device", &self.by_device)),
                respect("file_system", "by file system", self.by_file_system.each(place::labels)),
                respect("process", "by name of the process", by("process", &self.by_process)),
                respect("cgroup", "by cgroup", by_cgroup),
            ],
            lost_writes: self.lost_writes.values().cloned().collect(),
            events: so_far.events,
            events_lost: so_far.lost,
            ..LiveObservation::default()
        }
    }

    /// Records a time under all names of its subject.
    fn record(&mut self, at: Nanos, of: &Subject<'_>, times: &[Option<(Time, Nanos)>]) {
        let add =
            |kept: &mut Times| times.iter().flatten().for_each(|(time, took)| kept.record(*time, *took));
        if let Some(device) = of.device {
            self.by_device.with(at, device, str::to_owned, add);
        }
        if let Some(file_system) = of.file_system.filter(|of| !of.mount_point.is_empty()) {
            self.by_file_system.with(at, file_system, FileSystem::clone, add);
        }
        self.by_process.with(at, process_name(of.caller), str::to_owned, add);
        if !of.caller.cgroup.is_empty() {
            self.by_cgroup.with(at, of.caller.cgroup.as_str(), str::to_owned, add);
        }
    }

    fn finished(
        &mut self,
        at: Nanos,
        request: &Request,
        finished: FinishedRequest,
        who: &mut Identities<'_>,
    ) {
        let Some(device) = self.devices.get_mut(&request.device) else { return };
        device.activity.finished(at, request, &finished);
        let (Some(took), Some(thread)) = (finished.took, finished.thread) else { return };
        let Some(time) = Time::for_operation(request.op) else { return };
        let name = Arc::clone(&device.name);
        let sector = (request.op != Op::Flush).then_some(request.sector);
        let file_system = who.processes.file_system_at(request.device, sector);
        let caller = who.process(thread);
        let subject = Subject { device: Some(&name), file_system: file_system.as_deref(), caller: &caller };
        let fua = request.fua.then_some((Time::Fua, took));
        let queue = finished.waited.map(|waited| (Time::Queue, waited));
        self.record(at, &subject, &[Some((time, took)), fua, queue]);
        let whole = took + finished.waited.unwrap_or_default();
        if self.slow.takes(at, slow::Class::Request, whole) {
            let event = SlowEvent {
                queue_seconds: finished.waited.map(Nanos::as_secs_f64),
                operation: if request.fua { "write fua".to_owned() } else { time.name().to_owned() },
                bytes: Some(finished.bytes),
                device_then: Some(self.activity(request.device, at, whole)),
                ..subject.event(whole)
            };
            self.slow.add(at, slow::Class::Request, whole, event);
        }
    }

    /// Returns the activity of a device in the time `took` before `at`.
    fn activity(&self, device: u32, at: Nanos, took: Nanos) -> DeviceActivity {
        self.devices.get(&device).map(|device| device.activity.during(at, took)).unwrap_or_default()
    }
}

impl Sink for Meter {
    fn request(&mut self, at: Nanos, request: &Request, step: Step, who: &mut Identities<'_>) {
        match step {
            Step::Finished(finished) => self.finished(at, request, finished, who),
            Step::Issued { .. } | Step::Reissued | Step::Returned => {
                if let Some(device) = self.devices.get_mut(&request.device) {
                    device.activity.count_in_flight(step != Step::Returned);
                }
            }
            Step::Forgotten => {
                if let Some(device) = self.devices.get_mut(&request.device) {
                    device.activity.forget_in_flight();
                }
            }
            Step::Came | Step::Merged | Step::Empty => {}
        }
    }

    fn sync(&mut self, at: Nanos, sync: &FinishedSync, who: &mut Identities<'_>) {
        // Other syncs may be of other devices.
        if !sync.counted {
            return;
        }
        let file_system = sync.device.and_then(|device| who.processes.file_system(device));
        let named = file_system.as_deref().map(|of| of.device.as_str()).filter(|name| !name.is_empty());
        let subject = Subject { device: named, file_system: file_system.as_deref(), caller: &sync.caller };
        self.record(at, &subject, &[Some((Time::Sync, sync.took))]);
        if self.slow.takes(at, slow::Class::Sync, sync.took) {
            let number = self.devices.iter().find(|(_, device)| Some(&*device.name) == named);
            let device_then = number.map(|(number, _)| self.activity(*number, at, sync.took));
            let event = SlowEvent {
                operation: sync.call.name().to_owned(),
                file: sync.caller.file.as_ref().map(|file| file.path.clone()),
                device_then,
                ..subject.event(sync.took)
            };
            self.slow.add(at, slow::Class::Sync, sync.took, event);
        }
    }

    fn write_failed(&mut self, inode: Inode, who: &mut Identities<'_>) {
        let is_room =
            self.lost_writes.len() < LOST_WRITES_MAX || self.lost_writes.contains_key(&inode.device);
        let number = if is_room { inode.device } else { u32::MAX };
        let named = || {
            let found = is_room.then(|| who.processes.file_system(number)).flatten();
            LostWrites {
                device: found.as_ref().map_or_else(names::other, |found| found.device.clone()),
                mount_point: found.map(|found| found.mount_point.clone()).unwrap_or_default(),
                ..LostWrites::default()
            }
        };
        self.lost_writes.entry(number).or_insert_with(named).failures += 1;
    }

    fn forget(&mut self, _: Nanos) {
        self.devices.values_mut().for_each(|device| device.activity.forget_in_flight());
    }
}

/// Names of an event in all categories.
struct Subject<'a> {
    device: Option<&'a str>,
    file_system: Option<&'a FileSystem>,
    caller: &'a Caller,
}

impl Subject<'_> {
    /// Returns an event of the length `took`; its end is set when it is shown.
    fn event(&self, took: Nanos) -> SlowEvent {
        let point = self.file_system.map(|of| of.mount_point.clone());
        SlowEvent {
            seconds: took.as_secs_f64(),
            device: self.device.map(str::to_owned),
            mount_point: point.filter(|point| !point.is_empty()),
            process: process_name(self.caller).to_owned(),
            pid: Some(self.caller.process).filter(|process| *process > 0),
            cgroup: Some(self.caller.cgroup.clone()).filter(|cgroup| !cgroup.is_empty()),
            ..SlowEvent::default()
        }
    }
}

/// Returns the name of a process; all workers of the kernel share one.
fn process_name(caller: &Caller) -> &str {
    match caller.name.as_str() {
        "" => ENDED,
        name if name.starts_with(WORKER) => WORKER,
        name => name,
    }
}

fn dated(event: &SlowEvent, at: Nanos, clocks: ClockReading) -> SlowEvent {
    SlowEvent { ended_at: clocks.unix_seconds(at), ..event.clone() }
}

#[cfg(test)]
mod tests;
