//! Devices that the kernel does not know, named where a command takes a path: simulated drives, exports of
//! NBD servers.

use std::ffi::OsStr;
use std::sync::Arc;

use anyhow::Context as _;
use plumb_block::{Clock, RealClock};
use plumb_linux::FileOptions;
use plumb_path::DeviceKind;
use plumb_targets::{Intent, Name, OpenedTarget, Permission, TargetRequest, open_all, time_of};

use crate::exit::Refusal;

/// Such a device, open to be looked at.
pub(crate) struct NamedDevice {
    pub(crate) kind: DeviceKind,
    pub(crate) opened: OpenedTarget,
}

/// Returns the device of this name, if it is no path. A simulated drive is in a world of its own.
///
/// # Errors
/// [`Refusal`] if there is no such model, or the server does not answer.
pub(crate) fn device(typed: &OsStr) -> anyhow::Result<Option<NamedDevice>> {
    // A word that is not a name with a scheme is a path, whatever it looks like.
    let Ok(name @ Name::Scheme { .. }) = Name::parse(typed) else { return Ok(None) };
    let opened = open_to_read(name)?;
    Ok(opened.kind.device_kind().map(|kind| NamedDevice { kind, opened }))
}

/// Opens a target of any kind to be looked at. A simulated drive is in a world of its own.
///
/// # Errors
/// [`Refusal`] if it cannot be opened.
pub(crate) fn open_to_read(name: Name) -> anyhow::Result<OpenedTarget> {
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let time = time_of([&name], &clock);
    let wanted = TargetRequest { name, intent: Intent::READ, options: FileOptions::read_direct() };
    let opened = open_all(&[wanted], &Permission::default(), &time).map_err(Refusal::from)?;
    opened.into_iter().next().context("the target was not opened")
}
