//! Rates: admission of writes as the log fills, the amount destaged at a time, and detection of sequential
//! streams.

use plumb_block::{Bytes, Lba, LbaRange, Nanos};

/// Fill level of the log from which writes are delayed.
const DELAY_FROM: f64 = 0.6;
/// Fill level at which writes are admitted as fast as data is destaged.
const DELAY_EVEN: f64 = 0.9;
/// Fill level at which writes are admitted as fast as the backing device alone would accept them.
const DELAY_FULL: f64 = 0.96;
/// Fill level at which no writes are admitted: the rest is reserved for the batch being destaged.
const SHUT: f64 = 0.98;
/// Fill level from which destaging is urgent while writes arrive.
const URGENT_FROM: f64 = 0.8;
/// Time after a write during which writes count as arriving.
const WRITING: Nanos = Nanos::millis(200);
/// Maximum duration of a batch at the estimated rate, in seconds.
const BATCH: f64 = 2.0;
/// Window over which the rate of destaging is measured.
const RATE_WINDOW: Nanos = Nanos::millis(250);
/// Time after a client's use of the backing device during which it has priority there.
const FOREGROUND: Nanos = Nanos::millis(100);
/// Maximum time for which destaging yields to clients.
const PAUSE_MAX: Nanos = Nanos::secs(1);
/// Maximum amount destaged at a time: the log divided by this.
const BATCHES: u64 = 64;
/// Maximum number of streams that are tracked.
const STREAMS: usize = 16;

/// Measurements that determine the pace.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Time of the last client request.
    pub(crate) last_request_at: Nanos,
    /// Time of the last record.
    written_at: Option<Nanos>,
    /// Rate at which the log becomes free, in bytes per second; 0 if unknown.
    pub(crate) rate: f64,
    /// Time of one write to the otherwise idle backing device; 0 if unknown. `done_at` is the end of the last
    /// one.
    operation: Nanos,
    done_at: Nanos,
    /// Start of the measurement window, and the progress at that time.
    window_from: Nanos,
    window: Progress,
    /// Bytes destaged per second, over several windows; 0 if unknown.
    pub(crate) destage_rate: f64,
    /// Time when a client last needed the backing device.
    foreground_at: Option<Nanos>,
    /// Time before which nothing is destaged.
    pub(crate) runs_from: Nanos,
    /// Streams, the most recently used first.
    streams: Vec<Stream>,
}

/// Progress of destaging since the cache was opened, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// Bytes of the log that became free.
    pub(crate) freed: f64,
    /// Bytes of data written to the backing device.
    pub(crate) destaged: f64,
}

/// Size of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) bytes: u64,
    /// Number of writes with data in the record.
    pub(crate) writes: u32,
}

/// Consecutive writes, each starting where the previous ended.
#[derive(Debug)]
struct Stream {
    next: Lba,
    bytes: u64,
}

impl Pace {
    pub(crate) fn new(now: Nanos) -> Self {
        Self { last_request_at: now, window_from: now, ..Self::default() }
    }

    /// Starts a measurement at `progress` after a pause, which does not count.
    pub(crate) fn destaging(&mut self, now: Nanos, progress: Progress) {
        (self.window_from, self.window) = (now, progress);
    }

    /// Records that a client needs the backing device.
    pub(crate) fn foreground(&mut self, now: Nanos) {
        self.foreground_at = Some(now);
    }

    fn is_foreground(&self, now: Nanos) -> bool {
        self.foreground_at.is_some_and(|at| now.since(at) < FOREGROUND)
    }

    /// Records that a run was destaged from `from` to `now`, with the `progress` so far. If clients need the
    /// backing device and it is not urgent, destaging pauses for nineteen times that duration.
    pub(crate) fn destaged(&mut self, from: Nanos, now: Nanos, progress: Progress, is_urgent: bool) {
        if !is_urgent && self.is_foreground(now) {
            self.runs_from = now.saturating_add(Nanos((now.since(from) * 19).0.min(PAUSE_MAX.0)));
        }
        // The device served earlier runs until `done_at`.
        let operation = now.since(from.max(self.done_at));
        let before = if self.operation == Nanos::ZERO { operation } else { self.operation };
        (self.operation, self.done_at) = (Nanos((before.0 * 7 + operation.0) / 8), now);
        let elapsed = now.since(self.window_from);
        if elapsed >= RATE_WINDOW {
            let rate = |now: f64, before: f64| (now - before).max(0.0) / elapsed.as_secs_f64();
            let smooth =
                |old: f64, new: f64, share: f64| if old > 0.0 { old + (new - old) * share } else { new };
            self.rate = smooth(self.rate, rate(progress.freed, self.window.freed), 0.5);
            self.destage_rate = smooth(self.destage_rate, rate(progress.destaged, self.window.destaged), 0.1);
            self.destaging(now, progress);
        }
    }

    /// Records a record at this fill level of the log. Returns the delay before the next one. Modelled after
    /// ZFS: none up to 60 %, then increasing; at 90 % writes are admitted as fast as the log becomes free.
    /// The delay never exceeds the time that the backing device alone would take.
    pub(crate) fn delay(&mut self, now: Nanos, load: Load, used: f64) -> Nanos {
        self.written_at = Some(now);
        if used <= DELAY_FROM || self.rate <= 0.0 {
            return Nanos::ZERO;
        }
        let steepness = (DELAY_FULL - DELAY_EVEN) / (DELAY_EVEN - DELAY_FROM);
        let factor = steepness * (used - DELAY_FROM) / (DELAY_FULL - used).max(0.001);
        let alone = self.operation * u64::from(load.writes);
        Nanos(Nanos::from_secs_f64(load.bytes as f64 / self.rate * factor).0.min(alone.0))
    }

