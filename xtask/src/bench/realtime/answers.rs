//! Latencies as histograms that can be added.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

/// Number of answers by upper bound of the latency in nanoseconds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answers(BTreeMap<u64, u64>);

impl Answers {
    /// Returns the bins of a report in the format of fio.
    pub(super) fn of_fio(bins: &Value) -> Result<Self> {
        let bins = bins.as_object().context("the report has no histogram")?;
        let parsed = bins.iter().map(|(bound, count)| Some((bound.parse().ok()?, count.as_u64()?)));
        Ok(Self(parsed.collect::<Option<_>>().context("reading the histogram")?))
    }

    /// Adds the answers of another run.
    pub(super) fn add(&mut self, more: &Self) {
        for (bound, count) in &more.0 {
            *self.0.entry(*bound).or_default() += count;
        }
    }

    /// Returns the distribution with an independent one of `journeys` added to each latency. (The percentile
    /// of a sum is not the sum of the percentiles: the slowest answers seldom have the slowest journeys.)
    pub(super) fn after(&self, journeys: &Self) -> Self {
        let mut sums = BTreeMap::new();
        for (answer, answers) in &self.0 {
            for (journey, times) in &journeys.0 {
                *sums.entry(answer + journey).or_default() += answers * times;
            }
        }
        Self(sums)
    }

    /// Returns the latency that `share` of the answers do not exceed, in seconds.
    pub(super) fn percentile(&self, share: f64) -> f64 {
        let total: u64 = self.0.values().sum();
        let mut left = share * total as f64;
        let found = self.0.iter().find(|(_, count)| {
            left -= **count as f64;
            left <= 0.0
        });
        found.map_or(f64::NAN, |(bound, _)| *bound as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_bound_below_which_the_share_lies() {
        let bins = serde_json::json!({ "3000": 1, "1000": 5, "20000": 4 });
        let answers = Answers::of_fio(&bins).unwrap();
        assert_eq!(answers.percentile(0.5), 1e-6);
        assert_eq!(answers.percentile(0.6), 3e-6);
        assert_eq!(answers.percentile(0.9), 20e-6);
        assert!(Answers::default().percentile(0.5).is_nan());
        assert!(Answers::of_fio(&Value::Null).is_err());
    }

    #[test]
    fn any_answer_may_have_any_journey() {
        let answers = Answers(BTreeMap::from([(1000, 9), (5000, 1)]));
        let journeys = Answers(BTreeMap::from([(10, 9), (50, 1)]));
        let both = answers.after(&journeys);
        assert_eq!(both, Answers(BTreeMap::from([(1010, 81), (1050, 9), (5010, 9), (5050, 1)])));
        assert_eq!(both.percentile(0.9), 1.05e-6, "although one answer in ten takes 5 us");
    }

    #[test]
    fn runs_add_up() {
        let mut answers = Answers(BTreeMap::from([(1, 1), (2, 1)]));
        answers.add(&Answers(BTreeMap::from([(2, 1), (3, 1)])));
        assert_eq!(answers, Answers(BTreeMap::from([(1, 1), (2, 2), (3, 1)])));
    }
}
