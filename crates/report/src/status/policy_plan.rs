//! Plan for people: changes, order, steps and refusals.
//!
//! Disks that are changed by the same steps share one list of them: a thousand disks of one kind are a table
//! and a few lines. With the bytes of the steps every disk has its own list, since the bytes name the disk.

use plumb_policy::plan::{Plan, PlannedChange, PlannedStep};
use plumb_policy::select::{Role, roles_of};
use plumb_policy::state::FoundState;
use plumb_text::printable;

use super::Sections;
use crate::document::policy::ShownPlan;
use crate::outline::{Item, Page, Row};
use crate::quantity::counted;
use crate::terminal::{Cell, Ink, Table};

const ORDER: &str = "The waves are applied in this order. A wave begins when every disk of the one before was read back and is as planned; the \
                     first disk that is not stops the rest.";

/// Number of columns shown on any terminal. Of the others the last are left out first.
const COLUMNS_MIN: usize = 5;

impl Sections for ShownPlan<'_> {
    const TITLE: &'static str = "plumb policy plan";

    fn add_to(&self, page: &mut Page) {
        let plan = self.plan;
        let (there, refusals) = (plan.unchanged.len(), plan.refused.len());
        let extent = format!(
            "plan `{}`: {}, {there} already as requested, {refusals} refused",
            plan.asked,
            extent(plan)
        );
        let mut head = vec![Item::text(&extent), Item::Text(Cell::inked(Ink::Dim, printable(&plan.hash)))];
        if plan.changes.is_empty() && plan.unchanged.is_empty() && plan.refused.is_empty() {
            head.push(Item::text("No disk is chosen."));
        }
        page.add("", head);
        add_changes(page, plan, self.with_bytes);
        if !plan.unchanged.is_empty() {
            let names = plan.unchanged.iter().map(|disk| format!("{} ({})", disk.name, disk.state.word()));
            let names = names.collect::<Vec<_>>().join(", ");
            page.add("", vec![Item::text(&format!("already as requested: {names}"))]);
        }
        page.add("", refused(plan));
        if !self.end.is_empty() {
            page.add("", vec![Item::text(&self.end)]);
        }
    }
}

fn extent(plan: &Plan) -> String {
    match plan.changes.len() as u64 {
        0 => "nothing to change".to_owned(),
        disks => format!("{} to change in {}", counted(disks, "disk"), counted(plan.waves() as u64, "wave")),
    }
}

/// Disks that share a list of steps.
struct StepList<'a> {
    letter: String,
    steps: Vec<String>,
    changes: Vec<&'a PlannedChange>,
}

fn add_changes(page: &mut Page, plan: &Plan, with_bytes: bool) {
    if plan.changes.is_empty() {
        return;
    }
    let lists = lists(&plan.changes, with_bytes);
    let letter = |change: &PlannedChange| {
        let list = lists.iter().find(|list| list.changes.iter().any(|one| std::ptr::eq(*one, change)));
        list.map_or("", |list| list.letter.as_str())
    };
    if plan.changes.len() > 1 {
        page.add("", vec![Item::text(ORDER)]);
    }
    let wave = |change: &PlannedChange| match change.canary {
        true => Cell::inked(Ink::Bold, format!("{} canary", change.wave)),
        false => Cell::plain(change.wave.to_string()),
    };
    let table = Table::for_rows(&plan.changes)
        .left("wave", |change| wave(change))
        .left("disk", |change| Cell::inked(Ink::Bold, printable(&change.name)))
        .left("change", |change| switch(change))
        .left("how", |change| letter(change))
        .left("used for", |change| used_for(change))
        .left("identity", |change| printable(&change.identity))
        .left("model", |change| printable(change.model.as_deref().unwrap_or_default().trim()))
        .left("port", |change| printable(&change.port))
        .table()
        .without_empty_columns();
    let mut items = vec![Item::Fitting { table, columns_min: COLUMNS_MIN }];
    items.extend(plan.changes.iter().map(|change| Item::Rows(beside(change))));
    page.add("", items);
    for StepList { letter, steps, changes } in lists {
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        let names = match names.as_slice() {
            [first, second, third, rest @ ..] if rest.len() > 3 => {
                format!("{first}, {second}, {third} and {} more", rest.len())
            }
            names => names.join(", "),
        };
        page.add(format!("{letter}  {}", printable(&names)), vec![Item::Rows(numbered(&steps))]);
    }
}

