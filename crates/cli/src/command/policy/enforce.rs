//! `plumb policy enforce`: brings every disk to its desired state. Called by the udev rule and the systemd
//! units.

use std::sync::atomic::AtomicBool;

use plumb_policy::apply::{Progress, Report};
use plumb_policy::enforce::{self, Enforcement, Places};
use plumb_policy::machine::Machine;
use plumb_report::Kind;
use plumb_report::progress::PolicyProgress;

use crate::arguments::policy::EnforceArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

pub(super) fn run(arguments: &EnforceArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::Status)?;
    let machine = Machine::this(&arguments.shared.claims)?;
    machine.need_root("change the write cache of a disk")?;
    let stop = stop::on_signals()?;
    let progress = PolicyProgress::on_stderr();
    let enforced = enforce(&machine, arguments, &stop, &|event| progress.on(event));
    drop(progress);
    let (done, exit) = enforced?;
    terminal::show_status(&done, format)?;
    Ok(exit)
}

/// Brings every present disk to its desired state.
pub(super) fn enforce(
    machine: &Machine,
    arguments: &EnforceArguments,
    stop: &AtomicBool,
    progress: Progress<'_>,
) -> anyhow::Result<(Enforcement, Exit)> {
    let EnforceArguments { from, ledger, journal, udev, .. } = arguments;
    let places = Places { desired: from, ledger, journals: journal };
    let done = enforce::enforce(&machine.session(stop, progress), places, udev.as_deref())?;
    let planned = done.plans.iter().map(super::plan::exit_of);
    let applied = done.reports.iter().filter_map(Report::failure).map(Exit::from);
    let exit = planned.chain(applied).fold(Exit::Done, Exit::and);
    Ok((done, exit))
}
