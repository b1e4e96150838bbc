//! Simulated drives: available models, and the status of served drives.

use plumb_block::Bytes;
use plumb_sim::figures::FigureRow;
use plumb_targets::served_drive::DriveStatus;
use plumb_text::printable;
use plumb_text::shell_word;

use super::Sections;
use super::cache::places;
use crate::document::drive::{DriveGone, DriveList, DriveModel, DriveShown, DrivesShown};
use crate::outline::{Item, Page, Row};
use crate::quantity::counted;
use crate::terminal::{Cell, Ink, Table};
use crate::wording;

const TITLE: &str = "plumb drive status";

impl Sections for DriveList {
    const TITLE: &str = "plumb drive list";

    /// Adds a line for each model, with the drives that it represents below.
    fn add_to(&self, page: &mut Page) {
        let table = Table::for_rows(&self.models)
            .left("model", |model| Cell::inked(Ink::Bold, printable(&model.facts.name)))
            .left("kind", |model| &model.facts.kind)
            .left("interface", |model| &model.facts.interface)
            .right("size", |model| Bytes(model.size).to_string())
            .left("write cache", |model| write_cache(&model.write_cache))
            .table();
        let below = self.models.iter().map(|model| printable(&model.facts.description)).collect();
        let end = "`plumb drive show MODEL` tells what one is made of, `plumb drive serve MODEL` makes one.";
        page.add("", vec![Item::Table(table.with_notes(below))]);
        page.add("", vec![Item::text(end)]);
    }
}

fn write_cache(words: &str) -> Cell {
    let ink = match () {
        () if words.ends_with("ignored") => Ink::Red,
        () if words.ends_with("volatile") => Ink::Yellow,
        () if words.ends_with("protected") => Ink::Green,
        () => Ink::Plain,
    };
    Cell::inked(ink, words)
}

impl Sections for DriveModel {
    const TITLE: &str = "plumb drive show";

    fn add_to(&self, page: &mut Page) {
        let facts = &self.facts;
        let title = format!("{}: {} {}", facts.name, facts.interface, facts.kind);
        page.add(
            printable(&title),
            vec![Item::facts([facts.description.clone(), format!("cache: {}", facts.cache)])],
        );
        let parameters = Table::for_rows(&self.parameters)
            .left("parameter", |of| printable(&of.path))
            .right("value", |of| printable(&of.value))
            .left("source", |of| printable(of.source.as_deref().unwrap_or("no source given")));
        page.add("", Item::table(parameters.if_any()));
        if !facts.source.is_empty() {
            page.add("Sources", Item::lines(&facts.source));
        }
        match self.figures.as_deref() {
            None => {}
            Some([]) => {
                page.add("", vec![Item::text("There are no figures of this kind of drive to be measured.")])
            }
            Some(figures) => {
                let title = format!("In virtual time, seed {}", Self::SEED);
                page.add(title, vec![Item::Table(figures_table(figures))]);
            }
        }
    }
}

fn figures_table(figures: &[FigureRow]) -> Table {
    Table::for_rows(figures)
        .left("figure", |row| format!("{}, {}", row.name, row.unit))
        .right("simulated", |row| format!("{:.2}", row.simulated))
        .right("published", |row| row.published.map(|of| format!("{of:.2}")).unwrap_or_default())
        .right("deviation", |row| {
            row.deviation.map(|off| format!("{:+.1} %", off * 100.0)).unwrap_or_default()
        })
        .left("source", |row| printable(row.source.as_deref().unwrap_or_default()))
        .table()
}

impl Sections for DriveShown {
    const TITLE: &str = TITLE;

    fn add_to(&self, page: &mut Page) {
        add(page, &self.status, self.is_gone);
    }
}

impl Sections for DrivesShown {
    const TITLE: &str = TITLE;

    fn add_to(&self, page: &mut Page) {
        self.drives.iter().for_each(|drive| add(page, drive, false));
        if self.drives.is_empty() {
            page.add("", vec![Item::text("no drive is being served; `plumb drive serve MODEL` makes one")]);
        }
    }
}

impl Sections for DriveGone {
    const TITLE: &str = "plumb drive detach";

    fn add_to(&self, page: &mut Page) {
        let words = format!("{}: its process was gone; what it left behind was removed", self.name);
        page.add("", vec![Item::text(&words)]);
    }
}

fn add(page: &mut Page, drive: &DriveStatus, is_gone: bool) {
    let gone = if is_gone { ", removed" } else { "" };
    let title = printable(&format!("{}: {} of {}{gone}", drive.name, drive.model, Bytes(drive.size)));
    if drive.schema == DriveStatus::SCHEMA_SERVE {
        let places = places(drive.device.as_ref(), &drive.nbd_uris);
        let power = Row::new("power", &format!("plumb drive cut {}", shell_word(&drive.name)));
        return page.add(title, vec![Item::Rows(places.chain([power]).collect())]);
    }
    let mut facts = history(drive);
    if !is_gone {
        facts.extend(prospects(drive));
    }
    page.add(title, vec![Item::facts(facts)]);
}

/// Describes the state of a drive, and its counters.
fn history(drive: &DriveStatus) -> Vec<String> {
    let power = if drive.power { "on" } else { "OFF" };
    let cache = wording::write_cache(drive.wce);
    let mut facts = vec![
        format!("power {power}, write cache {cache}, {} at risk", Bytes(drive.dirty_bytes)),
        format!(
            "{}, {} ({} with FUA), {}",
            counted(drive.reads, "read"),
            counted(drive.writes, "write"),
            drive.fua_writes,
            counted(drive.flushes, "flush")
        ),
    ];
    if drive.flushes_dropped > 0 {
        let dropped = counted(drive.flushes_dropped, "flush");
        facts.push(format!(
            "{dropped} more answered by the driver in front of it, so the drive never saw them"
        ));
    }
    facts.extend(drive.lost_at_last_cut_blocks.map(|lost| losses(drive, lost)));
    facts
}

/// Describes the losses of the last power cut.
fn losses(drive: &DriveStatus, lost: u64) -> String {
    let cuts = counted(drive.cuts, "power cut");
    let promised = drive.lost_although_durable_blocks.unwrap_or(0);
    let lie = if promised > 0 { format!(", {promised} of them promised as durable") } else { String::new() };
    format!("{cuts}; the last took {}{lie}", counted(lost, "acknowledged block"))
}

/// Lists planned events of the drive, and the places at which it is served.
fn prospects(drive: &DriveStatus) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(drive.cut_armed.as_ref().map(|when| format!("its power will be cut at {when}")));
    if drive.latched {
        facts.push(
            "a flush failed: no later flush succeeds until the drive is switched off and on".to_owned(),
        );
    }
    facts.extend(drive.is_medium_deleted.then(|| {
        "MEDIUM DELETED: its file was deleted, and the contents are lost when the server ends: copy them from the device or \
         the export first"
            .to_owned()
    }));
    facts.extend(drive.faults.iter().map(|fault| format!("fault {fault}")));
    facts.extend(drive.device.iter().map(|device| format!("device {device}")));
    facts.extend(drive.transport.iter().map(|transport| format!("transport {transport}")));
    if !drive.device_open_across_cut.is_empty() {
        let users = drive.device_open_across_cut.join("; ");
        facts.push(format!(
            "every request to it fails until it is closed: the power was cut while it was in use ({users})"
        ));
    }
    facts.extend(drive.nbd_uris.iter().map(|uri| format!("nbd {uri}")));
    if drive.nbd_clients > 0 {
        facts.push(format!("{} over NBD", counted(drive.nbd_clients, "client")));
    }
    facts
}
