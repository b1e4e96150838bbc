//! `cargo xtask bench`: speed and agreement, as ratios to a peer in the same run.
//!
//! Nothing here passes or fails by time. The measurements are printed with an interval, for people to judge.

mod agreement;
mod attach;
mod cache;
mod cache_guest;
mod compare;
mod fio;
mod fleet;
mod load;
mod machine;
mod nbd;
mod observe;
mod paired;
mod prove;
mod realtime;
mod served;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::{process, workspace};

/// All benches in the order in which they run.
const ALL: [&str; 9] =
    ["agreement", "load", "nbd", "realtime", "attach", "observe", "prove", "cache", "fleet"];

/// Benches to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// agreement, load, nbd, realtime, attach, observe, prove, cache, fleet; all without a name. Of cache
    /// also one part alone: cache-burst, cache-overhead, cache-recovery, cache-simulated. Beside all: compare
    /// (--pairs 20 takes an hour and a half, --pairs 1 five minutes), and in a guest cache-guest
    names: Vec<String>,

    /// Where to put test files: a directory on the storage that is meant
    #[arg(long, default_value = "target")]
    directory: PathBuf,

    /// How many pairs to run where two programs are compared
    #[arg(long, default_value_t = 7)]
    pairs: usize,

    /// The bursts of the cache a third as long, with logs and backing devices a third as large
    #[arg(long)]
    quick: bool,
}

/// Runs the named benches, or all.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode> {
    let root = workspace::root()?;
    let plumb = release_binary(&root)?;
    let names = if arguments.names.is_empty() {
        ALL.to_vec()
    } else {
        arguments.names.iter().map(String::as_str).collect()
    };
    for name in names {
        println!("# {name}");
        match name {
            "agreement" => agreement::run(&plumb, &arguments.directory, arguments.pairs)?,
            "load" => load::run(&plumb, &arguments.directory, arguments.pairs)?,
            "nbd" => nbd::run(&plumb, arguments.pairs)?,
            "realtime" => realtime::run(&plumb, arguments.pairs)?,
            "attach" => attach::run(&plumb, arguments.pairs)?,
            "observe" => observe::run(&plumb, arguments.pairs)?,
            "prove" => prove::run(&root)?,
            "fleet" => fleet::run(&root, &plumb)?,
            "compare" => compare::run(&plumb, &arguments.directory, arguments.pairs)?,
            "cache-guest" => cache_guest::run(&plumb)?,
            name if cache::PARTS.contains(&name) => {
                let bench = cache::CacheBench {
                    plumb: &plumb,
                    directory: &arguments.directory,
                    pairs: arguments.pairs,
                };
                cache::run(name, &bench, arguments.quick)?;
            }
            unknown => bail!("no bench is called `{unknown}`: expected one of {}", ALL.join(", ")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds plumb as users build it and returns its path.
fn release_binary(root: &Path) -> Result<PathBuf> {
    let build = ["build", "--release", "--quiet", "--package", "plumb"];
    process::run(Command::new("cargo").args(build).current_dir(root))?;
    Ok(workspace::target_directory(root)?.join("release/plumb"))
}
