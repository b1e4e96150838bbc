//! Test of the results of `plumb compare` on this machine, at its stated confidence: it must find an existing
//! difference and its cause, and none between a level and itself, despite other activity.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

/// Number of comparisons of a level with itself for each comparison of two levels.
const SAME_EACH: usize = 5;

/// Counts the results of `runs` comparisons of cached with direct random writes, and of five times as many of
/// a level with itself at 99 %.
pub(super) fn run(plumb: &Path, directory: &Path, runs: usize) -> Result<()> {
    let place = tempfile::tempdir_in(directory).context("making a directory for the test file")?;
    let factor = ["--factor", "buffering=cached,direct", "--budget", "30s"];
    let (outcomes, causes) = counted(plumb, place.path(), &factor, runs)?;
    println!(
        "cached against direct, 4 KiB random writes, {runs} runs: {outcomes:?} (expected: all different)"
    );
    println!("  the main term: {causes:?} (expected: device-ios, for the page cache keeps the writes)");
    let same = ["--a", "--depth 1", "--b", "--depth 1", "--confidence", "99%", "--budget", "30s"];
    let runs = runs * SAME_EACH;
    let (outcomes, _) = counted(plumb, place.path(), &same, runs)?;
    println!(
        "a level against itself at 99 %, {runs} runs: {outcomes:?} (expected: different at most 3 times of 100)"
    );
    Ok(())
}

/// Number of occurrences of each outcome, and of each main term of an explanation.
type Counts = BTreeMap<String, usize>;

fn counted(plumb: &Path, place: &Path, words: &[&str], runs: usize) -> Result<(Counts, Counts)> {
    let (mut outcomes, mut causes) = (Counts::new(), Counts::new());
    for seed in 1..=runs {
        eprintln!("run {seed} of {runs}");
        let mut command = Command::new(plumb);
        command.args(["compare", "--json", "--no-record", "--random", "--write", "100", "--size", "256M"]);
        command.args(words).args(["test.dat", "--overwrite", "--seed", &seed.to_string()]);
        let output = command.current_dir(place).output().context("running plumb")?;
        let document: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let outcome = document["outcome"].as_str().unwrap_or("none");
        *outcomes.entry(outcome.to_owned()).or_default() += 1;
        let terms = document["explanation"].as_array().into_iter().flatten();
        let main = terms
            .filter_map(|term| Some((term["share"].as_f64()?, term["term"].as_str()?)))
            .max_by(|one, two| one.0.total_cmp(&two.0));
        let main = main.map_or("none", |(_, term)| term);
        *causes.entry(main.to_owned()).or_default() += 1;
    }
    Ok((outcomes, causes))
}
