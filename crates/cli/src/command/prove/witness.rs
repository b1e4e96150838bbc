//! `plumb prove witness`: records the acknowledgements of a writer's drive.

use std::io;
use std::path::PathBuf;

use clap::Args;
use plumb_witness::{serve, serve_at};

use crate::exit::Exit;
use crate::terminal;

/// Arguments of `plumb prove witness`.
#[derive(Debug, Args)]
pub(crate) struct WitnessArguments {
    /// Directory of the record
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Serve any number of writers, one after the other or together, at this unix socket until it is killed
    #[arg(long, value_name = "SOCKET")]
    listen: Option<PathBuf>,
}

/// Runs the command as typed.
pub(crate) fn run(WitnessArguments { dir, listen }: WitnessArguments) -> anyhow::Result<Exit> {
    match listen {
        Some(socket) => match serve_at(&socket, &dir, |line| terminal::say(&format!("plumb: {line}")))? {},
        None => serve(&dir, io::stdin().lock(), io::stdout().lock(), &mut |_| ())?,
    }
    Ok(Exit::Done)
}
