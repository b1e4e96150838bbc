//! A host in virtual time that keeps so many commands in a drive and measures.

use plumb_block::{Nanos, Op};

use crate::command::{Command, CommandId, Sectors};
use crate::timing::{Event, Timing};

/// Number of the commands of a run, and the time that they took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Taken {
    /// Commands answered.
    pub commands: u64,
    /// Time from the first submission to the last answer.
    pub elapsed: Nanos,
    /// The mean time of a command.
    pub mean: Nanos,
}

impl Taken {
    /// Returns the commands per second.
    pub fn iops(&self) -> f64 {
        self.commands as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the mean time of a command, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.mean.as_secs_f64() * 1e3
    }
}

/// A host with one drive. Time goes on from run to run.
pub struct Probe<'t> {
    timing: &'t mut dyn Timing,
    now: Nanos,
    submitted: Vec<Nanos>,
    events: Vec<Event>,
    /// Commands of earlier runs, whose times are not kept.
    earlier: u64,
}

impl<'t> Probe<'t> {
    /// Creates a host that has just met `timing`, which has done nothing yet.
    pub fn new(timing: &'t mut dyn Timing) -> Self {
        Self { timing, now: Nanos(0), submitted: Vec::new(), events: Vec::new(), earlier: 0 }
    }

    /// Keeps `depth` commands in the drive until `count` of them are answered; `next` says what the one of a
    /// number is.
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

    /// Lets the drive do what it does by itself until nothing is left to do.
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
