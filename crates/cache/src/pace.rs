//! How fast: what is admitted when the log fills, how much is destaged at a time, and which writes are streams.

use plumb_block::{Bytes, Lba, LbaRange, Nanos};

/// From this share of the log in use on writes are delayed.
const DELAY_FROM: f64 = 0.6;
/// With this share in use they come in as fast as is destaged.
const DELAY_EVEN: f64 = 0.9;
/// With this share in use they are delayed the most. The rest is room for the batch that is being destaged.
const DELAY_FULL: f64 = 0.96;
/// From this share of the log in use on destaging is urgent, as long as writes come.
const URGENT_FROM: f64 = 0.8;
/// Writes come for so long after the last one.
const WRITING: Nanos = Nanos::secs(1);
/// The longest delay of a record.
const DELAY_MAX: Nanos = Nanos::millis(100);
/// Over how long the rate of destaging is measured.
const RATE_WINDOW: Nanos = Nanos::millis(250);
/// Clients need the backing device for this long after they last did.
const FOREGROUND: Nanos = Nanos::millis(100);
/// The longest time for which destaging gives way.
const PAUSE_MAX: Nanos = Nanos::secs(1);
/// How many streams are followed.
const STREAMS: usize = 16;

/// What the pace follows from.
#[derive(Debug)]
pub(crate) struct Pace {
    last_asked: Nanos,
    /// When the last record was written.
    written_at: Option<Nanos>,
    /// The rate of destaging, in bytes per second; 0 until it is known.
    rate: f64,
    window_from: Nanos,
    window_bytes: u64,
    /// When a client last needed the backing device.
    foreground_at: Option<Nanos>,
    /// Nothing is destaged before this.
    runs_from: Nanos,
    /// The last one used first.
    streams: Vec<Stream>,
}

/// Writes that go on where the one before ended.
#[derive(Debug)]
struct Stream {
    next: Lba,
    bytes: u64,
}

impl Pace {
    pub(crate) fn new(now: Nanos) -> Self {
        Self {
            last_asked: now,
            written_at: None,
            rate: 0.0,
            window_from: now,
            window_bytes: 0,
            foreground_at: None,
            runs_from: Nanos::ZERO,
            streams: Vec::new(),
        }
    }

    /// A client asked for something.
    pub(crate) fn asked(&mut self, now: Nanos) {
        self.last_asked = now;
    }

    pub(crate) fn last_asked(&self) -> Nanos {
        self.last_asked
    }

    /// The rate of destaging, in bytes per second; 0 until it is known.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Destaging goes on after a pause, which does not count.
    pub(crate) fn destaging(&mut self, now: Nanos) {
        (self.window_from, self.window_bytes) = (now, 0);
    }

    /// A client needs the backing device.
    pub(crate) fn foreground(&mut self, now: Nanos) {
        self.foreground_at = Some(now);
    }

    fn is_foreground(&self, now: Nanos) -> bool {
        self.foreground_at.is_some_and(|at| now.since(at) < FOREGROUND)
    }

    /// When the next run may be destaged.
    pub(crate) fn runs_from(&self) -> Nanos {
        self.runs_from
    }

    /// So much was destaged, by a write from `from` to `now`. If clients need the backing device and there is no hurry, it is theirs
    /// for nineteen times as long.
    pub(crate) fn destaged(&mut self, bytes: u64, (from, now): (Nanos, Nanos), is_urgent: bool) {
        if !is_urgent && self.is_foreground(now) {
            let pause = Nanos((now.since(from) * 19).0.min(PAUSE_MAX.0));
            self.runs_from = now.saturating_add(pause);
        }
        self.window_bytes += bytes;
        let elapsed = now.since(self.window_from);
        if elapsed >= RATE_WINDOW {
            let rate = self.window_bytes as f64 / elapsed.as_secs_f64();
            self.rate = if self.rate > 0.0 { (self.rate + rate) / 2.0 } else { rate };
            self.destaging(now);
        }
    }

