//! Conversion of events to the figures of a recording.

use std::collections::HashMap;

use plumb_block::Nanos;
use plumb_report::document::observation::{ObservedDevice, ObservedSync, WritebackError};

use crate::counted;
use crate::device::{Device, WatchedDevice};
use crate::event::{Event, Inode, Request};
use crate::fold::{Fold, Identities, Sink, SoFar};
use crate::matcher::Step;
use crate::sync_figures::SyncFigures;
use crate::syncs::{FinishedSync, Processes, Scope};

/// Observer of events, which must be in the order of their times.
#[derive(Debug)]
pub struct Observer {
    watched: Vec<WatchedDevice>,
    fold: Fold,
    figures: Figures,
}

/// Figures of a recording.
#[derive(Debug)]
struct Figures {
    devices: HashMap<u32, Device>,
    syncs: SyncFigures,
}

/// Sink of a recording: its figures, and two optional receivers of the same data.
struct RecordingSink<'a> {
    figures: &'a mut Figures,
    /// Receives each request when it is issued, with its arrival time.
    arrived: Option<&'a mut ArrivalHook<'a>>,
    beside: Option<&'a mut (dyn Sink + 'a)>,
}

/// Receiver of a request when it is issued, with its arrival time.
pub(crate) type ArrivalHook<'a> = dyn FnMut(Nanos, &Request) + 'a;

impl Sink for RecordingSink<'_> {
    fn request(&mut self, at: Nanos, request: &Request, step: Step, who: &mut Identities<'_>) {
        if let (Step::Issued { arrived: at, .. }, Some(arrived)) = (step, &mut self.arrived) {
            arrived(at, request);
        }
        if let Some(device) = self.figures.devices.get_mut(&request.device) {
            device.take(at, request, step);
        }
        if let Some(beside) = &mut self.beside {
            beside.request(at, request, step, who);
        }
    }

    fn sync(&mut self, at: Nanos, sync: &FinishedSync, who: &mut Identities<'_>) {
        self.figures.syncs.take(sync);
        if let Some(beside) = &mut self.beside {
            beside.sync(at, sync, who);
        }
    }

    fn write_failed(&mut self, inode: Inode, who: &mut Identities<'_>) {
        if let Some(beside) = &mut self.beside {
            beside.write_failed(inode, who);
        }
    }

    fn forget(&mut self, at: Nanos) {
        self.figures.devices.values_mut().for_each(|device| device.forget(at));
        if let Some(beside) = &mut self.beside {
            beside.forget(at);
        }
    }
}

impl Observer {
    /// Creates an observer for the devices `watched` and for the syncs in `scope`, from `start` on for about
    /// the `expected` time. Syncs of the process `except` are left out.
    pub fn new(
        watched: Vec<WatchedDevice>,
        scope: Scope,
        except: u32,
        start: Nanos,
        expected: Nanos,
    ) -> Self {
        let device = |of: &WatchedDevice| (of.number, Device::new(of.has_requests, start, expected));
        let devices = watched.iter().map(device).collect();
        let fold = Fold::new(&watched, scope, except);
        Self { watched, fold, figures: Figures { devices, syncs: SyncFigures::default() } }
    }

