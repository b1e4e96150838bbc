//! The slowest events of the last minutes, and the activity of devices during them.

use std::collections::VecDeque;

use plumb_block::Nanos;
use plumb_report::document::live::{DeviceActivity, SlowEvent};

use crate::event::{Op, Request};
use crate::matcher::FinishedRequest;

/// Number of windows that are kept; older ones are dropped.
const WINDOWS: usize = 10;
/// Length of a window.
const WINDOW: Nanos = Nanos::secs(60);
/// Number of events of each class in a window.
pub(super) const EVENTS_MAX: usize = 20;
/// Number of events beyond the threshold that are kept until they are taken.
const FRESH_MAX: usize = 1000;

/// Class of an event. Requests are much more frequent, and would leave no room for syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Call of a program.
    Sync,
    /// Request of a device.
    Request,
}

/// Store of the slowest events.
#[derive(Debug)]
pub(super) struct SlowEvents {
    threshold: Option<Nanos>,
    windows: VecDeque<Window>,
    /// Events beyond the threshold.
    fresh: Vec<(Nanos, SlowEvent)>,
}

#[derive(Debug, Default)]
struct Window {
    start: Nanos,
    /// Events of each class, the slowest first.
    by_class: [Vec<(Nanos, SlowEvent)>; 2],
}

impl SlowEvents {
    pub(super) const fn new(threshold: Option<Nanos>) -> Self {
        Self { threshold, windows: VecDeque::new(), fresh: Vec::new() }
    }

    fn is_beyond(&self, took: Nanos) -> bool {
        self.fresh.len() < FRESH_MAX && self.threshold.is_some_and(|threshold| took >= threshold)
    }

    /// Returns true if an event is to be added. The check is cheap, since nearly all events fail it.
    pub(super) fn takes(&mut self, at: Nanos, class: Class, took: Nanos) -> bool {
        let last = self.windows.back().map(|window| window.start);
        if last.is_none_or(|start| at >= start + WINDOW) {
            self.windows.push_back(Window { start: at, ..Window::default() });
        }
        while self.windows.front().is_some_and(|window| at.since(window.start) >= WINDOW * WINDOWS as u64) {
            self.windows.pop_front();
        }
        let is_among = self.windows.back().is_some_and(|window| {
            let events = &window.by_class[class as usize];
            let least = events.last().map(|(_, event)| event.seconds);
            events.len() < EVENTS_MAX || least.is_some_and(|least| took.as_secs_f64() > least)
        });
        is_among || self.is_beyond(took)
    }

    /// Adds an event that [`Self::takes`] accepted.
    pub(super) fn add(&mut self, at: Nanos, class: Class, took: Nanos, event: SlowEvent) {
        if self.is_beyond(took) {
            self.fresh.push((at, event.clone()));
        }
        let Some(window) = self.windows.back_mut() else { return };
        let events = &mut window.by_class[class as usize];
        let place = events.partition_point(|(_, known)| known.seconds >= event.seconds);
        events.insert(place, (at, event));
        events.truncate(EVENTS_MAX);
    }

    /// Returns all events that are kept.
    pub(super) fn all(&self) -> impl Iterator<Item = &(Nanos, SlowEvent)> {
        self.windows.iter().flat_map(|window| window.by_class.iter().flatten())
    }

    /// Takes the events beyond the threshold, with the times of their ends.
    pub(super) fn take_fresh(&mut self) -> Vec<(Nanos, SlowEvent)> {
        std::mem::take(&mut self.fresh)
    }
}

/// Length of a slot of [`Activity`].
const SLOT: Nanos = Nanos::millis(50);
/// Number of slots that are kept.
const SLOTS: usize = 600;

/// Completions of a device in the last half minute, by slot.
#[derive(Debug, Default)]
pub(super) struct Activity {
    slots: VecDeque<Slot>,
    in_flight: u64,
}

/// Completions in one slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    number: u64,
    reads: u64,
    writes: u64,
    flushes: u64,
    bytes: u64,
    longest: Nanos,
}

impl Activity {
    /// Counts a request that the device received (`got`), or returned.
    pub(super) fn count_in_flight(&mut self, got: bool) {
        self.in_flight = if got { self.in_flight + 1 } else { self.in_flight.saturating_sub(1) };
    }

    /// Clears the requests in flight, after events were lost.
    pub(super) const fn forget_in_flight(&mut self) {
        self.in_flight = 0;
    }

