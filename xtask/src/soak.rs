//! `cargo xtask soak`: the seeded and property tests repeatedly, each round with its own seed, for as long as
//! requested; a thousand power cuts under mounted file systems, and below writers with a witness; two hundred
//! compared with the estimates of `observe --exposure`; a million histories of the write-back cache; ten
//! thousand histories of the whole stack in one process; ten thousand synthetic experiments of each kind.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::workspace;

/// Part of the project to be soaked.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The seeded and property tests of the workspace
    Tests,
    /// Power cuts in the middle of workloads on mounted file systems
    Cuts,
    /// Power cuts below PostgreSQL, SQLite, rsync and dd, beside what was said to be at risk
    Exposure,
    /// Runs histories of the write-back cache with power cuts, kills and faults
    Cache,
    /// Runs histories of NBD client, server, cache and simulated drives in one process, in virtual time
    World,
    /// Experiments on synthetic blocks of which the true ratio is known
    Compare,
}

/// Part, duration and seed of a soak.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only this part; all, the tests last, if none is named
    #[arg(value_enum)]
    part: Option<Part>,

    /// How many power cuts
    #[arg(long, default_value_t = 1_000)]
    cuts: u64,

    /// How many power cuts beside what was said to be at risk
    #[arg(long, default_value_t = 200)]
    exposures: u64,

    /// How many random histories of the write-back cache
    #[arg(long, default_value_t = 1_000_000)]
    histories: u64,

    /// How many histories of the whole stack
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,

    /// How many synthetic experiments of each kind
    #[arg(long, default_value_t = 10_000)]
    series: u64,

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

/// Runs the parts until the first failure, and prints its seed.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode> {
    let root = workspace::root()?;
    let wants = |part| arguments.part.is_none_or(|only| only == part);
    let passed = (!wants(Part::Cuts) || cuts(arguments, &root)?)
        && (!wants(Part::Exposure) || exposure(arguments, &root)?)
        && (!wants(Part::Cache) || cache(arguments, &root)?)
        && (!wants(Part::World) || world(arguments, &root)?)
        && (!wants(Part::Compare) || compare(arguments, &root)?)
        && (!wants(Part::Tests) || tests(arguments, &root)?);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the tests with power cuts, with many cuts.
fn cuts(arguments: &Arguments, root: &Path) -> Result<bool> {
    let (cuts, seed) = (arguments.cuts, arguments.seed);
    let tests = "--package plumb --package plumb-witness --test all -- cache_cuts:: drive_cuts:: witnessed:: --nocapture";
    let passed = tested(root, tests, &[("PLUMB_CUTS", cuts), ("PLUMB_SEED", seed)])?;
    println!("{}", told(passed, &format!("{cuts} power cuts from seed {seed}"), "cuts --cuts 5"));
    Ok(passed)
}

/// Cuts the power below four programs, and compares the losses with the estimates before.
fn exposure(arguments: &Arguments, root: &Path) -> Result<bool> {
    let (cuts, seed) = (arguments.exposures, arguments.seed);
    let tests = "--package plumb --test all -- exposure::a_cut_takes --nocapture";
    let passed = tested(root, tests, &[("PLUMB_EXPOSURES", cuts.div_ceil(4)), ("PLUMB_SEED", seed)])?;
    println!("{}", told(passed, &format!("{cuts} losses from seed {seed}"), "exposure --exposures 4"));
    Ok(passed)
}

/// Number of operations of the scenarios of the write-back cache in which every cut is checked.
const CACHE_OPERATIONS: u64 = 6;

/// Number of servers of a cache that are killed during verification.
const CACHE_LIVES: u64 = 300;

/// Runs random histories of the write-back cache, every cut of every short history, damage of every byte of a
/// small log, and kills of servers.
fn cache(arguments: &Arguments, root: &Path) -> Result<bool> {
    let (histories, seed) = (arguments.histories, arguments.seed);
    let tests = "--package plumb-cache --package plumb --test all -- random:: exhaustive:: flips:: cache_killed:: --nocapture";
    let variables = [
        ("PLUMB_CACHE_LIVES", CACHE_LIVES),
        ("PLUMB_FLIP_STEP", 1),
        ("PLUMB_HISTORIES", histories),
        ("PLUMB_OPERATIONS", CACHE_OPERATIONS),
        ("PLUMB_SEED", seed),
    ];
    let passed = tested(root, tests, &variables)?;
    let what = format!("{histories} histories of the cache from seed {seed}");
    println!("{}", told(passed, &what, "cache --histories 1"));
    Ok(passed)
}

/// Runs histories of the whole stack, from a client to the drives.
fn world(arguments: &Arguments, root: &Path) -> Result<bool> {
    let (seeds, seed) = (arguments.seeds, arguments.seed);
    let tests = "--package plumb-serve --test all -- world::no_seed_shows --nocapture";
    let passed = tested(root, tests, &[("PLUMB_WORLDS", seeds), ("PLUMB_SEED", seed)])?;
    let what = format!("{seeds} histories of the whole stack from seed {seed}");
    println!("{}", told(passed, &what, "world --seeds 1"));
    Ok(passed)
}

/// Runs synthetic experiments, and measures how often their intervals contain the true ratio, and how often
/// their outcomes are wrong.
fn compare(arguments: &Arguments, root: &Path) -> Result<bool> {
    let (series, seed) = (arguments.series, arguments.seed);
    let tests = "--package plumb-compare --test all -- series:: --nocapture";
    let passed = tested(root, tests, &[("PLUMB_SERIES", series), ("PLUMB_SEED", seed)])?;
    println!("{}", told(passed, &format!("{series} experiments of each kind from seed {seed}"), "compare"));
    Ok(passed)
}

/// Describes the result of a part, and how to repeat it.
fn told(passed: bool, what: &str, repeat: &str) -> String {
    if passed {
        format!("soak: {what} passed")
    } else {
        format!("soak: {what}: failed; repeat with the seed above: `cargo xtask soak {repeat} --seed SEED`")
    }
}

/// Runs optimised tests and returns true if they pass. `words` are the arguments of `cargo test`, `variables`
/// its environment.
fn tested(root: &Path, words: &str, variables: &[(&str, u64)]) -> Result<bool> {
    let status = Command::new("cargo")
        .args(["test", "--release", "--quiet"])
        .args(words.split_whitespace())
        .envs(variables.iter().map(|(name, value)| (name, value.to_string())))
        .current_dir(root)
        .status();
    Ok(status.context("starting cargo test")?.success())
}

/// Runs rounds of all seeded tests.
fn tests(arguments: &Arguments, root: &Path) -> Result<bool> {
    let began = Instant::now();
    let mut seed = arguments.seed;
    while began.elapsed() < Duration::from_secs(arguments.seconds) {
        eprintln!("soak: seed {seed}, {} s so far", began.elapsed().as_secs());
        let variables =
            [("PROPTEST_CASES", arguments.cases), ("PROPTEST_RNG_SEED", seed), ("PLUMB_SEED", seed)];
        if !tested(root, "--workspace --exclude plumb --all-features", &variables)? {
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
