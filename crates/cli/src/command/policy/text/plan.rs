//! A plan for people: what, in which order, and why not.

use plumb_policy::plan::{Plan, PlannedChange};
use plumb_policy::state::Found;
use plumb_report::Style;

use super::layout::{Ink, hang, ink};
use super::words;

/// The plan; with the bytes of each step if asked.
pub(in super::super) fn of(plan: &Plan, style: Style, with_bytes: bool) -> String {
    let mut out = format!(
        "{}: {}, {} as asked for already, {} refused\n{}\n",
        ink(style, Ink::Bold, &format!("plan `{}`", plan.asked)),
        extent(plan),
        plan.unchanged.len(),
        plan.refused.len(),
        ink(style, Ink::Dim, &plan.hash),
    );
    if plan.changes.is_empty() && plan.unchanged.is_empty() && plan.refused.is_empty() {
        out.push_str("No disk is chosen.\n");
    }
    let mut wave = None;
    for change in &plan.changes {
        if wave != Some(change.wave) {
            wave = Some(change.wave);
            let canary = if change.canary { ": the canary, alone" } else { "" };
            out.push_str(&format!("\nwave {}{canary}\n", change.wave));
        }
        out.push_str(&one(change, style, with_bytes));
    }
    if !plan.unchanged.is_empty() {
        let names = plan.unchanged.iter().map(|disk| format!("{} ({})", disk.name, words::state(disk.state)));
        let names = names.collect::<Vec<_>>().join(", ");
        out.push('\n');
        out.push_str(&hang("stay: ", &names, style));
    }
    out.push_str(&refused(plan, style));
    out
}

fn extent(plan: &Plan) -> String {
    let waves = if plan.waves() == 1 { "1 wave".to_owned() } else { format!("{} waves", plan.waves()) };
    match plan.changes.len() {
        0 => "nothing to change".to_owned(),
        1 => format!("1 disk to change in {waves}"),
        count => format!("{count} disks to change in {waves}"),
    }
}

fn one(change: &PlannedChange, style: Style, with_bytes: bool) -> String {
    let saved = match change.saved {
        Some(true) => ", saved as on",
        Some(false) => ", saved as off",
        None => "",
    };
    let model = change.model.as_deref().unwrap_or("no model").trim();
    let from = match change.from {
        Found::Unknown => "unknown",
        found => words::state(found),
    };
    let text = format!("{from} -> {}{saved}; {model}, {}, {}", change.to, change.identity, change.port);
    let mut out = hang(&format!("  {}  ", change.name), &text, style);
    if let Some(protection) = &change.protection {
        out.push_str(&hang("      because: ", &protection.claim, style));
    }
    for (number, step) in change.steps.iter().enumerate() {
        let on = if step.on == change.name { String::new() } else { format!("{}: ", step.on) };
        out.push_str(&hang(&format!("    {:>2}. ", number + 1), &format!("{on}{}", step.words), style));
        for line in step.bytes.iter().filter(|_| with_bytes) {
            out.push_str(&hang("        ", line, style));
        }
    }
    out
}

/// What is refused, each with the reason and what to do.
pub(in super::super) fn refused(plan: &Plan, style: Style) -> String {
    let mut out = String::new();
    for disk in &plan.refused {
        out.push('\n');
        out.push_str(&hang("refused  ", &format!("{}: {}", disk.name, disk.reason), style).replacen(
            "refused",
            &ink(style, Ink::Yellow, "refused"),
            1,
        ));
        out.push_str(&hang("       > ", &disk.remedy, style));
    }
    out
}
