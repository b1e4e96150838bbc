//! Chores of the repository: checks, guests, benches, release.
//!
//! One module a subcommand; this file only says which there are.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod guest;
mod packages;

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
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Guest(arguments) => guest::main(arguments),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
