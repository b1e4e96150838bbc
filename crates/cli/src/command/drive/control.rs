//! Orders to drives that are being served, and what they answer.

use anyhow::Context as _;
use plumb_block::{Bytes, in_one_line};
use plumb_serve::named::control::{ControlError, Order, RefusedKind, give};
use plumb_serve::named::{forget, registry};
use plumb_sim::cut::{CutWhen, CutWhenError};
use plumb_sim::fault::Fault;
use plumb_state::places;
use plumb_targets::served_drive::{DriveOrder, DriveStatus};
use serde::Serialize;

use crate::arguments::drive::{CutArguments, DriveCommand, FaultArguments};
use crate::command::serving;
use crate::exit::{Exit, Refusal};
use crate::terminal::{self, counted};

pub(super) fn run(command: &DriveCommand, json: bool) -> anyhow::Result<Exit> {
    let (name, order) = match command {
        DriveCommand::Status { name: None } => return all(json),
        DriveCommand::Status { name: Some(name) } => (name, Order::Status),
        DriveCommand::Cut(cut) if cut.disarm => (&cut.name, Order::Own(DriveOrder::Disarm)),
        DriveCommand::Cut(cut) => (&cut.name, Order::Own(DriveOrder::Cut { when: when(cut)? })),
        DriveCommand::PowerOn { name } => (name, Order::Own(DriveOrder::PowerOn)),
        DriveCommand::Set { name, wce } => (name, Order::Own(DriveOrder::Set { wce: wce.is_on() })),
        DriveCommand::Fault(fault) => (&fault.name, Order::Own(of_fault(fault)?)),
        DriveCommand::Detach(detach) => (&detach.name, Order::Detach { cut_off: detach.cut_off }),
        DriveCommand::List | DriveCommand::Show(_) | DriveCommand::Serve(_) => return Ok(Exit::Done),
    };
    match give(&places::run(), name, &order) {
        Err(ControlError::Gone { name }) if matches!(order, Order::Detach { .. }) => clear_up(&name, json)?,
        status => show(&status.map_err(refusal)?, &order, json)?,
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Gone<'a> {
    schema: &'static str,
    name: &'a str,
    gone: bool,
}

/// Takes away what a killed process has left of its drive.
fn clear_up(name: &str, json: bool) -> anyhow::Result<()> {
    let directory = places::run();
    if let Some(why) = serving::clear_up(name)? {
        let message = format!("{name}: its process is gone, and what it left must stay for now: {why}");
        return Err(Refusal::new(Exit::Refused, message).into());
    }
    if rustix::process::geteuid().is_root() {
        for (device, why) in plumb_serve::ublk::sweep(None)?.kept {
            terminal::say(&format!("plumb: {device} must stay for now: {why}"));
        }
    }
    forget(&directory, name).with_context(|| format!("cannot clear up in {}", directory.display()))?;
    if !json {
        return terminal::print(&format!("{name}: its process was gone; what it left is taken away\n"));
    }
    terminal::print_json(&Gone { schema: "plumb/drive-gone/1", name, gone: true })
}

/// The moment as a drive reads it; checked here, where a mistake is one of the command line.
fn when(cut: &CutArguments) -> anyhow::Result<String> {
    let at_write = cut.at_write.map(|number| format!("write={number}"));
    let at_flush = cut.at_flush.map(|number| format!("flush={number}"));
    let when = at_write.or(at_flush).or_else(|| cut.between.clone()).unwrap_or_else(|| "now".to_owned());
    let backwards = |error: CutWhenError| match error {
        CutWhenError::Backwards(_) => Refusal::new(Exit::Usage, format!("--between: {error}")),
        CutWhenError::Unknown(_) => Refusal::because(Exit::Usage, error),
    };
    let meant = when.parse::<CutWhen>().map_err(backwards)?;
    match &cut.between {
        Some(typed) if !matches!(meant, CutWhen::Between(..)) => {
            let message = format!(
                "--between: `{typed}` is no window: expected EVENT..EVENT, such as flush:3:submitted..flush:3:completed"
            );
            Err(Refusal::new(Exit::Usage, message).into())
        }
        _ => Ok(when),
    }
}

fn of_fault(arguments: &FaultArguments) -> anyhow::Result<DriveOrder> {
    let Some(fault) = &arguments.fault else { return Ok(DriveOrder::ClearFaults) };
    fault.parse::<Fault>().map_err(|error| Refusal::because(Exit::Usage, error))?;
    Ok(DriveOrder::Fault { fault: fault.clone() })
}

fn refusal(error: ControlError) -> anyhow::Error {
    let exit = match &error {
        ControlError::NoSuchDrive { .. } => Exit::Usage,
        ControlError::Refused { refused, .. } => match refused.kind {
            RefusedKind::Invalid => Exit::Usage,
            RefusedKind::UnsafeNow => Exit::Refused,
            RefusedKind::Failed => Exit::Failed,
        },
        ControlError::Gone { .. } | ControlError::Silent { .. } | ControlError::Io { .. } => Exit::Failed,
    };
    Refusal::because(exit, error).into()
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    drives: Vec<DriveStatus>,
}

/// All drives of this user; those whose process is gone are named on stderr.
fn all(json: bool) -> anyhow::Result<Exit> {
    let directory = places::run();
    let mut drives = Vec::new();
    for name in registry::names_with_left(&directory)? {
        match give(&directory, &name, &Order::<DriveOrder>::Status) {
            Ok(status) => drives.push(status),
            Err(error) => terminal::say(&format!("plumb: {}", in_one_line(&error))),
        }
    }
    if json {
        terminal::print_json(&Document { schema: "plumb/drives/1", drives })?;
    } else if drives.is_empty() {
        terminal::print("no drive is being served; `plumb drive serve MODEL` makes one\n")?;
    } else {
        for status in &drives {
            show(status, &Order::Status, false)?;
        }
    }
    Ok(Exit::Done)
}

fn show(status: &DriveStatus, order: &Order<DriveOrder>, json: bool) -> anyhow::Result<()> {
    if json {
        return terminal::print_json(status);
    }
    let is_gone = matches!(order, Order::Detach { .. });
    let end = if is_gone { ", taken away" } else { "" };
    let mut text = format!("{}: {} of {}{end}\n", status.name, status.model, Bytes(status.size));
    let mut lines = history(status);
    if !is_gone {
        lines.extend(prospects(status));
    }
    text.extend(lines.iter().map(|line| format!("  {line}\n")));
    terminal::print(&text)
}

/// How a drive is, and what it did.
fn history(status: &DriveStatus) -> Vec<String> {
    let power = if status.power { "on" } else { "OFF" };
    let cache = match status.wce {
        None => "none to switch",
        Some(true) => "on",
        Some(false) => "off",
    };
    let mut lines = vec![
        format!("power {power}, write cache {cache}, {} at risk", Bytes(status.dirty_bytes)),
        format!(
            "{}, {} ({} with FUA), {}",
            counted(status.reads, "read"),
            counted(status.writes, "write"),
            status.fua_writes,
            counted(status.flushes, "flush")
        ),
    ];
    if status.flushes_dropped > 0 {
        let dropped = counted(status.flushes_dropped, "flush");
        lines
            .push(format!("{dropped} more answered by the driver in front of it, which the drive never saw"));
    }
    lines.extend(status.lost_at_last_cut_blocks.map(|lost| losses(status, lost)));
    lines
}

/// Lists what is to come for the drive, and where it is reached.
fn prospects(status: &DriveStatus) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(status.cut_armed.as_ref().map(|when| format!("its power will be cut at {when}")));
    if status.latched {
        lines.push("a flush has failed: no later one succeeds until its power was off".to_owned());
    }
    lines.extend(status.faults.iter().map(|fault| format!("fault {fault}")));
    lines.extend(status.device.iter().map(|device| format!("device {device}")));
    if !status.device_open_across_cut.is_empty() {
        let users = status.device_open_across_cut.join("; ");
        lines.push(format!(
            "every request to it fails until it is closed: the power was cut while it was in use ({users})"
        ));
    }
    lines.extend(status.nbd_uris.iter().map(|uri| format!("nbd {uri}")));
    if status.nbd_clients > 0 {
        lines.push(format!("{} over NBD", counted(status.nbd_clients, "client")));
    }
    lines
}

/// Describes what the last power cut took.
fn losses(status: &DriveStatus, lost: u64) -> String {
    let cuts = counted(status.cuts, "power cut");
    let promised = status.lost_although_durable_blocks.unwrap_or(0);
    let lie =
        if promised > 0 { format!(", {promised} of which it had said were durable") } else { String::new() };
    format!("{cuts}; the last took {}{lie}", counted(lost, "acknowledged block"))
}
