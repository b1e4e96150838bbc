//! Translation of words to a scenario.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Access, Affinity, Arrival, BlockSizes, BlockSplit, Burst, ByteRange, Caching, Content, Distribution,
    Durability, Job, Opening, Priority, Random, Rate, Role, Runs, Scenario, Sequential, Span, Steady, Stop,
    TargetUse, TraceUse, Walk, Warmup, Workload,
};

use super::defaults;
use super::invalid_field::InvalidField;
use super::rules;
use super::vocabulary::{SyncKind, Weights};
use super::word_error::WordError;
use super::words::Words;
use crate::{Error, Meaning};

type WordResult<T> = Result<T, WordError>;

/// Values of the word for caching.
pub(super) const CACHING: [(&str, Caching); 4] = [
    ("cached", Caching::Cached),
    ("drop-behind", Caching::DropBehind),
    ("mapped", Caching::Mapped),
    ("direct", Caching::Direct),
];

impl Words {
    /// Translates the words of a command line to one span with one job. `default_seed` applies unless the
    /// words contain a seed.
    ///
    /// # Errors
    /// Names the word, its value and the expected form.
    pub fn meaning(&self, default_seed: u64) -> Result<Meaning, Error> {
        rules::check_agreement(self).map_err(|error| error.typed())?;
        let job = self.job(default_seed).map_err(|error| error.typed())?;
        let scenario = Scenario { spans: vec![self.span(vec![job])] };
        scenario.validate().map_err(|invalid| InvalidField::from_invalid(invalid).error(self).typed())?;
        Ok(Meaning { scenario, notes: Vec::new() })
    }

    /// Returns the span of these words, with `jobs`.
    pub(super) fn span(&self, jobs: Vec<Job>) -> Span {
        Span {
            warmup: self.value("warmup").unwrap_or(Warmup::For(Nanos::ZERO)),
            cooldown: self.value("cooldown").unwrap_or(Nanos::ZERO),
            precondition: self.has("precondition"),
            steady: self.value("steady").map(|rounds_max| Steady { rounds_max }),
            latency_target: self.value("latency-target"),
            jobs,
        }
    }

    /// Returns the job of these words. The scenario validates it.
    pub(super) fn job(&self, default_seed: u64) -> WordResult<Job> {
        rules::check_completeness(self)?;
        let targets = self.target_uses()?;
        let first = targets.first().map(|first| first.name.as_str()).or(self.text("trace"));
        let Some(first) = first else {
            return Err(WordError::unexpected(
                "targets",
                "none",
                "at least one target: a file, a disk, sim:MODEL or an NBD URI",
            ));
        };
        Ok(Job {
            name: self.text("name").unwrap_or(first).to_owned(),
            role: Role::Load,
            threads: self.value("threads").unwrap_or(1),
            threads_shared: self.has("threads-shared"),
            same_threads: self.has("same-threads"),
            depth_shared: self.has("depth-shared"),
            size: self.value("size"),
            opening: self.opening()?,
            layout: self.value("layout").unwrap_or_default(),
            append: self.has("append"),
            page_cache: self.value("page-cache").unwrap_or_default(),
            affinity: self.value("affinity").unwrap_or(Affinity::Any),
            priority: self.value("priority").unwrap_or(Priority::Normal),
            continue_on_error: self.has("continue-on-error"),
            start_delay: self.value("start-delay").unwrap_or(Nanos::ZERO),
            trace: self.trace_use(),
            program: None,
            workload: self.workload(default_seed)?,
            targets,
        })
    }

    fn target_uses(&self) -> WordResult<Vec<TargetUse>> {
        let targets = self.targets();
        let Weights(weights) = self.value("weights").unwrap_or_else(|| Weights(vec![1; targets.len()]));
        if weights.len() != targets.len() {
            let expected = format!("one for each of {} targets", targets.len());
            return Err(WordError::unexpected("weights", format!("{} weights", weights.len()), expected));
        }
        Ok(targets.into_iter().zip(weights).map(|(name, weight)| TargetUse { name, weight }).collect())
    }

    fn trace_use(&self) -> Option<TraceUse> {
        let all = TraceUse::new(self.text("trace")?);
        Some(TraceUse {
            speed: self.value("trace-speed").unwrap_or(all.speed),
            scale: self.value("trace-scale").unwrap_or(all.scale),
            align: self.value("trace-align").unwrap_or(all.align),
            skip: self.value("trace-skip").unwrap_or(all.skip),
            ..all
        })
    }

