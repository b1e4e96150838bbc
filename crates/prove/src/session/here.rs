//! Check of the requirements of a recording on this machine, before anything is created.

use std::fs::OpenOptions;

use plumb_block::Bytes;
use plumb_linux::isolated_thread;
use plumb_linux::space::space_at;

use super::recorded::RecordOptions;
use crate::error::{Error, Result};

/// Maximum space that a mount point and the records of an attachment take.
const FREE_MIN: Bytes = Bytes::kib(64);

/// Checks the requirements of a recording.
///
/// # Errors
/// [`NotMeasured`](crate::ErrorKind::NotMeasured), with the remedy.
pub(super) fn check(options: &RecordOptions) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(missing("only root can attach and mount", "run it with sudo"));
    }
    for (path, module) in [("/dev/fuse", "fuse"), ("/dev/loop-control", "loop")] {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        opened.map_err(|error| {
            missing(
                &format!("{path}: {error}"),
                &format!("`modprobe {module}`, or give the container that device"),
            )
        })?;
    }
    let size_min = Bytes::mib(options.file_system.size_min_mib());
    let further = options.file_system_options.further.iter().map(|drive| drive.size);
    if let Some(size) = [options.size].into_iter().chain(further).find(|size| *size < size_min) {
        let what = format!("{} on a drive of {size}", options.file_system);
        return Err(missing(&what, &format!("give it {size_min} or more")));
    }
    options.file_system.find_tool()?;
    let directory = &options.directory;
    let space =
        space_at(directory).map_err(|error| missing(&error.to_string(), "name a directory that exists"))?;
    if space.read_only || space.free < FREE_MIN {
        let what = format!("{} has {} free", directory.display(), space.free);
        return Err(missing(&what, "make room there, or name another directory with TMPDIR"));
    }
    Ok(())
}

/// Makes the mounts of this process disappear with it, however it ends. Must be called before anything is
/// mounted.
///
/// # Errors
/// If that is not permitted here.
pub fn private_mounts() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        // Steps that need root report that themselves.
        return Ok(());
    }
    isolated_thread::private_mounts().map_err(|error| {
        let what = format!("cannot make a private mount namespace: {error}");
        Error::missing(what, "give the container CAP_SYS_ADMIN")
    })
}

fn missing(what: &str, remedy: &str) -> Error {
    Error::missing(format!("cannot record here: {what}"), remedy)
}
