//! `plumb drive serve`: serves a drive until it is detached or the command is interrupted.

use std::path::Path;

use anyhow::Context as _;
use plumb_block::{Bytes, FailureKind};
use plumb_report::Format;
use plumb_report::document::drive::DriveShown;
use plumb_serve::named::{Ending, ServiceOptions, registry};
use plumb_sim::contents::Backing;
use plumb_sim::drive::DriveOptions;
use plumb_sim::fault::Fault;
use plumb_sim::model::{Geometry, Kind, Model, Wce};
use plumb_state::places;
use plumb_targets::served_drive::{DriveStatus, serve_drive};
use plumb_targets::{MediumWanted, PendingMedium, Permission};

use super::model::model;
use crate::arguments::drive::ServeArguments;
use crate::arguments::exports::Switch;
use crate::command::serving::{name_what_stays, refusal, service_options};
use crate::exit::{Exit, Refusal, refuse_if};
use crate::{stop, terminal};

pub(super) fn run(arguments: &ServeArguments, format: Format) -> anyhow::Result<Exit> {
    let model = model(&arguments.model)?;
    let service = service_options(&arguments.exports, "drive")?;
    let faults: Result<Vec<Fault>, _> = arguments.fault.iter().map(|fault| fault.parse()).collect();
    let faults = faults.map_err(|error| Refusal::because(FailureKind::Usage, error))?;
    let size = size(arguments, &model)?;
    let blocks = size.0 / model.geometry.logical_block.0.0;
    let fits = faults.iter().try_for_each(|fault| fault.fits(blocks));
    fits.map_err(|error| Refusal::because(FailureKind::Usage, error))?;
    let message = format!("--wce: the model {} has no write cache that can be switched", model.name);
    refuse_if!(arguments.wce.is_some() && model.behaviour.wce == Wce::Absent, Usage, message);
    let message = "--backing: the model null keeps no data, so it needs no file: choose another model";
    refuse_if!(model.kind == Kind::Null && arguments.backing != Path::new("memory"), Usage, message);
    let directory = places::run();
    registry::make(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let stop = stop::on_signals()?;
    let (backing, pending) = match medium(arguments, &model, size)? {
        Some(medium) => (Backing::File(medium.file), Some(medium.pending)),
        None => (Backing::Memory, None),
    };
    let ublk = arguments.exports.ublk.then(|| plumb_serve::named::UblkExport {
        recover: arguments.recover,
        contents: plumb_targets::served_drive::contents_of(&model.name, &backing),
        keeps_acknowledged: false,
    });
    let service =
        ServiceOptions { directory, name: arguments.name.clone(), kind: model.name.clone(), ublk, ..service };
    let wce = arguments.wce.map(Switch::is_on);
    let drive = DriveOptions { size: Some(size), wce, seed: arguments.seed, backing, faults };
    let service = match serve_drive(&model, drive, service) {
        Ok(service) => service,
        Err(error) => {
            pending.into_iter().for_each(PendingMedium::undo);
            return Err(refusal(error).into());
        }
    };
    name_what_stays(&service);
    if let Some(note) = pending.and_then(PendingMedium::settle) {
        terminal::say(&format!("plumb: {note}"));
    }
    let status = DriveStatus { schema: DriveStatus::SCHEMA_SERVE.to_owned(), ..service.status() };
    terminal::show_status(&DriveShown { status, is_gone: false }, format)?;
    service.serve(Ending { stop: &stop, cut_off: &stop }).map_err(refusal)?;
    Ok(Exit::Done)
}

/// Returns the capacity, a multiple of the logical block.
fn size(arguments: &ServeArguments, model: &Model) -> anyhow::Result<Bytes> {
    let block = model.geometry.logical_block.0;
    let Some(typed) = arguments.size else { return Ok(model.geometry.default_size.0.round_down(block)) };
    let whole = typed.round_down(block);
    let message = format!(
        "--size: {} bytes are not a capacity: expected a multiple of {}, the block of this model, of 1 MiB to 1 PiB",
        typed.0, block.0
    );
    refuse_if!(whole != typed || !Geometry::SIZES.contains(&typed.0), Usage, message);
    Ok(whole)
}

/// Opens the file that holds the durable data; `None` if memory holds it.
fn medium(
    arguments: &ServeArguments,
    model: &Model,
    size: Bytes,
) -> anyhow::Result<Option<plumb_targets::Medium>> {
    let path = &arguments.backing;
    if path == Path::new("memory") {
        return Ok(None);
    }
    let block = model.geometry.logical_block.0;
    let (overwrite, destroy) = (arguments.overwrite, arguments.destroy.clone());
    let permission = Permission { overwrite, destroy, ..Permission::default() };
    let wanted = MediumWanted { size, block, model: &model.name, permission: &permission };
    let shown = format!("--backing {}", path.display());
    Ok(plumb_targets::Medium::open(path, &shown, wanted).map(Some)?)
}
