//! Share of target files that is in the page cache when a span begins.

use std::fs::File;

use plumb_block::{Bytes, Error, Nanos};
use plumb_linux::pagecache;
use plumb_load::{Phase, RunOptions, Team, Worker, WorkerOptions, run_teams};
use plumb_targets::TargetKind;
use plumb_workload::{Access, ByteRange, PageCache, Span, Stop, Workload};

use crate::error::TrialError;
use crate::span::SpanRunner;
use crate::targets::JobTarget;

/// Block size for reading a file into the page cache.
const LOAD_BLOCK: Bytes = Bytes::mib(1);
/// Divisor of the duration that gives the time left for the measurement, however long loading took.
const DURATION_SHARE: u64 = 4;

impl SpanRunner<'_> {
    /// Brings the page cache into the state that the jobs of a span request. Returns the span with the rest
    /// of its time.
    ///
    /// # Errors
    /// If a file cannot be examined or read.
    pub(crate) fn set_page_cache(&mut self, number: usize, span: &Span) -> Result<Span, TrialError> {
        let mut left = span.clone();
        let targets = self.targets;
        for (_, one) in targets.of_span(number).filter(|(_, one)| one.opened.kind == TargetKind::RegularFile)
        {
            let job = &span.jobs[one.job];
            if job.page_cache != PageCache::AsIs {
                evict(one)?;
            }
            if job.page_cache == PageCache::Loaded {
                let took = self.load(number, one, &job.workload)?;
                let duration = &mut left.jobs[one.job].workload.stop.duration;
                *duration = duration.map(|all| Nanos(all.since(took).0.max(all.0 / DURATION_SHARE)));
            }
        }
        Ok(left)
    }

    /// Reads the range of a target in order, for at most half of the duration. Returns the time that it took.
    fn load(&mut self, number: usize, one: &JobTarget, asked: &Workload) -> Result<Nanos, TrialError> {
        let unfit = |source| TrialError::Unfit { target: one.opened.shown.clone(), source };
        let ByteRange { offset, length } = one.within(asked)?.range;
        let block = LOAD_BLOCK.min(length);
        let workload = Workload {
            access: Access::SEQUENTIAL,
            stop: Stop {
                duration: asked.stop.duration.map(|all| Nanos(all.0 / 2)),
                operations: Some((length.0 / block.0).max(1)),
                bytes: None,
            },
            ..Workload::over(ByteRange { offset, length }, block)
        };
        self.observer.phase(number, &Phase::LoadingPageCache, workload.stop.duration);
        let begun = self.context.clock.now();
        let worker = Worker::new(&*one.opened.device, &workload, WorkerOptions::default()).map_err(unfit)?;
        let options = RunOptions {
            duration: workload.stop.duration,
            ..RunOptions::whole(self.targets.time.clone(), self.context.stop)
        };
        let teams = run_teams(vec![Team::single(worker)], &options, &mut ()).map_err(|failure| {
            TrialError::PageCache { target: one.opened.shown.clone(), source: failure.fault }
        })?;
        let read = teams.iter().flat_map(|team| &team.workers).map(|worker| worker.outcome.read.bytes).max();
        // The loaded part consists of whole blocks of the load.
        let step = asked.block_max();
        let loaded = read.unwrap_or_default().max(block).min(length).round_down(step).max(step);
        one.loaded.get_or_init(|| loaded);
        Ok(self.context.clock.now().since(begun))
    }
}

/// Drops the clean pages of a target.
fn evict(one: &JobTarget) -> Result<(), TrialError> {
    let failed =
        |source: Error| TrialError::Unfit { target: one.opened.shown.clone(), source: source.into() };
    let Some(path) = one.opened.path() else { return Ok(()) };
    let file =
        File::open(path).map_err(|error| failed(Error::io(&error, "open", one.opened.shown.as_str())))?;
    pagecache::drop_clean(&file, Bytes(0), one.opened.size, &one.opened.shown).map_err(failed)
}