    /// Counts a finished request.
    pub(super) fn finished(&mut self, at: Nanos, request: &Request, finished: &FinishedRequest) {
        if finished.took.is_some() {
            self.count_in_flight(false);
        }
        let number = at.0 / SLOT.0;
        if self.slots.back().is_none_or(|slot| slot.number != number) {
            self.slots.push_back(Slot { number, ..Slot::default() });
            if self.slots.len() > SLOTS {
                self.slots.pop_front();
            }
        }
        let Some(slot) = self.slots.back_mut() else { return };
        match request.op {
            Op::Read => slot.reads += 1,
            Op::Write => slot.writes += 1,
            Op::Flush => slot.flushes += 1,
            Op::Trim | Op::Other => {}
        }
        if matches!(request.op, Op::Read | Op::Write) {
            slot.bytes += finished.bytes;
        }
        slot.longest = slot.longest.max(finished.took.unwrap_or_default());
    }

    /// Returns the activity in the time `took` before `at`, in whole slots.
    pub(super) fn during(&self, at: Nanos, took: Nanos) -> DeviceActivity {
        let last = at.0 / SLOT.0;
        let first = (at.since(took).0 / SLOT.0).max((last + 1).saturating_sub(SLOTS as u64));
        let during = self.slots.iter().filter(|slot| (first..=last).contains(&slot.number));
        let seconds = (SLOT * (last + 1 - first)).as_secs_f64();
        let none = DeviceActivity { seconds, in_flight: self.in_flight, ..DeviceActivity::default() };
        during.fold(none, |all, slot| DeviceActivity {
            reads: all.reads + slot.reads,
            writes: all.writes + slot.writes,
            flushes: all.flushes + slot.flushes,
            bytes: all.bytes + slot.bytes,
            longest: all.longest.max(slot.longest.as_secs_f64()),
            ..all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seconds: f64) -> SlowEvent {
        SlowEvent { seconds, ..SlowEvent::default() }
    }

    fn offer(slow: &mut SlowEvents, at: Nanos, class: Class, took: Nanos) {
        if slow.takes(at, class, took) {
            slow.add(at, class, took, event(took.as_secs_f64()));
        }
    }

    #[test]
    fn the_slowest_of_the_last_minutes_are_kept_and_requests_leave_room_for_syncs() {
        let mut slow = SlowEvents::new(None);
        offer(&mut slow, Nanos::secs(1), Class::Sync, Nanos::millis(3));
        (0..1000).for_each(|number| offer(&mut slow, Nanos::secs(2), Class::Request, Nanos::millis(number)));
        let seconds = |slow: &SlowEvents| slow.all().map(|(_, event)| event.seconds).collect::<Vec<_>>();
        let kept = seconds(&slow);
        assert_eq!((kept.len(), kept[0], kept[1], kept[EVENTS_MAX]), (EVENTS_MAX + 1, 0.003, 0.999, 0.98));
        // Each minute has its own, and those of long ago are gone.
        offer(&mut slow, Nanos::secs(90), Class::Sync, Nanos::millis(1));
        assert_eq!(seconds(&slow).len(), EVENTS_MAX + 2);
        offer(&mut slow, Nanos::secs(650), Class::Sync, Nanos::millis(2));
        assert_eq!(seconds(&slow), [0.001, 0.002]);
    }

    #[test]
    fn all_beyond_the_threshold_are_told_once_and_no_more_than_there_is_room_for() {
        let mut slow = SlowEvents::new(Some(Nanos::millis(5)));
        (0..10).for_each(|number| offer(&mut slow, Nanos(number), Class::Sync, Nanos::millis(number)));
        assert_eq!((slow.take_fresh().len(), slow.take_fresh().len()), (5, 0));
        (0..5000).for_each(|number| offer(&mut slow, Nanos(number), Class::Sync, Nanos::secs(1)));
        assert_eq!(slow.take_fresh().len(), FRESH_MAX);
    }

    #[test]
    fn what_a_device_did_is_that_of_the_slots_of_the_event() {
        let mut activity = Activity::default();
        let request = |op| Request { op, bytes: 4096, ..Request::default() };
        let finished =
            FinishedRequest { bytes: 4096, thread: Some(1), waited: None, took: Some(Nanos::millis(7)) };
        for (at, op) in [(10, Op::Read), (110, Op::Write), (160, Op::Flush), (210, Op::Write)] {
            activity.count_in_flight(true);
            activity.finished(Nanos::millis(at), &request(op), &finished);
        }
        activity.count_in_flight(true);
        let did = activity.during(Nanos::millis(190), Nanos::millis(80));
        assert_eq!((did.reads, did.writes, did.flushes, did.bytes, did.in_flight), (0, 1, 1, 4096, 1));
        assert_eq!((did.seconds, did.longest), (0.1, 0.007));
        // An event that lasted longer has as much as is kept.
        assert_eq!(activity.during(Nanos::secs(100), Nanos::secs(90)).seconds, 30.0);
    }
}
