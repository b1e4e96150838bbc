//! Conversion of events to finished requests and syncs, shared by recordings, the lines of slow events and
//! the metrics of `--serve`. It is a pure function of the events, except for the lookup of threads.

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

/// Receiver of the results of the fold.
pub trait Sink {
    /// Handles a step of a request of `request.device`.
    fn request(&mut self, at: Nanos, request: &Request, step: Step, who: &mut Identities<'_>);

    /// Handles a sync that ended at `at`.
    fn sync(&mut self, at: Nanos, sync: &FinishedSync, who: &mut Identities<'_>);

    /// Handles a failed write that the page cache had accepted.
    fn write_failed(&mut self, _: Inode, _: &mut Identities<'_>) {}

    /// Handles a loss of events: the requests and syncs in flight are unknown.
    fn forget(&mut self, at: Nanos);
}

/// Lookup of threads, with those that have ended, and of places.
pub struct Identities<'a> {
    tasks: &'a Tasks,
    /// Processes and files of this machine.
    pub processes: &'a mut dyn Processes,
}

impl Identities<'_> {
    /// Returns the process of a thread, without a file. A process that has ended has the last name seen in
    /// events, and the cgroup of its nearest known ancestor.
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

/// Counts so far, for a line of progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Number of events.
    pub events: u64,
    /// Number of lost events.
    pub lost: u64,
    /// Number of finished syncs.
    pub syncs: u64,
}

/// Converts events, which must be in the order of their times.
#[derive(Debug)]
pub(crate) struct Fold {
    matchers: HashMap<u32, RequestMatcher>,
    syncs: Syncs,
    writeback: WritebackErrors,
    /// Counts so far.
    pub(crate) so_far: SoFar,
}

impl Fold {
    /// Creates a fold for the devices `watched` and for the syncs in `scope`, without those of the process
    /// `except`.
    pub(crate) fn new(watched: &[WatchedDevice], scope: Scope, except: u32) -> Self {
        let matcher = |of: &WatchedDevice| (of.number, RequestMatcher::new(of.has_requests));
        Self {
            matchers: watched.iter().map(matcher).collect(),
            syncs: Syncs::new(scope, except),
            writeback: WritebackErrors::default(),
            so_far: SoFar::default(),
        }
    }

    /// Handles an event, and passes completed requests and syncs to `sink`.
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
            // Any thread may be running at this time.
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

    /// Records that `events` events were lost before `at`.
    pub(crate) fn lost(&mut self, at: Nanos, events: u64, sink: &mut dyn Sink) {
        if events > 0 {
            self.so_far.lost += events;
            self.matchers.values_mut().for_each(RequestMatcher::forget);
            self.syncs.forget();
            sink.forget(at);
        }
    }

    /// Returns true if no request is in flight to a device, and every start was seen.
    pub(crate) fn is_idle(&self, device: u32) -> bool {
        self.matchers.get(&device).is_some_and(RequestMatcher::is_idle)
    }

    /// Returns the failed writes that the page cache had accepted, by file; times since `start`.
    pub(crate) fn writeback_errors(
        &self,
        start: Nanos,
        processes: &mut dyn Processes,
    ) -> Vec<WritebackError> {
        self.writeback.finish(start, &self.syncs.scope, processes)
    }

    /// Takes the files of failed writes that the page cache had accepted, if not taken yet; times since
    /// `start`.
    pub(crate) fn take_writeback_errors(
        &mut self,
        start: Nanos,
        processes: &mut dyn Processes,
    ) -> Vec<WritebackError> {
        self.writeback.take_fresh(start, &self.syncs.scope, processes)
    }

    /// Returns the number of files of failed writes that nobody was told of, by device.
    pub(crate) fn unreported(&self) -> impl Iterator<Item = (u32, u64)> {
        self.writeback.unreported()
    }

    /// Returns the number of failed writes of files beyond the limit, which are not listed individually.
    pub(crate) const fn writeback_errors_left_out(&self) -> u64 {
        self.writeback.left_out
    }
}
