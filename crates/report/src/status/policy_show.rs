//! Disks and their write caches: a line each, with problems and unknown values below; or one disk in full.

use plumb_path::{Finding, Severity};
use plumb_policy::gateway::recording::Exchange;
use plumb_policy::state::FoundState;
use plumb_policy::view::{DeviceView, PolicyDocument};
use plumb_policy::watch::Watcher;
use plumb_text::printable;

use super::policy_disk::{disk, model, on_off, write_cache, yes_no};
use super::{Sections, raid};
use crate::document::policy::PolicyShow;
use crate::outline::{Item, Page, Row};
use crate::quantity::counted;
use crate::terminal::{Cell, Ink, Table, severity_ink};

/// Number of bytes in a line of a response.
const ROW: usize = 16;

/// Columns, with a description where the name does not suffice.
const HEAD: [(&str, &str); 12] = [
    ("disk", ""),
    (
        "state",
        "off: no volatile cache is on; on: the cache is on and flushes are sent; protected: it is on and the kernel sends no flushes; \
         none: no write cache of its own",
    ),
    ("cache", "state of the write cache that the drive reports; none: it has no volatile one"),
    ("changeable", "yes if the drive lets its write cache be switched"),
    ("default", "the write cache as the maker set it"),
    ("saved", "the write cache after the next power cut"),
    ("kernel", "write back: the kernel sends flushes to the drive; write through: it sends none"),
    ("protection", "source of the claim that the cache survives a power cut"),
    ("worst finding", "name of the rule; the sentence is below"),
    ("transport", ""),
    ("model", ""),
    ("identity", "name by which plumb recognizes the disk: WWN, EUI or serial number"),
];

const NO_ROOT: &str = "Seen without root: what a drive itself says (its cache, what protects it, its counters) stays hidden \
                       where only root may ask.";

impl Sections for PolicyShow {
    const TITLE: &str = "plumb policy show";

    fn add_to(&self, page: &mut Page) {
        match self.document.devices.as_slice() {
            [] => page
                .add("", vec![Item::text("No disk here has a write cache of its own, or none is chosen.")]),
            [view] if self.is_of_one => disk(page, view),
            views => {
                page.summary = Some(summary(views));
                many(page, &self.document);
            }
        }
        if !self.as_root {
            page.add("", vec![Item::text(NO_ROOT)]);
        }
        for view in &self.document.devices {
            if let Some(exchanges) = &self.exchanges {
                let own = exchanges.iter().filter(|exchange| exchange.disk == view.name);
                page.add(format!("Commands sent to {}", printable(&view.name)), answers(own));
            }
        }
        raid::add(page, self.raid.as_ref(), &self.raid_controllers);
    }

    fn metrics(&self) -> Option<String> {
        // The first call only sets the baseline.
        let mut watcher = Watcher::new();
        watcher.look(self.document.clone());
        Some(watcher.metrics())
    }
}

/// Counts the disks by the state of their write cache: `Write cache of 3 disks: on for 1, off for 2.`
fn summary(views: &[DeviceView]) -> String {
    let states =
        [FoundState::On, FoundState::Protected, FoundState::Off, FoundState::None, FoundState::Unknown];
    let count = |state| views.iter().filter(|view| view.state == state).count();
    let states = states.map(|state| (state.word(), count(state))).into_iter();
    let counts = states.filter(|(_, count)| *count > 0);
    let counts = match views {
        [_] => counts.map(|(word, _)| word).collect::<String>(),
        _ => counts.map(|(word, count)| format!("{word} for {count}")).collect::<Vec<_>>().join(", "),
    };
    format!("Write cache of {}: {counts}.", counted(views.len() as u64, "disk"))
}

fn many(page: &mut Page, document: &PolicyDocument) {
    let table = Table::for_rows(&document.devices)
        .left(HEAD[0].0, |view| Cell::inked(Ink::Bold, printable(&view.name)))
        .left(HEAD[1].0, |view| state(view))
        .left(HEAD[2].0, |view| write_cache(&view.device))
        .left(HEAD[3].0, |view| yes_no(view.device.changeable))
        .left(HEAD[4].0, |view| on_off(view.device.default))
        .left(HEAD[5].0, |view| on_off(view.device.saved))
        .left(HEAD[6].0, |view| printable(view.kernel.write_cache.as_deref().unwrap_or("?")))
        .left(HEAD[7].0, |view| view.protection.as_ref().map_or("", |protection| protection.rank.word()))
        .left(HEAD[8].0, |view| worst(view))
        .left(HEAD[9].0, |view| printable(&view.transport))
        .left(HEAD[10].0, |view| model(view))
        .left(HEAD[11].0, |view| printable(view.identity.as_deref().unwrap_or("none")))
        .table()
        .without_empty_columns();
    let legend = legend(document, &table);
    page.add("", vec![Item::Wide(table)]);
    page.add("", vec![Item::Rows(legend)]);
    page.add("", wrong(document));
}

/// Returns the state, in red if flushes are suppressed without a claim, which loses data.
fn state(view: &DeviceView) -> Cell {
    let ink = match view.state {
        FoundState::Protected if view.protection.is_none() => Ink::Red,
        FoundState::Off | FoundState::Protected => Ink::Green,
        FoundState::Unknown => Ink::Dim,
        FoundState::On | FoundState::None => Ink::Plain,
    };
    Cell::inked(ink, view.state.word())
}

