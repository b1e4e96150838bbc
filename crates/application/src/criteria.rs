//! Limits that the users of an application demand of storage, and the comparison of measurements with them.

use plumb_block::Nanos;
use plumb_load::{Direction, SpanResult};
use plumb_measure::Histogram;
use serde::Deserialize;

/// Limit on a latency. Storage that misses it gets a finding.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// Id of the finding.
    pub id: String,
    /// Operation whose latency is limited.
    pub of: Quantity,
    /// Statistic that is limited.
    pub statistic: Statistic,
    /// Upper bound of the figure.
    pub below: Nanos,
    /// Consequence of missing the limit.
    pub why: String,
}

/// Operation whose latency is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Syncs of files, or flushes.
    Syncs,
    /// Reads of a job of the scenario.
    Reads {
        /// Number of the job.
        job: usize,
    },
    /// Writes of a job of the scenario.
    Writes {
        /// Number of the job.
        job: usize,
    },
}

/// Statistic of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Mean.
    Mean,
    /// Value that this many of 1000 do not exceed: 990 is the 99th percentile.
    PerMille(u32),
    /// Mean of the worst second.
    WorstSecond,
}

/// Comparison of a measurement with a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitResult {
    /// The limit.
    pub criterion: &'static Criterion,
    /// Measured value; `None` if there was none.
    pub measured: Option<Nanos>,
    /// Verdict on the limit.
    pub standing: LimitVerdict,
    /// Verdict as a sentence for reports.
    pub sentence: String,
}

/// Verdict on a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitVerdict {
    /// The limit is met.
    Met,
    /// The limit is missed: a finding.
    Missed,
    /// Nothing was measured that the limit applies to.
    Unmeasured,
}

/// Compares the measurements of a profile's span with the limits of the profile.
pub fn judge(criteria: &'static [Criterion], span: &SpanResult) -> Vec<LimitResult> {
    let figure = |criterion: &Criterion| match criterion.of {
        Quantity::Syncs => of_direction(&span.total().flush, criterion.statistic),
        Quantity::Reads { job } => of_direction(&span.of_job(job).read, criterion.statistic),
        Quantity::Writes { job } => of_direction(&span.of_job(job).write, criterion.statistic),
    };
    criteria.iter().map(|criterion| criterion.judge(figure(criterion))).collect()
}

fn of_direction(direction: &Direction, statistic: Statistic) -> Option<Nanos> {
    match statistic {
        Statistic::WorstSecond => worst_second(direction),
        statistic => of_histogram(direction.operation_latency(), statistic),
    }
}

fn of_histogram(latency: &Histogram, statistic: Statistic) -> Option<Nanos> {
    match statistic {
        Statistic::PerMille(per_mille) => latency.at_per_mille(per_mille),
        Statistic::Mean => latency.mean().map(Nanos::from_secs_f64),
        // The worst second needs the time series.
        Statistic::WorstSecond => None,
    }
}

/// Returns the mean latency of the second with the highest mean.
fn worst_second(direction: &Direction) -> Option<Nanos> {
    let mut seconds: std::collections::BTreeMap<u64, (u64, u64)> = std::collections::BTreeMap::new();
    for point in direction.series.points() {
        let (sum, count) = seconds.entry(point.at.0 / Nanos::secs(1).0).or_default();
        *sum += point.latency_sum.0;
        *count += point.operations;
    }
    seconds.values().filter_map(|(sum, count)| sum.checked_div(*count)).max().map(Nanos)
}

impl Criterion {
    fn judge(&'static self, measured: Option<Nanos>) -> LimitResult {
        let standing = match measured {
            Some(measured) if measured < self.below => LimitVerdict::Met,
            Some(_) => LimitVerdict::Missed,
            None => LimitVerdict::Unmeasured,
        };
        let limit = self.in_words();
        let sentence = match (measured, standing) {
            (Some(measured), LimitVerdict::Met) => format!("{limit}: it is {measured}"),
            (Some(measured), _) => format!("{limit}, and is {measured}: {}", self.why),
            (None, _) => format!("{limit}: not known, because none was measured"),
        };
        LimitResult { criterion: self, measured, standing, sentence }
    }

