//! Targets of a writer: only those whose contents outlive a power cut.

use std::fs::File;
use std::sync::Arc;

use plumb_block::{Clock, Time};
use plumb_linux::FileOptions;
use plumb_targets::{Intent, Name, OpenedTarget, Permission, Scheme, TargetKind};

use crate::error::{Error, Result, cannot};

/// Opens a target whose contents outlive a power cut.
///
/// # Errors
/// A usage error for any other target, otherwise those of [`plumb_targets::open`].
pub fn open_target(
    typed: &str,
    intent: Intent,
    permission: &Permission,
    time: &Time,
) -> Result<OpenedTarget> {
    let name = Name::parse(typed)?;
    if matches!(name, Name::Scheme { scheme: Scheme::Sim, .. }) {
        return Err(Error::usage(format!(
            "{typed}: the drive would end with this process; serve it (`plumb drive serve`), and name its NBD URI"
        )));
    }
    let clock: Arc<dyn Clock> = time.clock();
    let options = if intent.writes { FileOptions::write_direct() } else { FileOptions::read_direct() };
    let opened = plumb_targets::open(&name, intent, permission, options, &clock)?;
    if !opened.has_name() && opened.kind != TargetKind::Network {
        let why = "a test file in a directory is gone after the run; name a file in it";
        return Err(Error::usage(format!("{typed}: {why}")));
    }
    Ok(opened)
}

/// Makes the name of a file durable.
///
/// # Errors
/// Those of fsync(2) of its directory.
pub(crate) fn sync_name(opened: &OpenedTarget) -> Result<()> {
    let file = opened.path().filter(|_| opened.kind == TargetKind::RegularFile);
    let Some(directory) = file.and_then(|path| path.parent()) else { return Ok(()) };
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(cannot(format!("sync {}", directory.display())))
}

/// Returns the name that identifies a target without a serial.
pub fn name_of(opened: &OpenedTarget) -> String {
    opened.path().map_or_else(|| opened.shown.clone(), |path| path.display().to_string())
}
