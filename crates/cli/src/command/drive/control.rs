//! Orders to served drives, and their answers.

use anyhow::Context as _;
use plumb_block::{FailureKind, in_one_line};
use plumb_report::Format;
use plumb_report::document::drive::{DriveGone, DriveShown, DrivesShown};
use plumb_serve::attach;
use plumb_serve::named::control::{ControlError, Order, give};
use plumb_serve::named::{forget, registry};
use plumb_sim::cut::{CutWhen, CutWhenError};
use plumb_sim::fault::Fault;
use plumb_state::places;
use plumb_targets::served_drive::{DriveOrder, DriveStatus};

use crate::arguments::drive::{CutArguments, DriveCommand, FaultArguments};
use crate::exit::{Exit, Refusal};
use crate::terminal;

pub(super) fn run(command: &DriveCommand, format: Format) -> anyhow::Result<Exit> {
    let (name, order) = match command {
        DriveCommand::Status { name: None } => return all(format),
        DriveCommand::Status { name: Some(name) } => (name, Order::Status),
        DriveCommand::Cut(cut) if cut.disarm => (&cut.name, Order::Own(DriveOrder::Disarm)),
        DriveCommand::Cut(cut) => (&cut.name, Order::Own(DriveOrder::Cut { when: when(cut)? })),
        DriveCommand::PowerOn { name } => (name, Order::Own(DriveOrder::PowerOn)),
        DriveCommand::Set { name, wce } => (name, Order::Own(DriveOrder::Set { wce: wce.is_on() })),
        DriveCommand::Fault(fault) => (&fault.name, Order::Own(of_fault(fault)?)),
        DriveCommand::Detach(detach) => {
            (&detach.name, Order::Detach { cut_off: detach.cut_off, identity: None })
        }
        DriveCommand::List | DriveCommand::Show(_) | DriveCommand::Serve(_) => return Ok(Exit::Done),
    };
    match give(&places::run(), name, &order) {
        Err(ControlError::Gone { name }) if matches!(order, Order::Detach { .. }) => clear_up(&name, format)?,
        status => {
            let (status, is_gone) = (status?, matches!(order, Order::Detach { .. }));
            let exit = finding(&status);
            terminal::show_status(&DriveShown { status, is_gone }, format)?;
            return Ok(if matches!(order, Order::Status) { exit } else { Exit::Done });
        }
    }
    Ok(Exit::Done)
}

/// Returns the exit code for the state of a drive: contents that are lost when its server ends are a finding.
const fn finding(status: &DriveStatus) -> Exit {
    if status.is_medium_deleted { Exit::Finding } else { Exit::Done }
}

/// Removes the leftovers of a killed server.
fn clear_up(name: &str, format: Format) -> anyhow::Result<()> {
    let directory = places::run();
    if let Some(why) = attach::sweep_of(name)? {
        let message =
            format!("{name}: its process is gone, and what it left behind cannot be removed yet: {why}");
        return Err(Refusal::new(FailureKind::Refused, message).into());
    }
    if rustix::process::geteuid().is_root() {
        for (device, why) in plumb_serve::ublk::sweep(None)?.kept {
            terminal::say(&format!("plumb: {device} cannot be removed yet: {why}"));
        }
    }
    forget(&directory, name).with_context(|| format!("cannot clear up in {}", directory.display()))?;
    let gone = DriveGone { schema: DriveGone::SCHEMA.to_owned(), name: name.to_owned(), gone: true };
    terminal::show_status(&gone, format)
}

/// Returns the time of the cut in the syntax of a drive. It is checked here so that a mistake is a usage
/// error.
fn when(cut: &CutArguments) -> anyhow::Result<String> {
    let at_write = cut.at_write.map(|number| format!("write={number}"));
    let at_flush = cut.at_flush.map(|number| format!("flush={number}"));
    let when = at_write.or(at_flush).or_else(|| cut.between.clone()).unwrap_or_else(|| "now".to_owned());
    let backwards = |error: CutWhenError| match error {
        CutWhenError::Backwards(_) => Refusal::new(FailureKind::Usage, format!("--between: {error}")),
        CutWhenError::Unknown(_) => Refusal::because(FailureKind::Usage, error),
    };
    let meant = when.parse::<CutWhen>().map_err(backwards)?;
    match &cut.between {
        Some(typed) if !matches!(meant, CutWhen::Between(..)) => {
            let message = format!(
                "--between: `{typed}` is not a window: expected EVENT..EVENT, such as flush:3:submitted..flush:3:completed"
            );
            Err(Refusal::new(FailureKind::Usage, message).into())
        }
        _ => Ok(when),
    }
}

fn of_fault(arguments: &FaultArguments) -> anyhow::Result<DriveOrder> {
    let Some(fault) = &arguments.fault else { return Ok(DriveOrder::ClearFaults) };
    fault.parse::<Fault>().map_err(|error| Refusal::because(FailureKind::Usage, error))?;
    Ok(DriveOrder::Fault { fault: fault.clone() })
}

/// Shows all drives of this user. Drives that do not answer are reported on stderr.
fn all(format: Format) -> anyhow::Result<Exit> {
    let directory = places::run();
    let mut drives: Vec<DriveStatus> = Vec::new();
    for name in registry::names_with_unserved(&directory)? {
        match give(&directory, &name, &Order::<DriveOrder>::Status) {
            Ok(status) => drives.push(status),
            Err(error) => terminal::say(&format!("plumb: {}", in_one_line(&error))),
        }
    }
    let exit = drives.iter().map(finding).fold(Exit::Done, Exit::and);
    terminal::show_status(&DrivesShown { schema: DrivesShown::SCHEMA, drives }, format)?;
    Ok(exit)
}