    /// Handles an event. `arrived` is called with a request when it is issued, with its arrival time;
    /// `beside` receives the same results.
    pub fn take<'a>(
        &'a mut self,
        event: Event,
        processes: &mut dyn Processes,
        arrived: &'a mut ArrivalHook<'a>,
        beside: Option<&'a mut (dyn Sink + 'a)>,
    ) {
        let mut sink = RecordingSink { figures: &mut self.figures, arrived: Some(arrived), beside };
        self.fold.take(event, processes, &mut sink);
    }

    /// Records that `events` events were lost before `at`.
    pub fn lost<'a>(&'a mut self, at: Nanos, events: u64, beside: Option<&'a mut (dyn Sink + 'a)>) {
        let mut sink = RecordingSink { figures: &mut self.figures, arrived: None, beside };
        self.fold.lost(at, events, &mut sink);
    }

    /// Returns the counts so far.
    pub fn so_far(&self) -> SoFar {
        self.fold.so_far
    }

    /// Returns the failed writes that the page cache had accepted, by file; times since `start`.
    pub fn writeback_errors(&self, start: Nanos, processes: &mut dyn Processes) -> Vec<WritebackError> {
        self.fold.writeback_errors(start, processes)
    }

    /// Takes the files of failed writes that the page cache had accepted, if not taken yet; times since
    /// `start`.
    pub(crate) fn take_writeback_errors(
        &mut self,
        start: Nanos,
        processes: &mut dyn Processes,
    ) -> Vec<WritebackError> {
        self.fold.take_writeback_errors(start, processes)
    }

    /// Returns the number of failed writes of files beyond the limit, which are not listed individually.
    pub(crate) const fn writeback_errors_left_out(&self) -> u64 {
        self.fold.writeback_errors_left_out()
    }

    /// Returns the latencies of all syncs that may flush a device.
    pub fn sync_latency(&self) -> plumb_measure::Histogram {
        self.figures.syncs.latency()
    }

    /// Returns all results until `end`; more may follow. The results of each device include the number of
    /// completions without data, and whether no request is in flight.
    pub fn finish(&mut self, start: Nanos, end: Nanos) -> (Vec<FinishedDevice>, Vec<ObservedSync>) {
        let (fold, devices) = (&self.fold, &mut self.figures.devices);
        let finished = self.watched.iter().filter_map(|of| {
            let device = devices.get_mut(&of.number)?;
            let (empty, is_idle) = (device.empty, fold.is_idle(of.number));
            Some(FinishedDevice { device: device.finish(&of.name, end), empty, is_idle })
        });
        (finished.collect(), self.figures.syncs.finish(end.since(start).as_secs_f64()))
    }
}

/// A device, with the facts for a comparison with its counters.
#[derive(Debug)]
pub struct FinishedDevice {
    /// Figures of the device.
    pub device: ObservedDevice,
    /// Number of completions without data.
    pub empty: u64,
    /// True if every request was seen from its start to its end.
    pub is_idle: bool,
}

