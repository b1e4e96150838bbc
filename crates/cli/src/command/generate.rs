//! `plumb completions`, and the manual pages for the package: made from the same definition that parses.

use std::path::Path;

use clap::{Command, CommandFactory};

use crate::arguments::{Arguments, OutputArguments};
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Prints completions for `shell`.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "plumb", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes `plumb.1` and a page for each command into `directory`.
pub(crate) fn manual(directory: &Path, writing: OutputArguments) -> anyhow::Result<Exit> {
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    page(&root, directory, writing)?;
    Ok(Exit::Done)
}

/// Writes the page of a command, and those of its subcommands.
fn page(command: &Command, directory: &Path, writing: OutputArguments) -> anyhow::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        page(subcommand, directory, writing)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(writing.file(&directory.join(page.get_filename())).write(&text).map_err(Refusal::from)?)
}
