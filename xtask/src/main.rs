//! Development tasks of the repository: checks, guests, benches, release.
//!
//! Each subcommand has a module. This file only lists them.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod docs;
mod guest;
mod lint;
mod packages;
mod phases;
mod process;
mod release;
mod running;
mod soak;
mod tally;
mod test;
mod workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the repository", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Boot real kernels on emulated drives and count the flushes that reach each drive
    Guest(guest::Arguments),
    /// Run everything that must pass: lint, the tests of the workspace, the guests
    Test,
    /// Check formatting, clippy, licences, house rules and links in documents
    Lint,
    /// Measure speed and agreement as ratios to a peer in the same run
    Bench(bench::Arguments),
    /// Run the seeded and property tests again and again
    Soak(soak::Arguments),
    /// Draw the picture of the README, and run the commands of the documents in their whole length
    Docs,
    /// Build the static binary and the Debian package
    Release,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Guest(arguments) => guest::main(arguments),
        Chore::Test => test::main(),
        Chore::Lint => lint::main(),
        Chore::Bench(arguments) => bench::main(&arguments),
        Chore::Soak(arguments) => soak::main(&arguments),
        Chore::Docs => docs::main(),
        Chore::Release => release::main(),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
