//! From events to finished requests and syncs: the one fold that recordings, the lines of slow events and
//! the metrics of `--serve` count from. A pure function of events, but for who the threads are, which is
//! asked.

use std::collections::HashMap;
use std::sync::Arc;

use plumb_block::Nanos;
use plumb_report::document::observation::WritebackError;

use crate::device::WatchedDevice;
use crate::event::{Event, EventContent, Inode, Request};
use crate::matcher::{RequestMatcher, Step};
use crate::syncs::{Caller, FinishedSync, Processes, Scope, Syncs, cgroup_of_ended};
use crate::tasks::Tasks;
use crate::writeback::WritebackErrors;

/// Receives what the fold finds.
pub trait Sink {
    /// Takes a step of a request of `request.device`.
    fn request(&mut self, at: Nanos, request: &Request, step: Step, who: &mut Identities<'_>);

    /// Takes a sync that ended at `at`.
    fn sync(&mut self, at: Nanos, sync: &FinishedSync, who: &mut Identities<'_>);

    /// Notes that a write failed that the page cache had taken.
    fn write_failed(&mut self, _: Inode, _: &mut Identities<'_>) {}

    /// Notes that events were lost: what is in flight is no longer known.
    fn forget(&mut self, at: Nanos);
}

/// Looks up threads, also those that have ended, and places.
pub struct Identities<'a> {
    tasks: &'a Tasks,
    /// Processes and files of this machine.
    pub processes: &'a mut dyn Processes,
}

impl Identities<'_> {
    /// Returns the process of a thread, without a file. One that has ended has the name that it was given
    /// while observed, and the cgroup of the nearest of those that made it.
    pub fn process(&mut self, thread: u32) -> Arc<Caller> {
        let known = self.processes.process(thread);
        if !known.name.is_empty() {
            return known;
        }
        let mut ended = Caller { name: self.tasks.name(thread).unwrap_or_default(), ..Caller::default() };
        ended.cgroup = cgroup_of_ended(self.tasks, thread, self.processes);
        Arc::new(ended)
    }
}

/// Counts until now, for a line of progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Events.
    pub events: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Syncs that ended.
    pub syncs: u64,
}

/// Takes events in the order of their times.
#[derive(Debug)]
pub(crate) struct Fold {
    matchers: HashMap<u32, RequestMatcher>,
    syncs: Syncs,
    writeback: WritebackErrors,
    /// The counts until now.
    pub(crate) so_far: SoFar,
}

impl Fold {
    /// Creates one of these devices, and of the syncs in `scope`. Syncs of the process `except` are left out.
    pub(crate) fn new(watched: &[WatchedDevice], scope: Scope, except: u32) -> Self {
        let matcher = |of: &WatchedDevice| (of.number, RequestMatcher::new(of.has_requests));
        Self {
            matchers: watched.iter().map(matcher).collect(),
            syncs: Syncs::new(scope, except),
            writeback: WritebackErrors::default(),
            so_far: SoFar::default(),
        }
    }

    /// Takes an event, and hands what it completes to `sink`.
    pub(crate) fn take(&mut self, event: Event, processes: &mut dyn Processes, sink: &mut dyn Sink) {
        self.so_far.events += 1;
        let (at, thread) = (event.at, event.thread);
        match event.what {
            EventContent::SyncBegan(call, fd) => self.syncs.began(at, thread, call, fd),
            EventContent::SyncEnded(is_done) => {
                let sync = self.syncs.ended(at, thread, is_done, processes);
                self.synced(at, sync, processes, sink);
            }
            EventContent::SyncedOn(device) => self.syncs.told(at, thread, device),
            EventContent::Synced(is_done) => {
                let sync = self.syncs.synced(at, thread, is_done, processes);
                self.synced(at, sync, processes, sink);
            }
            EventContent::WritebackFailed(inode, error) => {
                self.writeback.failed(at, inode, error, processes);
                sink.write_failed(inode, &mut Identities { tasks: &self.syncs.tasks, processes });
            }
            EventContent::ErrorReported(inode, error) => {
                self.writeback.reported(at, thread, inode, error, processes);
            }
            EventContent::TaskBegan(task, name) => self.syncs.tasks.began(at, thread, task, name),
            EventContent::TaskNamed(task, name) => self.syncs.tasks.named(task, name),
            EventContent::TaskEnded => self.syncs.thread_ended(thread),
            EventContent::Inserted(of) | EventContent::Issued(of) | EventContent::Merged(_, of) => {
                self.syncs.asked(thread, of.device);
                self.take_of_device(&event, &of, processes, sink);
            }
            // Any thread may be running then.
            EventContent::Requeued(of) | EventContent::Completed(of) => {
                self.take_of_device(&event, &of, processes, sink);
            }
        }
    }

    fn take_of_device(
        &mut self,
        event: &Event,
        of: &Request,
        processes: &mut dyn Processes,
        sink: &mut dyn Sink,
    ) {
        if let Some(matcher) = self.matchers.get_mut(&of.device) {
            let mut who = Identities { tasks: &self.syncs.tasks, processes };
            matcher.take(event, &mut |request, step| sink.request(event.at, request, step, &mut who));
        }
    }

    fn synced(
        &mut self,
        at: Nanos,
        sync: Option<FinishedSync>,
        processes: &mut dyn Processes,
        sink: &mut dyn Sink,
    ) {
        if let Some(sync) = sync {
            self.so_far.syncs += u64::from(sync.counted);
            sink.sync(at, &sync, &mut Identities { tasks: &self.syncs.tasks, processes });
        }
    }

    /// Notes that `events` events were lost before `at`.
    pub(crate) fn lost(&mut self, at: Nanos, events: u64, sink: &mut dyn Sink) {
        if events > 0 {
            self.so_far.lost += events;
            self.matchers.values_mut().for_each(RequestMatcher::forget);
            self.syncs.forget();
            sink.forget(at);
        }
    }

    /// Returns true if nothing is on its way to a device, and every beginning was seen.
    pub(crate) fn is_idle(&self, device: u32) -> bool {
        self.matchers.get(&device).is_some_and(RequestMatcher::is_idle)
    }

    /// Returns the writes that failed after the page cache had taken them, by file; times since `start`.
    pub(crate) fn writeback_errors(
        &self,
        start: Nanos,
        processes: &mut dyn Processes,
    ) -> Vec<WritebackError> {
        self.writeback.finish(start, &self.syncs.scope, processes)
    }

    /// Takes the files of which such a failure was not taken yet; times since `start`.
    pub(crate) fn take_writeback_errors(
        &mut self,
        start: Nanos,
        processes: &mut dyn Processes,
    ) -> Vec<WritebackError> {
        self.writeback.take_fresh(start, &self.syncs.scope, processes)
    }

    /// Returns the number of files with such a failure of which nobody was told, by device.
    pub(crate) fn unreported(&self) -> impl Iterator<Item = (u32, u64)> {
        self.writeback.unreported()
    }

    /// Returns the number of such failures of files that are not told apart, since there were too many.
    pub(crate) const fn writeback_errors_left_out(&self) -> u64 {
        self.writeback.left_out
    }
}
