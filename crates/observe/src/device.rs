//! Figures of one device, computed from the steps of its requests.

use std::collections::HashMap;

use plumb_block::Nanos;
use plumb_measure::{Histogram, Series, SeriesEvent, SeriesPoint};
use plumb_report::document::observation::{
    BucketCount, ObservedDevice, ObservedDirection, OverTime, QueueDepth, SizeCount,
};

use crate::arrivals::Intervals;
use crate::event::{Op, Request};
use crate::matcher::{FinishedRequest, Step};

/// Number of recent request ends that are kept: a request that begins at one of them is sequential.
const ENDS: usize = 8;

/// Largest number of intervals in the time series.
const PARTS_MAX: usize = 600;

/// An observed device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedDevice {
    /// Kernel name.
    pub name: String,
    /// Device number, as in events.
    pub number: u32,
    /// True if the device has a request queue; false if it shows only bios.
    pub has_requests: bool,
}

/// Observations of a device so far.
#[derive(Debug)]
pub(crate) struct Device {
    has_requests: bool,
    start: Nanos,
    directions: [Direction; 3],
    flushes: u64,
    flush_latency: Histogram,
    fua_writes: u64,
    merges: u64,
    /// Number of completions without data.
    pub(crate) empty: u64,
    depth: Depth,
    intervals: Intervals,
    series: Series,
}

/// Requests of one direction.
#[derive(Debug)]
struct Direction {
    bytes: u64,
    sizes: HashMap<u64, u64>,
    ends: [u64; ENDS],
    next_end: usize,
    issued: u64,
    sequential: u64,
    from: u64,
    until: u64,
    depth: u64,
    depth_max: u64,
    queue_latency: Histogram,
    latency: Histogram,
    intervals: Intervals,
}

/// Number of requests in flight, over time.
#[derive(Debug, Default)]
struct Depth {
    since: Nanos,
    now: u64,
    max: u64,
    /// Sum of the times of all requests, in nanoseconds.
    area: u128,
    /// Time with at least one request, in nanoseconds.
    busy: u128,
}

impl Device {
    /// Creates a device that is observed from `start` on, for about the `expected` time.
    pub(crate) fn new(has_requests: bool, start: Nanos, expected: Nanos) -> Self {
        Self {
            has_requests,
            start,
            directions: std::array::from_fn(|_| Direction::default()),
            flushes: 0,
            flush_latency: Histogram::new(),
            fua_writes: 0,
            merges: 0,
            empty: 0,
            depth: Depth { since: start, ..Depth::default() },
            intervals: Intervals::default(),
            series: Series::starting_at(start, expected),
        }
    }

    /// Handles a step of a request.
    pub(crate) fn take(&mut self, at: Nanos, request: &Request, step: Step) {
        match step {
            Step::Came => self.came(at, request.op),
            Step::Issued { waited, .. } => {
                self.depth.change(at, self.depth.now + 1);
                if let Some(direction) = self.direction(request.op) {
                    direction.issued(request);
                    waited.iter().for_each(|waited| direction.queue_latency.record(*waited));
                }
            }
            Step::Reissued => {
                self.depth.change(at, self.depth.now + 1);
                self.direction(request.op).into_iter().for_each(|direction| direction.depth += 1);
            }
            Step::Returned => self.left(at, request.op),
            Step::Finished(finished) => self.finished(at, request, &finished),
            Step::Merged => self.merges += 1,
            Step::Empty => self.empty += 1,
            Step::Forgotten => self.forget(at),
        }
    }

    /// Clears the requests in flight, after events were lost.
    pub(crate) fn forget(&mut self, at: Nanos) {
        self.depth.change(at, 0);
        self.directions.iter_mut().for_each(|direction| direction.depth = 0);
    }

    fn came(&mut self, at: Nanos, op: Op) {
        if let Some(direction) = self.direction(op) {
            direction.intervals.take(at);
            self.intervals.take(at);
        }
    }

    /// Records that the driver has one request less.
    fn left(&mut self, at: Nanos, op: Op) {
        self.depth.change(at, self.depth.now.saturating_sub(1));
        if let Some(direction) = self.direction(op) {
            direction.depth = direction.depth.saturating_sub(1);
        }
    }

    fn finished(&mut self, at: Nanos, request: &Request, finished: &FinishedRequest) {
        let (bytes, latency) = (finished.bytes, finished.took);
        if latency.is_some() {
            self.left(at, request.op);
        }
        if request.op == Op::Flush || (request.preflush && !self.has_requests) {
            self.flushes += 1;
        }
        if request.op == Op::Flush {
            latency.iter().for_each(|latency| self.flush_latency.record(*latency));
        }
        self.fua_writes += u64::from(request.fua);
        let Some(direction) = self.direction(request.op) else { return };
        direction.bytes += bytes;
        *direction.sizes.entry(bytes).or_default() += 1;
        latency.iter().for_each(|latency| direction.latency.record(*latency));
        // A trim moves no data.
        if request.op != Op::Trim {
            self.series.record(SeriesEvent { at, bytes, latency: latency.unwrap_or_default() });
        }
    }

