//! Write-back cache: its gain on a slow disk, its cost on a fast one, and its recovery time.

mod burst;
mod overhead;
mod recovery;
mod setup;
mod simulated;

use anyhow::Result;

use super::machine;
use crate::packages;
pub(super) use setup::CacheBench;

/// Name of the whole bench, and names of its parts.
pub(super) const PARTS: [&str; 5] =
    ["cache", "cache-burst", "cache-overhead", "cache-recovery", "cache-simulated"];

/// Runs the part with this name, or all.
pub(super) fn run(name: &str, bench: &CacheBench<'_>, is_quick: bool) -> Result<()> {
    if !packages::are_there("fio qemu-nbd=qemu-utils qemu-storage-daemon=qemu-system-common")? {
        return Ok(());
    }
    machine::print_load_average();
    let wants = |part: &str| name == "cache" || name == part;
    if wants("cache-simulated") {
        simulated::run(bench.plumb)?;
    }
    if wants("cache-overhead") {
        overhead::run(bench)?;
    }
    if wants("cache-recovery") {
        recovery::run(bench)?;
    }
    if wants("cache-burst") {
        burst::run(bench, if is_quick { 3 } else { 1 })?;
    }
    Ok(())
}
