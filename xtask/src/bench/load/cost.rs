//! What a worker costs when the device costs nothing, and whether an open loop says what queueing theory says.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::verdict;
use crate::process;

/// The processor time of an operation at a depth of 32, in nanoseconds: ten million a second of one processor. Not the
/// rate, which is also that of whoever else wants the processor.
const COST_BAR: f64 = 100.0;
/// How far percentiles may be from theory.
const THEORY_BAR: f64 = 0.02;

/// Runs the two examples of `load`.
pub(super) fn run(root: &Path) -> Result<()> {
    println!("no device, every latency recorded");
    let said = example(root, "noop", &["2", "random read"])?;
    for line in said.lines().filter(|line| !line.is_empty()) {
        let is_judged = line.starts_with("random read, depth 32");
        let met = cost_of(line).is_some_and(|cost| cost <= COST_BAR);
        let bar = if is_judged { format!(" (bar {COST_BAR}): {}", verdict(met)) } else { String::new() };
        println!("  {line}{bar}");
    }
    println!("open loop at 80 % of one server of 100 us, Poisson arrivals, since the intended start");
    for line in example(root, "queueing", &["10"])?.lines() {
        let off = line.rsplit_once("ratio ").and_then(|(_, ratio)| ratio.parse::<f64>().ok());
        let bar =
            off.map(|ratio| format!(" (bar 0.98 to 1.02): {}", verdict((ratio - 1.0).abs() <= THEORY_BAR)));
        println!("  {line}{}", bar.unwrap_or_default());
    }
    Ok(())
}

/// What an example of `load` prints.
fn example(root: &Path, name: &str, arguments: &[&str]) -> Result<String> {
    let example = ["run", "--release", "--quiet", "--package", "plumb-load", "--example", name, "--"];
    process::text(Command::new("cargo").args(example).args(arguments).current_dir(root))
}

/// The number before `ns of processor time`.
fn cost_of(line: &str) -> Option<f64> {
    line.split(" ns of processor").next()?.split_whitespace().last()?.parse().ok()
}
