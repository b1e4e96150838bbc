//! `plumb load`: its speed against fio, its memory, and whether its figures are true.
//!
//! Every bar is printed as met or not met. A machine that does something else at the same time misses bars
//! that it meets when idle; so look at the load first.

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
