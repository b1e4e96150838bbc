//! Orders to drives that are being served, and what they answer.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_bay::control::{ControlError, Order, Status, give};
use plumb_bay::{forget, place};
use plumb_block::Bytes;
use plumb_sim::cut::CutWhen;
use plumb_sim::fault::Fault;
use serde::Serialize;

use crate::arguments::drive::{CutArguments, DriveCommand, FaultArguments};
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Where the drives of this user are.
pub(super) fn directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    place::of_this_user(runtime.as_deref().map(Path::new))
}

pub(super) fn run(command: &DriveCommand) -> anyhow::Result<Exit> {
    let (name, order, json) = match command {
        DriveCommand::Status { name: None, json } => return all(*json),
        DriveCommand::Status { name: Some(name), json } => (name, Order::Status, *json),
        DriveCommand::Cut(cut) => (&cut.name, Order::Cut { when: when(cut)? }, cut.json),
        DriveCommand::PowerOn(named) => (&named.name, Order::PowerOn, named.json),
        DriveCommand::Set { name, wce, json } => (name, Order::Set { wce: wce.is_on() }, *json),
        DriveCommand::Fault(fault) => (&fault.name, of_fault(fault)?, fault.json),
        DriveCommand::Detach(named) => (&named.name, Order::Detach, named.json),
        DriveCommand::List { .. } | DriveCommand::Show(_) | DriveCommand::Serve(_) => return Ok(Exit::Done),
    };
    match give(&directory(), name, &order) {
        Err(ControlError::Gone { name }) if order == Order::Detach => clear_up(&name, json)?,
        status => show(&status.map_err(refusal)?, json)?,
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
    let directory = directory();
    forget(&directory, name).with_context(|| format!("cannot clear up in {}", directory.display()))?;
    if rustix::process::geteuid().is_root() {
        for (kept, why) in plumb_bay::sweep()?.kept {
            terminal::say(&format!("plumb: what is left of {kept} must stay for now: {why}"));
        }
    }
    if !json {
        return terminal::print(&format!("{name}: its process was gone; what it left is taken away\n"));
    }
    let mut text = serde_json::to_string_pretty(&Gone { schema: "plumb/drive-gone/1", name, gone: true })?;
    text.push('\n');
    terminal::print(&text)
}

/// The moment as a bay reads it; checked here, where a mistake is one of the command line.
fn when(cut: &CutArguments) -> anyhow::Result<String> {
    let at_write = cut.at_write.map(|number| format!("write={number}"));
    let at_flush = cut.at_flush.map(|number| format!("flush={number}"));
    let when = at_write.or(at_flush).or_else(|| cut.between.clone()).unwrap_or_else(|| "now".to_owned());
    when.parse::<CutWhen>().map_err(|error| Refusal::because(Exit::Usage, error))?;
    Ok(when)
}

fn of_fault(arguments: &FaultArguments) -> anyhow::Result<Order> {
    let Some(fault) = &arguments.fault else { return Ok(Order::ClearFaults) };
    fault.parse::<Fault>().map_err(|error| Refusal::because(Exit::Usage, error))?;
    Ok(Order::Fault { fault: fault.clone() })
}

fn refusal(error: ControlError) -> anyhow::Error {
    let exit = match &error {
        ControlError::NoSuchDrive { .. } => Exit::Usage,
        ControlError::Refused(_) => Exit::Refused,
        ControlError::Gone { .. } | ControlError::Io { .. } => Exit::Failed,
    };
    Refusal::because(exit, error).into()
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    drives: Vec<Status>,
}

/// All drives of this user; those whose process is gone are named on stderr.
fn all(json: bool) -> anyhow::Result<Exit> {
    let directory = directory();
    let mut drives = Vec::new();
    for name in place::names(&directory)? {
        match give(&directory, &name, &Order::Status) {
            Ok(status) => drives.push(status),
            Err(error) => terminal::say(&format!("plumb: {error}")),
        }
    }
    if json {
        let mut text = serde_json::to_string_pretty(&Document { schema: "plumb/drives/1", drives })?;
        text.push('\n');
        terminal::print(&text)?;
    } else if drives.is_empty() {
        terminal::print("no drive is being served; `plumb drive serve MODEL` makes one\n")?;
    } else {
        for status in &drives {
            show(status, false)?;
        }
    }
    Ok(Exit::Done)
}

fn show(status: &Status, json: bool) -> anyhow::Result<()> {
    if json {
        let mut text = serde_json::to_string_pretty(status)?;
        text.push('\n');
        return terminal::print(&text);
    }
    let power = if status.power { "on" } else { "OFF" };
    let cache = match status.wce {
        None => "none to switch",
        Some(true) => "on",
        Some(false) => "off",
    };
    let mut text = format!("{}: {} of {}\n", status.name, status.model, Bytes(status.size));
    text += &format!("  power {power}, write cache {cache}, {} at risk\n", Bytes(status.dirty_bytes));
    text += &format!(
        "  {} reads, {} writes ({} with FUA), {} flushes\n",
        status.reads, status.writes, status.fua_writes, status.flushes
    );
    if status.flushes_dropped > 0 {
        text += &format!("  {} flushes were dropped by the driver in front of it\n", status.flushes_dropped);
    }
    if let Some(lost) = status.lost_at_last_cut_blocks {
        let cuts =
            if status.cuts == 1 { "1 power cut".to_owned() } else { format!("{} power cuts", status.cuts) };
        text += &format!("  {cuts}; the last took {lost} acknowledged blocks\n");
    }
    if let Some(when) = &status.cut_armed {
        text += &format!("  its power will be cut at {when}\n");
    }
    if status.latched {
        text += "  a flush has failed: no later one succeeds until its power was off\n";
    }
    for fault in &status.faults {
        text += &format!("  fault {fault}\n");
    }
    for (what, place) in [("device", &status.device), ("nbd", &status.nbd)] {
        if let Some(place) = place {
            text += &format!("  {what} {place}\n");
        }
    }
    terminal::print(&text)
}
