//! Description of the minimal case of a failure: the commands that the cut dropped and tore, their purpose,
//! and the events around it.

use std::collections::{BTreeMap, BTreeSet};

use plumb_block::{Bytes, Op};
use plumb_linux::isolated_thread;
use plumb_report::document::proof::{CommandRole, Fate, Lane, MinimalCase, TimelineItem};

use super::request::Request;
use crate::explore::{Choice, Image};
use crate::recording::{Command, CommandId, Event, Recording};
use crate::roles::Roles;
use crate::session::RecordedWork;

/// Maximum number of items of the timeline before the cut.
const ITEMS_MAX: usize = 80;

/// Returns the time of an event in seconds; for the end, the time of the last event.
pub(super) fn time_of(recording: &Recording, event: usize) -> f64 {
    let happened = recording.events.get(event).or(recording.events.last());
    happened.map_or(0.0, |(at, _)| at.as_secs_f64())
}

/// Returns the number of the last acknowledgement before a cut at `event`.
pub(super) fn required_at(recording: &Recording, event: usize) -> Option<u64> {
    recording.events[..event.min(recording.events.len())].iter().rev().find_map(|(_, event)| match event {
        Event::Acknowledged(number) => Some(*number),
        _ => None,
    })
}

/// Returns the event at which the last of the lost commands was submitted. No earlier cut can take all of
/// them.
pub(super) fn submitted(recording: &Recording, choice: &Choice) -> usize {
    let is_last = |event: &Event| matches!(event, Event::Submitted(id) if choice.lost.contains_key(id));
    recording.events.iter().rposition(|(_, event)| is_last(event)).unwrap_or(choice.event)
}

impl From<&MinimalCase> for Choice {
    fn from(case: &MinimalCase) -> Self {
        let lost = case.dropped.iter().chain(&case.torn);
        let lost = lost.map(|role| (CommandId(role.command as u32), role.lost.clone()));
        Self { event: case.event as usize, lost: lost.collect() }
    }
}

/// Describes a choice.
pub(super) fn minimal_case(request: &Request<'_>, choice: &Choice) -> MinimalCase {
    let (recording, explorer) = (&*request.judge.recorded.recording, request.judge.explorer());
    let durable = explorer.show(choice, &mut |state| state.durable().clone()).unwrap_or_default();
    let case =
        Case { recorded: request.judge.recorded, recording, choice, roles: roles_at(request, choice.event) };
    let mut minimal = MinimalCase {
        at: time_of(recording, choice.event),
        event: choice.event as u64,
        ..MinimalCase::default()
    };
    let at_risk = explorer.at_risk(choice.event).into_iter();
    let mut fates: BTreeMap<CommandId, Fate> = at_risk.map(|id| (id, Fate::Survived)).collect();
    for (id, lost) in &choice.lost {
        let survives = surviving(&recording.commands[id.0 as usize], lost, &durable);
        let survives = Some(survives * recording.logical_block.0).filter(|bytes| *bytes > 0);
        let flush_came_early = case.flush_came_early(*id);
        let role = CommandRole { lost: lost.clone(), survives, flush_came_early, ..case.role(*id) };
        let (fate, list) = match survives {
            None => (Fate::Dropped, &mut minimal.dropped),
            Some(_) => (Fate::Torn, &mut minimal.torn),
        };
        fates.insert(*id, fate);
        list.push(role);
    }
    minimal.timeline = case.timeline(&fates);
    minimal
}

/// Returns the number of blocks of a command that survive and change the contents.
fn surviving(command: &Command, lost: &[u64], durable: &Image) -> u64 {
    let lost: BTreeSet<u64> = lost.iter().copied().collect();
    let changes = |lba: &u64| !lost.contains(lba) && durable.content(*lba) != command.content(*lba);
    if command.contents.is_empty() {
        // The range may be as long as the device, so only blocks that are not zeroes are visited.
        return durable.blocks_in(command.range).map(|(lba, _)| lba).filter(changes).count() as u64;
    }
    (command.range.lba.0..command.range.end().0).filter(changes).count() as u64
}

/// Returns the roles of the blocks in the state without losses; empty if they cannot be queried.
fn roles_at(request: &Request<'_>, event: usize) -> Vec<Roles> {
    let judge = &request.judge;
    if let Some(layout) = &judge.recorded.layout {
        return vec![Roles::of_layout(layout, &judge.recorded.recording, event)];
    }
    let Ok(held) = judge.hold(&Choice { event, lost: BTreeMap::new() }) else { return Vec::new() };
    let roles = isolated_thread::run(|| held.roles()).unwrap_or_default();
    // The state is removed in any case, and no data in it matters.
    held.release().unwrap_or_default();
    roles
}

/// Choice, with the roles of the blocks that its commands wrote.
struct Case<'a> {
    recorded: &'a RecordedWork,
    recording: &'a Recording,
    choice: &'a Choice,
    /// Roles of the blocks of each drive, where known.
    roles: Vec<Roles>,
}

