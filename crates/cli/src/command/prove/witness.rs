//! `plumb prove witness`: records what a writer's drive has acknowledged.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context as _;
use clap::Args;
use plumb_block::in_one_line;
use plumb_prove::witness::serve;

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
    let Some(socket) = listen else {
        serve(&dir, io::stdin().lock(), io::stdout().lock(), &mut |_| ())?;
        return Ok(Exit::Done);
    };
    let listener = open(&socket).with_context(|| format!("cannot listen at {}", socket.display()))?;
    loop {
        let (stream, _) = listener.accept().context("cannot accept a writer")?;
        let dir = dir.clone();
        thread::spawn(move || {
            if let Err(error) = serve(&dir, &stream, &stream, &mut |_| ()) {
                terminal::say(&format!("plumb: {}", in_one_line(&error)));
            }
        });
    }
}

/// Opens a socket for this user alone, in place of one that nobody serves any more.
fn open(socket: &Path) -> io::Result<UnixListener> {
    let is_left = fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket())
        && UnixStream::connect(socket).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_left {
        fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}
