//! A plan for people: what, in which order, how, and why not.
//!
//! Disks that are changed by the same steps share one list of them: a thousand disks of one kind are a table
//! and a few lines. With the bytes every disk has a list of its own, for bytes name disks.

use plumb_policy::plan::{Plan, PlannedChange, PlannedStep};
use plumb_policy::select::roles_of;
use plumb_policy::state::Found;
use plumb_report::Style;
use plumb_report::terminal::{Cell, Table};

use super::layout::{Ink, cell, hang, table};
use crate::terminal::counted;

/// The columns. Where a terminal is narrow the last are left out first, down to so many.
const HEAD: [&str; 8] = ["wave", "disk", "change", "how", "used for", "identity", "model", "port"];
const COLUMNS_MIN: usize = 5;

/// The plan; with the bytes of each step if asked.
pub(in super::super) fn of(plan: &Plan, style: Style, with_bytes: bool) -> String {
    let title = format!("plan `{}`", plan.asked);
    let (there, refusals) = (plan.unchanged.len(), plan.refused.len());
    let extent = format!("{title}: {}, {there} as asked for already, {refusals} refused", extent(plan));
    let mut out = hang("", &extent, style).replacen(&title, &style.ink(Ink::Bold, &title), 1);
    out.push_str(&style.ink(Ink::Dim, hang("", &plan.hash, style).trim_end()));
    out.push('\n');
    if plan.changes.is_empty() && plan.unchanged.is_empty() && plan.refused.is_empty() {
        out.push_str("No disk is chosen.\n");
    }
    if !plan.changes.is_empty() {
        out.push_str(&changes(plan, style, with_bytes));
    }
    if !plan.unchanged.is_empty() {
        let names = plan.unchanged.iter().map(|disk| format!("{} ({})", disk.name, disk.state.word()));
        let names = names.collect::<Vec<_>>().join(", ");
        out.push('\n');
        out.push_str(&hang("as asked for already: ", &names, style));
    }
    out.push_str(&refused(plan, style));
    style.finish(out)
}

fn extent(plan: &Plan) -> String {
    match plan.changes.len() as u64 {
        0 => "nothing to change".to_owned(),
        disks => format!("{} to change in {}", counted(disks, "disk"), counted(plan.waves() as u64, "wave")),
    }
}

/// Disks that are changed in the same list.
struct StepList<'a> {
    letter: String,
    steps: Vec<String>,
    changes: Vec<&'a PlannedChange>,
}

fn changes(plan: &Plan, style: Style, with_bytes: bool) -> String {
    let lists = lists(&plan.changes, with_bytes);
    let letter = |change: &PlannedChange| {
        let list = lists.iter().find(|list| list.changes.iter().any(|one| std::ptr::eq(*one, change)));
        list.map_or("", |list| list.letter.as_str())
    };
    let rows: Vec<Vec<Cell>> = plan.changes.iter().map(|change| row(change, letter(change))).collect();
    let mut out = String::new();
    if plan.changes.len() > 1 {
        let order = "In this order: a wave begins when every disk of the one before it was read back and is as it should be; \
                     the first that is not stops everything.";
        out.push('\n');
        out.push_str(&hang("", order, style));
    }
    out.push('\n');
    out.push_str(&fitting(&rows, style).show(style));
    for change in &plan.changes {
        out.push_str(&beside(change, style));
    }
    for list in &lists {
        out.push_str(&steps(list, style));
    }
    out
}

/// The table with as many columns as fit.
fn fitting(rows: &[Vec<Cell>], style: Style) -> Table {
    let mut columns = HEAD.len();
    loop {
        let table = table(&HEAD[..columns], rows.to_vec());
        if columns == COLUMNS_MIN || table.width() <= style.width.max(Style::WIDTH_MIN) {
            return table;
        }
        columns -= 1;
    }
}