    fn direction(&mut self, op: Op) -> Option<&mut Direction> {
        let place = match op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Trim => 2,
            Op::Flush | Op::Other => return None,
        };
        self.directions.get_mut(place)
    }

    /// Returns the figures of the device called `name` until `end`.
    pub(crate) fn finish(&mut self, name: &str, end: Nanos) -> ObservedDevice {
        self.depth.change(end, self.depth.now);
        let length = end.since(self.start);
        let seconds = length.as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let [read, write, trim] = &self.directions;
        ObservedDevice {
            name: name.to_owned(),
            has_requests: self.has_requests,
            read: read.finish(&per_second),
            write: write.finish(&per_second),
            trim: trim.finish(&per_second),
            flushes: Some(self.flushes),
            flushes_per_second: Some(per_second(self.flushes)),
            flush_latency: self.flush_latency.summary(),
            flush_latency_buckets: BucketCount::of_histogram(&self.flush_latency),
            fua_writes: Some(self.fua_writes),
            merges: self.merges,
            queue_depth: Some(self.depth.finish(length)),
            arrivals: self.intervals.finish(),
            counters: None,
            counters_agree: None,
            over_time: over_time(&self.series, length),
        }
    }
}

/// Returns the completions in each interval: at most [`PARTS_MAX`] of equal length.
fn over_time(series: &Series, length: Nanos) -> Vec<OverTime> {
    let points = series.whole_points(length);
    let each = points.len().div_ceil(PARTS_MAX).max(1);
    let part = |points: &[SeriesPoint]| {
        let mut all = points.first().copied()?;
        points.iter().skip(1).for_each(|point| all.add(point));
        Some(OverTime {
            at: all.at.as_secs_f64(),
            seconds: series.width().as_secs_f64() * points.len() as f64,
            ios: all.operations,
            bytes: all.bytes,
            latency_mean: (all.operations > 0).then(|| all.latency_mean().as_secs_f64()),
        })
    };
    points.chunks(each).filter_map(part).collect()
}

impl Depth {
    fn change(&mut self, at: Nanos, to: u64) {
        let passed = u128::from(at.since(self.since).0);
        self.area += passed * u128::from(self.now);
        self.busy += if self.now > 0 { passed } else { 0 };
        self.since = self.since.max(at);
        self.now = to;
        self.max = self.max.max(to);
    }

    fn finish(&self, length: Nanos) -> QueueDepth {
        let share = |part: u128, of: u128| if of > 0 { part as f64 / of as f64 } else { 0.0 };
        let length = u128::from(length.0);
        QueueDepth {
            mean: share(self.area, length),
            busy_mean: share(self.area, self.busy),
            max: self.max,
            busy: share(self.busy, length),
        }
    }
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            bytes: 0,
            sizes: HashMap::new(),
            // Sector at which no request begins.
            ends: [u64::MAX; ENDS],
            next_end: 0,
            issued: 0,
            sequential: 0,
            from: u64::MAX,
            until: 0,
            depth: 0,
            depth_max: 0,
            queue_latency: Histogram::new(),
            latency: Histogram::new(),
            intervals: Intervals::default(),
        }
    }
}

impl Direction {
    fn issued(&mut self, request: &Request) {
        self.issued += 1;
        self.depth += 1;
        self.depth_max = self.depth_max.max(self.depth);
        self.from = self.from.min(request.offset());
        self.until = self.until.max(request.offset() + request.bytes);
        let place = match self.ends.iter().position(|end| *end == request.sector) {
            Some(place) => {
                self.sequential += 1;
                place
            }
            None => {
                self.next_end = (self.next_end + 1) % ENDS;
                self.next_end
            }
        };
        self.ends[place] = request.end();
    }

    fn finish(&self, per_second: &dyn Fn(u64) -> f64) -> ObservedDirection {
        let mut sizes: Vec<SizeCount> =
            self.sizes.iter().map(|(bytes, ios)| SizeCount { bytes: *bytes, ios: *ios }).collect();
        sizes.sort_unstable_by_key(|size| size.bytes);
        let ios = sizes.iter().map(|size| size.ios).sum::<u64>();
        let is_any = self.issued > 0;
        ObservedDirection {
            ios,
            bytes: self.bytes,
            iops: per_second(ios),
            bytes_per_second: per_second(self.bytes),
            io_bytes_mean: (ios > 0).then(|| self.bytes as f64 / ios as f64),
            sizes,
            sequential: is_any.then(|| self.sequential as f64 / self.issued as f64),
            from_byte: is_any.then_some(self.from),
            until_byte: is_any.then_some(self.until),
            depth_max: self.depth_max,
            queue_latency: self.queue_latency.summary(),
            latency: self.latency.summary(),
            latency_buckets: BucketCount::of_histogram(&self.latency),
            arrivals: self.intervals.finish(),
        }
    }
}
