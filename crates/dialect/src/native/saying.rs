//! How a scenario is said: the words that differ from the defaults.

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Access, Affinity, Arrival, BlockSizes, BlockSplit, ByteRange, Caching, Content, Distribution,
    DurableWrite, FlushCall, Job, Priority, Random, Rate, Runs, Span, TraceUse, Walk, Warmup,
};

use super::defaults;
use super::typed::Typed;
use super::vocabulary::{SyncKind, Weights};
use super::words::Words;

impl Words {
    /// The words for what a span says of all its jobs.
    pub(super) fn of_span(span: &Span) -> Self {
        Self {
            warmup: unless(&span.warmup, &Warmup::For(Nanos::ZERO)),
            cooldown: unless(&span.cooldown, &Nanos::ZERO),
            precondition: flag(span.precondition),
            steady: span.steady.map(|steady| Typed(steady.rounds_max)),
            latency_target: span.latency_target.map(Typed),
            ..Self::default()
        }
    }

    /// The words for a job.
    pub(super) fn of_job(job: &Job) -> Self {
        let mut words = Self {
            targets: job.targets.iter().map(|target| target.name.clone()).collect(),
            threads: unless(&job.threads, &1),
            threads_shared: flag(job.threads_shared),
            depth_shared: flag(job.depth_shared),
            size: job.size.map(Typed),
            affinity: unless(&job.affinity, &Affinity::Any),
            priority: unless(&job.priority, &Priority::Normal),
            continue_on_error: flag(job.continue_on_error),
            start_delay: unless(&job.start_delay, &Nanos::ZERO),
            ..Self::default()
        };
        let first =
            job.targets.first().map(|first| &first.name).or(job.trace.as_ref().map(|trace| &trace.path));
        if first != Some(&job.name) {
            words.name = Some(job.name.clone());
        }
        if job.targets.iter().any(|target| target.weight != 1) {
            words.weights = Some(Typed(Weights(job.targets.iter().map(|target| target.weight).collect())));
        }
        words.say_opening(job);
        words.say_workload(job);
        if let Some(trace) = &job.trace {
            words.say_trace(trace);
        }
        words
    }

    fn say_trace(&mut self, trace: &TraceUse) {
        let all = TraceUse::of(&trace.path);
        self.trace = Some(trace.path.clone());
        self.trace_speed = unless(&trace.speed, &all.speed);
        self.trace_scale = unless(&trace.scale, &all.scale);
        self.trace_align = unless(&trace.align, &all.align);
        self.trace_skip = unless(&trace.skip, &all.skip);
    }

    fn say_opening(&mut self, job: &Job) {
        let (opening, durability) = (job.opening, job.workload.durability);
        self.cached = flag(opening.caching == Caching::Cached);
        self.drop_behind = flag(opening.caching == Caching::DropBehind);
        self.mapped = flag(opening.caching == Caching::Mapped);
        self.engine = unless(&opening.engine, &defaults::OPENING.engine);
        self.sync_every = durability.flush_every.map(|every| Typed(every.get()));
        self.sync_at_end = flag(durability.flush_at_end);
        if opening.flush != FlushCall::Fdatasync {
            self.sync_kind = Some(Typed(SyncKind::Call(opening.flush)));
            // A kind alone would promise a sync that never comes.
            if !durability.flush_at_end {
                self.sync_every.get_or_insert(Typed(0));
            }
        }
        match durability.fua_every.map(std::num::NonZeroU32::get) {
            Some(1) => self.dsync = Some(true),
            every => self.dsync_every = every.map(Typed),
        }
        if opening.durable_write != DurableWrite::Dsync {
            self.durable_write = Some(Typed(opening.durable_write));
            if self.dsync.is_none() {
                self.dsync_every.get_or_insert(Typed(0));
            }
        }
    }

    fn say_workload(&mut self, job: &Job) {
        let workload = &job.workload;
        self.say_blocks(&workload.blocks);
        self.say_access(&workload.access);
        self.say_pace(job);
        self.write = unless(&workload.write_percent, &0);
        self.trim = unless(&workload.trim_percent, &0);
        self.offset = unless(&workload.range.offset, &ByteRange::ALL.offset);
        self.length = unless(&workload.range.length, &ByteRange::ALL.length);
        self.division = unless(&workload.division, &defaults::division(&workload.access));
        self.content = unless(&workload.content, &Content::Pattern);
        self.verify = flag(workload.verify);
        self.seed = Some(Typed(workload.seed));
    }

    fn say_blocks(&mut self, blocks: &BlockSizes) {
        self.block_size = unless(&blocks.read, &BlockSplit::one(defaults::BLOCK));
        self.write_block_size = unless(&blocks.write, &blocks.read);
        self.trim_block_size = unless(&blocks.trim, &blocks.read);
    }

    fn say_access(&mut self, access: &Access) {
        match access {
            Access::Sequential(sequential) => {
                self.sequential = Some(true);
                self.stride = sequential.stride.map(Typed);
                self.walk = unless(&sequential.walk, &Walk::Each);
            }
            Access::Random(Random { align, distribution, runs }) => {
                self.align = align.map(Typed);
                self.distribution = unless(distribution, &Distribution::Uniform);
                match *runs {
                    Runs::Single => {}
                    Runs::Geometric { random_percent } => self.random_percent = Some(Typed(random_percent)),
                    Runs::Fixed(length) => self.run_length = Some(Typed(length)),
                }
            }
        }
    }

    fn say_pace(&mut self, job: &Job) {
        let (workload, has_trace) = (&job.workload, job.trace.is_some());
        self.depth = unless(&workload.depth, &defaults::depth(has_trace, job.opening));
        if let Rate::Scheduled { amount, arrival } = workload.rate {
            self.rate = Some(Typed(amount));
            self.arrival = unless(&arrival, &Arrival::Fixed);
        }
        if let Some(burst) = workload.burst {
            self.burst = Some(Typed(burst.operations));
            self.pause = Some(Typed(burst.pause));
        }
        if workload.stop != defaults::stop(has_trace) {
            self.duration = workload.stop.duration.map(Typed);
            self.count = workload.stop.operations.map(Typed);
            self.bytes = workload.stop.bytes.map(|bytes| Typed(Bytes(bytes)));
        }
    }
}

fn unless<T: PartialEq + Clone>(value: &T, default: &T) -> Option<Typed<T>> {
    (value != default).then(|| Typed(value.clone()))
}

fn flag(said: bool) -> Option<bool> {
    said.then_some(true)
}