fn serious(view: &DeviceView) -> impl Iterator<Item = &Finding> {
    view.findings.iter().filter(|finding| finding.severity > Severity::Info)
}

fn worst(view: &DeviceView) -> Cell {
    let worst = serious(view).max_by_key(|finding| finding.severity);
    worst.map_or_else(
        || Cell::plain(""),
        |finding| Cell::inked(severity_ink(Some(finding.severity)), printable(&finding.id)),
    )
}

/// Returns warnings and dangers. One that several disks share is stated once.
fn wrong(document: &PolicyDocument) -> Vec<Item> {
    let said = document.devices.iter().flat_map(|view| serious(view).map(|finding| (finding, &*view.name)));
    let mut said = grouped(said);
    said.sort_by_key(|(finding, _)| std::cmp::Reverse(finding.severity));
    let item = |(finding, disks): (&Finding, Vec<&str>)| Item::Finding {
        finding: finding.clone(),
        about: disks.into_iter().map(str::to_owned).collect(),
    };
    said.into_iter().map(item).collect()
}

/// Returns each distinct item once, with the disks that it concerns.
fn grouped<'a, T: PartialEq>(said: impl Iterator<Item = (T, &'a str)>) -> Vec<(T, Vec<&'a str>)> {
    let mut grouped: Vec<(T, Vec<&str>)> = Vec::new();
    for (thing, disk) in said {
        match grouped.iter_mut().find(|(known, _)| *known == thing) {
            Some((_, disks)) => disks.push(disk),
            None => grouped.push((thing, vec![disk])),
        }
    }
    grouped
}

/// Explains the shown columns, and the reasons for unknown values.
fn legend(document: &PolicyDocument, table: &Table) -> Vec<Row> {
    let is_shown = |column: &str| table.head().any(|(name, _)| name == column);
    let columns = HEAD.iter().filter(|(name, says)| !says.is_empty() && is_shown(name));
    let columns = columns.map(|(name, says)| Row::new(name, says));
    let unknown = grouped(document.devices.iter().flat_map(unknown));
    let unknown = unknown
        .iter()
        .map(|((what, why), disks)| Row::new("?", &format!("{what} of {}: {why}", disks.join(" "))));
    columns.chain(unknown).collect()
}

/// Lists the unknown values of a disk, with the reasons.
fn unknown(view: &DeviceView) -> Vec<((&'static str, &str), &str)> {
    let device = &view.device;
    let why = match (device.wce, device.mechanism.as_str()) {
        (None, _) => device.wce_unknown_because.as_deref().unwrap_or("the drive does not say"),
        (_, "ata-identify") => "ATA drives do not report it",
        (_, "virtio-config") => "virtio disks do not report it",
        _ => "the drive does not report it",
    };
    let kernel = view.kernel.write_cache.as_deref().map(|_| true);
    let values = [
        ("cache", device.wce, why),
        ("changeable", device.changeable, why),
        ("default", device.default, why),
        ("saved", device.saved, why),
        ("kernel", kernel, "it has no request queue of its own"),
    ];
    let unknown = values.into_iter().filter(|(_, value, _)| value.is_none());
    unknown.map(|(what, _, why)| ((what, why), &*view.name)).collect()
}

/// Returns all commands sent to a disk, with the responses.
fn answers<'a>(exchanges: impl Iterator<Item = &'a Exchange>) -> Vec<Item> {
    let mut items = Vec::new();
    for Exchange { question, answer, .. } in exchanges {
        let said = match answer {
            Ok(bytes) => format!("{question}: {} bytes", bytes.len()),
            Err(why) => format!("{question}: no answer, {why}"),
        };
        items.push(Item::facts([said]));
        items.extend(answer.as_ref().ok().map(|bytes| Item::Block(dump(bytes))));
    }
    if items.is_empty() {
        items.push(Item::facts(["nothing: all that is known was read from /sys and /proc"]));
    }
    items
}

/// Returns offsets and hexadecimal digits; rows of zeroes are left out.
fn dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut is_gap = false;
    for (number, row) in bytes.chunks(ROW).enumerate() {
        if row.iter().all(|byte| *byte == 0) {
            if !is_gap {
                out.push_str("  ...   zeroes\n");
            }
            is_gap = true;
            continue;
        }
        is_gap = false;
        let digits: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        let letter = |byte: &u8| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' };
        let text: String = row.iter().map(letter).collect();
        out.push_str(&format!("  {:04x}  {:<47}  {text}\n", number * ROW, digits.join(" ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{self, Style};

    #[test]
    fn every_byte_that_says_something_is_printed_with_its_place() {
        let mut bytes = vec![0_u8; 40];
        bytes[0] = 0x12;
        bytes[39] = b'A';
        let exchanges = [
            Exchange { disk: "sda".into(), question: "inquiry".into(), answer: Ok(bytes) },
            Exchange { disk: "sda".into(), question: "ata-identify".into(), answer: Err("EPERM".into()) },
        ];
        let mut page = Page::default();
        page.add("", answers(exchanges.iter()));
        let text = terminal::page(&page, Style::PLAIN);
        assert!(text.contains("inquiry: 40 bytes\n    0000  12 00"), "{text}");
        assert!(text.contains("    ...   zeroes\n    0020  00 00 00 00 00 00 00 41"), "{text}");
        assert!(text.contains("ata-identify: no answer, EPERM"), "{text}");
    }
}
