//! The table of application against storage: random reads and writes, through the page cache and past it.

use std::sync::Arc;

use plumb_block::{Bytes, Device, EngineChoice, Lba, LbaRange, Nanos, Time, written_share};
use plumb_linux::FileOptions;
use plumb_load::{LoadOutcome, Worker, WorkerOptions};
use plumb_measure::{IoResult, Quality};
use plumb_workload::{Access, ByteRange, Content, Stop, Workload};

use crate::ended::Mishap;
use crate::error::CheckError;
use crate::ground::Ground;
use crate::plan::{IO_BLOCK, IO_DEPTH, IoKind, Phase};
use crate::session::{Session, Window};
use crate::storage::Side;

/// The block with which a file is read into the page cache.
const WARM_BLOCK: Bytes = Bytes::mib(1);

/// What one load measured.
struct Measured {
    outcome: LoadOutcome,
    side: Side,
    written_share: Option<f64>,
    dirty_after: Option<Bytes>,
}

impl Session<'_> {
    /// Measures one load and keeps its result, also if that is why there is none.
    pub(crate) fn io(&mut self, kind: IoKind, ground: &Ground) -> Result<Result<(), Mishap>, CheckError> {
        let phase = Phase::Io(kind);
        self.announce(phase);
        let depth = if kind.direct { IO_DEPTH } else { 1 };
        let mut result = IoResult {
            name: kind.name().to_owned(),
            block_bytes: IO_BLOCK.0,
            depth,
            range_bytes: ground.size().0,
            application: None,
            storage: None,
            storage_unknown_because: None,
            dirty_bytes_after: None,
            quality: Quality::default(),
            failed_because: None,
        };
        let measured = self.load(kind, phase, ground, &mut result);
        let mishap = match measured {
            Ok(measured) => {
                let part = if kind.write { "write" } else { "read" };
                let both = measured.outcome.operations();
                let window = Window {
                    parts: &[(part, &both.latency)],
                    series: &both.series,
                    length: measured.outcome.length,
                };
                self.keep(phase, &window)?;
                fill_in(&mut result, kind, self.has_one_leaf(), measured);
                Ok(())
            }
            Err(mishap) => {
                result.failed_because = Some(mishap.reason());
                result.storage_unknown_because = Some("it could not be measured".to_owned());
                Err(mishap)
            }
        };
        self.document.io.push(result);
        Ok(mishap)
    }

    fn load(
        &mut self,
        kind: IoKind,
        phase: Phase,
        ground: &Ground,
        result: &mut IoResult,
    ) -> Result<Measured, Mishap> {
        ground.forget()?;
        let device = self.open(kind, ground)?;
        let used = LbaRange::new(Lba(0), ground.size().0 / device.info().logical_block.0);
        let extents = device.extents(used).ok();
        let written_share = extents.and_then(|extents| written_share(&extents));
        let mut length = ground.size();
        let mut time = self.time_for(phase);
        if !kind.write && !kind.direct {
            let begun = self.clock.now();
            length = self.warm(&*device, phase, length)?;
            time = Nanos(time.since(self.clock.now().since(begun)).0.max(time.0 / 4));
        }
        result.range_bytes = length.0;
        let workload = Workload {
            write_percent: if kind.write { 100 } else { 0 },
            depth: result.depth,
            stop: self.stop_after(time),
            seed: self.request.seed,
            // To memory, making fresh noise for each write would cost more than the write: one block of it does.
            content: if kind.direct { Content::Pattern } else { Content::Repeated },
            ..Workload::over(ByteRange { offset: Bytes(0), length }, IO_BLOCK)
        };
        let worker = Worker::new(&*device, &workload, WorkerOptions::default())?;
        let (outcome, side, steal) = self.run(phase, worker)?;
        result.quality = Quality { steal, ..outcome.quality() };
        let dirty_after = (kind.write && !kind.direct).then(|| ground.dirty()).flatten();
        Ok(Measured { outcome, side, written_share, dirty_after })
    }

    /// Direct requests go through io_uring where that is allowed; cached ones are calls, as applications make them.
    fn open(&mut self, kind: IoKind, ground: &Ground) -> Result<Arc<dyn Device>, Mishap> {
        let options = match (kind.write, kind.direct) {
            (false, true) => FileOptions::read_direct(),
            (true, true) => FileOptions::write_direct(),
            (false, false) => FileOptions::read_buffered().engine(EngineChoice::Synchronous),
            (true, false) => FileOptions::write_buffered().engine(EngineChoice::Synchronous),
        };
        let (device, engine) = ground.open(options, &self.clock)?;
        if kind.direct {
            self.keep_engine(engine.as_ref());
        }
        Ok(device)
    }

    /// Reads the file into the page cache, for at most half the time of the phase, and returns how much of it is
    /// there: what is cached is then measured, and nothing else.
    fn warm(&mut self, device: &dyn Device, phase: Phase, size: Bytes) -> Result<Bytes, Mishap> {
        let block = WARM_BLOCK.min(size);
        let workload = Workload {
            access: Access::SEQUENTIAL,
            stop: Stop::operations((size.0 / block.0).max(1)),
            ..Workload::over(ByteRange { offset: Bytes(0), length: size }, block)
        };
        let worker = Worker::new(device, &workload, WorkerOptions::default())?;
        let limit = self.time_for(phase).0 / 2;
        let enough = std::sync::atomic::AtomicBool::new(false);
        let stop = self.stop;
        let time = Time::Real(Arc::clone(&self.clock));
        let outcome = plumb_load::run(vec![worker], &time, &enough, &mut |progress| {
            let over = progress.elapsed.0 > limit || stop.load(std::sync::atomic::Ordering::Relaxed);
            enough.store(over, std::sync::atomic::Ordering::Relaxed);
        })?;
        Ok(outcome.read.bytes.max(block).min(size))
    }

    /// Whether all data goes to one device once, so that bytes can be compared with the application's.
    fn has_one_leaf(&self) -> bool {
        self.document.path.block_devices().len() == 1
    }
}

/// Completes the result of a load that could be measured.
fn fill_in(result: &mut IoResult, kind: IoKind, one_leaf: bool, measured: Measured) {
    let application = measured.outcome.application();
    result.quality.written_share = measured.written_share;
    if let (true, true, Ok(side)) = (kind.direct, one_leaf, &measured.side) {
        // A file system may write as much metadata as data (mounted with `sync`): that is not foreign.
        let own = if kind.write { 2 * application.bytes } else { application.bytes };
        let moved = side.read_bytes + side.write_bytes;
        result.quality.foreign_bytes = Some(moved.saturating_sub(own));
    }
    result.application = Some(application);
    result.dirty_bytes_after = measured.dirty_after.map(|bytes| bytes.0);
    match measured.side {
        Ok(side) => result.storage = Some(side),
        Err(why) => result.storage_unknown_because = Some(why),
    }
}
