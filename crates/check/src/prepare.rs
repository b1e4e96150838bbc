//! Making ready: the test file or the drive, and the calibration of the counters.

use std::sync::Arc;

use plumb_block::{Bytes, Device, EngineChoice, Nanos};
use plumb_linux::{FileOptions, Filling, TestFile};
use plumb_load::{Worker, WorkerOptions};
use plumb_workload::{Access, ByteRange, Stop, Workload};

use crate::ended::Mishap;
use crate::ground::Ground;
use crate::place::Place;
use crate::plan::{FILE_MIN, Phase};
use crate::session::Session;
use crate::site::Site;

/// How much is written first, to learn how fast this place is.
const PROBE: Bytes = Bytes::mib(16);
/// The block with which a drive is written over.
const DRIVE_FILL: Bytes = Bytes::mib(1);
/// How many clean syncs a calibration makes.
const CALIBRATION_SYNCS: u64 = 16;

impl Session<'_> {
    /// Makes ready what the loads go to, of `size`: a test file, or a part of the drive that was written.
    pub(crate) fn prepare(&mut self, site: &Site<'_>, size: Bytes) -> Result<Ground, Mishap> {
        self.announce(Phase::Prepare);
        match site {
            Site::Directory(place) => {
                let file = self.make_file(place, size)?;
                Ok(Ground::File { file, directory: place.directory.clone() })
            }
            Site::Drive(drive) => {
                self.write_over(&*drive.device, size)?;
                Ok(Ground::Drive { device: Arc::clone(&drive.device), size })
            }
        }
    }

    /// Writes the drive once, in order, and flushes it, so that no read comes from nothing and no load finds the cache
    /// full.
    fn write_over(&mut self, device: &dyn Device, size: Bytes) -> Result<(), Mishap> {
        let block = DRIVE_FILL.min(size).min(device.info().transfer_max);
        let workload = Workload {
            access: Access::SEQUENTIAL,
            write_percent: 100,
            stop: Stop::operations(size.0.div_ceil(block.0)),
            seed: self.request.seed,
            ..Workload::over(ByteRange { offset: Bytes(0), length: size }, block)
        };
        let worker = Worker::new(device, &workload, WorkerOptions::default())?;
        self.document.environment.file_bytes = size.0;
        self.drive(Phase::Prepare, worker)?;
        Ok(plumb_load::flush(device, 1)?)
    }

    /// Makes the test file: of `size`, or smaller where writing that much would take longer than its share of the
    /// time.
    fn make_file(&mut self, place: &Place, size: Bytes) -> Result<TestFile, Mishap> {
        let begun = self.clock.now();
        let probe = self.fill(place, size.min(PROBE), begun)?;
        if probe.size() >= size {
            return Ok(probe);
        }
        let took = self.clock.now().since(begun);
        let affordable = affordable(probe.size(), took, self.time_for(Phase::Prepare));
        if affordable <= probe.size() {
            return Ok(probe);
        }
        drop(probe);
        self.fill(place, size.min(affordable), begun)
    }

    fn fill(&mut self, place: &Place, size: Bytes, begun: Nanos) -> Result<TestFile, Mishap> {
        let clock = Arc::clone(&self.clock);
        let (seed, stop) = (self.request.seed, self.stop);
        let mut progress = |_| self.show(Phase::Prepare, clock.now().since(begun));
        let filling = Filling { seed, stop, progress: &mut progress };
        let file = TestFile::create(&place.directory, size, filling)?;
        self.document.environment.file_bytes = file.size().0;
        Ok(file)
    }

    /// Syncs the clean file some times and looks at what the kernel counted.
    pub(crate) fn calibrate(&mut self, ground: &Ground) -> Result<(), Mishap> {
        self.announce(Phase::Calibrate);
        let options = FileOptions::write_buffered().engine(EngineChoice::Synchronous);
        let (device, _) = ground.open(options, &self.clock)?;
        plumb_load::flush(&*device, 1)?;
        let before = self.storage.watch.read();
        plumb_load::flush(&*device, CALIBRATION_SYNCS)?;
        let after = self.storage.watch.read();
        self.storage.watch.calibrate(&before, &after, CALIBRATION_SYNCS);
        Ok(())
    }
}

/// What can be written in the rest of `budget`, if `written` took `took`.
fn affordable(written: Bytes, took: Nanos, budget: Nanos) -> Bytes {
    let rate = written.0 as f64 / took.as_secs_f64().max(1e-6);
    Bytes((rate * budget.since(took).as_secs_f64()) as u64).round_down(FILE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_place_gets_a_smaller_file() {
        // 16 MiB in 1 s of 4 s: 48 MiB in the other three.
        assert_eq!(affordable(PROBE, Nanos::secs(1), Nanos::secs(4)), Bytes::mib(48));
        assert_eq!(affordable(PROBE, Nanos::secs(9), Nanos::secs(4)), Bytes(0));
    }
}
