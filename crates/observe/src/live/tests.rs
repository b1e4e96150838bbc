//! Tests of the counts, from generated events through the fold.

use std::sync::Arc;

use plumb_report::export::prometheus::live_observation;

use super::*;
use crate::event::{Event, EventContent, SyncCall};
use crate::fold::Fold;
use crate::syncs::{Processes, Scope, SyncedFile};

const DISK: u32 = 254 << 20;

/// Processes of which each has one thread, in one of 500 cgroups.
struct Many;

impl Processes for Many {
    fn caller(&mut self, thread: u32, fd: Option<u32>) -> Caller {
        let path =
            |fd| SyncedFile { path: format!("/srv/file-{fd}"), devices: vec![rustix::fs::makedev(254, 0)] };
        Caller {
            process: thread,
            name: format!("process-{thread}"),
            cgroup: format!("/system.slice/unit-{}.service", thread % 500),
            file: fd.map(path),
            ..Caller::default()
        }
    }

    fn file_system(&mut self, number: u32) -> Option<Arc<FileSystem>> {
        self.file_system_at(number, None)
    }

    fn file_system_at(&mut self, disk: u32, _: Option<u64>) -> Option<Arc<FileSystem>> {
        let named = |text: &str| text.to_owned();
        let found = FileSystem { mount_point: named("/srv"), kind: named("ext4"), device: named("vda") };
        (disk == DISK).then(|| Arc::new(found))
    }
}

fn watched() -> Vec<WatchedDevice> {
    vec![WatchedDevice { name: "vda".to_owned(), number: DISK, has_requests: true }]
}

/// Fold and meter that take generated events.
struct Observation {
    fold: Fold,
    meter: Meter,
}

impl Observation {
    fn new(threshold: Option<Nanos>) -> Self {
        Self { fold: Fold::new(&watched(), Scope::All, 0), meter: Meter::new(&watched(), threshold) }
    }

    fn take(&mut self, at: Nanos, thread: u32, what: EventContent) {
        self.fold.take(Event { at, thread, what }, &mut Many, &mut self.meter);
    }

    /// Takes the events of an fsync of a thread that begins at `at`: a FUA write of 1 ms after 1 ms in the
    /// queue, and a flush of 4 ms.
    fn sync(&mut self, at: Nanos, thread: u32) {
        let ms = |count| at + Nanos::millis(count);
        let write = Request {
            device: DISK,
            sector: u64::from(thread) * 8,
            bytes: 4096,
            op: Op::Write,
            fua: true,
            preflush: false,
        };
        let flush = Request { device: DISK, op: Op::Flush, ..Request::default() };
        self.take(at, thread, EventContent::SyncBegan(SyncCall::Fsync, Some(3)));
        self.take(at, thread, EventContent::Inserted(write));
        self.take(ms(1), thread, EventContent::Issued(write));
        self.take(ms(2), 0, EventContent::Completed(write));
        self.take(ms(3), thread, EventContent::Issued(flush));
        self.take(ms(7), 0, EventContent::Completed(flush));
        self.take(ms(8), thread, EventContent::SyncEnded(true));
    }

    fn metrics(&self) -> String {
        live_observation(&self.meter.observation(self.fold.so_far))
    }
}

const CLOCKS: ClockReading = ClockReading { monotonic: Nanos::secs(100), unix_seconds: 1_000_100.0 };

#[test]
fn a_sync_is_timed_in_all_respects_with_its_flush_fua_and_queue() {
    let mut of = Observation::new(Some(Nanos::millis(5)));
    of.sync(Nanos::secs(1), 7);
    let metrics = of.metrics();
    let names = [
        "device_duration_seconds_sum{device=\"vda\"",
        "file_system_duration_seconds_sum{mount_point=\"/srv\",file_system=\"ext4\",device=\"vda\"",
        "process_duration_seconds_sum{process=\"process-7\"",
        "cgroup_duration_seconds_sum{cgroup=\"/system.slice/unit-7.service\",pod=\"\",container=\"\"",
    ];
    let times =
        [("sync", "0.008"), ("flush", "0.004"), ("fua", "0.001"), ("queue", "0.001"), ("write", "0.001")];
    for name in names {
        for (time, seconds) in times {
            let line = format!("plumb_observe_{name},time=\"{time}\"}} {seconds}\n");
            assert!(metrics.contains(&line), "{line} in {metrics}");
        }
    }
    assert!(!metrics.contains("time=\"read\""), "what did not happen has no series");
    let told = of.meter.take_slow(CLOCKS);
    let [sync] = told.as_slice() else { panic!("{told:?}") };
    let shown = (sync.operation.as_str(), sync.seconds, sync.ended_at, sync.pid, sync.file.as_deref());
    assert_eq!(shown, ("fsync", 0.008, 1_000_001.008, Some(7), Some("/srv/file-3")));
    let then = sync.device_then.unwrap();
    assert_eq!((then.writes, then.flushes, then.longest, then.in_flight), (1, 1, 0.004, 0));
    let slowest = of.meter.slowest(CLOCKS).events;
    let operations: Vec<_> = slowest.iter().map(|event| event.operation.as_str()).collect();
    assert_eq!(operations, ["fsync", "flush", "write fua"]);
}

