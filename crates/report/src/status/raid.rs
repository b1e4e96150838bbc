//! Disks behind RAID controllers, and the reports of the vendors' programs about them.

use plumb_policy::device::raid_tool::{RaidReport, Volume, WritePolicy};
use plumb_policy::raid::Controller;
use plumb_text::printable;

use crate::outline::{Item, Page, Row};
use crate::terminal::{Cell, Ink};

/// Adds the report, or without one the controllers with the commands to query them.
pub(super) fn add(page: &mut Page, report: Option<&RaidReport>, controllers: &[Controller]) {
    if let Some(report) = report {
        return page.add("RAID controller, by its own program", reported(report));
    }
    for Controller { host, driver, ask, .. } in controllers {
        let hidden = format!(
            "RAID controller {host} ({driver}): the disks in its volumes, and their caches, are hidden."
        );
        page.add("", vec![Item::text(&hidden), Item::Remedy(printable(ask))]);
    }
}

/// Returns the volumes, and the protection of the controller's memory.
fn reported(report: &RaidReport) -> Vec<Item> {
    let volume = |volume: &Volume| {
        let policy = match volume.write_policy {
            WritePolicy::WriteThrough => "acknowledged when on the disks",
            WritePolicy::WriteBack => "acknowledged in its memory while the battery or capacitor is good",
            WritePolicy::AlwaysWriteBack => "acknowledged in its memory even without a battery",
            WritePolicy::Unknown => "how it caches writes is not said",
        };
        let disks = volume.disk_cache.as_deref().unwrap_or("not said");
        let text = format!("{}: writes are {policy}; caches of its disks: {disks}", volume.level);
        let danger =
            "danger: what this volume acknowledges is lost at a power cut: nothing good backs the memory";
        let danger = report.is_at_risk(volume).then(|| Item::Text(Cell::inked(Ink::Red, danger)));
        std::iter::once(Item::Rows(vec![Row::new(&volume.name, &text)])).chain(danger)
    };
    let mut items: Vec<Item> = report.volumes.iter().flat_map(volume).collect();
    let backups = report.backups.iter().map(|backup| {
        let good = if backup.good { "good" } else { "NOT good" };
        Row::new("backup", &format!("{}: {} ({good})", backup.model, backup.state))
    });
    items.push(Item::Rows(backups.collect()));
    items
}
