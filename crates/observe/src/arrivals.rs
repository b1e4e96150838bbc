//! Arrival times of requests: their regularity and their bursts. The memory does not grow with their number.

use plumb_block::Nanos;
use plumb_measure::Histogram;
use plumb_report::document::observation::{Arrivals, Bursts};

/// Smallest length of a pause, as a multiple of the median interval.
const PAUSE_TIMES: u64 = 10;
/// Smallest length of a pause, as a time.
const PAUSE_MIN: Nanos = Nanos::millis(1);
/// Share of the time in pauses from which on arrivals count as bursts.
const PAUSES_SHARE: f64 = 0.2;
/// Number of pauses from which on arrivals count as bursts.
const PAUSES_MIN: u64 = 3;
/// Number of intervals below which arrivals are not characterized.
const INTERVALS_MIN: u64 = 16;

/// Intervals between requests.
#[derive(Debug)]
pub(crate) struct Intervals {
    last: Option<Nanos>,
    lengths: Histogram,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { last: None, lengths: Histogram::with_digits(2) }
    }
}

impl Intervals {
    /// Counts an arrival.
    pub(crate) fn take(&mut self, at: Nanos) {
        if let Some(last) = self.last.replace(at) {
            self.lengths.record(at.since(last));
        }
    }

    /// Returns the characteristics of the arrivals.
    pub(crate) fn finish(&self) -> Option<Arrivals> {
        let lengths = &self.lengths;
        let (mean, deviation) = (lengths.mean()?, lengths.std()?);
        if lengths.count() < INTERVALS_MIN || mean <= 0.0 {
            return None;
        }
        Some(Arrivals { variation: deviation / mean, bursts: self.bursts() })
    }

    fn bursts(&self) -> Option<Bursts> {
        let lengths = &self.lengths;
        let from = Nanos(lengths.at_per_mille(500)?.0.saturating_mul(PAUSE_TIMES)).max(PAUSE_MIN);
        let pauses = lengths.bins().filter(|(length, _)| *length >= from);
        let (count, sum) = pauses.fold((0, 0.0), |(count, sum), (length, more)| {
            (count + more, sum + length.as_secs_f64() * more as f64)
        });
        let all = lengths.sum_ns() as f64 / 1e9;
        let is_bursty = count >= PAUSES_MIN && sum >= PAUSES_SHARE * all;
        is_bursty.then(|| Bursts {
            count: count + 1,
            ios_mean: (lengths.count() + 1) as f64 / (count + 1) as f64,
            pause_mean: sum / count as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(times: impl IntoIterator<Item = u64>) -> Option<Arrivals> {
        let mut intervals = Intervals::default();
        times.into_iter().for_each(|at| intervals.take(Nanos::micros(at)));
        intervals.finish()
    }

    #[test]
    fn bursts_are_what_lies_between_pauses() {
        // 20 requests 100 us apart, then 50 ms of nothing.
        let times = (0..30).flat_map(|burst| (0..20).map(move |number| burst * 52_000 + number * 100));
        let found = arrivals(times).unwrap();
        let bursts = found.bursts.unwrap();
        assert_eq!(bursts.count, 30);
        assert_eq!(bursts.ios_mean, 20.0);
        assert!((bursts.pause_mean - 0.0501).abs() < 0.001, "{bursts:?}");
        assert!(found.variation > 2.0);
    }

    #[test]
    fn a_clock_and_independent_clients_have_no_bursts() {
        let clock = arrivals((0..1000).map(|number| number * 2000)).unwrap();
        assert!(clock.variation < 0.01 && clock.bursts.is_none(), "{clock:?}");
        // Intervals of an exponential distribution, by its quantiles in an order that mixes them.
        let mut at = 0;
        let poisson = arrivals((0..1000_u64).map(|number| {
            let share = (number * 619 % 1000) as f64 / 1000.0;
            at += (-(1.0 - share).ln() * 3000.0) as u64;
            at
        }));
        let poisson = poisson.unwrap();
        assert!((0.9..1.1).contains(&poisson.variation) && poisson.bursts.is_none(), "{poisson:?}");
        assert_eq!(arrivals([1, 2, 3]), None, "too few");
    }
}
