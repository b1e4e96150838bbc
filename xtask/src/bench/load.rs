//! `plumb load`: its speed compared with fio, its memory, and the correctness of its figures.
//!
//! Every limit is printed as met or not met. A busy machine misses limits that it meets when idle, so check
//! the load first.

mod article;
mod memory;
mod pairs;
mod places;

use std::path::Path;

use anyhow::Result;

/// Runs all parts in turn.
pub(super) fn run(plumb: &Path, directory: &Path, pairs: usize) -> Result<()> {
    super::machine::print_load_average();
    pairs::run(plumb, directory, pairs)?;
    memory::run(plumb)?;
    article::run(plumb)
}
