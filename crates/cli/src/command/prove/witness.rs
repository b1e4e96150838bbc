//! `plumb prove witness`: records what a writer's drive has acknowledged.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_block::in_one_line;
use plumb_prove::witness::serve;

use crate::exit::Exit;
use crate::{stop, terminal};

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What `plumb prove witness` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --listen it serves one writer on its stdin and stdout: plumb prove writer /dev/sdX \
                        --witness 'ssh HOST plumb prove witness --dir DIR'. It must not lose power with the drive."
)]
pub(crate) struct WitnessArguments {
    /// Where the record is kept
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Serve any number of writers, one after the other or together, at this unix socket until interrupted
    #[arg(long, value_name = "SOCKET")]
    listen: Option<PathBuf>,
}

/// Does what was typed.
pub(crate) fn run(arguments: WitnessArguments) -> anyhow::Result<Exit> {
    let Some(socket) = arguments.listen else {
        serve(&arguments.dir, io::stdin().lock(), io::stdout().lock(), &mut |_| ())?;
        return Ok(Exit::Done);
    };
    let stop = stop::on_signals()?;
    let listener = listen(&socket).with_context(|| format!("cannot listen at {}", socket.display()))?;
    while !stop.load(Ordering::Acquire) {
        match listener.accept() {
            Ok((stream, _)) => {
                let directory = arguments.dir.clone();
                thread::spawn(move || serve_one(&directory, &stream));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(LOOK_EVERY),
            Err(error) => terminal::say(&format!("plumb: cannot accept a writer: {error}")),
        }
    }
    fs::remove_file(&socket).with_context(|| format!("cannot remove {}", socket.display()))?;
    Ok(Exit::Done)
}

fn serve_one(directory: &Path, stream: &UnixStream) {
    let served = stream.set_nonblocking(false).map_err(Into::into);
    let served =
        served.and_then(|()| serve(directory, stream, stream, &mut |_| ()).map_err(anyhow::Error::from));
    if let Err(error) = served {
        terminal::say(&format!("plumb: {}", in_one_line(&*error)));
    }
}

/// A socket for this user alone, in place of one that nobody serves any more.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    let is_left = fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket())
        && UnixStream::connect(socket).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_left {
        fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
