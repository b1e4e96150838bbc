//! Time series: completed operations in buckets of equal width.
//!
//! Memory is bounded: a series starts with buckets of [`SERIES_BUCKET`]. When a run exceeds
//! [`CAPACITY`](Series::CAPACITY) of them, pairs of buckets are merged and the width doubles. Sums stay
//! exact, the whole run stays visible, and a run of a month costs as much as one of half an hour.
//!
//! Invariant: bucket `i` covers `[i, i + 1) * width` since the start of the series, without gaps: an idle
//! period consists of buckets of zeroes.

use plumb_block::Nanos;

use serde::{Deserialize, Serialize};

use crate::result::{SERIES_BUCKET, SeriesPoint};
use crate::run::TimeseriesRow;

/// Operations over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SeriesFields")]
pub struct Series {
    start: Nanos,
    width: Nanos,
    /// Bucket being filled: `points[current]` starts at `current_start`.
    current: usize,
    current_start: Nanos,
    points: Vec<SeriesPoint>,
}

/// Unvalidated fields of a series from another host, named as in [`Series`].
#[derive(Deserialize)]
struct SeriesFields {
    start: Nanos,
    width: Nanos,
    current: usize,
    current_start: Nanos,
    points: Vec<SeriesPoint>,
}

impl TryFrom<SeriesFields> for Series {
    type Error = &'static str;

    fn try_from(received: SeriesFields) -> Result<Self, Self::Error> {
        let SeriesFields { start, width, current, current_start, points } = received;
        let doublings = width.0 / SERIES_BUCKET.0;
        let is_width = width.0.is_multiple_of(SERIES_BUCKET.0) && doublings.is_power_of_two();
        let is_bounded = points.len() <= Self::CAPACITY && current < points.len();
        let is_small = |point: &SeriesPoint| {
            point.operations < COUNT_MAX && point.bytes < COUNT_MAX && point.latency_sum.0 < COUNT_MAX
        };
        let in_order =
            points.iter().zip(0..).all(|(point, place)| point.at.0 == width.0.saturating_mul(place));
        let is_width = is_width && doublings <= 1 << 20;
        // The start is far from the maximum even for a host that has run for centuries, so later additions
        // stay in range.
        let is_placed = || {
            start.0 < u64::MAX / 4 && Some(current_start.0) == start.0.checked_add(width.0 * current as u64)
        };
        if is_width && is_bounded && is_placed() && in_order && points.iter().all(is_small) {
            return Ok(Self { start, width, current, current_start, points });
        }
        Err("a time series that was not made by recording")
    }
}

/// Limit of counts from another host, so that sums over many hosts do not overflow.
pub const COUNT_MAX: u64 = 1 << 53;

/// A completed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesEvent {
    /// Completion time, by the clock of the series' start.
    pub at: Nanos,
    /// Bytes moved.
    pub bytes: u64,
    /// Duration of the operation.
    pub latency: Nanos,
}

impl Series {
    /// Maximum number of buckets.
    pub const CAPACITY: usize = 1 << 14;

    /// Creates an empty series that starts at `start`, preallocated for `expected` time.
    pub fn starting_at(start: Nanos, expected: Nanos) -> Self {
        let buckets = expected.0 / SERIES_BUCKET.0 + 2;
        let room = usize::try_from(buckets).map_or(Self::CAPACITY, |buckets| buckets.min(Self::CAPACITY));
        let mut points = Vec::with_capacity(room);
        points.push(empty_point(Nanos::ZERO));
        Self { start, width: SERIES_BUCKET, current: 0, current_start: start, points }
    }

    /// Counts an operation. One completed before the start counts in the first bucket.
    #[inline]
    pub fn record(&mut self, event: SeriesEvent) {
        self.record_n(event, 1);
    }

