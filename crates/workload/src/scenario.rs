//! A scenario: the complete description of a run, independent of the format in which it was written.
//!
//! Spans follow one another; the jobs of a span run concurrently; a job has targets and threads, and a
//! workload for each thread and target. The native format, DiskSpd, SQLIO and fio are all converted to a
//! scenario, which is all that the engine knows.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos, Opening, Priority, SyncMethod};
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
    /// Spans, which run one after the other.
    pub spans: Vec<Span>,
}

/// Concurrent jobs, and the window in which they are measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Warm-up before the measurement.
    pub warmup: Warmup,
    /// Time for which jobs continue after the measurement.
    pub cooldown: Nanos,
    /// Write each target completely, twice, with 128 KiB blocks first (SNIA PTS 2.0.2, workload independent
    /// preconditioning).
    pub precondition: bool,
    /// Repeat in rounds until they agree, and report the agreeing rounds.
    pub steady: Option<Steady>,
    /// Search for the largest depth that keeps a latency limit, and report that depth.
    pub latency_target: Option<LatencyTarget>,
    /// Jobs that run in the span.
    pub jobs: Vec<Job>,
}

/// Warm-up before the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Warmup {
    /// Fixed duration; zero means no warm-up.
    For(Nanos),
    /// Until the rate has settled.
    Auto,
}

/// Steady state by SNIA PTS 2.0.2: over five rounds, the range of rates is within 20 % of their mean and the
/// fitted line changes by less than 10 % of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Maximum number of rounds, each as long as the jobs.
    pub rounds_max: u32,
}

/// A latency limit to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyTarget {
    /// Latency limit.
    pub latency: Nanos,
    /// Percentage of operations within the limit, above 0, at most 100.
    pub percentile: f64,
}

/// Threads with the same work on a set of targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// A name for reports.
    pub name: String,
    /// Role of the job in its run.
    #[serde(default, skip_serializing_if = "Role::is_load")]
    pub role: Role,
    /// Targets of the job.
    pub targets: Vec<TargetUse>,
    /// Number of threads: for each target, or in total if they are shared.
    pub threads: u32,
    /// True if every thread works on every target (DiskSpd `-F`, fio), rather than each on one.
    pub threads_shared: bool,
    /// True if the job runs on the threads of the previous job, which then work on the targets of both. For
    /// targets that one thread treats differently. A shared depth then covers the targets of all these jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_threads: bool,
    /// True if the depth of a shared thread covers all its targets together (DiskSpd `-O`, fio), rather than
    /// each.
    pub depth_shared: bool,
    /// Size for target files: missing files are created, shorter ones extended, and longer ones truncated if
    /// the range is open-ended.
    pub size: Option<Bytes>,
    /// Contents of new files and of the extended parts of existing ones.
    #[serde(default, skip_serializing_if = "Layout::is_written")]
    pub layout: Layout,
    /// How targets are opened.
    pub opening: Opening,
    /// True if target files start empty and grow up to the size with each write; full ones start over. Other
    /// targets are written in the same order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    /// Part of the target files that is in the page cache at the start of the span.
    #[serde(default)]
    pub page_cache: PageCache,
    /// Processors for the threads.
    pub affinity: Affinity,
    /// I/O priority of the job.
    pub priority: Priority,
    /// Continue after a failed read, write or trim, and count it. A failed flush always ends the run.
    pub continue_on_error: bool,
    /// Delay of the job after the start of the span.
    pub start_delay: Nanos,
    /// Trace to replay instead of the workload; a job without targets uses those of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceUse>,
    /// Program that works on files instead of the workload; its only target is a directory. Of the workload,
    /// only the seed, the time limit, and the number of operations (here transactions) apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    /// Workload of each worker; with a trace only the depth, the seed, the content and a time limit apply.
    pub workload: Workload,
}

/// Application profile that operates on files instead of blocks. It has its own threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the profile: `NAME` or `NAME:VARIANT`.
    pub profile: String,
    /// Number of threads; `None`: the profile's default.
    pub threads: Option<u32>,
    /// Fraction of the profile's files to create, above 0, at most 1; `None`: all, or as many as fit.
    pub scale: Option<f64>,
}

/// Role of a job in its run. A check assigns roles to its jobs, so that nothing else has to recognise them by
/// name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Load whose figures are reported.
    #[default]
    Load,
    /// Preparation of a target, whose figures are not reported.
    Prepare,
    /// Sequential durable writes, to measure the cost of this method.
    DurableWrites(SyncMethod),
}

impl Role {
    /// Returns the method whose cost the job measures, if any.
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
    /// Name as typed: a path, `#N`, or a name with a scheme.
    pub name: String,
    /// Weight among targets with a shared depth. At least 1.
    pub weight: u32,
}

/// Contents of a file that is created before a load.
///
/// The first write to an unwritten block also changes file system metadata, so the next sync costs another
/// flush.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Every block is written.
    #[default]
    Written,
    /// Blocks are reserved by fallocate(2) but not written, or holes if the file system cannot reserve. A
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

/// Part of a target file that is in the page cache at the start of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageCache {
    /// Unchanged.
    #[default]
    AsIs,
    /// Nothing. Cached pages cost each direct request an invalidation, and each buffered write a walk through
    /// the large folio that a read had made.
    Evicted,
    /// The whole range, read in order for at most half of the duration; the range is then limited to what was
    /// read. That time is deducted from the duration, but a quarter always remains.
    Loaded,
}

/// Processors for threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Affinity {
    /// Any processor.
    Any,
    /// One of these processors for each thread, in turn.
    Each(Vec<u32>),
    /// All of these processors for every thread.
    Shared(Vec<u32>),
}

/// A thread of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Share of the thread among the threads of its jobs.
    pub share: Share,
    /// Targets of the thread, as index of the job in the span and of the target in the job.
    pub targets: Vec<(usize, usize)>,
    /// Depth shared by several targets, with the weight of each, if there is one.
    pub shared_depth: Option<(u32, Vec<u32>)>,
}

impl Scenario {
    /// Returns the distinct names of all targets, in order.
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

    /// Returns the jobs of all spans for modification.
    pub fn jobs_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        self.spans.iter_mut().flat_map(|span| &mut span.jobs)
    }

    /// Returns the seed of the first job, which represents the run.
    pub fn seed(&self) -> u64 {
        self.jobs().next().map_or(0, |job| job.workload.seed)
    }

    /// Returns the duration of all spans; `None` if unknown.
    pub fn duration(&self) -> Option<Nanos> {
        self.spans.iter().map(Span::duration).sum()
    }
}

impl Span {
    /// Returns the duration of the span; `None` if unknown.
    fn duration(&self) -> Option<Nanos> {
        let Warmup::For(warmup) = self.warmup else { return None };
        let jobs = self.jobs.iter().map(|job| job.workload.stop.duration).collect::<Option<Vec<_>>>()?;
        Some(warmup + jobs.into_iter().max()? + self.cooldown)
    }

    /// Returns the threads of the span, starting with those of the first job.
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
            // Shared threads work on all targets, others on one each.
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

    /// Creates a span of jobs that are measured from start to end.
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
    /// Returns `workload`, one of this job, for the target at `place`. `flush_before_next` is kept only for
    /// the last target: after the last write to any other, the job goes on.
    pub fn workload_on(&self, place: usize, mut workload: Workload) -> Workload {
        workload.durability.flush_before_next &= place + 1 >= self.targets.len();
        workload
    }

    /// Creates a job of one thread on one target with direct I/O.
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
