//! Making ready: the test file, and the calibration of the counters.

use plumb_block::{Bytes, Nanos};
use plumb_linux::{EngineChoice, FileOptions, Filling, TestFile, pagecache};

use crate::ended::Mishap;
use crate::place::Place;
use crate::plan::{FILE_MIN, Phase};
use crate::session::Session;

/// How much is written first, to learn how fast this place is.
const PROBE: Bytes = Bytes::mib(16);
/// How many clean syncs a calibration makes.
const CALIBRATION_SYNCS: u64 = 16;

impl Session<'_> {
    /// Makes the test file: of `size`, or smaller where writing that much would take longer than its share of the
    /// time.
    pub(crate) fn prepare(&mut self, place: &Place, size: Bytes) -> Result<TestFile, Mishap> {
        self.announce(Phase::Prepare);
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
        let clock = std::sync::Arc::clone(&self.clock);
        let (seed, stop) = (self.request.seed, self.stop);
        let mut progress = |_| self.show(Phase::Prepare, clock.now().since(begun));
        let filling = Filling { seed, stop, progress: &mut progress };
        let file = TestFile::create(&place.directory, size, filling)?;
        self.document.environment.file_bytes = file.size().0;
        Ok(file)
    }

    /// Takes the test file out of the page cache, so that every phase begins alike. Cached pages would cost each direct
    /// request an invalidation, and each buffered write a walk through the large folio that a read had made.
    pub(crate) fn forget(&self, file: &TestFile) -> Result<(), Mishap> {
        Ok(pagecache::drop_clean(file, Bytes(0), file.size(), &file.place())?)
    }

    /// Syncs the clean file some times and looks at what the kernel counted.
    pub(crate) fn calibrate(&mut self, file: &TestFile) -> Result<(), Mishap> {
        self.announce(Phase::Calibrate);
        let options = FileOptions::write_buffered().engine(EngineChoice::Positioned);
        let device = file.open(options, std::sync::Arc::clone(&self.clock))?;
        plumb_load::flush(&device, 1)?;
        let before = self.storage.watch.read();
        plumb_load::flush(&device, CALIBRATION_SYNCS)?;
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
