//! A drive without a cache in which commands take no time, or all take the same time, in any number.

use std::collections::VecDeque;

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::command::{Command, CommandId};
use crate::model::{Check, Limits, Time};
use crate::timing::{Event, Timing};

/// `[null]` of a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Duration of every command.
    pub latency: Time,
}

impl Limits for Parameters {
    fn limits(&self, check: &mut Check) {
        check.within("latency", &self.latency, &(Time(Nanos(0))..=Time(Nanos::secs(100))));
    }
}

/// Timing of a drive with a constant latency.
#[derive(Debug)]
pub struct NullTiming {
    latency: Nanos,
    /// Commands in order of arrival, which is also that of completion.
    waiting: VecDeque<(Nanos, CommandId)>,
}

impl NullTiming {
    /// Creates a drive with the latency of `parameters`.
    pub fn new(parameters: &Parameters) -> Self {
        Self { latency: parameters.latency.0, waiting: VecDeque::with_capacity(256) }
    }
}

impl Timing for NullTiming {
    fn submit(&mut self, now: Nanos, command: Command) {
        self.waiting.push_back((now.saturating_add(self.latency), command.id));
    }

    fn next_event(&self) -> Option<Nanos> {
        self.waiting.front().map(|(at, _)| *at)
    }

    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        while let Some((at, id)) = self.waiting.front().copied()
            && at <= now
        {
            self.waiting.pop_front();
            events.push(Event::Completed { id, at });
        }
    }

    fn set_wce(&mut self, _now: Nanos, _enabled: bool) {}

    fn power_cut(&mut self, _now: Nanos) {
        self.waiting.clear();
    }

    fn dirty(&self) -> Bytes {
        Bytes(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Sectors;
    use plumb_block::Op;

    #[test]
    fn every_command_takes_the_latency_and_a_cut_forgets_all() {
        let mut null = NullTiming::new(&Parameters { latency: Time(Nanos::micros(5)) });
        let mut events = Vec::new();
        for id in 0..3 {
            null.submit(Nanos(id), Command { id: CommandId(id), op: Op::Flush, sectors: Sectors::NONE });
        }
        assert_eq!(null.next_event(), Some(Nanos(5000)));
        null.advance(Nanos(5001), &mut events);
        let first = |id| Event::Completed { id: CommandId(id), at: Nanos(5000 + id) };
        assert_eq!(events, [first(0), first(1)]);
        null.power_cut(Nanos(5001));
        assert_eq!(null.next_event(), None);
    }
}
