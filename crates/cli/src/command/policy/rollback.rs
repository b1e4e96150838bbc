//! `plumb policy rollback`: back to what was.

use plumb_policy::rollback::rollback_in;

use super::host::{Host, refusal};
use super::progress::TerminalProgress;
use super::{print, text};
use crate::arguments::policy::RollbackArguments;
use crate::exit::Exit;
use crate::{stop, terminal};

pub(super) fn run(arguments: &RollbackArguments) -> anyhow::Result<Exit> {
    let host = Host::new(&arguments.shared)?;
    host.need_root("change the write cache of a disk")?;
    let stop = stop::on_signals()?;
    let progress = TerminalProgress::on_stderr();
    let report = rollback_in(&host.session(&stop, &progress), &arguments.journal);
    drop(progress);
    let report = report.map_err(refusal)?;
    print(arguments.shared.json, &report, || text::report::of(&report, terminal::style()))?;
    Ok(report.failure().map_or(Exit::Done, Exit::from))
}
