//! What words mean.

use std::num::NonZeroU32;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Access, Affinity, Arrival, BlockSizes, BlockSplit, Burst, ByteRange, Caching, Content, Distribution,
    Durability, Job, Opening, Priority, Random, Rate, Runs, Scenario, Sequential, Span, Steady, Stop,
    TargetUse, TraceUse, Walk, Warmup, Workload,
};

use super::blame::Blamed;
use super::defaults;
use super::fault::Fault;
use super::rules;
use super::typed::Typed;
use super::vocabulary::SyncKind;
use super::words::Words;
use crate::{Error, Meaning};

type Meant<T> = Result<T, Fault>;

impl Words {
    /// What a command line of these words means: one span of one job. The seed is `default_seed` unless it is said.
    ///
    /// # Errors
    /// Names the word, its value and what was expected.
    pub fn meaning(&self, default_seed: u64) -> Result<Meaning, Error> {
        let said = self.said();
        rules::check_agreement(&said).map_err(|fault| fault.typed())?;
        let job = self.job(default_seed).map_err(|fault| fault.typed())?;
        let scenario = Scenario { spans: vec![self.span(vec![job])] };
        scenario.validate().map_err(|invalid| Blamed::of(invalid).fault(&said).typed())?;
        Ok(Meaning { scenario, notes: Vec::new() })
    }

    /// The span that these words describe, with `jobs`.
    pub(super) fn span(&self, jobs: Vec<Job>) -> Span {
        Span {
            warmup: value(&self.warmup).unwrap_or(Warmup::For(Nanos::ZERO)),
            cooldown: value(&self.cooldown).unwrap_or(Nanos::ZERO),
            precondition: self.precondition == Some(true),
            steady: value(&self.steady).map(|rounds_max| Steady { rounds_max }),
            latency_target: value(&self.latency_target),
            jobs,
        }
    }

    /// The job that these words describe. Whether it is a valid one is for the scenario to say.
    pub(super) fn job(&self, default_seed: u64) -> Meant<Job> {
        rules::check_completeness(&self.said())?;
        let targets = self.target_uses()?;
        let Some(first) = targets.first().map(|first| &first.name).or(self.trace.as_ref()) else {
            return Err(Fault::unexpected(
                "targets",
                "none",
                "at least one target: a file, a disk, sim:MODEL or an NBD URI",
            ));
        };
        Ok(Job {
            name: self.name.clone().unwrap_or_else(|| first.clone()),
            threads: value(&self.threads).unwrap_or(1),
            threads_shared: self.threads_shared == Some(true),
            depth_shared: self.depth_shared == Some(true),
            size: value(&self.size),
            opening: self.opening()?,
            affinity: value(&self.affinity).unwrap_or(Affinity::Any),
            priority: value(&self.priority).unwrap_or(Priority::Normal),
            continue_on_error: self.continue_on_error == Some(true),
            start_delay: value(&self.start_delay).unwrap_or(Nanos::ZERO),
            trace: self.trace_use(),
            workload: self.workload(default_seed)?,
            targets,
        })
    }

    fn target_uses(&self) -> Meant<Vec<TargetUse>> {
        let targets = self.targets.iter().cloned();
        let Some(Typed(weights)) = &self.weights else {
            return Ok(targets.map(|name| TargetUse { name, weight: 1 }).collect());
        };
        if weights.0.len() != self.targets.len() {
            let expected = format!("one for each of {} targets", self.targets.len());
            return Err(Fault::unexpected("weights", format!("{} weights", weights.0.len()), expected));
        }
        Ok(targets.zip(&weights.0).map(|(name, weight)| TargetUse { name, weight: *weight }).collect())
    }

    fn trace_use(&self) -> Option<TraceUse> {
        let all = TraceUse::of(self.trace.as_ref()?);
        Some(TraceUse {
            speed: value(&self.trace_speed).unwrap_or(all.speed),
            scale: value(&self.trace_scale).unwrap_or(all.scale),
            align: value(&self.trace_align).unwrap_or(all.align),
            skip: value(&self.trace_skip).unwrap_or(all.skip),
            ..all
        })
    }

