//! How much processor time a load takes outside the kernel, by sampling.
//!
//! The times that the kernel keeps for a thread are split by what its timer tick hits: 250 samples a second, taken at
//! moments that depend on what the kernel does itself. Where system calls are short that split is off by half and more
//! (Linux 6.18, CONFIG_TICK_CPU_ACCOUNTING). So a run of its own is sampled 4,000 times a second of processor time, and
//! every sample of plumb's loading threads that is not in the kernel counts. Only the sum of both is taken from the
//! kernel's books, which keep that exactly.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// How often, in a second of processor time.
const FREQUENCY: &str = "4000";
/// What the names of plumb's loading threads begin with.
const THREADS: &str = "load-";

/// Seconds outside the kernel for a million operations of `plumb load` with these arguments.
pub(super) fn user_of_plumb(plumb: &Path, arguments: &[&str], target: &Path) -> Result<f64> {
    let place = tempfile::tempdir().context("making a directory for the samples")?;
    let samples = place.path().join("samples");
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-e", "cpu-clock", "-F", FREQUENCY, "-o"]).arg(&samples).arg(plumb);
    command.args(["load", "--json"]).args(arguments).arg("--out").arg(place.path().join("run"));
    let document = process::document(command.arg(target))?;
    let operations = document.pointer("/total/application/operations").and_then(Value::as_f64);
    let operations = operations.context("no /total/application/operations")?;
    let report = ["report", "--no-children", "-F", "period,comm,dso", "--sort", "comm,dso", "-i"];
    let nanoseconds = outside_kernel(&process::text(Command::new("perf").args(report).arg(&samples))?);
    Ok(nanoseconds / 1e9 / (operations / 1e6))
}

/// The nanoseconds of the loading threads outside the kernel, of lines of period, thread, and file.
fn outside_kernel(report: &str) -> f64 {
    let periods = report.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let period: f64 = words.next()?.parse().ok()?;
        let (thread, file) = (words.next()?, words.next()?);
        (thread.starts_with(THREADS) && !file.starts_with("[kernel") && !file.starts_with("[k]"))
            .then_some(period)
    });
    periods.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loading_threads_outside_the_kernel_count() {
        let report = "# Period Command Shared Object\n\
            14250000  plumb          plumb\n\
            662500000 iou-wrk-24299  [kernel.kallsyms]\n\
            175750000 load-0         [kernel.kallsyms]\n\
            13500000  load-0         [vdso]\n\
            72500000  load-0         plumb\n\n";
        assert_eq!(outside_kernel(report), 86_000_000.0);
    }
}
