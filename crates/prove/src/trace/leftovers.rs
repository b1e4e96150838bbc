//! Processes that a traced program has left running. strace(1) would wait for them indefinitely.

use std::collections::BTreeSet;

use plumb_block::{Clock as _, Nanos, RealClock};
use plumb_linux::tree::LiveTree;
use plumb_linux::tree::process::ProcessStat;
use rustix::event::Timespec;
use rustix::process::{Pid, Signal, kill_process};

use super::strace::exited;
use super::thread_state::{traced_by, tracer};

/// Time that they have to exit after the program has ended.
const GRACE: Nanos = Nanos::secs(1);

/// State of a program and of the processes that it has started.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// First thread of the program.
    first: Option<u32>,
    /// Process ID of strace.
    tracer: Option<u32>,
    /// Clock started at the end of the program.
    ended: Option<RealClock>,
    names: BTreeSet<String>,
}

impl Leftovers {
    /// Updates the processes, and the end of the program, from a line of the trace.
    pub(super) fn observe(&mut self, line: &str) {
        let thread = line.trim_ascii_start().split(' ').next().and_then(|word| word.parse().ok());
        self.first = self.first.or(thread);
        self.tracer = self.tracer.or_else(|| tracer(thread?));
        if self.ended.is_none() && self.first.is_some() && exited(line) == self.first {
            self.ended = Some(RealClock::start());
        }
    }

    /// Returns the time to wait for the next line; `None` for no limit.
    pub(super) fn patience(&self) -> Option<Timespec> {
        let left = GRACE.since(self.ended?.now()).max(Nanos::millis(50));
        std::time::Duration::from(left).try_into().ok()
    }

    /// Kills the remaining processes once their time is over.
    pub(super) fn kill_late(&mut self) {
        let (Some(ended), Some(tracer)) = (self.ended, self.tracer) else { return };
        if ended.now() < GRACE {
            return;
        }
        let group = ProcessStat::read(&LiveTree, tracer).map(|stat| stat.group);
        for process in traced_by(tracer) {
            let Some(stat) = ProcessStat::read(&LiveTree, process) else { continue };
            if Some(stat.group) != group {
                self.names.insert(stat.name);
            }
            if let Some(process) = Pid::from_raw(process.cast_signed()) {
                kill_process(process, Signal::KILL).unwrap_or_default();
            }
        }
    }

    /// Returns the names of the killed processes, except those in the process group of the program.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names.into_iter().collect()
    }
}