    /// Returns the limit as a clause for messages.
    pub fn in_words(&self) -> String {
        let of = match self.of {
            Quantity::Syncs => "syncs",
            Quantity::Reads { .. } => "reads",
            Quantity::Writes { .. } => "durable writes of the log",
        };
        let figure = match self.statistic {
            Statistic::Mean => "the mean".to_owned(),
            Statistic::PerMille(per_mille) => format!("the {} percentile", ordinal(per_mille)),
            Statistic::WorstSecond => "the mean of the worst second".to_owned(),
        };
        format!("{figure} of {of} must be below {}", self.below)
    }
}

/// Returns the ordinal of a percentile in 1/1000: `99th` for 990, `99.9th` for 999.
fn ordinal(per_mille: u32) -> String {
    if per_mille.is_multiple_of(10) {
        format!("{}th", per_mille / 10)
    } else {
        format!("{}.{}th", per_mille / 10, per_mille % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_load::{LoadOutcome, ThreadResult};
    use plumb_measure::SeriesEvent;

    fn outcome(fill: impl Fn(&mut LoadOutcome)) -> LoadOutcome {
        let mut outcome = LoadOutcome::empty();
        fill(&mut outcome);
        outcome
    }

    /// Returns a span with one thread in each job.
    fn span(outcomes: impl IntoIterator<Item = LoadOutcome>) -> SpanResult {
        let thread = |(job, outcome)| ThreadResult {
            job,
            cpu: None,
            parts: vec![plumb_load::Part { target: job, outcome }],
        };
        SpanResult {
            warmup: Nanos::ZERO,
            window: Nanos::secs(6),
            threads: outcomes.into_iter().enumerate().map(thread).collect(),
            targets: Vec::new(),
            processors: Vec::new(),
        }
    }

    fn measured(latencies: &[Nanos]) -> SpanResult {
        let synced = |outcome: &mut LoadOutcome| {
            latencies.iter().for_each(|latency| outcome.flush.latency.record(*latency));
        };
        span([outcome(synced)])
    }

    #[test]
    fn etcd_wants_99_of_100_syncs_below_10_ms() {
        let (etcd, _) = crate::find("etcd-wal").unwrap();
        let of = |latencies: &[Nanos]| judge(&etcd.criteria, &measured(latencies)).remove(0);
        let mut latencies = vec![Nanos::millis(2); 990];
        latencies.extend([Nanos::millis(80); 10]);
        let met = of(&latencies);
        assert_eq!(met.standing, LimitVerdict::Met, "{}", met.sentence);
        latencies.push(Nanos::millis(80));
        let missed = of(&latencies);
        assert_eq!(missed.standing, LimitVerdict::Missed, "{}", missed.sentence);
        assert!(missed.measured.unwrap() >= Nanos::millis(79));
        assert!(
            missed.sentence.contains("the 99th percentile of syncs must be below 10 ms"),
            "{}",
            missed.sentence
        );
        assert_eq!(of(&[]).standing, LimitVerdict::Unmeasured);
    }

    #[test]
    fn exchange_judges_each_job_and_the_worst_second() {
        let (jetstress, _) = crate::find("jetstress-like").unwrap();
        let record = |direction: &mut Direction, at: u64, latency: Nanos| {
            direction.latency.record(latency);
            direction.series.record(SeriesEvent { at: Nanos::millis(at), bytes: 1, latency });
        };
        let database = outcome(|outcome| {
            (0..50).for_each(|at| record(&mut outcome.read, at * 100, Nanos::millis(5)));
            (0..10).for_each(|at| record(&mut outcome.read, 5000 + at * 100, Nanos::millis(60)));
            record(&mut outcome.write, 0, Nanos::secs(9));
        });
        let log = outcome(|outcome| record(&mut outcome.write, 0, Nanos::millis(11)));
        let standings: Vec<_> = judge(&jetstress.criteria, &span([database, log]))
            .iter()
            .map(|judged| (&*judged.criterion.id, judged.standing))
            .collect();
        let expected = [
            ("exchange-read-mean", LimitVerdict::Met),
            ("exchange-log-mean", LimitVerdict::Missed),
            ("exchange-read-spike", LimitVerdict::Missed),
            ("exchange-log-spike", LimitVerdict::Met),
        ];
        assert_eq!(standings, expected);
    }
}