    /// Returns true if no writes are admitted at this fill level.
    pub(crate) fn is_shut(&self, used: f64) -> bool {
        used >= SHUT
    }

    /// Returns the number of segments of this size to destage at a time, for a log of `count`.
    pub(crate) fn batch(&self, segment: u64, count: u64) -> u64 {
        let most = (count / BATCHES).max(1);
        if self.rate > 0.0 { ((self.rate * BATCH) as u64 / segment).clamp(1, most) } else { most }
    }

    /// Returns true if destaging must not yield: writes arrive and the log is nearly full, or writes wait.
    /// Reads alone never wait for destaging.
    pub(crate) fn is_urgent(&self, now: Nanos, used: f64) -> bool {
        let is_written = self.written_at.is_some_and(|at| now.since(at) < WRITING);
        self.is_shut(used) || (used >= URGENT_FROM && is_written)
    }

    /// Returns the maximum number of concurrent runs.
    pub(crate) fn runs_max(&self, now: Nanos, used: f64, is_draining: bool) -> usize {
        let (is_foreground, is_urgent) = (self.is_foreground(now), self.is_urgent(now, used));
        match used {
            _ if is_draining => 8,
            _ if is_urgent && is_foreground => 2,
            _ if is_urgent => 8,
            _ if now < self.runs_from => 0,
            _ if is_foreground => 1,
            used if used >= DELAY_FROM => 4,
            _ => 2,
        }
    }

    /// Returns true if a write continues a stream that has become longer than `after`.
    pub(crate) fn is_stream(&mut self, range: LbaRange, bytes: u64, after: Option<Bytes>) -> bool {
        let Some(after) = after else { return false };
        let found = self.streams.iter().position(|stream| stream.next == range.lba);
        let before = found.map_or(0, |at| self.streams.remove(at).bytes);
        self.streams.insert(0, Stream { next: range.end(), bytes: before + bytes });
        self.streams.truncate(STREAMS);
        before >= after.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_begin_at_60_percent_and_admit_at_90_what_becomes_free() {
        let (mut pace, now) = (Pace::new(Nanos::ZERO), Nanos::ZERO);
        assert_eq!(
            pace.delay(now, Load { bytes: 1 << 20, writes: 16 }, 0.9),
            Nanos::ZERO,
            "nothing is known of the rate"
        );
        assert_eq!(pace.batch(4 << 20, 256), 4);
        let progress = Progress { freed: 10e6, destaged: 10e6 };
        pace.destaged(Nanos::millis(490), Nanos::millis(500), progress, false);
        assert_eq!(pace.delay(now, Load { bytes: 1 << 20, writes: 16 }, 0.6), Nanos::ZERO);
        let delays: Vec<_> = (60..=100)
            .map(|used| pace.delay(now, Load { bytes: 1 << 16, writes: 1 }, f64::from(used) / 100.0))
            .collect();
        assert!(delays.is_sorted(), "{delays:?}");
        let seconds = pace.delay(now, Load { bytes: 1_000_000, writes: 16 }, 0.9).as_secs_f64();
        assert!((seconds - 1.0 / 20.0).abs() < 1e-6, "1 MB at 20 MB/s: {seconds}");
        assert_eq!(pace.delay(now, Load { bytes: 1 << 20, writes: 3 }, 1.0), Nanos::millis(30));
        assert!(pace.is_shut(0.98) && !pace.is_shut(0.97));
        assert_eq!((pace.batch(4 << 20, 1024), pace.batch(64 << 20, 1024)), (9, 1), "what takes about 2 s");
    }

    #[test]
    fn destaging_leaves_clients_nineteen_twentieths_of_the_backing_device_unless_it_is_urgent() {
        let mut pace = Pace::new(Nanos::ZERO);
        assert_eq!(pace.runs_max(Nanos::millis(1), 0.4, false), 2);
        pace.foreground(Nanos::millis(1));
        assert_eq!(pace.runs_max(Nanos::millis(1), 0.4, false), 1);
        pace.destaged(Nanos::millis(1), Nanos::millis(6), Progress::default(), false);
        assert_eq!(pace.runs_from, Nanos::millis(101));
        assert_eq!(pace.runs_max(Nanos::millis(100), 0.4, false), 0);
        assert_eq!(pace.runs_max(Nanos::millis(101), 0.4, false), 2, "nobody needs it any more");
        assert_eq!(pace.runs_max(Nanos::millis(50), 0.9, false), 0, "nobody writes");
        pace.delay(Nanos::millis(50), Load { bytes: 4096, writes: 1 }, 0.9);
        assert_eq!(pace.runs_max(Nanos::millis(50), 0.9, false), 2);
        assert_eq!(pace.runs_max(Nanos::millis(240), 0.9, false), 8);
        assert_eq!(pace.runs_max(Nanos::millis(250), 0.9, false), 4, "nobody writes any more");
        assert_eq!(pace.runs_max(Nanos::millis(950), 0.98, false), 8, "writes may wait");
    }

    #[test]
    fn a_stream_is_one_after_so_much_and_others_in_between_do_not_end_it() {
        let mut pace = Pace::new(Nanos::ZERO);
        let after = Some(Bytes::kib(8));
        for turn in 0..5_u64 {
            let stream = pace.is_stream(LbaRange::new(Lba(turn * 8), 8), 4096, after);
            assert_eq!(stream, turn >= 2, "turn {turn}");
            assert!(!pace.is_stream(LbaRange::new(Lba(10_000 - turn * 100), 8), 4096, after));
        }
        assert!(!pace.is_stream(LbaRange::new(Lba(40), 8), 4096, None));
    }
}