    /// A record of so many bytes is written, with this share of the log in use: how long to wait with the next one. After ZFS: nothing
    /// up to 60 %, then more and more; at 90 % writes come in as fast as they are destaged.
    pub(crate) fn delay(&mut self, now: Nanos, bytes: u64, used: f64) -> Nanos {
        self.written_at = Some(now);
        if used <= DELAY_FROM || self.rate <= 0.0 {
            return Nanos::ZERO;
        }
        let steepness = (DELAY_FULL - DELAY_EVEN) / (DELAY_EVEN - DELAY_FROM);
        let factor = steepness * (used - DELAY_FROM) / (DELAY_FULL - used).max(0.001);
        Nanos::from_secs_f64(bytes as f64 / self.rate * factor).min(DELAY_MAX)
    }

    /// Whether destaging does not give way: writes come, and the log is nearly full. Reads alone never wait for it.
    pub(crate) fn is_urgent(&self, now: Nanos, used: f64) -> bool {
        used >= URGENT_FROM && self.written_at.is_some_and(|at| now.since(at) < WRITING)
    }

    /// How many runs may be destaged at the same time.
    pub(crate) fn runs_max(&self, now: Nanos, used: f64, is_draining: bool) -> u32 {
        let is_foreground = self.is_foreground(now);
        match used {
            _ if is_draining => 8,
            used if self.is_urgent(now, used) => {
                if is_foreground {
                    4
                } else {
                    8
                }
            }
            _ if now < self.runs_from => 0,
            _ if is_foreground => 1,
            used if used >= DELAY_FROM => 4,
            _ => 2,
        }
    }

    /// Whether a write goes on with a stream that is longer than `after` by now.
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
    fn delays_begin_at_60_percent_and_admit_at_90_what_is_destaged() {
        let (mut pace, now) = (Pace::new(Nanos::ZERO), Nanos::ZERO);
        assert_eq!(pace.delay(now, 1 << 20, 0.9), Nanos::ZERO, "nothing is known of the rate");
        pace.destaged(10 << 20, (now, Nanos::millis(500)), false);
        assert_eq!(pace.delay(now, 1 << 20, 0.6), Nanos::ZERO);
        let delays: Vec<_> =
            (60..=100).map(|used| pace.delay(now, 1 << 16, f64::from(used) / 100.0)).collect();
        assert!(delays.is_sorted(), "{delays:?}");
        let seconds = pace.delay(now, 1 << 20, 0.9).as_secs_f64();
        assert!((seconds - 1.0 / 20.0).abs() < 1e-6, "1 MiB at 20 MiB/s: {seconds}");
        assert_eq!(pace.delay(now, 1 << 20, 1.0), DELAY_MAX);
    }

    #[test]
    fn destaging_leaves_clients_nineteen_twentieths_of_the_backing_device_unless_it_is_urgent() {
        let mut pace = Pace::new(Nanos::ZERO);
        assert_eq!(pace.runs_max(Nanos::millis(1), 0.4, false), 2);
        pace.foreground(Nanos::millis(1));
        assert_eq!(pace.runs_max(Nanos::millis(1), 0.4, false), 1);
        pace.destaged(4096, (Nanos::millis(1), Nanos::millis(6)), false);
        assert_eq!(pace.runs_from(), Nanos::millis(101));
        assert_eq!(pace.runs_max(Nanos::millis(100), 0.4, false), 0);
        assert_eq!(pace.runs_max(Nanos::millis(101), 0.4, false), 2, "nobody needs it any more");
        assert_eq!(pace.runs_max(Nanos::millis(50), 0.9, false), 0, "nobody writes");
        pace.delay(Nanos::millis(50), 4096, 0.9);
        assert_eq!(pace.runs_max(Nanos::millis(50), 0.9, false), 4);
        assert_eq!(pace.runs_max(Nanos::millis(500), 0.9, false), 8);
        assert_eq!(pace.runs_max(Nanos::millis(1050), 0.9, false), 4, "nobody writes any more");
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
