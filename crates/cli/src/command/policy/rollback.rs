//! `plumb policy rollback`: back to what was.

use plumb_policy::rollback::rollback_in;
use plumb_report::Kind;

use super::host::{Host, refusal};
use super::progress::TerminalProgress;
use crate::arguments::policy::RollbackArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

pub(super) fn run(arguments: &RollbackArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::Status)?;
    let host = Host::new(&arguments.shared)?;
    host.need_root("change the write cache of a disk")?;
    let stop = stop::on_signals()?;
    let progress = TerminalProgress::on_stderr();
    let report = rollback_in(&host.session(&stop, &progress), &arguments.journal);
    drop(progress);
    let report = report.map_err(refusal)?;
    terminal::show_status(&report, format)?;
    Ok(report.failure().map_or(Exit::Done, Exit::from))
}
