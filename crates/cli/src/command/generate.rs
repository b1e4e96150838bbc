//! `plumb completions`, and the manual pages for the package: made from the same definition that parses.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::terminal;

/// Prints completions for `shell`.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "plumb", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes `plumb.1` and a page for each command into `directory`.
pub(crate) fn manual(directory: &Path) -> anyhow::Result<Exit> {
    clap_mangen::generate_to(Arguments::command(), directory)
        .with_context(|| format!("cannot write manual pages to {}", directory.display()))?;
    Ok(Exit::Done)
}
