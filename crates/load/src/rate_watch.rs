//! Detection of a settled rate, which ends a warm-up without a given length.

use plumb_block::Nanos;
use plumb_measure::Ramp;

/// Length of the intervals in which the rate is measured.
const BUCKET: Nanos = Nanos::millis(100);
/// Number of intervals over which the rate must be steady.
const STEADY_BUCKETS: usize = 20;
/// Longest warm-up; after that the measurement begins anyway, with a note that the rate had not settled.
pub(crate) const WARMUP_MAX: Nanos = Nanos::secs(60);

/// Rate since the start.
#[derive(Debug, Default)]
pub(crate) struct RateWatch {
    rates: Vec<f64>,
    operations: u64,
}

impl RateWatch {
    /// Records that `operations` had completed `elapsed` after the start. Returns true if the rate has
    /// settled.
    pub(crate) fn has_settled(&mut self, elapsed: Nanos, operations: u64) -> bool {
        let buckets = (elapsed.0 / BUCKET.0) as usize;
        let Some(missing) = buckets.checked_sub(self.rates.len()).filter(|missing| *missing > 0) else {
            return false;
        };
        // A late call represents all intervals since the last call.
        let each = operations.saturating_sub(self.operations) as f64 / missing as f64;
        self.operations = operations;
        self.rates.resize(buckets, each);
        matches!(Ramp::from_rates(&self.rates), Ramp::SettledAt(bucket) if bucket + STEADY_BUCKETS <= buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_waited_for_and_a_steady_rate_is_not() {
        let settled_after = |rate: &dyn Fn(u64) -> u64| {
            let mut watch = RateWatch::default();
            let mut done = 0;
            (1..600).find(|bucket| {
                done += rate(*bucket);
                watch.has_settled(BUCKET * *bucket, done)
            })
        };
        let at_once = settled_after(&|_| 1000).unwrap();
        assert!(at_once <= 30, "{at_once}");
        let after_ramp = settled_after(&|bucket| if bucket < 50 { bucket * 20 } else { 1000 }).unwrap();
        assert!((60..110).contains(&after_ramp), "{after_ramp}");
    }
}
