//! `plumb load`: its speed against fio, its memory, and whether its figures are true.
//!
//! Every bar is printed as met or not met. A machine that does something else at the same time misses bars that it
//! meets when idle; so look at the load first.

mod article;
mod figures;
mod memory;
mod pairs;
mod places;

use std::path::Path;

use anyhow::Result;

/// Runs all parts in turn.
pub(super) fn run(plumb: &Path, directory: &Path, pairs: usize) -> Result<()> {
    let busy = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average before: {}", busy.trim());
    pairs::run(plumb, directory, pairs)?;
    memory::run(plumb)?;
    article::run(plumb)
}

/// Whether a bar is met, in words.
fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}
