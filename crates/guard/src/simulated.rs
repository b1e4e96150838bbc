//! Simulated drives in this process as targets: `sim:MODEL?wce=off&seed=7`.
//!
//! They need no permission, as no real storage is written. Equal names stand for the same drive.

use std::sync::Arc;

use plumb_block::{Device, StorageCounters, Time};
use plumb_sim::Handle;
use plumb_sim::drive::{Drive, DriveOptions};
use plumb_sim::kernel::{self, Flushes};
use plumb_sim::model::{TypedModel, Wce};

use crate::error::{Error, Result};
use crate::name::{Name, Scheme};
use crate::opened::{OpenedTarget, Origin, Route, TargetKind};
use crate::target_request::TargetRequest;

/// Syntax of the name of a simulated drive, for messages.
const TYPED_AS: &str = "type it as in sim:MODEL?wce=off&seed=7&size=1GiB&fault=write:eio:nth=3";

/// Returns true if `name` is that of a simulated drive.
pub(crate) fn is_meant(name: &Name) -> bool {
    matches!(name, Name::Scheme { scheme: Scheme::Sim, .. })
}

/// Creates the wanted drives, each with its index in the list.
///
/// # Errors
/// Fails for an unknown model or an invalid option.
pub(crate) fn open_all(wanted: &[(usize, TargetRequest)], time: &Time) -> Result<Vec<(usize, OpenedTarget)>> {
    let mut drives: Vec<(&Name, Handle)> = Vec::new();
    let mut opened = Vec::new();
    for (place, want) in wanted {
        let known = drives.iter().find(|(name, _)| **name == want.name).map(|(_, handle)| handle.clone());
        let handle = match known {
            Some(handle) => handle,
            None => {
                let handle = make(&want.name, time)?;
                drives.push((&want.name, handle.clone()));
                handle
            }
        };
        opened.push((*place, describe(want, &handle, time)?));
    }
    Ok(opened)
}

/// Opens a simulated drive as a target, with the handle that switches its power.
///
/// # Errors
/// Fails as [`open_all`](crate::open_all) for a simulated drive.
pub fn open_simulated(wanted: &TargetRequest, time: &Time) -> Result<(OpenedTarget, Handle)> {
    let handle = make(&wanted.name, time)?;
    Ok((describe(wanted, &handle, time)?, handle))
}

fn make(name: &Name, time: &Time) -> Result<Handle> {
    let shown = name.to_string();
    let wrong = |error: &dyn std::error::Error, remedy: &str| {
        Error::usage(&shown, plumb_block::in_one_line(error), remedy)
    };
    let Name::Scheme { rest, .. } = name else {
        return Err(Error::usage(&shown, "it is not a simulated drive", "type sim:MODEL"));
    };
    let typed: TypedModel = rest.parse().map_err(|error| wrong(&error, TYPED_AS))?;
    let model = typed.resolve().map_err(|error| wrong(&error, ""))?;
    let TypedModel { wce, seed, size, faults, .. } = typed;
    if wce.is_some() && model.behaviour.wce == Wce::Absent {
        return Err(Error::usage(
            &shown,
            "this model has no write cache that could be switched",
            "leave out wce=",
        ));
    }
    let options = DriveOptions { size, wce, seed, faults, ..DriveOptions::default() };
    let mut drive = Drive::new(&model, options).map_err(|error| wrong(&error, ""))?;
    drive.rename(shown.clone());
    Ok(Handle::new(drive, time.clone()))
}

fn describe(want: &TargetRequest, handle: &Handle, time: &Time) -> Result<OpenedTarget> {
    let flushes = if want.options.opening.raw_flush { Flushes::Raw } else { Flushes::AsLinux };
    let device = kernel::above(handle.device(), time, flushes);
    in_this_process(
        want,
        device,
        Some(handle.counters()),
        Words { what: "the drive", example: "sim:MODEL?size=" },
    )
}

/// Words for the message that a simulated device is too small.
#[derive(Clone, Copy)]
pub struct Words {
    /// Kind of device with its article, such as `the drive`.
    pub what: &'static str,
    /// Example of a name, up to the size at its end.
    pub example: &'static str,
}

/// Creates a target from a simulated device and its counters.
///
/// # Errors
/// A usage error if the device is smaller than the intent requires.
pub fn in_this_process(
    want: &TargetRequest,
    device: Arc<dyn Device>,
    counters: Option<Arc<dyn StorageCounters>>,
    words: Words,
) -> Result<OpenedTarget> {
    let Words { what, example } = words;
    let shown = want.name.to_string();
    let size = device.info().size;
    if let Some(wanted) = want.intent.size.filter(|wanted| *wanted > size) {
        let found = format!("{what} has {size}, less than the requested {wanted}");
        let remedy = format!("give its size, as in {example}{}", wanted.0);
        return Err(Error::usage(&shown, found, remedy));
    }
    Ok(OpenedTarget {
        device,
        route: Route::Simulated,
        shown,
        kind: TargetKind::Simulated,
        made: false,
        ours: false,
        size,
        identity: None,
        notes: Vec::new(),
        needs_layout: None,
        counters,
        origin: Origin::Elsewhere,
        making: None,
    })
}
