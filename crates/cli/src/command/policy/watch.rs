//! `plumb policy watch`: reads the disks at intervals.

use std::sync::atomic::Ordering;

use plumb_block::sleep_unless;
use plumb_path::Severity;
use plumb_policy::machine::Machine;
use plumb_policy::view::PolicyDocument;
use plumb_policy::watch::{Change, Watcher};
use plumb_report::{Format, Kind};
use serde::Serialize;

use super::disks::document;
use crate::arguments::policy::{Chosen, WatchArguments};
use crate::exit::Exit;
use crate::{stop, terminal};

/// Change as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    #[serde(flatten)]
    change: &'a Change,
}

/// Watches until interrupted, or for the requested number of readings. Any change is a finding.
pub(super) fn run(arguments: &WatchArguments) -> anyhow::Result<Exit> {
    let json = arguments.shared.printed.format(Kind::Events)? == Format::Json;
    let reads = [arguments.shared.claims.clone()];
    let output = arguments.writing.only(arguments.prometheus_file.as_ref(), &reads)?;
    let stop = stop::on_signals()?;
    // An unknown name is an error at the start; later it is a disk that was removed.
    let machine = || Machine::this(&arguments.shared.claims);
    let first = document(&machine()?, &arguments.chosen)?;
    announce(&first, arguments);
    let mut watcher = Watcher::new();
    let mut exit = Exit::Done;
    let mut looks = 0;
    let mut now = first;
    loop {
        for change in watcher.look(now) {
            exit = exit.and(Exit::Finding);
            tell(&change, json)?;
        }
        if let Some(output) = output {
            output.write(watcher.metrics().as_bytes())?;
        }
        looks += 1;
        if arguments.looks == Some(looks)
            || !sleep_unless(|| stop.load(Ordering::Relaxed), arguments.interval.into())
        {
            return Ok(exit);
        }
        now = read(&machine()?, &arguments.chosen)?;
    }
}

fn announce(found: &PolicyDocument, arguments: &WatchArguments) {
    let findings = found.devices.iter().flat_map(|view| &view.findings);
    let serious = findings.filter(|finding| finding.severity > Severity::Info).count();
    let disks = match found.devices.len() {
        1 => "1 disk is".to_owned(),
        count => format!("{count} disks are"),
    };
    let often = arguments.interval.as_secs_f64();
    terminal::say(&format!(
        "plumb: {disks} read every {often} s; {serious} warnings or dangers now (`plumb policy show`)"
    ));
}

/// Reads the disks that are still present.
fn read(machine: &Machine, chosen: &Chosen) -> anyhow::Result<PolicyDocument> {
    let reader = machine.reader()?;
    let is_there = |name: &&String| reader.one(name).is_ok();
    let there: Vec<String> = chosen.devices.iter().filter(is_there).cloned().collect();
    if !chosen.devices.is_empty() && there.is_empty() {
        let schema = PolicyDocument::SCHEMA.to_owned();
        return Ok(PolicyDocument { schema, kernel: None, devices: Vec::new() });
    }
    document(machine, &Chosen { devices: there, ..chosen.clone() })
}

fn tell(change: &Change, json: bool) -> anyhow::Result<()> {
    if json {
        let line = serde_json::to_string(&Line { schema: "plumb/policy-change/1", change })?;
        return terminal::print(&format!("{line}\n"));
    }
    let identity = change.identity.as_deref().map_or_else(String::new, |identity| format!(" ({identity})"));
    let line = format!("{} {}{identity}: {}", change.at, change.name, change.what);
    terminal::print(&format!("{}\n", plumb_text::printable(&line)))
}
