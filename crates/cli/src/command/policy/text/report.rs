//! Outcome of an apply or a rollback, findings of a verification, and latency that a load felt.

use plumb_block::Nanos;
use plumb_policy::apply::{DiskResult, Ended, Report};
use plumb_policy::observe::Observation;
use plumb_policy::verify::Verification;
use plumb_report::Style;

use super::layout::{Ink, hang};

/// Describes what became of each disk, where it is written down, and what to do now.
pub(in super::super) fn of(report: &Report, style: Style) -> String {
    let mut out = String::new();
    for disk in &report.disks {
        let (colour, word, text) = match &disk.result {
            DiskResult::Verified => (Ink::Green, "verified", disk.identity.clone()),
            DiskResult::Mismatch { found } => (Ink::Red, "MISMATCH", found.clone()),
            DiskResult::Failed { error } => (Ink::Red, "FAILED", error.clone()),
            DiskResult::Refused { reason, remedy } => (Ink::Yellow, "refused", format!("{reason}; {remedy}")),
            DiskResult::Interrupted => (Ink::Yellow, "interrupted", "between two of its steps".to_owned()),
            DiskResult::Untouched => (Ink::Dim, "untouched", disk.identity.clone()),
        };
        let line = hang(&format!("{:<10}  {word:<11}  ", disk.name), &text, style);
        out.push_str(&line.replacen(word, &style.ink(colour, word), 1));
    }
    let ended = match report.ended {
        Ended::Complete => "All disks were read back and are as they should be.",
        Ended::Interrupted => "Interrupted between two steps: what was begun is written down.",
        Ended::Refused => "A disk must not be changed any more: the others behind it were not touched.",
        Ended::Failed => "A disk is not as it should be: the others behind it were not touched.",
    };
    out.push_str(&format!("{ended}\njournal: {}\n", report.journal.display()));
    if let Some(go_on) = &report.go_on {
        out.push_str(&hang("> ", go_on, style));
    }
    out
}

/// How disks differ from a plan.
pub(in super::super) fn verification(verification: &Verification, style: Style) -> String {
    let mut out = String::new();
    for disk in &verification.disks {
        let name = disk.name_now.as_deref().unwrap_or(&disk.name);
        if disk.drift.is_empty() {
            let asked = disk.asked.to_string();
            out.push_str(&format!("{name:<10}  {}  as planned: {asked}\n", style.ink(Ink::Green, "ok   ")));
        }
        for line in &disk.drift {
            let text = hang(&format!("{name:<10}  DRIFT  "), line, style);
            out.push_str(&text.replacen("DRIFT", &style.ink(Ink::Red, "DRIFT"), 1));
        }
    }
    if verification.disks.is_empty() {
        out.push_str("The plan changes no disk: there is nothing to verify.\n");
    } else if verification.has_drift() {
        out.push_str(
            "> `plumb policy plan` plans the state anew, `plumb policy watch` says when it drifts\n",
        );
    }
    out
}

/// Describes what the light load felt while disks were switched.
pub(in super::super) fn observation(observation: &Observation, style: Style) -> String {
    let time = |seconds: f64| Nanos((seconds * 1e9) as u64).to_string();
    let mut out =
        format!("\n{}\n", style.ink(Ink::Bold, "Under a light load (4 KiB and fdatasync, every 10 ms)"));
    for switch in &observation.switches {
        let stall = switch.longest_stall.map_or_else(
            || "no operation was under way: nothing is known".to_owned(),
            |stall| format!("longest stall {}, {} operations", time(stall), switch.operations),
        );
        let text = format!("switched in {}: {stall}, {} errors", time(switch.duration), switch.errors.len());
        out.push_str(&hang(&format!("  {:<10}  ", switch.disk), &text, style));
        for error in &switch.errors {
            out.push_str(&hang("              ", error, style));
        }
    }
    let quiet = &observation.undisturbed;
    let known = match (quiet.median, quiet.max) {
        (Some(median), Some(max)) => format!("median {}, longest {}", time(median), time(max)),
        _ => "nothing is known".to_owned(),
    };
    let text = format!("{known}, {} operations, {} errors", quiet.operations, quiet.errors);
    out.push_str(&hang("  undisturbed ", &text, style));
    out
}
