//! `plumb drive serve`: a drive that is served until it is detached or this is interrupted.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use plumb_block::Bytes;
use plumb_serve::ExportError;
use plumb_serve::named::{Encryption, NbdAddress, ServiceError, ServiceOptions, registry};
use plumb_serve::nbd::server::ServeError;
use plumb_sim::contents::Backing;
use plumb_sim::drive::DriveOptions;
use plumb_sim::fault::Fault;
use plumb_sim::model::{Geometry, Kind, Model, Wce};
use plumb_target::served_drive::{DriveStatus, serve_drive};
use plumb_target::{MediumWanted, PendingMedium};

use super::control::directory;
use crate::arguments::drive::{ServeArguments, Switch};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// The longest path of a unix socket (unix(7)).
const SOCKET_PATH_MAX: usize = 107;

pub(super) fn run(arguments: &ServeArguments, json: bool) -> anyhow::Result<Exit> {
    let model = super::model(&arguments.model)?;
    let addresses = addresses(arguments)?;
    if addresses.is_empty() && !is_block_device(arguments) {
        let message = "nobody could use this drive: give --nbd SOCKET, --nbd-tcp ADDRESS or --attach";
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    let faults: Result<Vec<Fault>, _> = arguments.fault.iter().map(|fault| fault.parse()).collect();
    let faults = faults.map_err(|error| Refusal::because(Exit::Usage, error))?;
    let size = size(arguments, &model)?;
    let blocks = size.0 / model.geometry.logical_block.0.0;
    let fits = faults.iter().try_for_each(|fault| fault.fits(blocks));
    fits.map_err(|error| Refusal::because(Exit::Usage, error))?;
    let encryption = encryption(arguments, &addresses)?;
    if arguments.wce.is_some() && model.behaviour.wce == Wce::Absent {
        let message =
            format!("--wce: a drive of the model {} has no write cache that could be switched", model.name);
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    if model.kind == Kind::Null && arguments.backing != Path::new("memory") {
        let message = "--backing: a null drive drops what is written and keeps nothing; take another model";
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    let directory = directory();
    registry::make(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let stop = stop::on_signals()?;
    let (backing, pending) = match medium(arguments, &model, size)? {
        Some(medium) => (Backing::File(medium.file), Some(medium.pending)),
        None => (Backing::Memory, None),
    };
    #[cfg(feature = "ublk")]
    let ublk = arguments.ublk.then(|| plumb_serve::named::UblkExport {
        recover: arguments.recover,
        contents: plumb_target::served_drive::contents_of(&model.name, &backing),
    });
    let service = ServiceOptions {
        directory,
        name: arguments.name.clone(),
        kind: model.name.clone(),
        nbd: addresses,
        encryption,
        say: Arc::new(|line| terminal::say(&format!("plumb: {line}"))),
        attach: arguments.attach,
        #[cfg(feature = "ublk")]
        ublk,
    };
    let wce = arguments.wce.map(Switch::is_on);
    let drive = DriveOptions { size: Some(size), wce, seed: arguments.seed, backing, faults };
    let service = match serve_drive(&model, drive, service) {
        Ok(service) => service,
        Err(error) => {
            pending.into_iter().for_each(PendingMedium::undo);
            return Err(refusal(error));
        }
    };
    if let Some(note) = pending.and_then(PendingMedium::settle) {
        terminal::say(&format!("plumb: {note}"));
    }
    announce(service.status(), json)?;
    service.serve(&stop).map_err(refusal)?;
    Ok(Exit::Done)
}

/// Where NBD is to be served.
fn addresses(arguments: &ServeArguments) -> anyhow::Result<Vec<NbdAddress>> {
    let mut addresses = Vec::new();
    for path in &arguments.nbd {
        if path.to_string_lossy().contains("://") {
            let shown = path.display();
            let message =
                format!("--nbd {shown}: expected the path of a unix socket; TCP is --nbd-tcp ADDRESS");
            return Err(Refusal::new(Exit::Usage, message).into());
        }
        let path = std::path::absolute(path).context("--nbd")?;
        if path.as_os_str().len() > SOCKET_PATH_MAX {
            let shown = path.display();
            let message =
                format!("--nbd {shown}: no client could name a socket of more than {SOCKET_PATH_MAX} bytes");
            return Err(Refusal::new(Exit::Usage, message).into());
        }
        addresses.push(NbdAddress::Unix(path));
    }
    addresses.extend(arguments.nbd_tcp.iter().copied().map(NbdAddress::Tcp));
    let is_repeated = |(at, address): (usize, &NbdAddress)| addresses[..at].contains(address);
    if addresses.iter().enumerate().any(is_repeated) {
        return Err(Refusal::new(Exit::Usage, "--nbd or --nbd-tcp names one place twice").into());
    }
    Ok(addresses)
}

/// How TCP is to be encrypted, which it must be beyond this machine.
fn encryption(arguments: &ServeArguments, addresses: &[NbdAddress]) -> anyhow::Result<Option<Encryption>> {
    let Some(directory) = &arguments.tls_certificates else {
        return match addresses.iter().find(|address| address.is_beyond_this_machine()) {
            Some(NbdAddress::Tcp(address)) => {
                let message = format!(
                    "--nbd-tcp {address}: other machines could read and write the drive: give --tls-certificates DIR, or an \
                     address of this machine alone, such as 127.0.0.1"
                );
                Err(Refusal::new(Exit::Refused, message).into())
            }
            _ => Ok(None),
        };
    };
    let directory = std::path::absolute(directory).context("--tls-certificates")?;
    let encryption = Encryption::new(directory, arguments.tls_verify_peer.is_on());
    encryption.map(Some).map_err(|error| {
        let error = anyhow::Error::new(error);
        Refusal::new(Exit::Usage, format!("--tls-certificates: {error:#}")).into()
    })
}

/// The capacity, in whole blocks.
fn size(arguments: &ServeArguments, model: &Model) -> anyhow::Result<Bytes> {
    let block = model.geometry.logical_block.0;
    let Some(typed) = arguments.size else { return Ok(model.geometry.default_size.0.round_down(block)) };
    let whole = typed.round_down(block);
    if whole != typed || !Geometry::SIZES.contains(&typed.0) {
        let message = format!(
            "--size: {} bytes are no capacity: expected a multiple of {}, the block of this model, of 1 MiB to 1 PiB",
            typed.0, block.0
        );
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    Ok(whole)
}

/// The file where what is durable is kept; `None` if that is memory.
fn medium(
    arguments: &ServeArguments,
    model: &Model,
    size: Bytes,
) -> anyhow::Result<Option<plumb_target::Medium>> {
    let path = &arguments.backing;
    if path == Path::new("memory") {
        return Ok(None);
    }
    let block = model.geometry.logical_block.0;
    let wanted = MediumWanted { size, block, model: &model.name, overwrite: arguments.overwrite };
    let shown = format!("--backing {}", path.display());
    plumb_target::Medium::open(path, &shown, wanted).map(Some).map_err(|error| {
        let exit = match error.kind().exit_code() {
            2 => Exit::Usage,
            4 => Exit::Refused,
            _ => Exit::Failed,
        };
        Refusal::because(exit, error).into()
    })
}

fn announce(status: DriveStatus, json: bool) -> anyhow::Result<()> {
    if json {
        let document = DriveStatus { schema: DriveStatus::SCHEMA_SERVE.to_owned(), ..status };
        return terminal::print_json(&document);
    }
    let mut text = format!("{}: {} of {}\n", status.name, status.model, Bytes(status.size));
    let places = status.device.iter().map(|device| ("device", device));
    for (what, place) in places.chain(status.nbd_uris.iter().map(|uri| ("nbd", uri))) {
        text += &format!("  {what:<8}{place}\n");
    }
    text += &format!("  {:<8}plumb drive cut {}\n", "power", status.name);
    terminal::print(&text)
}

/// Whether the kernel is to have it.
fn is_block_device(arguments: &ServeArguments) -> bool {
    #[cfg(feature = "ublk")]
    let is_ublk = arguments.ublk;
    #[cfg(not(feature = "ublk"))]
    let is_ublk = false;
    arguments.attach || is_ublk
}

fn refusal(error: ServiceError) -> anyhow::Error {
    match error {
        #[cfg(feature = "ublk")]
        ServiceError::Ublk(ExportError::NotRecoverable { .. }) => {
            Refusal::because(Exit::Refused, error).into()
        }
        #[cfg(feature = "ublk")]
        ServiceError::Ublk(ExportError::Geometry { .. }) => Refusal::because(Exit::Usage, error).into(),
        ServiceError::Name(_) => Refusal::because(Exit::Usage, error).into(),
        ServiceError::Taken(_)
        | ServiceError::Nbd(
            ServeError::Taken { .. }
            | ServeError::NotASocket { .. }
            | ServeError::AnotherKind { .. }
            | ServeError::InTheClear { .. },
        )
        | ServiceError::Attach(ExportError::NameInUse { .. } | ExportError::Left { .. }) => {
            Refusal::because(Exit::Refused, error).into()
        }
        ServiceError::Attach(ExportError::Os { ref source, .. })
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            let error = anyhow::Error::new(error);
            Refusal::new(Exit::Failed, format!("{error:#}; --attach takes root, --nbd does not")).into()
        }
        ServiceError::Attach(ExportError::Os { ref source, ref place, .. })
            if source.kind() == ErrorKind::NotFound && place.starts_with("/dev") =>
        {
            let error = anyhow::Error::new(error);
            let remedy = "--attach takes the modules fuse and loop (modprobe fuse loop), --nbd does not";
            Refusal::new(Exit::Failed, format!("{error:#}; {remedy}")).into()
        }
        ServiceError::Attach(ExportError::Geometry { .. }) => Refusal::because(Exit::Usage, error).into(),
        error => anyhow::Error::new(error),
    }
}
