//! A drive at a constant distance: commands and answers take half a round trip each.
//!
//! Reports of destaging travel with the answers, so each still follows the answer to its command, and
//! precedes the answer to a flush that covers it.

use std::collections::VecDeque;

use plumb_block::{Bytes, Nanos};

use crate::command::Command;
use crate::timing::{Event, Timing};

/// Another timing at a constant distance.
pub struct Remote<T> {
    half_trip: Nanos,
    far: T,
    /// Commands on their way with their times of arrival.
    sent: VecDeque<(Nanos, Command)>,
    /// Answers on their way back with their times of arrival.
    returning: VecDeque<(Nanos, Event)>,
    /// Buffer for events of the far end, kept to reuse its memory.
    heard: Vec<Event>,
}

impl<T: Timing> Remote<T> {
    /// Creates the remote drive `far` with this round-trip time.
    pub fn new(round_trip: Nanos, far: T) -> Self {
        Self {
            half_trip: Nanos(round_trip.0 / 2),
            far,
            sent: VecDeque::new(),
            returning: VecDeque::new(),
            heard: Vec::new(),
        }
    }

    /// Processes the far end at `at`, the time of an arrival or event there.
    fn work(&mut self, at: Nanos) {
        // Events at the far end precede arriving commands.
        self.far.advance(at, &mut self.heard);
        while let Some((_, command)) = pop_due(&mut self.sent, at) {
            self.far.submit(at, command);
        }
        for event in self.heard.drain(..) {
            let (Event::Completed { at, .. } | Event::Persisted { at, .. }) = event;
            self.returning.push_back((at.saturating_add(self.half_trip), event));
        }
    }

    fn next_at_far_end(&self) -> Option<Nanos> {
        let arrival = self.sent.front().map(|(arrives, _)| *arrives);
        [arrival, self.far.next_event()].into_iter().flatten().min()
    }
}

/// Removes the first item if it has arrived by `now`.
fn pop_due<I>(way: &mut VecDeque<(Nanos, I)>, now: Nanos) -> Option<(Nanos, I)> {
    let is_due = way.front().is_some_and(|(arrives, _)| *arrives <= now);
    if is_due { way.pop_front() } else { None }
}

impl<T: Timing> Timing for Remote<T> {
    fn submit(&mut self, now: Nanos, command: Command) {
        self.sent.push_back((now.saturating_add(self.half_trip), command));
    }

    fn next_event(&self) -> Option<Nanos> {
        let back = self.returning.front().map(|(arrives, _)| *arrives);
        [back, self.next_at_far_end()].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        while let Some(next) = self.next_at_far_end().filter(|next| *next <= now) {
            self.work(next);
        }
        while let Some((arrives, event)) = pop_due(&mut self.returning, now) {
            events.push(match event {
                Event::Completed { id, .. } => Event::Completed { id, at: arrives },
                Event::Persisted { id, .. } => Event::Persisted { id, at: arrives },
            });
        }
    }

    fn set_wce(&mut self, now: Nanos, enabled: bool) {
        self.far.set_wce(now, enabled);
    }

    fn power_cut(&mut self, now: Nanos) {
        self.far.power_cut(now);
        self.sent.clear();
        self.returning.clear();
    }

    fn dirty(&self) -> Bytes {
        self.far.dirty()
    }
}
