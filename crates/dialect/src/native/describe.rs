//! Conversion of a scenario to words: those that differ from the defaults.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Access, Affinity, Arrival, BlockSizes, BlockSplit, ByteRange, Content, Distribution, Job, Layout,
    PageCache, Priority, Random, Rate, Runs, Span, TraceUse, Walk, Warmup,
};

use super::defaults;
use super::meaning::CACHING;
use super::vocabulary::{SyncKind, Weights};
use super::words::{Value, Words};

impl Words {
    /// Returns the words for a span as a whole.
    pub(super) fn of_span(span: &Span) -> Self {
        let mut words = Self::default();
        words.say_unless("warmup", &span.warmup, &Warmup::For(Nanos::ZERO));
        words.say_unless("cooldown", &span.cooldown, &Nanos::ZERO);
        words.say_flag("precondition", span.precondition);
        words.say_some("steady", span.steady.map(|steady| steady.rounds_max));
        words.say_some("latency-target", span.latency_target);
        words
    }

    /// Returns the words for a job.
    pub(super) fn of_job(job: &Job) -> Self {
        let mut words = Self::default();
        let names: Vec<String> = job.targets.iter().map(|target| target.name.clone()).collect();
        let first = names.first().or(job.trace.as_ref().map(|trace| &trace.path));
        if first != Some(&job.name) {
            words.say("name", Value::Text(job.name.clone()));
        }
        if !names.is_empty() {
            words.say("targets", Value::Texts(names));
        }
        if job.targets.iter().any(|target| target.weight != 1) {
            words
                .say_some("weights", Some(Weights(job.targets.iter().map(|target| target.weight).collect())));
        }
        words.say_unless("threads", &job.threads, &1);
        words.say_flag("threads-shared", job.threads_shared);
        words.say_flag("same-threads", job.same_threads);
        words.say_flag("depth-shared", job.depth_shared);
        words.say_some("size", job.size);
        words.say_unless("layout", &job.layout, &Layout::Written);
        words.say_flag("append", job.append);
        words.say_unless("page-cache", &job.page_cache, &PageCache::AsIs);
        words.say_unless("affinity", &job.affinity, &Affinity::Any);
        words.say_unless("priority", &job.priority, &Priority::Normal);
        words.say_flag("continue-on-error", job.continue_on_error);
        words.say_unless("start-delay", &job.start_delay, &Nanos::ZERO);
        words.say_opening(job);
        words.say_workload(job);
        if let Some(trace) = &job.trace {
            words.say_trace(trace);
        }
        words
    }

    fn say_trace(&mut self, trace: &TraceUse) {
        let all = TraceUse::new(&trace.path);
        self.say("trace", Value::Text(trace.path.clone()));
        self.say_unless("trace-speed", &trace.speed, &all.speed);
        self.say_unless("trace-scale", &trace.scale, &all.scale);
        self.say_unless("trace-align", &trace.align, &all.align);
        self.say_unless("trace-skip", &trace.skip, &all.skip);
    }

    fn say_opening(&mut self, job: &Job) {
        let (opening, durability) = (job.opening, job.workload.durability);
        let caching = CACHING.into_iter().find(|(_, caching)| *caching == opening.caching);
        caching
            .into_iter()
            .for_each(|(word, caching)| self.say_flag(word, caching != defaults::OPENING.caching));
        self.say_unless("engine", &opening.engine, &defaults::OPENING.engine);
        let changes_flush = opening.flush != defaults::OPENING.flush;
        self.say_some("sync-kind", changes_flush.then_some(SyncKind::Call(opening.flush)));
        // A kind of sync without a count would promise a sync that never occurs.
        let never = (changes_flush && !durability.flush_at_end).then_some(0);
        self.say_some("sync-every", durability.flush_every.map(NonZeroU32::get).or(never));
        self.say_flag("sync-at-end", durability.flush_at_end);
        self.say_unless("durable-write", &opening.durable_write, &defaults::OPENING.durable_write);
        let never = (opening.durable_write != defaults::OPENING.durable_write).then_some(0);
        let every = durability.fua_every.map(NonZeroU32::get);
        self.say_flag("raw-flush", opening.raw_flush);
        self.say_flag("atomic", opening.untorn);
        self.say_flag("dsync", every == Some(1));
        self.say_some("dsync-every", every.or(never).filter(|every| *every != 1));
    }

    fn say_workload(&mut self, job: &Job) {
        let workload = &job.workload;
        self.say_blocks(&workload.blocks);
        self.say_access(&workload.access);
        self.say_pace(job);
        self.say_unless("write", &workload.write_percent, &0);
        self.say_unless("trim", &workload.trim_percent, &0);
        self.say_unless("offset", &workload.range.offset, &ByteRange::ALL.offset);
        self.say_unless("length", &workload.range.length, &ByteRange::ALL.length);
        self.say_unless("division", &workload.division, &defaults::division(&workload.access));
        self.say_unless("content", &workload.content, &Content::Pattern);
        self.say_flag("verify", workload.verify);
        self.say_some("seed", Some(workload.seed));
    }

    fn say_blocks(&mut self, blocks: &BlockSizes) {
        self.say_unless("block-size", &blocks.read, &BlockSplit::one(defaults::BLOCK));
        self.say_unless("write-block-size", &blocks.write, &blocks.read);
        self.say_unless("trim-block-size", &blocks.trim, &blocks.read);
    }

    fn say_access(&mut self, access: &Access) {
        match access {
            Access::Sequential(sequential) => {
                self.say_flag("sequential", true);
                self.say_some("stride", sequential.stride);
                self.say_unless("walk", &sequential.walk, &Walk::Each);
            }
            Access::Random(Random { align, distribution, runs }) => {
                self.say_some("align", *align);
                self.say_unless("distribution", distribution, &Distribution::Uniform);
                match *runs {
                    Runs::Single => {}
                    Runs::Geometric { random_percent } => {
                        self.say_some("random-percent", Some(random_percent))
                    }
                    Runs::Fixed(length) => self.say_some("run-length", Some(length)),
                }
            }
        }
    }

    fn say_pace(&mut self, job: &Job) {
        let (workload, has_trace) = (&job.workload, job.trace.is_some());
        self.say_unless("depth", &workload.depth, &defaults::depth(has_trace, job.opening));
        if let Rate::Scheduled { amount, arrival } = workload.rate {
            self.say_some("rate", Some(amount));
            self.say_unless("arrival", &arrival, &Arrival::Fixed);
        }
        if let Some(burst) = workload.burst {
            self.say_some("burst", Some(burst.operations));
            self.say_some("pause", Some(burst.pause));
        }
        if workload.stop != defaults::stop(has_trace) {
            self.say_some("duration", workload.stop.duration);
            self.say_some("count", workload.stop.operations);
            self.say_some("bytes", workload.stop.bytes.map(Bytes));
        }
    }
}
