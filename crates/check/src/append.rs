//! Appends, each made durable: the one load that blocks cannot express, because the file grows.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::{Bytes, Clock, Lba, Nanos, Pattern, Result};
use plumb_linux::AppendFile;
use plumb_measure::{Histogram, Series, SeriesEvent};

use crate::plan::SYNC_BLOCK;

/// What appending measured.
pub(crate) struct Appended {
    /// Append and sync together: the durable write.
    pub(crate) durable: Histogram,
    /// The append alone.
    pub(crate) append: Histogram,
    /// The sync alone.
    pub(crate) sync: Histogram,
    /// Durable writes over time.
    pub(crate) series: Series,
    /// The length of the window.
    pub(crate) length: Nanos,
}

/// For how long to append, and how large the file may become before it starts again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The length of the window.
    pub(crate) time: Nanos,
    /// The largest size of the file.
    pub(crate) size: Bytes,
}

/// Appends and syncs one block after the other. `observe` is told the time since the start after each.
///
/// # Errors
/// The first append or sync that fails ends it.
pub(crate) fn run(
    directory: &Path,
    limits: Limits,
    seed: u64,
    clock: &dyn Clock,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(Nanos),
) -> Result<Appended> {
    let mut file = AppendFile::create(directory)?;
    let mut block = vec![0; SYNC_BLOCK.0 as usize];
    let start = clock.now();
    let mut measured = Appended {
        durable: Histogram::new(),
        append: Histogram::new(),
        sync: Histogram::new(),
        series: Series::starting_at(start, limits.time),
        length: Nanos::ZERO,
    };
    let mut generation = 0;
    while measured.length < limits.time && !stop.load(Ordering::Relaxed) {
        if file.length() + SYNC_BLOCK > limits.size {
            file.restart()?;
        }
        let lba = Lba(file.length().0 / SYNC_BLOCK.0);
        Pattern { seed, lba, generation }.fill(block.len(), &mut block);
        generation += 1;
        let begun = clock.now();
        file.append(&block)?;
        let appended = clock.now();
        file.fdatasync()?;
        let durable = clock.now();
        measured.append.record(appended.since(begun));
        measured.sync.record(durable.since(appended));
        let latency = durable.since(begun);
        measured.durable.record(latency);
        measured.series.record(SeriesEvent { at: durable, bytes: SYNC_BLOCK.0, latency });
        measured.length = durable.since(start);
        observe(measured.length);
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use plumb_block::RealClock;

    use super::*;

    #[test]
    fn every_append_is_timed_and_the_file_stays_within_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let mut seen = 0;
        let limits = Limits { time: Nanos::secs(60), size: Bytes(3 * SYNC_BLOCK.0) };
        let measured = run(directory.path(), limits, 1, &RealClock::start(), &stop, &mut |_| {
            seen += 1;
            stop.store(seen == 10, Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(measured.durable.count(), 10);
        assert_eq!((measured.append.count(), measured.sync.count()), (10, 10));
        assert_eq!(measured.series.points().iter().map(|point| point.operations).sum::<u64>(), 10);
    }
}