    /// Counts an operation `count` times.
    #[inline]
    pub fn record_n(&mut self, event: SeriesEvent, count: u64) {
        if event.at < self.current_start || event.at.0 - self.current_start.0 >= self.width.0 {
            self.turn_to(event.at);
        }
        let point = &mut self.points[self.current];
        let is_first = point.operations == 0;
        point.latency_min = if is_first { event.latency } else { point.latency_min.min(event.latency) };
        point.latency_squares += (event.latency.0 as f64).powi(2) * count as f64;
        point.operations += count;
        point.bytes += event.bytes * count;
        point.latency_sum += event.latency * count;
        point.latency_max = point.latency_max.max(event.latency);
    }

    /// Adds the counts of `other`, bucket by bucket relative to each start. The wider buckets win.
    pub fn merge(&mut self, other: &Self) {
        let widened;
        let other = if other.width < self.width {
            let mut copy = other.clone();
            while copy.width < self.width {
                copy.join_pairs();
            }
            widened = copy;
            &widened
        } else {
            while self.width < other.width {
                self.join_pairs();
            }
            other
        };
        self.extend_to(other.points.len() - 1);
        for (mine, theirs) in self.points.iter_mut().zip(&other.points) {
            mine.add(theirs);
        }
    }

    /// Adds the counts of `other`, which starts `length` after this series.
    pub fn append(&mut self, length: Nanos, other: &Self) {
        while self.width < other.width {
            self.join_pairs();
        }
        for point in &other.points {
            let index = ((length + point.at).0 / self.width.0) as usize;
            self.extend_to(index);
            if let Some(mine) = self.points.get_mut(index) {
                mine.add(point);
            }
        }
    }

    /// Returns the width of the buckets.
    pub fn width(&self) -> Nanos {
        self.width
    }

    /// Returns the buckets, from the start to the last operation.
    pub fn points(&self) -> &[SeriesPoint] {
        &self.points
    }

    /// Returns the buckets as lines of a recording, for the phase of this name.
    pub fn rows(&self, phase: &str) -> Vec<TimeseriesRow> {
        self.points.iter().map(|point| TimeseriesRow::from_point(phase, point)).collect()
    }

    /// Returns the buckets that are completely within a window of `length` from the start, including trailing
    /// buckets of zeroes. A bucket cut short by the end of the window would look like a drop of the rate.
    pub fn whole_points(&self, length: Nanos) -> Vec<SeriesPoint> {
        let whole = usize::try_from(length.0 / self.width.0).unwrap_or(usize::MAX).min(Self::CAPACITY);
        let width = self.width;
        let beyond = (self.points.len()..whole).map(|index| empty_point(width * index as u64));
        self.points.iter().take(whole).copied().chain(beyond).collect()
    }

    /// Selects the bucket of `at` as the current one.
    #[cold]
    fn turn_to(&mut self, at: Nanos) {
        let elapsed = at.since(self.start);
        while elapsed.0 / self.width.0 >= Self::CAPACITY as u64 {
            self.join_pairs();
        }
        let index = (elapsed.0 / self.width.0) as usize;
        self.extend_to(index);
        self.current = index;
        self.current_start = Nanos(self.start.0 + self.width.0 * index as u64);
    }

    /// Appends buckets up to `index`.
    fn extend_to(&mut self, index: usize) {
        let width = self.width;
        for next in self.points.len()..=index {
            self.points.push(empty_point(width * next as u64));
        }
    }

    /// Doubles the width of the buckets by merging pairs.
    fn join_pairs(&mut self) {
        for index in 0..self.points.len().div_ceil(2) {
            let mut joined = self.points[2 * index];
            if let Some(second) = self.points.get(2 * index + 1) {
                joined.add(second);
            }
            self.points[index] = joined;
        }
        self.points.truncate(self.points.len().div_ceil(2));
        self.width = self.width * 2;
        self.current /= 2;
        self.current_start = Nanos(self.start.0 + self.width.0 * self.current as u64);
    }
}

fn empty_point(at: Nanos) -> SeriesPoint {
    SeriesPoint { at, ..SeriesPoint::default() }
}

impl SeriesPoint {
    /// Adds the counts of `from`; the start does not change.
    pub fn add(&mut self, from: &Self) {
        self.latency_min = match (self.operations, from.operations) {
            (_, 0) => self.latency_min,
            (0, _) => from.latency_min,
            _ => self.latency_min.min(from.latency_min),
        };
        self.latency_squares += from.latency_squares;
        self.operations += from.operations;
        self.bytes += from.bytes;
        self.latency_sum += from.latency_sum;
        self.latency_max = self.latency_max.max(from.latency_max);
    }

