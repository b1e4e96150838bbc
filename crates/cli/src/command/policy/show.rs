//! `plumb policy show`: state of write caches.

use std::path::Path;
use std::sync::Arc;

use plumb_block::FailureKind;
use plumb_policy::device::raid_tool::{self, RaidReport};
use plumb_policy::gateway::recording::RecordingGateway;
use plumb_policy::machine::Machine;
use plumb_policy::raid;
use plumb_report::document::policy::PolicyShow;
use plumb_report::{Format, Kind};

use super::disks::document;
use crate::arguments::policy::ShowArguments;
use crate::exit::{self, Exit, Refusal};
use crate::{files, terminal};

pub(super) fn run(arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let format = match arguments.prometheus {
        true => Format::Prometheus,
        false => arguments.shared.printed.format(Kind::State)?,
    };
    let mut machine = Machine::this(&arguments.shared.claims)?;
    let recording = Arc::new(RecordingGateway::new(Arc::clone(&machine.gateway)));
    if arguments.explain {
        machine.gateway = recording.clone();
    }
    let raid = arguments.raid_report.as_deref().map(report).transpose()?;
    let shown = PolicyShow {
        document: document(&machine, &arguments.chosen)?,
        raid,
        raid_controllers: raid::controllers(machine.gateway.tree(), raid::is_installed),
        as_root: machine.is_root,
        exchanges: arguments.explain.then(|| recording.exchanges()),
        is_of_one: !arguments.chosen.devices.is_empty(),
    };
    terminal::show_status(&shown, format)?;
    let is_at_risk = shown.raid.iter().any(|raid| raid.volumes.iter().any(|volume| raid.is_at_risk(volume)));
    let found = shown.document.devices.iter().flat_map(|view| &view.findings);
    Ok(exit::of_findings(found).and(if is_at_risk { Exit::Finding } else { Exit::Done }))
}

/// Reads the report of a RAID controller's program from a file.
fn report(path: &Path) -> anyhow::Result<RaidReport> {
    let shown = path.display();
    let text = files::read(&path.to_string_lossy())
        .map_err(|error| Refusal::new(FailureKind::Usage, format!("--raid-report {shown}: {error}")))?;
    let parsed = raid_tool::parse(&text);
    Ok(parsed.map_err(|error| Refusal::new(FailureKind::Usage, format!("--raid-report {shown}: {error}")))?)
}
