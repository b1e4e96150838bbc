//! `plumb completions`, and the manual pages for the package: made from the same definition that parses.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use crate::arguments::Arguments;
use crate::arguments::output::OutputArguments;
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Prints completions for `shell`.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "plumb", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes `plumb.1` and a page for each command into `directory`: all of them, or none if one is refused.
pub(crate) fn manual(directory: &Path, writing: OutputArguments) -> anyhow::Result<Exit> {
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add_pages(&root, directory, &mut pages)?;
    for (path, _) in &pages {
        writing.file(path).check().map_err(Refusal::from)?;
    }
    for (path, text) in &pages {
        writing.file(path).write(text).map_err(Refusal::from)?;
    }
    Ok(Exit::Done)
}

/// Adds the pages of the subcommands of a command, and its own.
fn add_pages(command: &Command, directory: &Path, pages: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        add_pages(subcommand, directory, pages)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    pages.push((directory.join(page.get_filename()), text));
    Ok(())
}
