//! `plumb drive serve`: a drive in a bay, until it is detached or this is interrupted.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use anyhow::Context as _;
use plumb_bay::control::Status;
use plumb_bay::{AttachError, Bay, BayError, BayOptions, ServeError, place};
use plumb_block::Bytes;
use plumb_sim::contents::Backing;
use plumb_sim::drive::DriveOptions;
use plumb_sim::fault::Fault;
use plumb_sim::model::{Kind, Model};

use super::control::directory;
use crate::arguments::drive::{ServeArguments, Switch};
use crate::exit::{Exit, Refusal};
use crate::{stop, terminal};

/// The largest drive that can be simulated.
const SIZE_MAX: Bytes = Bytes(1 << 50);

pub(super) fn run(arguments: &ServeArguments) -> anyhow::Result<Exit> {
    if arguments.nbd.is_none() && !arguments.attach {
        let message = "nobody could use this drive: give --nbd SOCKET, --attach, or both";
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    let model = super::model(&arguments.model)?;
    let faults: Result<Vec<Fault>, _> = arguments.fault.iter().map(|fault| fault.parse()).collect();
    let faults = faults.map_err(|error| Refusal::because(Exit::Usage, error))?;
    let size = size(arguments, &model)?;
    let nbd = arguments.nbd.as_ref().map(std::path::absolute).transpose().context("--nbd")?;
    if model.kind == Kind::Null && arguments.backing != Path::new("memory") {
        let message = "--backing: a null drive drops what is written and keeps nothing; take another model";
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    let backing = backing(&arguments.backing, size)?;
    let directory = directory();
    place::make(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let stop = stop::on_signals()?;
    let options = BayOptions {
        directory,
        name: arguments.name.clone(),
        model,
        drive: DriveOptions {
            size: Some(size),
            wce: arguments.wce.map(Switch::is_on),
            seed: arguments.seed,
            backing,
            faults,
        },
        nbd,
        attach: arguments.attach,
    };
    let bay = Bay::open(options).map_err(refusal)?;
    announce(&bay.status(), arguments.json)?;
    bay.serve(&stop).map_err(refusal)?;
    Ok(Exit::Done)
}

/// The capacity, in whole blocks.
fn size(arguments: &ServeArguments, model: &Model) -> anyhow::Result<Bytes> {
    let block = model.geometry.logical_block.0;
    let Some(typed) = arguments.size else { return Ok(model.geometry.default_size.0.round_down(block)) };
    let whole = typed.round_down(block);
    if whole != typed || !(block..=SIZE_MAX).contains(&typed) {
        let message = format!(
            "--size: {typed} is no capacity: expected a multiple of {block}, the block of this model, up to 1 PiB"
        );
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    Ok(whole)
}

/// Where what is durable is kept. A file that is there already is a medium that was used before.
fn backing(path: &Path, size: Bytes) -> anyhow::Result<Backing> {
    if path == Path::new("memory") {
        return Ok(Backing::Memory);
    }
    let shown = path.display();
    let usage = |message: String| anyhow::Error::from(Refusal::new(Exit::Usage, message));
    let is_new = !path.exists();
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| usage(format!("--backing {shown}: cannot be opened: {error}")))?;
    let there = file.metadata()?;
    if !there.is_file() || there.file_type().is_block_device() {
        return Err(usage(format!("--backing {shown}: it is no regular file; name one, or a new one")));
    }
    if is_new || there.len() == 0 {
        file.set_len(size.0)
            .map_err(|error| usage(format!("--backing {shown}: cannot be {size} long: {error}")))?;
    } else if there.len() != size.0 {
        let message = format!(
            "--backing {shown}: it is {} long and the drive {size}; give --size {}, or name a new file",
            Bytes(there.len()),
            there.len()
        );
        return Err(Refusal::new(Exit::Refused, message).into());
    }
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| Refusal::new(Exit::Refused, format!("--backing {shown}: another drive has it")))?;
    Ok(Backing::File(file))
}

fn announce(status: &Status, json: bool) -> anyhow::Result<()> {
    if json {
        let mut text = serde_json::to_string_pretty(status)?;
        text.push('\n');
        return terminal::print(&text);
    }
    let mut text = format!("{}: {} of {}\n", status.name, status.model, Bytes(status.size));
    for (what, place) in [("device", &status.device), ("nbd", &status.nbd)] {
        if let Some(place) = place {
            text += &format!("  {what:<8}{place}\n");
        }
    }
    text += &format!("  {:<8}plumb drive cut {}\n", "power", status.name);
    terminal::print(&text)
}

fn refusal(error: BayError) -> anyhow::Error {
    match error {
        BayError::Name(_) => Refusal::because(Exit::Usage, error).into(),
        BayError::Taken(_)
        | BayError::Nbd(ServeError::Taken { .. } | ServeError::NotASocket { .. })
        | BayError::Attach(AttachError::NameInUse { .. }) => Refusal::because(Exit::Refused, error).into(),
        BayError::Attach(AttachError::Os { ref source, .. })
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            let error = anyhow::Error::new(error);
            Refusal::new(Exit::Failed, format!("{error:#}; --attach takes root, --nbd does not")).into()
        }
        BayError::Attach(AttachError::Geometry { .. }) => Refusal::because(Exit::Usage, error).into(),
        error => anyhow::Error::new(error),
    }
}
