//! The write-back cache: what it gains in front of a slow disk, what it costs in front of a fast one, and how long it takes to
//! recover.

mod burst;
mod overhead;
mod recovery;
mod setup;
mod simulated;

use std::path::Path;

use anyhow::Result;

use crate::packages;

/// All of it, and the names of its parts.
pub(super) const PARTS: [&str; 5] =
    ["cache", "cache-burst", "cache-overhead", "cache-recovery", "cache-simulated"];

/// What every part has to know.
pub(super) struct Asked<'a> {
    /// The plumb that is measured.
    pub(super) plumb: &'a Path,
    /// Where logs are put.
    pub(super) directory: &'a Path,
    /// How many pairs to run where two are compared.
    pub(super) pairs: usize,
}

/// Runs the part of this name, or all.
pub(super) fn run(name: &str, asked: &Asked<'_>, is_quick: bool) -> Result<()> {
    if !packages::are_there("fio qemu-nbd=qemu-utils qemu-storage-daemon=qemu-system-common")? {
        return Ok(());
    }
    super::print_load_average();
    let wants = |part: &str| name == "cache" || name == part;
    if wants("cache-simulated") {
        simulated::run(asked.plumb)?;
    }
    if wants("cache-overhead") {
        overhead::run(asked)?;
    }
    if wants("cache-recovery") {
        recovery::run(asked)?;
    }
    if wants("cache-burst") {
        burst::run(asked, if is_quick { 3 } else { 1 })?;
    }
    Ok(())
}
