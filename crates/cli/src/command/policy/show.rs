//! `plumb policy show`: how write caches are.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_path::Severity;
use plumb_policy::device::raid_tool::{self, RaidReport};
use plumb_policy::raid::{self, Controller};
use plumb_policy::view::PolicyDocument;
use plumb_policy::watch::Watcher;
use serde::Serialize;

use super::host::Host;
use super::recording_gateway::RecordingGateway;
use super::{print, text};
use crate::arguments::policy::ShowArguments;
use crate::exit::{Exit, Refusal};
use crate::{files, terminal};

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    document: &'a PolicyDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    raid: Option<&'a RaidReport>,
    /// Controllers of this machine, with what to ask their programs.
    raid_controllers: &'a [Controller],
}

pub(super) fn run(arguments: &ShowArguments) -> anyhow::Result<Exit> {
    let mut host = Host::new(&arguments.shared)?;
    let recording = Arc::new(RecordingGateway::new(Arc::clone(&host.gateway)));
    if arguments.explain {
        host.gateway = recording.clone();
    }
    let raid = arguments.raid_report.as_deref().map(report).transpose()?;
    let document = host.document(&arguments.chosen)?;
    let controllers = raid::controllers(host.gateway.tree(), is_installed);
    if arguments.prometheus {
        // The first look finds no changes.
        let mut watcher = Watcher::new();
        watcher.look(document.clone());
        terminal::print(&watcher.metrics())?;
    } else {
        let all = Document { document: &document, raid: raid.as_ref(), raid_controllers: &controllers };
        print(arguments.shared.json, &all, || {
            let mut page = page(&document, arguments, host.is_root);
            for view in document.devices.iter().filter(|_| arguments.explain) {
                page += &text::wire::answers(&view.name, &recording.exchanges(&view.name));
            }
            page + &match &raid {
                Some(raid) => text::raid::of(raid, terminal::style()),
                None => text::raid::hidden(&controllers, terminal::style()),
            }
        })?;
    }
    let is_at_risk =
        raid.is_some_and(|raid| raid.volumes.iter().any(|volume| text::raid::is_at_risk(&raid, volume)));
    let found = document.devices.iter().flat_map(|view| &view.findings);
    let is_found = found.into_iter().any(|finding| finding.severity >= Severity::Warning);
    Ok(if is_found || is_at_risk { Exit::Finding } else { Exit::Done })
}

/// Reads what a controller's own program said, from a file.
fn report(path: &Path) -> anyhow::Result<RaidReport> {
    let shown = path.display();
    let text = files::read(&path.to_string_lossy())
        .map_err(|error| Refusal::new(Exit::Usage, format!("--raid-report {shown}: {error}")))?;
    let parsed = raid_tool::parse(&text);
    Ok(parsed.map_err(|error| Refusal::new(Exit::Usage, format!("--raid-report {shown}: {error}")))?)
}

/// Returns true if a program of this name is on the path. It is looked for, never started.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where the packages of the makers put them.
    let makers = ["/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli", "/opt/smartstorageadmin/ssacli/bin"];
    let mut places = std::env::split_paths(&path).chain(makers.map(PathBuf::from));
    places.any(|place| place.join(program).is_file())
}

/// One disk in full if one was named, otherwise a table.
fn page(document: &PolicyDocument, arguments: &ShowArguments, is_root: bool) -> String {
    let style = terminal::style();
    let mut page = match document.devices.as_slice() {
        [] => "No disk here has a write cache of its own, or none is chosen.\n".to_owned(),
        [view] if !arguments.chosen.devices.is_empty() => text::detail::of(view, style),
        _ => text::table::of(document, style, std::io::stdout().is_terminal()),
    };
    if !is_root {
        page += "\nSeen without root: what a drive itself says (its cache, what protects it, its counters) stays hidden \
                 where only root may ask.\n";
    }
    page
}
