//! `plumb prove subject`: a part of a built-in subject in a separate process, so that it can be traced or
//! lose its power.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use plumb_prove::subject::{Outcome, named, work_by_file};

use crate::exit::Exit;
use crate::terminal;

/// Arguments of `plumb prove subject`.
#[derive(Debug, Args)]
pub(crate) struct SubjectArguments {
    /// The subject, as `plumb prove app` takes it
    name: String,
    /// The mount point, or the block device
    place: PathBuf,
    /// Prepare the files that the work begins with
    #[arg(long, conflicts_with = "check")]
    set_up: bool,
    /// Check that everything up to this acknowledgement is there (0: no acknowledgement); exit code 1 if not
    #[arg(long, value_name = "N")]
    check: Option<u64>,
}

/// Executes the requested part; by default the work.
pub(crate) fn run(arguments: &SubjectArguments) -> anyhow::Result<Exit> {
    let subject = named(&arguments.name)?;
    let place = &arguments.place;
    match arguments.check {
        Some(number) => match subject.check(place, Some(number).filter(|number| *number > 0))? {
            Outcome::Intact => Ok(Exit::Done),
            Outcome::Failed { words, .. } => {
                terminal::print(&(words + "\n"))?;
                Ok(Exit::Finding)
            }
        },
        None if arguments.set_up => subject.set_up(place).map(|()| Exit::Done).map_err(Into::into),
        None => {
            let control = std::env::var_os("PLUMB_ACK");
            let control = control.context("PLUMB_ACK is not set: expected the control file")?;
            Ok(work_by_file(&*subject, place, Path::new(&control)).map(|()| Exit::Done)?)
        }
    }
}