    fn opening(&self) -> Meant<Opening> {
        let choices = [
            (self.cached, Caching::Cached),
            (self.drop_behind, Caching::DropBehind),
            (self.mapped, Caching::Mapped),
            (self.direct, Caching::Direct),
        ];
        let said = choices.into_iter().find(|(said, _)| *said == Some(true)).map(|(_, caching)| caching);
        if said.is_none() && self.direct == Some(false) {
            return Err(Fault::unexpected(
                "direct",
                "false",
                "to hear which instead: cached, drop-behind or mapped",
            ));
        }
        let flush = match value(&self.sync_kind) {
            Some(SyncKind::Call(call)) => call,
            Some(SyncKind::Dsync) | None => defaults::OPENING.flush,
        };
        Ok(Opening {
            caching: said.unwrap_or(defaults::OPENING.caching),
            engine: value(&self.engine).unwrap_or(defaults::OPENING.engine),
            flush,
            durable_write: value(&self.durable_write).unwrap_or(defaults::OPENING.durable_write),
        })
    }

    fn workload(&self, default_seed: u64) -> Meant<Workload> {
        let access = self.access()?;
        Ok(Workload {
            blocks: self.blocks(),
            write_percent: value(&self.write).unwrap_or(0),
            trim_percent: value(&self.trim).unwrap_or(0),
            depth: value(&self.depth).unwrap_or(defaults::depth(self.trace.is_some(), self.opening()?)),
            stop: self.stop(),
            durability: self.durability()?,
            rate: self.rate(),
            burst: self.burst(),
            seed: value(&self.seed).unwrap_or(default_seed),
            range: ByteRange {
                offset: value(&self.offset).unwrap_or(ByteRange::ALL.offset),
                length: value(&self.length).unwrap_or(ByteRange::ALL.length),
            },
            division: value(&self.division).unwrap_or(defaults::division(&access)),
            content: value(&self.content).unwrap_or(Content::Pattern),
            verify: self.verify == Some(true),
            access,
        })
    }

    fn blocks(&self) -> BlockSizes {
        let read = value(&self.block_size).unwrap_or(BlockSplit::one(defaults::BLOCK));
        let of = |said: &Option<Typed<BlockSplit>>| value(said).unwrap_or_else(|| read.clone());
        BlockSizes { write: of(&self.write_block_size), trim: of(&self.trim_block_size), read }
    }

    fn access(&self) -> Meant<Access> {
        let stride: Option<Bytes> = value(&self.stride);
        let walk = value(&self.walk);
        if self.sequential == Some(true) || stride.is_some() || walk.is_some() {
            return Ok(Access::Sequential(Sequential { stride, walk: walk.unwrap_or(Walk::Each) }));
        }
        if self.random == Some(false) {
            return Err(Fault::unexpected(
                "random",
                "false",
                "to hear what instead: sequential, or a stride",
            ));
        }
        let runs = match (value(&self.random_percent), value(&self.run_length)) {
            (Some(random_percent), _) => Runs::Geometric { random_percent },
            (None, Some(length)) => Runs::Fixed(length),
            (None, None) => Runs::Single,
        };
        let distribution = value(&self.distribution).unwrap_or(Distribution::Uniform);
        Ok(Access::Random(Random { align: value(&self.align), distribution, runs }))
    }

    fn stop(&self) -> Stop {
        let bytes = value(&self.bytes).map(|Bytes(bytes)| bytes);
        let said = Stop { duration: value(&self.duration), operations: value(&self.count), bytes };
        if said == Stop::default() { defaults::stop(self.trace.is_some()) } else { said }
    }

    fn durability(&self) -> Meant<Durability> {
        let every = value(&self.sync_every).and_then(NonZeroU32::new);
        let flush_at_end = self.sync_at_end == Some(true);
        if value(&self.sync_kind) == Some(SyncKind::Dsync) {
            let other = [("dsync", self.dsync == Some(true)), ("dsync-every", self.dsync_every.is_some())];
            if let Some((word, _)) = other.into_iter().find(|(_, said)| *said) {
                return Err(Fault::contradiction(word, "sync-kind"));
            }
            if self.sync_every.is_none() {
                return Err(Fault::need("sync-kind", &["sync-every"]));
            }
            return Ok(Durability { flush_every: None, flush_at_end, fua_every: every });
        }
        let each = (self.dsync == Some(true)).then_some(NonZeroU32::MIN);
        let fua_every = each.or(value(&self.dsync_every).and_then(NonZeroU32::new));
        Ok(Durability { flush_every: every, flush_at_end, fua_every })
    }

    fn rate(&self) -> Rate {
        value(&self.rate).map_or(Rate::Unlimited, |amount| Rate::Scheduled {
            amount,
            arrival: value(&self.arrival).unwrap_or(Arrival::Fixed),
        })
    }

    fn burst(&self) -> Option<Burst> {
        let (operations, pause) = (value(&self.burst)?, value(&self.pause)?);
        Some(Burst { operations, pause })
    }
}

fn value<T: Clone>(said: &Option<Typed<T>>) -> Option<T> {
    said.as_ref().map(|typed| typed.0.clone())
}