impl FinishedDevice {
    /// Adds the counters, and whether the events agree with them; `None` if they cannot be compared. With
    /// `is_partial`, events were lost, and counts and rates come from the counters, over `seconds`.
    pub(crate) fn with_counters(
        mut self,
        counters: Option<plumb_block::DeviceCounters>,
        is_partial: bool,
        seconds: f64,
    ) -> ObservedDevice {
        if let Some(counters) = counters.as_ref().filter(|_| is_partial) {
            return counted::corrected(self.device, self.empty, counters, seconds);
        }
        let device = &self.device;
        let agree = |counters: &plumb_block::DeviceCounters| {
            // The kernel counts an empty flush among the writes, and the end of a flush with data is a
            // completion without data.
            let writes = device.write.ios..=device.write.ios + self.empty;
            counters.reads == device.read.ios
                && counters.read_bytes.0 == device.read.bytes
                && writes.contains(&counters.writes)
                && counters.write_bytes.0 == device.write.bytes
                && (!device.has_requests || counters.flushes.is_none() || counters.flushes == device.flushes)
        };
        let agree = counters.as_ref().map(agree).filter(|agree| *agree || self.is_idle);
        self.device.counters_agree = agree;
        self.device.counters = counters;
        self.device
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::{Bytes, DeviceCounters};

    use super::*;
    use crate::event::{EventContent, Merge, Op};
    use crate::syncs::Caller;

    const NUMBER: u32 = 7 << 20;

    struct Nobody;

    impl Processes for Nobody {
        fn caller(&mut self, _: u32, _: Option<u32>) -> Caller {
            Caller::default()
        }
    }

    fn request(sector: u64, sectors: u64, op: Op) -> Request {
        Request { device: NUMBER, sector, bytes: sectors * 512, op, ..Request::default() }
    }

    fn observed(has_requests: bool, events: &[(u64, EventContent)], until: u64) -> FinishedDevice {
        let watched = WatchedDevice { name: "loop0".to_owned(), number: NUMBER, has_requests };
        let (start, end) = (Nanos::ZERO, Nanos::millis(until));
        let mut observer = Observer::new(vec![watched], Scope::All, 0, start, end);
        for (at, what) in events {
            let event = Event { at: Nanos::millis(*at), thread: 1, what: *what };
            observer.take(event, &mut Nobody, &mut |_, _| (), None);
        }
        observer.finish(start, end).0.remove(0)
    }

    #[test]
    fn where_a_write_waits_is_told_apart() {
        let write = request(8, 8, Op::Write);
        let events = [
            (1, EventContent::Inserted(write)),
            (4, EventContent::Issued(write)),
            (14, EventContent::Completed(write)),
        ];
        let device = observed(true, &events, 20).device;
        let seconds = |latency: Option<plumb_measure::Latency>| latency.unwrap().mean;
        assert_eq!((seconds(device.write.queue_latency), seconds(device.write.latency)), (0.003, 0.010));
        assert_eq!((device.write.ios, device.write.bytes, device.write.iops), (1, 4096, 50.0));
        let depth = device.queue_depth.unwrap();
        assert_eq!((depth.mean, depth.busy_mean, depth.max, depth.busy), (0.5, 1.0, 1, 0.5));
    }

    #[test]
    fn a_request_that_completes_in_parts_is_one() {
        let events = [
            (1, EventContent::Issued(request(0, 16, Op::Read))),
            (3, EventContent::Completed(request(0, 8, Op::Read))),
            (5, EventContent::Completed(request(8, 8, Op::Read))),
        ];
        let of = observed(true, &events, 10);
        assert!(of.is_idle);
        assert_eq!((of.device.read.ios, of.device.read.bytes), (1, 8192));
        assert_eq!(of.device.read.latency.unwrap().mean, 0.004);
    }

    /// Returns the requests that are kept of these events: arrival time, offset, length.
    fn kept(events: &[(u64, EventContent)]) -> Vec<(Nanos, u64, u64)> {
        let mut observer = Observer::new(
            vec![WatchedDevice { name: "loop0".to_owned(), number: NUMBER, has_requests: true }],
            Scope::All,
            0,
            Nanos::ZERO,
            Nanos::millis(10),
        );
        let mut kept = Vec::new();
        for (at, what) in events {
            let event = Event { at: Nanos::millis(*at), thread: 1, what: *what };
            let mut keep = |at, request: &Request| kept.push((at, request.offset(), request.bytes));
            observer.take(event, &mut Nobody, &mut keep, None);
        }
        kept
    }

    #[test]
    fn a_requeued_request_comes_and_is_kept_once() {
        let events = [
            (1, EventContent::Inserted(request(8, 8, Op::Write))),
            (2, EventContent::Issued(request(8, 8, Op::Write))),
            (3, EventContent::Requeued(request(8, 8, Op::Write))),
            (4, EventContent::Inserted(request(8, 8, Op::Write))),
            (5, EventContent::Issued(request(8, 8, Op::Write))),
            (6, EventContent::Completed(request(8, 8, Op::Write))),
            (7, EventContent::Issued(request(8, 8, Op::Write))),
            (8, EventContent::Completed(request(8, 8, Op::Write))),
        ];
        // The later write of the same place is another request.
        assert_eq!(kept(&events), [(Nanos::millis(1), 8 * 512, 4096), (Nanos::millis(7), 8 * 512, 4096)]);
        let device = observed(true, &events, 10).device;
        assert_eq!((device.write.ios, device.write.latency.unwrap().count), (2, 2));
    }

    #[test]
    fn merges_move_what_waits() {
        let events = [
            (1, EventContent::Inserted(request(8, 8, Op::Write))),
            (2, EventContent::Merged(Merge::Front, request(0, 8, Op::Write))),
            (2, EventContent::Merged(Merge::Back, request(16, 8, Op::Write))),
            (5, EventContent::Issued(request(0, 24, Op::Write))),
            (6, EventContent::Completed(request(0, 24, Op::Write))),
        ];
        // Kept as large as it has grown, with the time when it came.
        assert_eq!(kept(&events), [(Nanos::millis(1), 0, 24 * 512)]);
        let device = observed(true, &events, 10).device;
        assert_eq!((device.merges, device.write.ios), (2, 1));
        assert_eq!(device.write.queue_latency.unwrap().mean, 0.004);
    }

    #[test]
    fn flushes_are_told_from_what_the_kernel_counts_as_writes() {
        let flush = request(0, 0, Op::Flush);
        let events = [
            (1, EventContent::Issued(request(64, 8, Op::Write))),
            (2, EventContent::Completed(request(64, 8, Op::Write))),
            (3, EventContent::Issued(flush)),
            (5, EventContent::Completed(flush)),
            // The empty write that asked for it is answered.
            (5, EventContent::Completed(request(0, 0, Op::Write))),
        ];
        let counters = |writes| DeviceCounters {
            writes,
            write_bytes: Bytes(4096),
            flushes: Some(1),
            ..DeviceCounters::default()
        };
        let of = || observed(true, &events, 10);
        assert_eq!((of().device.flushes, of().device.flush_latency.unwrap().mean), (Some(1), 0.002));
        let agree = |counters| of().with_counters(Some(counters), false, 1.0).counters_agree;
        assert_eq!(
            (agree(counters(1)), agree(counters(2)), agree(counters(3))),
            (Some(true), Some(true), Some(false))
        );
        let without = of().with_counters(None, false, 1.0);
        assert_eq!((without.counters, without.counters_agree), (None, None));
    }

    #[test]
    fn what_was_on_its_way_when_it_began_counts_without_a_time() {
        let events = [(1, EventContent::Completed(request(0, 8, Op::Read)))];
        let of = observed(true, &events, 10);
        assert!(!of.is_idle);
        assert_eq!((of.device.read.ios, of.device.read.latency), (1, None));
        assert_eq!(
            of.with_counters(Some(DeviceCounters::default()), false, 1.0).counters_agree,
            None,
            "it cannot be told"
        );
    }

    #[test]
    fn a_device_without_requests_is_seen_by_what_it_was_handed() {
        let flushed = Request { preflush: true, ..request(8, 8, Op::Write) };
        let events = [
            (1, EventContent::Issued(flushed)),
            // The device processed the request piece by piece: only its end is left.
            (4, EventContent::Completed(Request { preflush: true, ..request(16, 0, Op::Write) })),
        ];
        let device = observed(false, &events, 10).device;
        assert_eq!((device.write.ios, device.write.bytes, device.flushes), (1, 4096, Some(1)));
        assert_eq!(device.write.latency.unwrap().mean, 0.003);
    }

    #[test]
    fn what_goes_on_where_something_ended_is_sequential() {
        let places = [0, 1000, 8, 1008, 16, 5000];
        let events: Vec<(u64, EventContent)> = (1..)
            .zip(places)
            .flat_map(|(at, place)| {
                let read = request(place, 8, Op::Read);
                [(at, EventContent::Issued(read)), (at, EventContent::Completed(read))]
            })
            .collect();
        let read = observed(true, &events, 10).device.read;
        assert_eq!(read.sequential, Some(0.5));
        assert_eq!((read.from_byte, read.until_byte, read.depth_max), (Some(0), Some(5008 * 512), 1));
    }

    #[test]
    fn lost_events_leave_nothing_in_flight() {
        let watched = WatchedDevice { name: "loop0".to_owned(), number: NUMBER, has_requests: true };
        let mut observer = Observer::new(vec![watched], Scope::All, 0, Nanos::ZERO, Nanos::secs(1));
        let event = |at, what| Event { at: Nanos::millis(at), thread: 1, what };
        observer.take(
            event(1, EventContent::Issued(request(0, 8, Op::Read))),
            &mut Nobody,
            &mut |_, _| (),
            None,
        );
        observer.lost(Nanos::millis(2), 12, None);
        observer.take(
            event(9, EventContent::Issued(request(0, 8, Op::Read))),
            &mut Nobody,
            &mut |_, _| (),
            None,
        );
        observer.take(
            event(10, EventContent::Completed(request(0, 8, Op::Read))),
            &mut Nobody,
            &mut |_, _| (),
            None,
        );
        assert_eq!(observer.so_far().lost, 12);
        let device = observer.finish(Nanos::ZERO, Nanos::millis(10)).0.remove(0).device;
        assert_eq!(device.read.latency.unwrap().mean, 0.001);
        assert!((device.queue_depth.unwrap().mean - 0.2).abs() < 1e-9);
    }
}
