//! Smallest set of flushes that leaves no failing state when inserted into the recording.
//!
//! A flush that takes no time is inserted before an acknowledgement, or before any command, but only where
//! something has completed since the previous flush. Then a cut may leave the same states as before, or
//! fewer. So a state that fails with more flushes also fails with fewer, and removing flushes as long as
//! nothing fails ends with a minimal set.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::{Lba, LbaRange, Nanos, Op};
use plumb_report::document::proof::{Change, ChangeKind, Failure};

use super::trial::{LIMITS, LOOK_MAX, trying, verified};
use crate::error::{Error, ErrorKind, Result};
use crate::explore::{Choice, reduce};
use crate::judge::{Judge, JudgeResult};
use crate::proof::Request;
use crate::recording::{Command, CommandId, Event, Recording};
use crate::session::RecordedWork;

/// Returns the smallest set found, verified by exploration; `None` if flushes do not help.
pub(super) fn smallest(request: &Request<'_>, failures: &[Failure]) -> Result<Option<Change>> {
    let RecordedWork { recording, from, until, .. } = request.judge.recorded;
    let end = request.until(LOOK_MAX);
    let failing = failures.iter().map(|failure| (Choice::from(&failure.minimal), Vec::new())).collect();
    let mut search = Search { request, failing, end, error: None };
    let is_acknowledged = |event: &Event| matches!(event, Event::Acknowledged(_));
    let is_either = |event: &Event| matches!(event, Event::Acknowledged(_) | Event::Submitted(_));
    let mut found = None;
    for all in
        [places(recording, *from..*until, &is_acknowledged), places(recording, *from..*until, &is_either)]
    {
        let Some(judged) = search.judged_with(&all) else { continue };
        let mut needed = (all.clone(), judged);
        reduce(all, &mut |some| {
            let fewer: Vec<usize> = needed.0.iter().copied().filter(|place| !some.contains(place)).collect();
            let judged = search.judged_with(&fewer);
            judged.map(|judged| needed = (fewer, judged)).is_some()
        });
        let (places, judged) = needed;
        found =
            Some(verified(ChangeKind::DeviceFlush, description(recording, &places), judged.counts.distinct));
        break;
    }
    search.error.map_or(Ok(found), Err)
}

struct Search<'a> {
    request: &'a Request<'a>,
    /// Failing choices, each with the places of the flushes at that time.
    failing: Vec<(Choice, Vec<usize>)>,
    end: Nanos,
    error: Option<Error>,
}

impl Search<'_> {
    /// Explores with flushes before these events. Returns the result if everything was explored and nothing
    /// fails.
    fn judged_with(&mut self, places: &[usize]) -> Option<JudgeResult> {
        let is_over = self.error.is_some() || self.request.is_over_at(self.end);
        if places.is_empty() || is_over {
            return None;
        }
        let judged = self.explore(places).unwrap_or_else(|error| {
            self.error = Some(error);
            None
        });
        judged.filter(|judged| judged.incomplete_because.is_none() && judged.counts.failing == 0)
    }

    /// Explores with flushes before these events; `None` if a state that is known to fail still does.
    fn explore(&mut self, places: &[usize]) -> Result<Option<JudgeResult>> {
        let changed = with_flushes(self.request.judge.recorded, places);
        let profile = self.request.profile();
        let never = AtomicBool::new(false);
        let judge = Judge { recorded: &changed, results: None, stop: &never, ..self.request.judge };
        let added = flush_events(&changed.recording);
        for (choice, of) in self.failing.iter().rev() {
            let before = of.iter().enumerate().filter(|(n, at)| *at + added * n < choice.event).count();
            let event = choice.event - added * before;
            let event = event + added * places.iter().filter(|at| **at < event).count();
            match judge.outcome(&Choice { event, lost: choice.lost.clone() }) {
                Ok(outcome) if outcome.class().is_some() => return Ok(None),
                // With these flushes no cut leaves the state.
                Err(error) if error.kind != ErrorKind::NoSuchState => return Err(error),
                _ => {}
            }
        }
        let doing = trying(&description(&self.request.judge.recorded.recording, places));
        let judged = self.request.explore(&changed, profile, LIMITS, &doing)?;
        if let Some(failing) = judged.failing.values().next() {
            self.failing.push((failing.example.clone(), places.to_vec()));
        }
        Ok(Some(judged))
    }
}

/// Returns the events before which something has completed that no flush covers yet.
fn places(recording: &Recording, work: Range<usize>, is_place: &dyn Fn(&Event) -> bool) -> Vec<usize> {
    let mut places = Vec::new();
    let mut is_uncovered = false;
    for (number, (_, event)) in recording.events[work.clone()].iter().enumerate() {
        if is_uncovered && is_place(event) {
            places.push(work.start + number);
            is_uncovered = false;
        }
        let is_flush = |id: &CommandId| recording.commands[id.0 as usize].op == Op::Flush;
        match event {
            Event::Completed(id) => is_uncovered |= !is_flush(id),
            Event::Submitted(id) if is_flush(id) => is_uncovered = false,
            _ => {}
        }
    }
    places
}

/// Returns the number of events of a flush of all drives.
fn flush_events(recording: &Recording) -> usize {
    2 * (recording.further_drives.len() + 1)
}

/// Returns the recording with a flush of all drives before each of these events.
fn with_flushes(recorded: &RecordedWork, places: &[usize]) -> RecordedWork {
    let mut changed = (*recorded.recording).clone();
    let added = flush_events(&changed) * places.len();
    let mut events = Vec::with_capacity(changed.events.len() + added);
    for (number, (at, event)) in std::mem::take(&mut changed.events).into_iter().enumerate() {
        let flushed = [0].iter().chain(&changed.further_drives).filter(|_| places.contains(&number));
        for first in flushed {
            let id = CommandId(changed.commands.len() as u32);
            let range = LbaRange::new(Lba(*first), 0);
            changed.commands.push(Command::new(Op::Flush, range, Vec::new()));
            events.extend([(at, Event::Submitted(id)), (at, Event::Completed(id))]);
        }
        events.push((at, event));
    }
    changed.events = events;
    let until = recorded.until + added;
    RecordedWork { recording: Arc::new(changed), until, ..recorded.clone() }
}

fn description(recording: &Recording, places: &[usize]) -> String {
    let numbers = places.iter().filter_map(|at| match recording.events[*at].1 {
        Event::Acknowledged(number) => Some(number),
        _ => None,
    });
    let numbers: Vec<u64> = numbers.collect();
    match (&numbers[..], places.len()) {
        ([one], 1) => format!("a flush of the drive before acknowledgement {one}"),
        ([first, .., last], all) if all == numbers.len() => {
            format!("a flush of the drive before {all} acknowledgements, {first} to {last}")
        }
        (_, 1) => "a flush of the drive between two writes".to_owned(),
        (_, all) => format!("{all} flushes of the drive between writes"),
    }
}