fn row(change: &PlannedChange, letter: &str) -> Vec<Cell> {
    let from = match change.from {
        Found::Unknown => "unknown",
        found => found.word(),
    };
    let saved = match change.saved {
        Some(true) => ", saved on",
        Some(false) => ", saved off",
        None => "",
    };
    let others = change.shares_cache_with.iter().flat_map(|disk| &disk.holders);
    let holders: Vec<_> = change.holders.iter().chain(others).cloned().collect();
    let roles: Vec<&str> = roles_of(&holders).into_iter().map(plumb_policy::select::Role::word).collect();
    let wave = if change.canary { format!("{} canary", change.wave) } else { change.wave.to_string() };
    vec![
        cell(if change.canary { Ink::Bold } else { Ink::Plain }, &wave),
        cell(Ink::Bold, &change.name),
        cell(Ink::Plain, &format!("{from} → {}{saved}", change.to)),
        cell(Ink::Plain, letter),
        cell(Ink::Plain, &roles.join(", ")),
        cell(Ink::Plain, &change.identity),
        cell(Ink::Plain, change.model.as_deref().unwrap_or_default().trim()),
        cell(Ink::Plain, &change.port),
    ]
}

/// Describes what a change rests on, and what changes with it.
fn beside(change: &PlannedChange, style: Style) -> String {
    let mut out = String::new();
    for disk in &change.shares_cache_with {
        let on: Vec<&str> = disk.holders.iter().map(|holder| holder.name.as_str()).collect();
        let on =
            if on.is_empty() { "nothing is on it".to_owned() } else { format!("on it: {}", on.join(", ")) };
        let text = format!("{} changes with it, for both have one write cache ({on})", disk.name);
        out.push_str(&hang(&format!("  {}: ", change.name), &text, style));
    }
    if let Some(protection) = &change.protection {
        out.push_str(&hang(&format!("  {} because: ", change.name), &protection.claim, style));
    }
    out
}

fn lists(changes: &[PlannedChange], with_bytes: bool) -> Vec<StepList<'_>> {
    let mut lists: Vec<StepList<'_>> = Vec::new();
    for change in changes {
        let said = |step: &PlannedStep| match with_bytes {
            true => std::iter::once(&sentence(change, step))
                .chain(&step.bytes)
                .cloned()
                .collect::<Vec<_>>()
                .join("\n"),
            false => sentence(change, step),
        };
        let steps: Vec<String> = change.steps.iter().map(said).collect();
        match lists.iter_mut().find(|list| !with_bytes && list.steps == steps) {
            Some(list) => list.changes.push(change),
            None => lists.push(StepList { letter: letter(lists.len()), steps, changes: vec![change] }),
        }
    }
    lists
}

/// `A` to `Z`, then `A1` to `Z1`.
fn letter(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

/// A step in words that hold for every disk that has it.
fn sentence(change: &PlannedChange, step: &PlannedStep) -> String {
    let on = if step.on == change.name { String::new() } else { format!("{}: ", step.on) };
    let waits = step.waits_for.as_deref().map_or_else(String::new, |says| format!(", once {}", short(says)));
    let left_out =
        step.left_out_if.as_deref().map_or_else(String::new, |says| format!(" (not if {})", short(says)));
    format!("{on}{}{waits}{left_out}", step.words)
}

/// `queue/write_cache says write back`, without the directory.
fn short(condition: &str) -> String {
    let Some((path, says)) = condition.split_once(" says ") else { return condition.to_owned() };
    let file = path.rsplit('/').next().unwrap_or(path);
    let parent = if file == "write_cache" { "queue/" } else { "" };
    format!("{parent}{file} says `{says}`")
}

fn steps(list: &StepList<'_>, style: Style) -> String {
    let names: Vec<&str> = list.changes.iter().map(|change| change.name.as_str()).collect();
    let names = match names.as_slice() {
        [first, second, third, rest @ ..] if rest.len() > 3 => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        names => names.join(", "),
    };
    let mut out = format!("\n{}  {names}\n", style.ink(Ink::Bold, &list.letter));
    for (number, step) in list.steps.iter().enumerate() {
        for (index, line) in step.lines().enumerate() {
            let lead = if index == 0 { format!("  {:>2}. ", number + 1) } else { " ".repeat(8) };
            out.push_str(&hang(&lead, line, style));
        }
    }
    out
}

/// Lists what is refused, each with the reason and what to do.
pub(in super::super) fn refused(plan: &Plan, style: Style) -> String {
    let mut out = String::new();
    for disk in &plan.refused {
        out.push('\n');
        out.push_str(&hang("refused  ", &format!("{}: {}", disk.name, disk.reason), style).replacen(
            "refused",
            &style.ink(Ink::Yellow, "refused"),
            1,
        ));
        out.push_str(&hang("       > ", &disk.remedy, style));
    }
    out
}
