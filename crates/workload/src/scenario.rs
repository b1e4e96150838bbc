//! A scenario: what one run consists of, whatever language it was typed in.
//!
//! Spans follow one another; the jobs of a span run at the same time; a job has targets and threads, and says
//! what its threads do to each target. The native form, DiskSpd, SQLIO and fio are all read into this, and it
//! is all that the engine knows.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos, Opening, SyncMethod};
use serde::{Deserialize, Serialize};

use crate::share::Share;
use crate::trace::TraceUse;
use crate::workload::Workload;

/// Description of one run.
///
/// ```
/// use plumb_workload::Scenario;
///
/// let nothing = Scenario { spans: Vec::new() };
/// let invalid = nothing.validate().unwrap_err();
/// assert_eq!(invalid.to_string(), "spans is empty: expected at least one span");
/// assert!(nothing.targets().is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One after the other.
    pub spans: Vec<Span>,
}

/// Jobs that run at the same time, and the window in which they are measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// How long the jobs run before they are measured.
    pub warmup: Warmup,
    /// How long they run on after they were measured.
    pub cooldown: Nanos,
    /// Write each target twice from end to end with 128 KiB blocks before (SNIA PTS 2.0.2, workload
    /// independent preconditioning).
    pub precondition: bool,
    /// Repeat in rounds until the rounds agree, and report those.
    pub steady: Option<Steady>,
    /// Find the depth at which a latency is still kept, and report that.
    pub latency_target: Option<LatencyTarget>,
    /// Jobs that run in the span.
    pub jobs: Vec<Job>,
}

/// How long jobs run before they are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warmup {
    /// Fixed length; zero means no warm-up.
    For(Nanos),
    /// Run until the rate has settled.
    Auto,
}

/// Steady state by SNIA PTS 2.0.2: over five rounds, the largest and the smallest rate are within 20 % of the
/// mean and the fitted line changes by less than 10 % of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// How many rounds at most. Each takes the duration of the jobs.
    pub rounds_max: u32,
}

/// A latency that shall be kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTarget {
    /// The latency.
    pub latency: Nanos,
    /// Percentage of operations that keep the latency, above 0, at most 100.
    pub percentile: f64,
}

/// Threads that do the same to targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// A name for reports.
    pub name: String,
    /// Part that it plays in its run.
    #[serde(default, skip_serializing_if = "Role::is_load")]
    pub role: Role,
    /// Targets of the job.
    pub targets: Vec<TargetUse>,
    /// How many threads: for each target, or, if shared, in all.
    pub threads: u32,
    /// Every thread works on every target (DiskSpd `-F`, fio), rather than each on one.
    pub threads_shared: bool,
    /// True if the job's threads are those of the job before it, which work on the targets of both: for
    /// targets that one thread treats differently. A shared depth is then that over the targets of all these
    /// jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_threads: bool,
    /// True if the depth of a shared thread covers all its targets together (DiskSpd `-O`, fio), rather than
    /// each.
    pub depth_shared: bool,
    /// Make missing target files of this size, and bring those that are shorter to it, and those that are
    /// longer if the range goes on to the end.
    pub size: Option<Bytes>,
    /// Content with which missing files are made and shorter ones extended.
    #[serde(default, skip_serializing_if = "Layout::is_written")]
    pub layout: Layout,
    /// How targets are opened.
    pub opening: Opening,
    /// Target files are empty at first and grow to the size with each write; full, they start again. Other
    /// targets are written in the same order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    /// Part of the target files that is in the page cache when the span begins.
    #[serde(default)]
    pub page_cache: PageCache,
    /// Where threads run.
    pub affinity: Affinity,
    /// I/O priority of the job.
    pub priority: Priority,
    /// Go on after a failed read, write or trim, and count it. A failed flush always ends the run.
    pub continue_on_error: bool,
    /// Time from the start of the span until this job begins.
    pub start_delay: Nanos,
    /// A trace that says what they do, in place of the workload; its targets are those of the trace if none
    /// are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceUse>,
    /// A program that works on files, in place of the workload; its only target is a directory. Of the
    /// workload the seed counts, the time limit, and the number of operations: so many transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Workload of each worker; with a trace only the depth, the seed, the content and a time limit count.
    pub workload: Workload,
}

/// Application profile that makes calls on files, rather than requests for blocks. Its threads are its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the profile: `NAME` or `NAME:VARIANT`.
    pub profile: String,
    /// Number of threads; `None`: as many as the profile says.
    pub threads: Option<u32>,
    /// Part of the profile's files that is made, above 0, at most 1; `None`: all, or as much as there is room
    /// for.
    pub scale: Option<f64>,
}

/// Part that a job plays in its run. A check gives its jobs roles; nothing else has to know them by their
/// names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Load whose figures are reported.
    #[default]
    Load,
    /// Work that only makes a target ready: its figures are not reported.
    Prepare,
    /// Durable writes, one after the other, whose cost is the cost of this method.
    DurableWrites(SyncMethod),
}

impl Role {
    /// Returns the method whose cost the job measures, if it measures one.
    pub const fn method(self) -> Option<SyncMethod> {
        match self {
            Self::DurableWrites(method) => Some(method),
            Self::Load | Self::Prepare => None,
        }
    }

    fn is_load(&self) -> bool {
        *self == Self::Load
    }
}

/// A target of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetUse {
    /// Name as typed: a path, `#N`, or a scheme.
    pub name: String,
    /// Weight of this target among those that share a depth. At least 1.
    pub weight: u32,
}