/// Returns `off → on, saved on`.
fn switch(change: &PlannedChange) -> String {
    let from = match change.from {
        FoundState::Unknown => "unknown",
        found => found.word(),
    };
    let saved = match change.saved {
        Some(true) => ", saved on",
        Some(false) => ", saved off",
        None => "",
    };
    format!("{from} → {}{saved}", change.to)
}

fn used_for(change: &PlannedChange) -> String {
    let others = change.shares_cache_with.iter().flat_map(|disk| &disk.holders);
    let holders: Vec<_> = change.holders.iter().chain(others).cloned().collect();
    let roles: Vec<&str> = roles_of(&holders).into_iter().map(Role::word).collect();
    roles.join(", ")
}

/// Describes the basis of a change, and its side effects.
fn beside(change: &PlannedChange) -> Vec<Row> {
    let shared = change.shares_cache_with.iter().map(|disk| {
        let on: Vec<&str> = disk.holders.iter().map(|holder| holder.name.as_str()).collect();
        let on =
            if on.is_empty() { "nothing is on it".to_owned() } else { format!("on it: {}", on.join(", ")) };
        let text = format!("{} changes with it, because both share one write cache ({on})", disk.name);
        Row::new("", &format!("{}: {text}", change.name))
    });
    let because = change.protection.iter();
    let because =
        because.map(|protection| Row::new("", &format!("{} because: {}", change.name, protection.claim)));
    shared.chain(because).collect()
}

fn lists(changes: &[PlannedChange], with_bytes: bool) -> Vec<StepList<'_>> {
    let mut lists: Vec<StepList<'_>> = Vec::new();
    for change in changes {
        let said = |step: &PlannedStep| match with_bytes {
            true => {
                let all: Vec<String> =
                    std::iter::once(sentence(change, step)).chain(step.bytes.clone()).collect();
                all.join("\n")
            }
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

/// Returns `A` to `Z`, then `A1` to `Z1`.
fn letter(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

/// Describes a step in words that apply to every disk with it.
fn sentence(change: &PlannedChange, step: &PlannedStep) -> String {
    let on = if step.on == change.name { String::new() } else { format!("{}: ", step.on) };
    let waits = step.waits_for.as_deref().map_or_else(String::new, |says| format!(", once {}", short(says)));
    let left_out =
        step.left_out_if.as_deref().map_or_else(String::new, |says| format!(" (not if {})", short(says)));
    format!("{on}{}{waits}{left_out}", step.words)
}

/// Returns `queue/write_cache says write back`, without the directory.
fn short(condition: &str) -> String {
    let Some((path, says)) = condition.split_once(" says ") else { return condition.to_owned() };
    let file = path.rsplit('/').next().unwrap_or(path);
    let parent = if file == "write_cache" { "queue/" } else { "" };
    format!("{parent}{file} says `{says}`")
}

/// Returns the numbered steps, with the further lines of each below it.
fn numbered(steps: &[String]) -> Vec<Row> {
    let lines = steps.iter().enumerate().flat_map(|(number, step)| {
        step.lines().enumerate().map(move |(index, line)| {
            let lead = if index == 0 { format!("{:>2}.", number + 1) } else { String::new() };
            Row::new(&lead, line)
        })
    });
    lines.collect()
}

/// Lists the refusals, each with the reason and the remedy.
pub(super) fn refused(plan: &Plan) -> Vec<Item> {
    let refused = plan.refused.iter().flat_map(|disk| {
        let reason = format!("{}: {}", disk.name, disk.reason);
        [Item::Rows(vec![Row::inked(Ink::Yellow, "refused", &reason)]), Item::Remedy(printable(&disk.remedy))]
    });
    refused.collect()
}
