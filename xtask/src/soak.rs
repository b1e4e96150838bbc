//! `cargo xtask soak`: the seeded and property tests over and over, each round with a seed of its own, for as long as
//! one likes.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::lint;

/// How long, and from which seed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
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

/// Stops at the first round that fails, and says its seed.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode> {
    let root = lint::workspace_root()?;
    let began = Instant::now();
    let mut seed = arguments.seed;
    while began.elapsed() < Duration::from_secs(arguments.seconds) {
        eprintln!("soak: seed {seed}, {} s so far", began.elapsed().as_secs());
        let status = Command::new("cargo")
            .args(["test", "--release", "--quiet", "--workspace", "--exclude", "plumb", "--all-features"])
            .env("PROPTEST_CASES", arguments.cases.to_string())
            .env("PROPTEST_RNG_SEED", seed.to_string())
            .env("PLUMB_SEED", seed.to_string())
            .current_dir(&root)
            .status()
            .context("starting cargo test")?;
        if !status.success() {
            println!(
                "soak: failed with seed {seed}: repeat with `cargo xtask soak --seconds 1 --seed {seed}`"
            );
            return Ok(ExitCode::FAILURE);
        }
        seed += 1;
    }
    println!("soak: {} round(s) passed", seed - arguments.seed);
    Ok(ExitCode::SUCCESS)
}