/// Content with which a file is made before a load begins.
///
/// A sync after the first write to a block that is not written yet also has to make the file system's own
/// records durable, which costs another flush.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Every block is written.
    #[default]
    Written,
    /// Blocks are reserved by fallocate(2) and not written; holes where a file system cannot reserve. A
    /// shorter file is emptied first.
    Reserved,
    /// Nothing is reserved. A shorter file is emptied first.
    Holes,
}

impl Layout {
    fn is_written(&self) -> bool {
        *self == Self::Written
    }
}

/// Part of a target file that is in the page cache when a span begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageCache {
    /// Whatever is there.
    #[default]
    AsIs,
    /// Nothing. Cached pages cost each direct request an invalidation, and each buffered write a walk through
    /// the large folio that a read had made.
    Evicted,
    /// All of the range, read in order for at most half of the duration; what was not read until then is left
    /// out of the range. That time is taken from the duration, of which a quarter stays.
    Loaded,
}

/// Where threads run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Affinity {
    /// Where the scheduler puts them.
    Any,
    /// Each on one of these processors, in turn.
    Each(Vec<u32>),
    /// All on any of these.
    Shared(Vec<u32>),
}

/// The I/O priority of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Only when nobody else asks (class idle).
    Idle,
    /// Best effort, level 7 of 7.
    Low,
    /// Usual priority.
    Normal,
}

/// A thread of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Share of the thread among the threads of its jobs.
    pub share: Share,
    /// Targets that the thread works on: the place of a job in the span, and of a target in that job.
    pub targets: Vec<(usize, usize)>,
    /// If it has one depth over several targets: that, and the weight of each.
    pub shared_depth: Option<(u32, Vec<u32>)>,
}

impl Scenario {
    /// Returns the names of its targets, each once, in order.
    pub fn targets(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for target in self.jobs().flat_map(|job| &job.targets) {
            if !names.contains(&target.name) {
                names.push(target.name.clone());
            }
        }
        names
    }

    /// Returns the jobs of all spans, in order.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.spans.iter().flat_map(|span| &span.jobs)
    }

    /// Returns the jobs of all spans, to be changed.
    pub fn jobs_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        self.spans.iter_mut().flat_map(|span| &mut span.jobs)
    }

    /// Returns the seed of the first job, which names the run.
    pub fn seed(&self) -> u64 {
        self.jobs().next().map_or(0, |job| job.workload.seed)
    }

    /// Returns how long all spans run, as far as that is known.
    pub fn duration(&self) -> Option<Nanos> {
        self.spans.iter().map(Span::duration).sum()
    }
}

impl Span {
    /// Returns how long the span runs, as far as that is known.
    fn duration(&self) -> Option<Nanos> {
        let Warmup::For(warmup) = self.warmup else { return None };
        let jobs = self.jobs.iter().map(|job| job.workload.stop.duration).collect::<Option<Vec<_>>>()?;
        Some(warmup + jobs.into_iter().max()? + self.cooldown)
    }

    /// Returns the threads of the span, those of the first job first.
    pub fn threads(&self) -> Vec<Thread> {
        let mut threads = Vec::new();
        let mut next = 0;
        while let Some(job) = self.jobs.get(next) {
            let first = next;
            next += 1;
            while self.jobs.get(next).is_some_and(|job| job.same_threads) {
                next += 1;
            }
            let all: Vec<(usize, usize)> = (first..next)
                .flat_map(|job| (0..self.jobs[job].targets.len()).map(move |target| (job, target)))
                .collect();
            let depth = self.jobs[first..next].iter().map(|job| job.workload.depth).max();
            let weight = |(job, target): &(usize, usize)| self.jobs[*job].targets[*target].weight;
            let shared_depth = depth
                .filter(|_| job.depth_shared && all.len() > 1)
                .map(|depth| (depth, all.iter().map(weight).collect()));
            // With shared threads every thread works on all targets, otherwise each on one.
            let length = if job.threads_shared { all.len() } else { 1 };
            let of = NonZeroU32::new(job.threads).unwrap_or(NonZeroU32::MIN);
            threads.extend(all.chunks(length.max(1)).flat_map(|targets| {
                let (targets, shared_depth) = (targets.to_vec(), shared_depth.clone());
                Share::all(of).map(move |share| Thread {
                    share,
                    targets: targets.clone(),
                    shared_depth: shared_depth.clone(),
                })
            }));
        }
        threads
    }

    /// Returns one span of jobs, measured from the start to the end.
    pub const fn new(jobs: Vec<Job>) -> Self {
        Self {
            warmup: Warmup::For(Nanos::ZERO),
            cooldown: Nanos::ZERO,
            precondition: false,
            steady: None,
            latency_target: None,
            jobs,
        }
    }
}

impl Job {
    /// Returns one thread on one target, past the page cache.
    pub fn on(target: &str, workload: Workload) -> Self {
        Self {
            name: target.to_owned(),
            role: Role::Load,
            targets: vec![TargetUse { name: target.to_owned(), weight: 1 }],
            threads: 1,
            threads_shared: false,
            same_threads: false,
            depth_shared: false,
            size: None,
            layout: Layout::Written,
            opening: Opening::DIRECT,
            append: false,
            page_cache: PageCache::AsIs,
            affinity: Affinity::Any,
            priority: Priority::Normal,
            continue_on_error: false,
            start_delay: Nanos::ZERO,
            trace: None,
            program: None,
            workload,
        }
    }
}
