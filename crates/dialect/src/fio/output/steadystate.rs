//! `steadystate` of a job: its last rounds, and fio's criterion applied to them.
//!
//! The state was attained if the run ended by SNIA PTS 2.0.2 over five rounds (`judged_by`). fio's criterion,
//! deviation and slope are computed from the same rounds for readers that expect them.

use plumb_block::Nanos;
use plumb_measure::steadiness::snia_steady;
use serde_json::{Value, json};

/// Number of rounds of a steady state.
const WINDOW: usize = 5;

/// A round of a span that runs until it is steady, with all its jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRound {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// Returns the JSON object of a job; `criterion` is as typed, such as `iops_slope:0.3%`.
pub(super) fn object(criterion: &str, duration: Nanos, rounds: &[SteadyRound]) -> Value {
    let iops: Vec<f64> = rounds.iter().map(|round| round.iops).collect();
    let attained = snia_steady(&iops) == Some(true);
    let last = &rounds[rounds.len().saturating_sub(WINDOW)..];
    let iops: Vec<f64> = last.iter().map(|round| round.iops).collect();
    let bandwidths: Vec<f64> = last.iter().map(|round| round.bytes_per_second).collect();
    let (kind, limit) = criterion.split_once(':').unwrap_or((criterion, ""));
    let of = if kind.starts_with("bw") { &bandwidths } else { &iops };
    let is_slope = kind.ends_with("_slope");
    let (slope, deviation) = if is_slope { (slope(of), 0.0) } else { (0.0, deviation_max(of)) };
    let reached = if is_slope { slope } else { deviation };
    let percent = limit.ends_with('%');
    let shown = match mean(of) {
        mean if percent && mean > 0.0 => format!("{:.6}%", reached * 100.0 / mean),
        _ if percent => "0.000000%".to_owned(),
        _ => format!("{reached:.6}"),
    };
    let whole = |rates: &[f64]| rates.iter().map(|rate| rate.round() as u64).collect::<Vec<_>>();
    json!({
        "ss": criterion,
        "duration": duration.0 / 1_000_000_000,
        "attained": u8::from(attained),
        "judged_by": "SNIA PTS 2.0.2",
        "criterion": shown,
        "max_deviation": deviation,
        "slope": slope,
        "data": {
            "bw_mean": mean(&bandwidths).round() as u64,
            "iops_mean": mean(&iops).round() as u64,
            "iops": whole(&iops),
            "bw": whole(&bandwidths),
        },
    })
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

/// Returns the largest deviation of a rate from the mean.
fn deviation_max(rates: &[f64]) -> f64 {
    let mean = mean(rates);
    rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max)
}

/// Returns the slope of the fitted line per round.
fn slope(rates: &[f64]) -> f64 {
    let (mean, middle) = (mean(rates), (rates.len() as f64 - 1.0) / 2.0);
    let places = || (0..rates.len()).map(|place| place as f64 - middle);
    let spread: f64 = places().map(|place| place * place).sum();
    let rise: f64 = places().zip(rates).map(|(place, rate)| place * (rate - mean)).sum();
    if spread > 0.0 { rise / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(of: &[(f64, f64)]) -> Vec<SteadyRound> {
        of.iter()
            .map(|(iops, bytes_per_second)| SteadyRound { iops: *iops, bytes_per_second: *bytes_per_second })
            .collect()
    }

    /// Rates, and the results that fio 3.33 printed for them.
    #[test]
    fn criteria_are_worked_out_as_fio_does() {
        let three = rounds(&[
            (247_054.0, 1_011_935_672.0),
            (362_774.0, 1_485_924_392.0),
            (357_874.0, 1_465_855_487.0),
        ]);
        let found = object("iops:50%", Nanos::secs(3), &three);
        assert_eq!(found["criterion"], "23.410099%");
        assert!((found["max_deviation"].as_f64().unwrap() - 75_513.333_333).abs() < 1e-3, "{found}");
        assert_eq!((&found["data"]["iops_mean"], &found["slope"]), (&json!(322_567), &json!(0.0)));
        let three = rounds(&[
            (429_904.0, 1_760_886_784.0),
            (430_223.0, 1_762_193_408.0),
            (276_016.0, 1_130_565_354.0),
        ]);
        let found = object("bw_slope:0.001%", Nanos::secs(3), &three);
        // fio's rates are not whole numbers; it prints them rounded, and -20.317020 %.
        assert_eq!((&found["criterion"], &found["slope"]), (&json!("-20.317021%"), &json!(-315_160_715.0)));
        assert_eq!(found["max_deviation"], 0.0);
        let three = rounds(&[(227_729.0, 0.0), (331_829.0, 0.0), (279_721.0, 0.0)]);
        assert_eq!(object("iops_slope:0.3", Nanos::secs(3), &three)["criterion"], "25996.000000");
    }

    #[test]
    fn attained_is_what_ended_the_run_and_the_last_five_rounds_are_shown() {
        let even =
            rounds(&[(50.0, 1.0), (100.0, 2.0), (101.0, 2.0), (99.0, 2.0), (100.0, 2.0), (100.0, 2.0)]);
        let found = object("iops:1%", Nanos::secs(5), &even);
        assert_eq!(
            (&found["attained"], &found["data"]["iops"]),
            (&json!(1), &json!([100, 101, 99, 100, 100]))
        );
        assert_eq!(object("iops:1%", Nanos::secs(5), &even[..3])["attained"], 0);
        assert_eq!(object("bw:1%", Nanos::secs(5), &[])["criterion"], "0.000000%");
    }
}
