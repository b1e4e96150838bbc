//! Report of the program of a RAID controller's maker on the caches that a disk hides.

use plumb_policy::device::raid_tool::{RaidReport, Volume, WritePolicy};
use plumb_policy::raid::Controller;
use plumb_report::Style;

use super::layout::{Ink, hang};

/// Returns true if a power cut can take what a volume has acknowledged, as far as the controller says.
pub(in super::super) fn is_at_risk(report: &RaidReport, volume: &Volume) -> bool {
    match volume.write_policy {
        WritePolicy::AlwaysWriteBack => !report.backups.iter().any(|backup| backup.good),
        // A controller that is honest falls back to write-through by itself.
        WritePolicy::WriteBack | WritePolicy::WriteThrough | WritePolicy::Unknown => false,
    }
}

/// The controllers of this machine, and what to ask about what they hide.
pub(in super::super) fn hidden(controllers: &[Controller], style: Style) -> String {
    let mut out = String::new();
    for controller in controllers {
        let lead = format!("{} ({})", controller.host, controller.driver);
        out.push('\n');
        out.push_str(&hang(
            "",
            &format!("RAID controller {lead}: the disks in its volumes, and their caches, are hidden."),
            style,
        ));
        out.push_str(&hang("  > ", &controller.ask, style));
    }
    out
}

/// The volumes and what backs the controller's memory.
pub(in super::super) fn of(report: &RaidReport, style: Style) -> String {
    let mut out = format!("\n{}\n", style.ink(Ink::Bold, "RAID controller, by its own program"));
    for volume in &report.volumes {
        let policy = match volume.write_policy {
            WritePolicy::WriteThrough => "acknowledged when on the disks",
            WritePolicy::WriteBack => "acknowledged in its memory while the battery or capacitor is good",
            WritePolicy::AlwaysWriteBack => "acknowledged in its memory even without a battery",
            WritePolicy::Unknown => "how it caches writes is not said",
        };
        let disks = volume.disk_cache.as_deref().unwrap_or("not said");
        let text = format!("{}: writes are {policy}; caches of its disks: {disks}", volume.level);
        out.push_str(&hang(&format!("  {}  ", volume.name), &text, style));
        if is_at_risk(report, volume) {
            let text = "what this volume acknowledges is lost at a power cut: nothing good backs the memory";
            out.push_str(&style.ink(Ink::Red, &hang("      danger  ", text, style)));
        }
    }
    for backup in &report.backups {
        let good = if backup.good { "good" } else { "NOT good" };
        out.push_str(&hang("  backup  ", &format!("{}: {} ({good})", backup.model, backup.state), style));
    }
    out
}