    fn opening(&self) -> WordResult<Opening> {
        let said = CACHING.into_iter().find(|(word, _)| self.has(word)).map(|(_, caching)| caching);
        if said.is_none() && self.denies("direct") {
            return Err(WordError::unexpected(
                "direct",
                "false",
                "the alternative: cached, drop-behind or mapped",
            ));
        }
        let flush = match self.value("sync-kind") {
            Some(SyncKind::Call(call)) => call,
            Some(SyncKind::Dsync) | None => defaults::OPENING.flush,
        };
        Ok(Opening {
            caching: said.unwrap_or(defaults::OPENING.caching),
            engine: self.value("engine").unwrap_or(defaults::OPENING.engine),
            flush,
            durable_write: self.value("durable-write").unwrap_or(defaults::OPENING.durable_write),
            raw_flush: self.has("raw-flush"),
            untorn: self.has("atomic"),
        })
    }

    fn workload(&self, default_seed: u64) -> WordResult<Workload> {
        let access = self.access()?;
        Ok(Workload {
            blocks: self.blocks(),
            write_percent: self.value("write").unwrap_or(0),
            trim_percent: self.value("trim").unwrap_or(0),
            depth: self
                .value("depth")
                .unwrap_or(defaults::depth(self.text("trace").is_some(), self.opening()?)),
            stop: self.stop(),
            durability: self.durability()?,
            rate: self.rate(),
            burst: self.burst(),
            seed: self.value("seed").unwrap_or(default_seed),
            range: ByteRange {
                offset: self.value("offset").unwrap_or(ByteRange::ALL.offset),
                length: self.value("length").unwrap_or(ByteRange::ALL.length),
            },
            division: self.value("division").unwrap_or(defaults::division(&access)),
            content: self.value("content").unwrap_or(Content::Pattern),
            verify: self.has("verify"),
            access,
        })
    }

    fn blocks(&self) -> BlockSizes {
        let read = self.value("block-size").unwrap_or(BlockSplit::one(defaults::BLOCK));
        let of = |word| self.value(word).unwrap_or_else(|| read.clone());
        BlockSizes { write: of("write-block-size"), trim: of("trim-block-size"), read }
    }

    fn access(&self) -> WordResult<Access> {
        let stride: Option<Bytes> = self.value("stride");
        let walk = self.value("walk");
        if self.has("sequential") || stride.is_some() || walk.is_some() {
            return Ok(Access::Sequential(Sequential { stride, walk: walk.unwrap_or(Walk::Each) }));
        }
        if self.denies("random") {
            return Err(WordError::unexpected("random", "false", "the alternative: sequential, or a stride"));
        }
        let runs = match (self.value("random-percent"), self.value("run-length")) {
            (Some(random_percent), _) => Runs::Geometric { random_percent },
            (None, Some(length)) => Runs::Fixed(length),
            (None, None) => Runs::Single,
        };
        let distribution = self.value("distribution").unwrap_or(Distribution::Uniform);
        Ok(Access::Random(Random { align: self.value("align"), distribution, runs }))
    }

    fn stop(&self) -> Stop {
        let bytes = self.value("bytes").map(|Bytes(bytes)| bytes);
        let said = Stop { duration: self.value("duration"), operations: self.value("count"), bytes };
        if said == Stop::default() { defaults::stop(self.text("trace").is_some()) } else { said }
    }

    fn durability(&self) -> WordResult<Durability> {
        let every = self.value("sync-every").and_then(NonZeroU32::new);
        let flush_at_end = self.has("sync-at-end");
        if self.value("sync-kind") == Some(SyncKind::Dsync) {
            if let Some(word) = ["dsync", "dsync-every"].into_iter().find(|word| self.has(word)) {
                return Err(WordError::contradiction(word, "sync-kind"));
            }
            if !self.has("sync-every") {
                return Err(WordError::need("sync-kind", "sync-every"));
            }
            return Ok(Durability { flush_at_end, fua_every: every, ..Durability::NEVER });
        }
        let each = (self.has("dsync")).then_some(NonZeroU32::MIN);
        let fua_every = each.or(self.value("dsync-every").and_then(NonZeroU32::new));
        Ok(Durability { flush_every: every, flush_at_end, fua_every, ..Durability::NEVER })
    }

    fn rate(&self) -> Rate {
        self.value("rate").map_or(Rate::Unlimited, |amount| Rate::Scheduled {
            amount,
            arrival: self.value("arrival").unwrap_or(Arrival::Fixed),
        })
    }

    fn burst(&self) -> Option<Burst> {
        let (operations, pause) = (self.value("burst")?, self.value("pause")?);
        Some(Burst { operations, pause })
    }
}
