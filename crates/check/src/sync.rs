//! What a durable write costs, by each way to make one.
//!
//! These loads go through pwrite and fdatasync, one at a time, because that is what databases do: the way through
//! io_uring would add a hand-over to a kernel thread that they do not pay.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use plumb_block::{Bytes, EngineChoice, Nanos};
use plumb_linux::FileOptions;
use plumb_load::{Worker, WorkerOptions};
use plumb_measure::process::surroundings::processor_times;
use plumb_measure::{Histogram, Quality, Series, Steadiness, SyncMethod, SyncResult};
use plumb_workload::{Access, ByteRange, Durability, Workload};

use crate::append;
use crate::ended::Mishap;
use crate::error::CheckError;
use crate::ground::Ground;
use crate::plan::{APPEND_SHARE, Phase, SYNC_BLOCK};
use crate::session::{Session, Window};
use crate::storage::Side;

/// What one method measured.
struct Measured {
    /// From the start of a write until it was durable.
    durable: Histogram,
    /// The write and the sync apart, where they are two calls.
    apart: Option<(Histogram, Histogram)>,
    series: Series,
    length: Nanos,
    quality: Quality,
    side: Side,
}

impl Session<'_> {
    /// Measures one method and keeps its result, also if that is why there is none.
    pub(crate) fn sync(
        &mut self,
        method: SyncMethod,
        ground: &Ground,
    ) -> Result<Result<(), Mishap>, CheckError> {
        let phase = Phase::Sync(method);
        self.announce(phase);
        let cold = ground.forget();
        let measured = cold.and_then(|()| match (method, ground) {
            (SyncMethod::AppendFdatasync, Ground::File { directory, .. }) => {
                self.appends(phase, directory, ground.size())
            }
            _ => self.writes(method, phase, ground),
        });
        match measured {
            Ok(measured) => {
                let mut parts = vec![("durable", &measured.durable)];
                if let Some((write, sync)) = &measured.apart {
                    parts.extend([("write", write), ("sync", sync)]);
                }
                self.keep(
                    phase,
                    &Window { parts: &parts, series: &measured.series, length: measured.length },
                )?;
                self.document.sync.push(result(method, measured));
                Ok(Ok(()))
            }
            Err(mishap) => {
                self.document.sync.push(failed(method, &mishap));
                Ok(Err(mishap))
            }
        }
    }

    /// Random overwrites; for appends, on a drive, writes in order.
    fn writes(&mut self, method: SyncMethod, phase: Phase, ground: &Ground) -> Result<Measured, Mishap> {
        let dsync = method == SyncMethod::DirectDsync;
        let options = if dsync { FileOptions::write_direct() } else { FileOptions::write_buffered() };
        let (device, _) = ground.open(options.engine(EngineChoice::Synchronous), &self.clock)?;
        let range = ByteRange { offset: Bytes(0), length: ground.size() };
        let plain = Workload::over(range, SYNC_BLOCK);
        let in_order = method == SyncMethod::AppendFdatasync;
        let workload = Workload {
            access: if in_order { Access::SEQUENTIAL } else { plain.access.clone() },
            write_percent: 100,
            stop: self.stop_after(self.time_for(phase)),
            durability: if dsync { Durability::EACH_WRITE } else { Durability::flush_every(NonZeroU32::MIN) },
            seed: self.request.seed,
            ..plain
        };
        let worker = Worker::new(&*device, &workload, WorkerOptions::default())?;
        let (outcome, side, _) = self.run(phase, worker)?;
        let quality = outcome.quality();
        let series = outcome.write.series.clone();
        let length = outcome.length;
        let (durable, apart) = if dsync {
            (outcome.write.latency, None)
        } else {
            (outcome.durable, Some((outcome.write.latency, outcome.flush.latency)))
        };
        Ok(Measured { durable, apart, series, length, quality, side })
    }

    /// Appends to a file of its own.
    fn appends(&mut self, phase: Phase, directory: &Path, size: Bytes) -> Result<Measured, Mishap> {
        let limits = append::Limits { time: self.time_for(phase), size: Bytes(size.0 / APPEND_SHARE) };
        let clock = Arc::clone(&self.clock);
        let (seed, stop) = (self.request.seed, self.stop);
        let times = processor_times();
        let before = self.storage.watch.read();
        let mut shown = Nanos::ZERO;
        let appended = append::run(directory, limits, seed, &*clock, stop, &mut |elapsed| {
            if elapsed.since(shown) > Nanos::millis(100) {
                shown = elapsed;
                self.show(phase, elapsed);
            }
        })?;
        let side = self.storage.watch.between(before, self.storage.watch.read());
        let mut quality = Quality::default();
        let series = appended.series;
        Steadiness::of(&series.whole_points(appended.length), series.width()).put_into(&mut quality);
        quality.steal = times.and_then(|before| processor_times()?.steal_since(&before));
        Ok(Measured {
            durable: appended.durable,
            apart: Some((appended.append, appended.sync)),
            series,
            length: appended.length,
            quality,
            side,
        })
    }
}

/// The result of a method that could be measured.
fn result(method: SyncMethod, measured: Measured) -> SyncResult {
    let operations = measured.durable.count();
    let (flushes, unknown_because) = match &measured.side {
        Ok(side) if side.flushes.is_none() => {
            (None, Some("this kernel does not count flushes (it does since 5.5)".to_owned()))
        }
        Ok(side) => (side.flushes, None),
        Err(why) => (None, Some(why.clone())),
    };
    let (write, sync) = measured.apart.unzip();
    SyncResult {
        method,
        operations,
        latency: measured.durable.summary(),
        write_latency: write.and_then(|write| write.summary()),
        sync_latency: sync.and_then(|sync| sync.summary()),
        seconds: measured.length.as_secs_f64(),
        device_flushes: flushes,
        device_flushes_unknown_because: unknown_because,
        flushes_per_sync: flushes
            .filter(|_| operations > 0)
            .map(|flushes| flushes as f64 / operations as f64),
        storage: measured.side.ok(),
        quality: measured.quality,
        failed_because: None,
    }
}

/// The result of a method that could not.
fn failed(method: SyncMethod, mishap: &Mishap) -> SyncResult {
    SyncResult {
        method,
        operations: 0,
        latency: None,
        write_latency: None,
        sync_latency: None,
        seconds: 0.0,
        device_flushes: None,
        device_flushes_unknown_because: Some("it could not be measured".to_owned()),
        flushes_per_sync: None,
        storage: None,
        quality: Quality::default(),
        failed_because: Some(mishap.reason()),
    }
}