impl Case<'_> {
    fn role(&self, id: CommandId) -> CommandRole {
        let command = &self.recording.commands[id.0 as usize];
        let block = self.recording.logical_block.0;
        let drive = self.recording.drive_of(command.range.lba.0);
        let options = &self.recorded.file_system_options;
        let further = drive.checked_sub(1).and_then(|further| options.further.get(further));
        let begins = further.map_or(0, |_| self.recording.further_drives[drive - 1]);
        let offset = (command.range.lba.0 - begins) * block;
        let (file, role) = match self.roles.get(drive) {
            Some(roles) => roles.role(offset),
            None if self.recorded.cache.is_some() && drive > 0 => (None, Some("log of the cache")),
            None => (None, None),
        };
        let file = file.map(|file| further.map_or(file.to_owned(), |drive| drive.directory.join(file)));
        // Names and sizes belong to no drive.
        let is_name_or_size = self.recorded.layout.is_some() && role != Some("data");
        let op = match command.op {
            Op::Discard => "discard",
            Op::WriteZeroes { .. } => "write-zeroes",
            _ => "write",
        };
        CommandRole {
            command: u64::from(id.0),
            op: op.to_owned(),
            offset,
            length: if is_name_or_size { 0 } else { command.range.nlb * block },
            file: file.map(|file| file.display().to_string()),
            role: role.map(str::to_owned),
            caused_by: self.cause(id),
            ..CommandRole::default()
        }
    }

    /// Returns true if the last flush that completed before the cut was submitted while the command was in
    /// flight. Such a flush does not cover the command (NVM Express Base Specification, "Flush command").
    fn flush_came_early(&self, id: CommandId) -> bool {
        let events = &self.recording.events[..self.choice.event.min(self.recording.events.len())];
        let place = |wanted: &Event| events.iter().position(|(_, event)| event == wanted);
        let is_flush = |id: &CommandId| self.recording.commands[id.0 as usize].op == Op::Flush;
        let last = events.iter().rev().find_map(|(_, event)| match event {
            Event::Completed(id) if is_flush(id) => place(&Event::Submitted(*id)),
            _ => None,
        });
        let Some(flush) = last else { return false };
        place(&Event::Submitted(id)).is_some_and(|sent| sent < flush)
            && place(&Event::Completed(id)).is_none_or(|done| flush < done)
    }

    /// Returns the system call that caused the command: the last one to begin of those in progress when it
    /// was submitted.
    fn cause(&self, id: CommandId) -> Option<String> {
        let mut events = self.recording.events.iter();
        let (at, _) = events.find(|(_, event)| *event == Event::Submitted(id))?;
        let at = at.as_secs_f64();
        let is_during = |call: &&TimelineItem| call.from <= at && call.until.is_none_or(|until| at <= until);
        let calls = self.recorded.calls.iter().filter(is_during);
        calls.max_by(|one, other| one.from.total_cmp(&other.from)).map(|call| call.label.clone())
    }

    /// Returns the events from the acknowledgement before the required one, or from before the first lost
    /// command, until the cut.
    fn timeline(&self, fates: &BTreeMap<CommandId, Fate>) -> Vec<TimelineItem> {
        let events = &self.recording.events;
        let until = self.choice.event.min(events.len());
        let is_lost =
            |event: &Event| matches!(event, Event::Submitted(id) if self.choice.lost.contains_key(id));
        let is_acknowledged = |event: &Event| matches!(event, Event::Acknowledged(_));
        let last = |before: usize| events[..before].iter().rposition(|(_, event)| is_acknowledged(event));
        let lost = events[..until].iter().position(|(_, event)| is_lost(event)).unwrap_or(until);
        let promised = last(until).unwrap_or(until).min(lost);
        let begin = last(promised).unwrap_or(self.recorded.from).max(until.saturating_sub(2 * ITEMS_MAX));
        let mut items: Vec<TimelineItem> = Vec::new();
        let mut places: BTreeMap<CommandId, usize> = BTreeMap::new();
        for (at, event) in &events[begin..until] {
            let from = at.as_secs_f64();
            match event {
                Event::Acknowledged(number) => items.push(TimelineItem {
                    lane: Lane::Acknowledgement,
                    from,
                    until: Some(from),
                    label: format!("acknowledged {number}"),
                    fate: None,
                }),
                // The leader of a group represents all of it.
                Event::Submitted(id) if self.recording.leader(*id) == *id => {
                    places.insert(*id, items.len());
                    items.push(TimelineItem { from, ..self.command(*id, fates) });
                }
                Event::Completed(id) | Event::Failed(id) => {
                    if let Some(place) = places.get(id) {
                        items[*place].until = Some(from);
                    }
                }
                Event::Submitted(_) | Event::Persisted(_) | Event::Marked(_) => {}
            }
        }
        // The call that caused the first command began before it.
        let begin = time_of(self.recording, begin.saturating_sub(1));
        let end = time_of(self.recording, until);
        let calls = self.recorded.calls.iter();
        items.extend(calls.filter(|call| (begin..=end).contains(&call.from)).cloned());
        items.sort_by(|one, other| one.from.total_cmp(&other.from));
        items.drain(..items.len().saturating_sub(ITEMS_MAX));
        items
    }

    fn command(&self, id: CommandId, fates: &BTreeMap<CommandId, Fate>) -> TimelineItem {
        let command = &self.recording.commands[id.0 as usize];
        if command.op == Op::Flush {
            return TimelineItem { lane: Lane::Flush, label: "flush".to_owned(), ..TimelineItem::default() };
        }
        let role = self.role(id);
        let what = match (role.file, role.role) {
            (Some(file), Some(role)) => format!("{file} ({role})"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => format!("{} at {}", role.op, Bytes(role.offset)),
        };
        TimelineItem {
            lane: if command.contents.is_empty() { Lane::Discard } else { Lane::Write },
            label: if role.length == 0 { what } else { format!("{what}, {}", Bytes(role.length)) },
            fate: Some(fates.get(&id).copied().unwrap_or(Fate::Durable)),
            ..TimelineItem::default()
        }
    }
}
