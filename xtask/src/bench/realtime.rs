//! Whether a drive in real time, over NBD, answers as its model does in virtual time.
//!
//! The same load with the same seed runs on `sim:MODEL` in virtual time, and on the drive and on a null drive over NBD
//! in turn. What the null drive's answers take is the way there and back, which the model does not have.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::paired::{median, median_interval};
use super::served::{SEED, ServedDrive, Way};

/// The size of every drive.
const SIZE: &str = "4GiB";
/// How long each load runs at least, and how many answers there are at least.
const SECONDS_MIN: u32 = 3;
const ANSWERS_MIN: u32 = 600;
/// How many times each drive is measured.
const RUNS: usize = 3;
/// How far from the model an answer may be: so many times its time, and so much more.
const SHARE: f64 = 0.05;
const MORE_SECONDS: f64 = 50e-6;

/// A load on a model.
struct Case {
    model: &'static str,
    rate: u32,
    order: &'static str,
}

const CASES: [Case; 9] = [
    Case { model: "nearline-4tb", rate: 50, order: "--random" },
    Case { model: "sas-15k", rate: 100, order: "--random" },
    Case { model: "nearline-4tb", rate: 1_000, order: "--sequential" },
    Case { model: "nearline-4tb", rate: 2_500, order: "--sequential" },
    Case { model: "consumer-nvme-ssd", rate: 100, order: "--random" },
    Case { model: "consumer-nvme-ssd", rate: 1_000, order: "--random" },
    Case { model: "consumer-nvme-ssd", rate: 5_000, order: "--random" },
    Case { model: "consumer-nvme-ssd", rate: 20_000, order: "--random" },
    Case { model: "plp-nvme-ssd", rate: 20_000, order: "--random" },
];

/// The figures of a run, in seconds.
#[derive(Clone, Copy)]
struct Figures {
    p50: f64,
    p90: f64,
}

/// Prints a line for each load.
pub(super) fn run(plumb: &Path) -> Result<()> {
    println!(
        "4 KiB reads, microseconds; over NBD less the null drive's, median of {RUNS} (lowest to highest); \
         bar: the model's, 5 % and 50 us more or less"
    );
    for case in &CASES {
        eprintln!("{} at {} IOPS", case.model, case.rate);
        let model = load(plumb, case, &format!("sim:{}?seed={SEED}&size={SIZE}", case.model))?;
        let mut real = Vec::new();
        for _ in 0..RUNS {
            let null = over_nbd(plumb, case, "null")?;
            let drive = over_nbd(plumb, case, case.model)?;
            real.push(Figures { p50: drive.p50 - null.p50, p90: drive.p90 - null.p90 });
        }
        let name = format!("{} {} {:>6} IOPS", case.model, case.order.trim_start_matches('-'), case.rate);
        let of = |figure: fn(&Figures) -> f64| -> Vec<f64> { real.iter().map(figure).collect() };
        line(&format!("{name} p50"), model.p50, &of(|figures| figures.p50));
        line(&format!("{name} p90"), model.p90, &of(|figures| figures.p90));
    }
    Ok(())
}

fn line(name: &str, model: f64, real: &[f64]) {
    let (middle, (low, high)) = (median(real), median_interval(real));
    let met = (middle - model).abs() <= model * SHARE + MORE_SECONDS;
    let us = |seconds: f64| seconds * 1e6;
    println!(
        "{name:<46} model {:>8.0}  real {:>8.0} ({:.0} to {:.0}): {}",
        us(model),
        us(middle),
        us(low),
        us(high),
        if met { "met" } else { "NOT MET" }
    );
}

/// The figures of a new drive of `model` over NBD.
fn over_nbd(plumb: &Path, case: &Case, model: &str) -> Result<Figures> {
    let drive = ServedDrive::start(plumb, model, SIZE, Way::Nbd)?;
    load(plumb, case, &drive.uri())
}

/// The figures of the load on `target`.
fn load(plumb: &Path, case: &Case, target: &str) -> Result<Figures> {
    let place = tempfile::tempdir().context("making a directory for the recording")?;
    let run = place.path().join("run");
    let rate = format!("{}iops", case.rate);
    let duration = format!("{}s", (ANSWERS_MIN / case.rate).max(SECONDS_MIN));
    let loaded = Command::new(plumb)
        .args(["load", "--json", "--depth", "64", "--seed", SEED, "--duration", &duration])
        .args(["--rate", &rate, case.order, "--out"])
        .arg(&run)
        .arg(target)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("starting plumb")?;
    ensure!(matches!(loaded.code(), Some(0 | 1)), "plumb load of {target}: {loaded}");
    let output = Command::new(plumb)
        .args(["report", "--format", "fio"])
        .arg(&run)
        .output()
        .context("starting plumb report")?;
    ensure!(output.status.success(), "plumb report: {}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).context("reading the report")?;
    let histogram = histogram(&document["jobs"][0]["read"]["clat_ns"]["bins"])?;
    Ok(Figures { p50: percentile(&histogram, 0.5), p90: percentile(&histogram, 0.9) })
}

/// Upper bounds in nanoseconds and how many answers there were, in ascending order.
fn histogram(bins: &Value) -> Result<Vec<(u64, u64)>> {
    let bins = bins.as_object().context("the report has no histogram")?;
    let parsed = bins.iter().map(|(bound, count)| Some((bound.parse().ok()?, count.as_u64()?)));
    let mut histogram: Vec<(u64, u64)> = parsed.collect::<Option<_>>().context("reading the histogram")?;
    histogram.sort_unstable();
    Ok(histogram)
}

/// The time within which `share` of all answers came, in seconds.
fn percentile(histogram: &[(u64, u64)], share: f64) -> f64 {
    let total: u64 = histogram.iter().map(|(_, count)| count).sum();
    let mut left = share * total as f64;
    let found = histogram.iter().find(|(_, count)| {
        left -= *count as f64;
        left <= 0.0
    });
    found.map_or(f64::NAN, |(bound, _)| *bound as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_bound_below_which_the_share_lies() {
        let bins = serde_json::json!({ "3000": 1, "1000": 5, "20000": 4 });
        let histogram = histogram(&bins).unwrap();
        assert_eq!(histogram, [(1000, 5), (3000, 1), (20000, 4)]);
        assert_eq!(percentile(&histogram, 0.5), 1e-6);
        assert_eq!(percentile(&histogram, 0.6), 3e-6);
        assert_eq!(percentile(&histogram, 0.9), 20e-6);
        assert!(percentile(&[], 0.5).is_nan());
    }
}
