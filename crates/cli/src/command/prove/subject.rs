//! `plumb prove subject`: the work of a built-in subject in a process of its own, where it can be traced.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use plumb_prove::subject::named;

use crate::exit::{Exit, usage};

/// What `plumb prove subject` takes.
#[derive(Debug, Args)]
pub(crate) struct SubjectArguments {
    /// The subject, as `plumb prove app` takes it
    name: String,
    /// The mount point, or the block device
    place: PathBuf,
}

/// Does the work, and writes each acknowledgement as a line to the file that PLUMB_ACK names.
pub(crate) fn run(arguments: &SubjectArguments) -> anyhow::Result<Exit> {
    let subject = named(&arguments.name).map_err(usage)?;
    let control = std::env::var_os("PLUMB_ACK").context("PLUMB_ACK is not set: expected the control file")?;
    let shown = PathBuf::from(&control);
    let mut control = File::options()
        .append(true)
        .open(&control)
        .with_context(|| format!("cannot open {}", shown.display()))?;
    let mut failed = None;
    subject.work(&arguments.place, &mut |number| {
        // What could not be acknowledged ends the work no sooner; none after it is acknowledged.
        if failed.is_none() {
            failed = control.write_all(format!("{number}\n").as_bytes()).err();
        }
    })?;
    match failed {
        Some(error) => Err(error).with_context(|| format!("cannot write to {}", shown.display())),
        None => Ok(Exit::Done),
    }
}
