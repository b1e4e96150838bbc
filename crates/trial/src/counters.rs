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
    /// The write path; `None` if it cannot be surveyed.
    pub(crate) path: Option<WritePath>,
    /// The counters of its devices.
    pub(crate) watch: StorageWatch,
}

impl Beneath {
    /// What counts beneath `target`: the target itself, if the kernel does not know it, otherwise what a survey finds.
    pub(crate) fn of(target: &Opened, clock: &Arc<dyn Clock>) -> Self {
        if let Some(counters) = &target.counters {
            return Self { path: None, watch: StorageWatch::of(Arc::clone(counters)) };
        }
        let Some(path) = target.path() else {
            let why = format!("what is behind {} is not on this machine", target.shown);
            return Self { path: None, watch: StorageWatch::unknown(why) };
        };
        Self::survey(&path.to_string_lossy(), clock)
    }

    /// Surveys what is beneath `target`.
    pub(crate) fn survey(target: &str, clock: &Arc<dyn Clock>) -> Self {
        match survey_path(&LiveTree::new(), &LiveProbe::new(), target) {
            Ok(path) => {
                let watch = StorageWatch::over(path.block_devices(), |devices| {
                    Arc::new(BlockCounters::new(devices, Arc::clone(clock)))
                });
                Self { path: Some(path), watch }
            }
            Err(error) => {
                let watch = StorageWatch::unknown(format!("the write path is not known: {error}"));
                Self { path: None, watch }
            }
        }
    }

    /// The names of the devices whose counters are read; none if they are not known.
    pub(crate) fn devices(&self) -> Vec<String> {
        self.path.as_ref().map(WritePath::block_devices).unwrap_or_default()
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
