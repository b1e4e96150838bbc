//! `plumb policy rollback`: restores the state before an apply.

use plumb_policy::machine::Machine;
use plumb_policy::rollback::rollback_in;
use plumb_report::Kind;
use plumb_report::progress::PolicyProgress;

use crate::arguments::policy::RollbackArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

pub(super) fn run(arguments: &RollbackArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::Status)?;
    let machine = Machine::this(&arguments.shared.claims)?;
    machine.need_root("change the write cache of a disk")?;
    let stop = stop::on_signals()?;
    let progress = PolicyProgress::on_stderr();
    let report = rollback_in(&machine.session(&stop, &|event| progress.on(event)), &arguments.journal);
    drop(progress);
    let report = report?;
    terminal::show_status(&report, format)?;
    Ok(report.failure().map_or(Exit::Done, Exit::from))
}
