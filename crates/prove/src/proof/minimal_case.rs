//! The minimal case of a failure in words: which commands the cut dropped and tore, what they were for, and what happened
//! around it.

use std::collections::{BTreeMap, BTreeSet};

use plumb_block::{Bytes, Op};
use plumb_linux::apart;
use plumb_report::document::proof::{CommandRole, Fate, Lane, MinimalCase, TimelineItem};

use super::Prover;
use crate::explore::{Choice, Image};
use crate::recording::{Command, CommandId, Event, Recording};
use crate::roles::Roles;

/// So much of what happened before the cut is drawn.
const ITEMS_MAX: usize = 80;

/// When an event happened, in seconds; the last one's time for the end.
pub(super) fn time_of(recording: &Recording, event: usize) -> f64 {
    let happened = recording.events.get(event).or(recording.events.last());
    happened.map_or(0.0, |(at, _)| at.as_secs_f64())
}

/// The last acknowledgement before a cut at `event`.
pub(super) fn required_at(recording: &Recording, event: usize) -> Option<u64> {
    recording.events[..event.min(recording.events.len())].iter().rev().find_map(|(_, event)| match event {
        Event::Acknowledged(number) => Some(*number),
        _ => None,
    })
}

/// The event at which the last of the lost commands was submitted: no earlier cut can take all of them.
pub(super) fn submitted(recording: &Recording, choice: &Choice) -> usize {
    let is_last = |event: &Event| matches!(event, Event::Submitted(id) if choice.lost.contains_key(id));
    recording.events.iter().rposition(|(_, event)| is_last(event)).unwrap_or(choice.event)
}

/// Says what a choice means.
pub(super) fn minimal_case(prover: &Prover<'_>, choice: &Choice) -> MinimalCase {
    let recording = &*prover.recorded.recording;
    let explorer = prover.explorer();
    let roles = roles_at(prover, choice.event);
    let durable = explorer.show(choice, &mut |state| state.durable().clone()).unwrap_or_default();
    let mut case = MinimalCase {
        at: time_of(recording, choice.event),
        event: choice.event as u64,
        ..MinimalCase::default()
    };
    let mut fates: BTreeMap<CommandId, Fate> =
        explorer.at_risk(choice.event).into_iter().map(|id| (id, Fate::Survived)).collect();
    for (id, lost) in &choice.lost {
        let command = &recording.commands[id.0 as usize];
        let mut role = role_of(recording, *id, command, &roles);
        let survives = surviving(command, lost, &durable) * recording.logical_block.0;
        if survives == 0 {
            fates.insert(*id, Fate::Dropped);
            case.dropped.push(role);
        } else {
            fates.insert(*id, Fate::Torn);
            role.survives = Some(survives);
            case.torn.push(role);
        }
    }
    case.timeline = timeline(recording, choice, &fates, &roles);
    case
}

/// How many blocks of a command survive that change something.
fn surviving(command: &Command, lost: &[u64], durable: &Image) -> u64 {
    let lost: BTreeSet<u64> = lost.iter().copied().collect();
    let changes = |lba: &u64| !lost.contains(lba) && durable.content(*lba) != command.content(*lba);
    if command.contents.is_empty() {
        // It may be as long as the device: only what is not zeroes yet changes.
        return durable.blocks_in(command.range).map(|(lba, _)| lba).filter(changes).count() as u64;
    }
    (command.range.lba.0..command.range.end().0).filter(changes).count() as u64
}

/// What the blocks are for, as the file system has it where nothing is lost. Where it cannot be asked nothing is known.
fn roles_at(prover: &Prover<'_>, event: usize) -> Roles {
    let judge = prover.judge(prover.recorded, prover.profile(), prover.request.stop);
    let Ok(held) = judge.hold(&Choice { event, lost: BTreeMap::new() }) else { return Roles::default() };
    let (path, device, file_system) = (held.path(), held.block_device(), prover.request.file_system);
    let roles = apart::run(|| Roles::of(path, device, file_system)).unwrap_or_default();
    // It is taken away in any case, and nothing that matters was written.
    held.release().unwrap_or_default();
    roles
}

fn role_of(recording: &Recording, id: CommandId, command: &Command, roles: &Roles) -> CommandRole {
    let block = recording.logical_block.0;
    let offset = command.range.lba.0 * block;
    let (file, role) = roles.role(offset);
    let op = match command.op {
        Op::Discard => "discard",
        Op::WriteZeroes { .. } => "write-zeroes",
        _ => "write",
    };
    CommandRole {
        command: u64::from(id.0),
        op: op.to_owned(),
        offset,
        length: command.range.nlb * block,
        file: file.map(|file| file.display().to_string()),
        role: role.map(str::to_owned),
        caused_by: None,
        survives: None,
    }
}

/// What happened from the acknowledgement before the first lost command until the cut.
fn timeline(
    recording: &Recording,
    choice: &Choice,
    fates: &BTreeMap<CommandId, Fate>,
    roles: &Roles,
) -> Vec<TimelineItem> {
    let until = choice.event.min(recording.events.len());
    let is_lost = |event: &Event| matches!(event, Event::Submitted(id) if choice.lost.contains_key(id));
    let first = recording.events[..until].iter().position(|(_, event)| is_lost(event)).unwrap_or(until);
    let is_acknowledged = |event: &Event| matches!(event, Event::Acknowledged(_));
    let begin = recording.events[..first].iter().rposition(|(_, event)| is_acknowledged(event));
    let begin = begin.unwrap_or(first).max(until.saturating_sub(2 * ITEMS_MAX));
    let mut items: Vec<TimelineItem> = Vec::new();
    let mut places: BTreeMap<CommandId, usize> = BTreeMap::new();
    for (at, event) in &recording.events[begin..until] {
        let from = at.as_secs_f64();
        match event {
            Event::Acknowledged(number) => items.push(TimelineItem {
                lane: Lane::Acknowledgement,
                from,
                until: Some(from),
                label: format!("acknowledged {number}"),
                fate: None,
            }),
            Event::Submitted(id) => {
                places.insert(*id, items.len());
                items.push(item(recording, *id, from, fates, roles));
            }
            Event::Completed(id) | Event::Failed(id) => {
                if let Some(place) = places.get(id) {
                    items[*place].until = Some(from);
                }
            }
            Event::Marked(_) => {}
        }
    }
    items.drain(..items.len().saturating_sub(ITEMS_MAX));
    items
}

fn item(
    recording: &Recording,
    id: CommandId,
    from: f64,
    fates: &BTreeMap<CommandId, Fate>,
    roles: &Roles,
) -> TimelineItem {
    let command = &recording.commands[id.0 as usize];
    if command.op == Op::Flush {
        return TimelineItem { lane: Lane::Flush, from, until: None, label: "flush".to_owned(), fate: None };
    }
    let role = role_of(recording, id, command, roles);
    let lane = if command.contents.is_empty() { Lane::Discard } else { Lane::Write };
    let what = match (role.file, role.role) {
        (Some(file), Some(role)) => format!("{file} ({role})"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => format!("{} at {}", role.op, Bytes(role.offset)),
    };
    let fate = fates.get(&id).copied().unwrap_or(Fate::Durable);
    TimelineItem {
        lane,
        from,
        until: None,
        label: format!("{what}, {}", Bytes(role.length)),
        fate: Some(fate),
    }
}
