//! Translation of a SQLIO run for Linux.
//!
//! | SQLIO | here |
//! |---|---|
//! | `-BN` | O_DIRECT and RWF_DSYNC |
//! | `-BH` | O_DIRECT |
//! | `-BS` | page cache and RWF_DSYNC |
//! | `-BY` | page cache |
//! | `-o0` | pread and pwrite, one after the other |

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Access, BlockSizes, ByteRange, Caching, Content, Division, Durability, EngineChoice, Job, Opening,
    Scenario, Sequential, Span, Stop, TargetUse, Walk, Workload,
};

use super::{Buffering, File, Invocation, Pattern};
use crate::error::Error;
use crate::{Meaning, native};

impl Invocation {
    /// Translates the run to a scenario.
    ///
    /// # Errors
    /// The unsupported option, and the reason.
    pub fn meaning(&self) -> Result<Meaning, Error> {
        let jobs = self.files.iter().enumerate().map(|(place, file)| self.job(file, place)).collect();
        let scenario = Scenario { spans: vec![Span::new(jobs)] };
        native::check(&scenario, "SQLIO")?;
        Ok(Meaning { scenario, notes: self.notes() })
    }

    fn job(&self, file: &File, place: usize) -> Job {
        Job {
            targets: vec![TargetUse { name: file.name.clone(), weight: 1 }],
            threads: file.threads,
            size: file.size.map(Bytes),
            opening: self.opening(file),
            affinity: file.affinity.clone(),
            ..Job::on(&file.name, self.workload(place))
        }
    }

    fn opening(&self, file: &File) -> Opening {
        let caching = match self.buffering {
            _ if file.name.starts_with('#') => Caching::Direct,
            Buffering::None | Buffering::Hardware => Caching::Direct,
            Buffering::All | Buffering::Software => Caching::Cached,
        };
        let engine = if self.outstanding <= 1 { EngineChoice::Synchronous } else { EngineChoice::Auto };
        Opening { caching, engine, ..Opening::CACHED }
    }

    fn workload(&self, place: usize) -> Workload {
        let block = Bytes(self.block);
        let sequential = |stride| Access::Sequential(Sequential { stride, walk: Walk::Each });
        let durable = matches!(self.buffering, Buffering::None | Buffering::Software);
        let range =
            ByteRange { offset: Bytes(self.start_block.saturating_mul(self.block)), ..ByteRange::ALL };
        Workload {
            blocks: BlockSizes::one(block),
            access: match self.pattern {
                Pattern::Random => Access::RANDOM,
                Pattern::Sequential => sequential(None),
                Pattern::Stripe(blocks) => {
                    sequential(Some(Bytes(u64::from(blocks).saturating_mul(self.block))))
                }
            },
            write_percent: if self.writes { 100 } else { 0 },
            depth: self.outstanding.max(1),
            stop: Stop::after(Nanos::secs(u64::from(self.seconds))),
            durability: if self.writes && durable { Durability::EACH_WRITE } else { Durability::default() },
            seed: (place as u64) << 32,
            division: Division::Overlap,
            content: Content::Repeated,
            ..Workload::over(range, block)
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "SQLIO was retired in 2015: what its switches mean is recalled, and could not be checked"
                .to_owned(),
        ];
        let cached = matches!(self.buffering, Buffering::All | Buffering::Software);
        if cached && self.files.iter().any(|file| file.name.starts_with('#')) {
            notes.push("#N is always opened past the page cache (O_DIRECT)".to_owned());
        }
        if self.ios_per_run.is_some() {
            notes.push(
                "-i: I/Os follow one another until the time is over; runs make no difference".to_owned(),
            );
        }
        if matches!(self.pattern, Pattern::Stripe(_)) {
            notes.push("-f: after the end of the file a stripe continues at its start".to_owned());
        }
        notes
    }
}
