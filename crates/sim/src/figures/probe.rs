//! A host in virtual time that keeps a number of commands in flight and measures them.

use plumb_block::{Nanos, Op};

use crate::command::{Command, CommandId, Sectors};
use crate::timing::{Event, Timing};

/// Result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Taken {
    /// Number of answered commands.
    pub commands: u64,
    /// Time from the first submission to the last answer.
    pub elapsed: Nanos,
    /// Mean duration of a command.
    pub mean: Nanos,
}

impl Taken {
    /// Returns the commands per second.
    pub fn iops(&self) -> f64 {
        self.commands as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the mean time of a command, in milliseconds.
    pub(crate) fn mean_ms(&self) -> f64 {
        self.mean.as_secs_f64() * 1e3
    }
}

/// A host with one drive. Time continues from run to run.
pub struct Probe<'t> {
    timing: &'t mut dyn Timing,
    now: Nanos,
    submitted: Vec<Nanos>,
    events: Vec<Event>,
    /// Number of commands in earlier runs, whose times are not kept.
    earlier: u64,
}

impl<'t> Probe<'t> {
    /// Creates a host for `timing`, which must be unused.
    pub fn new(timing: &'t mut dyn Timing) -> Self {
        Self { timing, now: Nanos(0), submitted: Vec::new(), events: Vec::new(), earlier: 0 }
    }

    /// Keeps `depth` commands in flight until `count` of them are answered; `next` returns the command with a
    /// number.
    pub fn run(&mut self, depth: u64, count: u64, mut next: impl FnMut(u64) -> (Op, Sectors)) -> Taken {
        self.earlier += self.submitted.len() as u64;
        self.submitted.clear();
        let start = self.now;
        let (mut answered, mut total) = (0, 0);
        for index in 0..depth.min(count) {
            let (op, sectors) = next(index);
            self.submit(op, sectors);
        }
        while answered < count {
            let Some(at) = self.timing.next_event() else { break };
            self.now = at;
            let mut events = std::mem::take(&mut self.events);
            self.timing.advance(at, &mut events);
            for event in events.drain(..) {
                let Event::Completed { id, at } = event else { continue };
                answered += 1;
                total += at.since(self.submitted[(id.0 - self.earlier) as usize]).0;
                if (self.submitted.len() as u64) < count {
                    let (op, sectors) = next(self.submitted.len() as u64);
                    self.submit(op, sectors);
                }
            }
            self.events = events;
        }
        Taken { commands: answered, elapsed: self.now.since(start), mean: Nanos(total / answered.max(1)) }
    }

    /// Advances until the drive has nothing left to do by itself.
    pub fn settle(&mut self) {
        while let Some(at) = self.timing.next_event() {
            self.now = at;
            self.timing.advance(at, &mut self.events);
            self.events.clear();
        }
    }

    fn submit(&mut self, op: Op, sectors: Sectors) {
        let id = CommandId(self.earlier + self.submitted.len() as u64);
        self.submitted.push(self.now);
        self.timing.submit(self.now, Command { id, op, sectors });
    }
}