#[test]
fn the_recording_and_the_metrics_count_the_same() {
    let mut recorded = crate::Observer::new(watched(), Scope::All, 0, Nanos::ZERO, Nanos::secs(10));
    let mut of = Observation::new(None);
    let write = Request { device: DISK, sector: 8, bytes: 4096, op: Op::Write, ..Request::default() };
    let events = [
        (1, EventContent::Issued(write)),
        (2, EventContent::Requeued(write)),
        (3, EventContent::Issued(write)),
        (7, EventContent::Completed(write)),
        (9, EventContent::Completed(Request { sector: 800, ..write })),
    ];
    for (at, what) in events {
        let event = Event { at: Nanos::millis(at), thread: 3, what };
        recorded.take(event, &mut Many, &mut |_, _| (), Some(&mut of.meter));
    }
    let device = recorded.finish(Nanos::ZERO, Nanos::millis(20)).0.remove(0).device;
    assert_eq!((device.write.ios, device.write.latency.unwrap().count), (2, 1));
    let metrics = live_observation(&of.meter.observation(recorded.so_far()));
    for line in [
        "plumb_observe_device_duration_seconds_sum{device=\"vda\",time=\"write\"} 0.004\n",
        "plumb_observe_device_duration_seconds_count{device=\"vda\",time=\"write\"} 1\n",
        "plumb_observe_events_total 5\n",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[test]
fn failed_writes_are_counted_until_somebody_is_told() {
    let mut of = Observation::new(None);
    let inode = Inode { device: DISK, number: 12 };
    let failed = EventContent::WritebackFailed(inode, None);
    of.take(Nanos(1), 9, failed);
    of.take(Nanos(2), 9, failed);
    let labels = "{device=\"vda\",mount_point=\"/srv\"}";
    let unreported = |of: &mut Observation| {
        of.meter.put_unreported(of.fold.unreported());
        of.metrics()
    };
    let metrics = unreported(&mut of);
    assert!(metrics.contains(&format!("plumb_observe_writeback_failures_total{labels} 2\n")), "{metrics}");
    assert!(metrics.contains(&format!("plumb_observe_writeback_files_unreported{labels} 1\n")), "{metrics}");
    of.take(Nanos(3), 7, EventContent::ErrorReported(inode, None));
    let metrics = unreported(&mut of);
    assert!(metrics.contains(&format!("plumb_observe_writeback_files_unreported{labels} 0\n")), "{metrics}");
}

/// Returns the memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

#[test]
fn ten_thousand_processes_in_five_hundred_cgroups_take_little_memory_and_few_series() {
    let before = resident();
    let mut of = Observation::new(Some(Nanos::ZERO));
    for thread in 1..=10_000 {
        let at = Nanos::millis(u64::from(thread) * 10);
        of.take(at, 1, EventContent::TaskBegan(thread, [b'a'; 16]));
        of.sync(at, thread);
        of.take(at + Nanos::millis(9), thread, EventContent::TaskEnded);
    }
    let metrics = of.metrics();
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
    // Each time has its own series; three respects with many names, of which all but 32 are one.
    let of_time = |time: &str| {
        let count = format!("time=\"{time}\"}}");
        metrics.lines().filter(|line| line.contains("_seconds_count{") && line.contains(&count)).count()
    };
    assert!(of_time("sync") <= 2 * (names::NAMES_MAX + 1) + 2, "{}", of_time("sync"));
    assert!(metrics.len() < 2 << 20, "{} bytes of metrics", metrics.len());
    let all = "plumb_observe_device_duration_seconds_count{device=\"vda\",time=\"sync\"} 10000\n";
    assert!(metrics.contains(all), "no sync is lost");
    assert!(metrics.contains("process=\"other\"") && metrics.contains("cgroup=\"other\""));
    assert!(of.meter.slowest(CLOCKS).events.len() <= 2 * 10 * slow::EVENTS_MAX);
}
