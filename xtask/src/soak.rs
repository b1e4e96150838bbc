//! `cargo xtask soak`: the seeded and property tests over and over, each round with a seed of its own, for as long as
//! one likes; and a thousand power cuts under mounted file systems, and beneath writers with a witness.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::lint;

/// What is to be soaked.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The seeded and property tests of the workspace
    Tests,
    /// Power cuts in the middle of workloads on mounted file systems
    Cuts,
}

/// What, how long, and from which seed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this part; both, the cuts first, if none is named
    #[arg(value_enum)]
    part: Option<Part>,

    /// How many power cuts
    #[arg(long, default_value_t = 1_000)]
    cuts: u64,

    /// Begin no new round after this many seconds
    #[arg(long, default_value_t = 600)]
    seconds: u64,

    /// The seed of the first round; each round adds one
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Cases of each property in a round
    #[arg(long, default_value_t = 20_000)]
    cases: u64,
}

/// Stops at the first failure, and says its seed.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode> {
    let root = lint::workspace_root()?;
    let wants = |part| arguments.part.is_none_or(|only| only == part);
    let passed =
        (!wants(Part::Cuts) || cuts(arguments, &root)?) && (!wants(Part::Tests) || tests(arguments, &root)?);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tests with power cuts, with many of them.
fn cuts(arguments: &Arguments, root: &Path) -> Result<bool> {
    let (cuts, seed) = (arguments.cuts, arguments.seed);
    let status = Command::new("cargo")
        .args(["test", "--release", "--quiet", "--package", "plumb", "--package", "plumb-prove"])
        .args(["--test", "all", "--", "drive_cuts::", "witnessed::", "--nocapture"])
        .env("PLUMB_CUTS", cuts.to_string())
        .env("PLUMB_SEED", seed.to_string())
        .current_dir(root)
        .status()
        .context("starting cargo test")?;
    if status.success() {
        println!("soak: {cuts} power cuts from seed {seed} passed");
    } else {
        println!(
            "soak: a power cut failed; repeat with the seed above: `cargo xtask soak cuts --cuts 5 --seed SEED`"
        );
    }
    Ok(status.success())
}

/// Rounds of all seeded tests.
fn tests(arguments: &Arguments, root: &Path) -> Result<bool> {
    let began = Instant::now();
    let mut seed = arguments.seed;
    while began.elapsed() < Duration::from_secs(arguments.seconds) {
        eprintln!("soak: seed {seed}, {} s so far", began.elapsed().as_secs());
        let status = Command::new("cargo")
            .args(["test", "--release", "--quiet", "--workspace", "--exclude", "plumb", "--all-features"])
            .env("PROPTEST_CASES", arguments.cases.to_string())
            .env("PROPTEST_RNG_SEED", seed.to_string())
            .env("PLUMB_SEED", seed.to_string())
            .current_dir(root)
            .status()
            .context("starting cargo test")?;
        if !status.success() {
            println!(
                "soak: failed with seed {seed}: repeat with `cargo xtask soak tests --seconds 1 --seed {seed}`"
            );
            return Ok(false);
        }
        seed += 1;
    }
    println!("soak: {} round(s) passed", seed - arguments.seed);
    Ok(true)
}
