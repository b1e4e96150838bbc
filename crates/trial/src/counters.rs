//! The storage's side of the targets: which devices are beneath each, and what they were handed.

use std::sync::Arc;

use plumb_block::{Clock, Device};
use plumb_linux::BlockCounters;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_measure::StorageWatch;
use plumb_path::{WritePath, survey_path};
use plumb_target::Opened;

/// How many clean flushes a calibration makes.
const CALIBRATION_FLUSHES: u64 = 16;

/// What is beneath one target.
pub(crate) struct Beneath {
    /// The names of the devices whose counters are read; none if they are not known.
    pub(crate) devices: Vec<String>,
    /// The counters of its devices.
    pub(crate) watch: StorageWatch,
}

impl Beneath {
    /// What counts beneath `target`: the target itself, if the kernel does not know it, otherwise what a survey finds.
    pub(crate) fn of(target: &Opened, clock: &Arc<dyn Clock>) -> Self {
        if let Some(counters) = &target.counters {
            return Self { devices: Vec::new(), watch: StorageWatch::of(Arc::clone(counters)) };
        }
        match target.surveyed_from() {
            Some(path) => Self::survey(&path.to_string_lossy(), clock),
            None => Self::unknown(format!("what is behind {} is not on this machine", target.shown)),
        }
    }

    /// Surveys what is beneath `target`.
    pub(crate) fn survey(target: &str, clock: &Arc<dyn Clock>) -> Self {
        match survey_path(&LiveTree::new(), &LiveProbe::new(), target) {
            Ok(path) => Self::along(&path, clock),
            Err(error) => Self::unknown(format!("the write path is not known: {error}")),
        }
    }

    /// The devices of a path.
    pub(crate) fn along(path: &WritePath, clock: &Arc<dyn Clock>) -> Self {
        let devices = path.block_devices();
        let open = |devices| Arc::new(BlockCounters::new(devices, Arc::clone(clock))) as _;
        Self { watch: StorageWatch::over(devices.clone(), open), devices }
    }

    fn unknown(why: String) -> Self {
        Self { devices: Vec::new(), watch: StorageWatch::unknown(why) }
    }

    /// Learns how this kernel counts empty flushes, from some on `device`, of which everything is durable.
    ///
    /// # Errors
    /// If a flush fails.
    pub(crate) fn calibrate(&mut self, device: &dyn Device) -> Result<(), plumb_load::FlushError> {
        plumb_load::flush(device, 1)?;
        let before = self.watch.read();
        plumb_load::flush(device, CALIBRATION_FLUSHES)?;
        let after = self.watch.read();
        self.watch.calibrate(&before, &after, CALIBRATION_FLUSHES);
        Ok(())
    }
}