    /// Returns the mean service time; zero if there are none.
    pub fn latency_mean(&self) -> Nanos {
        Nanos(self.latency_sum.0.checked_div(self.operations).unwrap_or(0))
    }

    /// Returns the standard deviation of the service times; zero if there are none.
    pub fn latency_deviation(&self) -> Nanos {
        if self.operations == 0 {
            return Nanos::ZERO;
        }
        let count = self.operations as f64;
        let mean = self.latency_sum.0 as f64 / count;
        Nanos((self.latency_squares / count - mean * mean).max(0.0).sqrt() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(start: Nanos, times_ms: &[u64]) -> Series {
        let mut series = Series::starting_at(start, Nanos::secs(1));
        for time in times_ms {
            let at = start + Nanos::millis(*time);
            series.record(SeriesEvent { at, bytes: 10, latency: Nanos(*time) });
        }
        series
    }

    fn counts(series: &Series) -> Vec<u64> {
        series.points().iter().map(|point| point.operations).collect()
    }

    #[test]
    fn operations_fall_into_their_bucket_even_out_of_order() {
        let series = series(Nanos::secs(7), &[0, 99, 100, 450, 120, 499]);
        assert_eq!(counts(&series), [2, 2, 0, 0, 2]);
        assert_eq!(series.points()[4].at, Nanos::millis(400));
        assert_eq!(series.points()[1].latency_max, Nanos(120));
    }

    #[test]
    fn a_series_from_elsewhere_begins_where_more_can_be_added() {
        let sent = serde_json::to_value(series(Nanos::secs(7), &[0, 450])).unwrap();
        assert!(serde_json::from_value::<Series>(sent.clone()).is_ok());
        for (field, value) in [("start", u64::MAX), ("current_start", 1), ("current", 1)] {
            let mut wrong = sent.clone();
            wrong[field] = value.into();
            assert!(serde_json::from_value::<Series>(wrong).is_err(), "{field}");
        }
    }

    #[test]
    fn a_window_ends_with_its_last_whole_bucket() {
        let series = series(Nanos::ZERO, &[50, 150, 250]);
        let whole = |ms| series.whole_points(Nanos::millis(ms)).len();
        assert_eq!((whole(250), whole(299), whole(300)), (2, 2, 3));
        let stalled = series.whole_points(Nanos::millis(600));
        assert_eq!(stalled.len(), 6, "a stall at the end is part of the window");
        assert_eq!(stalled[5].at, Nanos::millis(500));
    }

    #[test]
    fn a_long_run_widens_its_buckets_and_loses_nothing() {
        let mut long = Series::starting_at(Nanos::ZERO, Nanos::ZERO);
        let hours = 10;
        for second in 0..hours * 3600 {
            long.record(SeriesEvent { at: Nanos::secs(second), bytes: 1, latency: Nanos(second) });
        }
        assert!(long.points().len() <= Series::CAPACITY);
        assert_eq!(long.width(), Nanos::millis(3200));
        assert_eq!(counts(&long).iter().sum::<u64>(), hours * 3600);
        assert!(long.points().windows(2).all(|pair| pair[1].at.since(pair[0].at) == long.width()));
    }

    proptest! {
        #[test]
        fn merging_is_recording_everything_in_one(
            left in proptest::collection::vec(0_u64..4_000_000, 0..50),
            right in proptest::collection::vec(0_u64..10_000_000, 0..50),
        ) {
            let mut merged = series(Nanos::ZERO, &left);
            // Another clock origin: what matters is the time since each one's start.
            merged.merge(&series(Nanos::secs(99), &right));
            let both: Vec<u64> = left.iter().chain(&right).copied().collect();
            let whole = series(Nanos::ZERO, &both);
            prop_assert_eq!(merged.points(), whole.points());
            prop_assert_eq!(merged.width(), whole.width());
        }
    }
}
