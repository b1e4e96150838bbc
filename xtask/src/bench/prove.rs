//! Speed at which the prover explores and checks states, and its memory use. Rates of one processor refer to
//! processor time.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// Parts, each with its limit.
const PARTS: [(&str, &str); 6] = [
    ("enumeration", "1,000,000 states/s of one processor"),
    ("memory", "1024 MiB"),
    ("mounted", "100 checks/s on ext4 of 64 MiB"),
    ("sqlite", "10,000 checks/s in process"),
    ("posix", "2,000 checks/s of small trees without a checker"),
    ("posix-check", "0.8 of the rate at which as many threads spawn the checker"),
];

/// Runs each part in a separate process.
pub(super) fn run(root: &Path) -> Result<()> {
    for (part, bar) in PARTS {
        println!("{part} (bar: {bar})");
        super::machine::print_load_average();
        let bench = ["bench", "--quiet", "--package", "plumb-prove", "--bench", "rates", "--", part];
        for line in process::text(Command::new("cargo").args(bench).current_dir(root))?.lines() {
            println!("  {line}");
        }
    }
    Ok(())
}
