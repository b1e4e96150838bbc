//! The storage's side of the targets: which devices are beneath each, and what they were handed.

use std::path::Path;
use std::sync::Arc;

use plumb_block::{Clock, Device, in_one_line};
use plumb_linux::BlockCounters;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_measure::StorageWatch;
use plumb_path::{DeviceKind, WritePath, survey_device, survey_path};
use plumb_target::{Opened, TargetKind};

/// How many clean flushes a calibration makes.
const CALIBRATION_FLUSHES: u64 = 16;

/// The write path beneath a target, or why it is not known.
pub(crate) type Surveyed = Result<WritePath, String>;

/// The write path beneath an open target.
pub(crate) fn survey_of(target: &Opened) -> Surveyed {
    let device = |kind| Ok(survey_device(&target.shown, &target.device.info(), kind).paths.swap_remove(0));
    match (target.kind, target.surveyed_from()) {
        (TargetKind::Simulated, _) => device(DeviceKind::Simulated),
        (TargetKind::Network, _) => device(DeviceKind::Nbd),
        (_, Some(path)) => survey(path),
        (_, None) => Err(format!("what is behind {} is not on this machine", target.shown)),
    }
}

/// The write path beneath `place` on this machine.
pub(crate) fn survey(place: &Path) -> Surveyed {
    survey_path(&LiveTree::new(), &LiveProbe::new(), &place.to_string_lossy())
        .map_err(|error| format!("the write path is not known: {}", in_one_line(&error)))
}

/// What is beneath one target.
pub(crate) struct Beneath {
    /// The names of the devices whose counters are read; none if they are not known.
    pub(crate) devices: Vec<String>,
    /// The counters of its devices.
    pub(crate) watch: StorageWatch,
}

impl Beneath {
    /// What counts beneath `target`: the target itself, if the kernel does not know it, otherwise what was surveyed.
    pub(crate) fn of(target: &Opened, surveyed: &Surveyed, clock: &Arc<dyn Clock>) -> Self {
        match (&target.counters, target.kind) {
            (Some(counters), _) => {
                Self { devices: Vec::new(), watch: StorageWatch::of(Arc::clone(counters)) }
            }
            (None, TargetKind::Network) => {
                Self::unknown(format!("what is behind {} is not on this machine", target.shown))
            }
            _ => Self::under(surveyed, clock),
        }
    }

    /// What counts beneath what was surveyed.
    pub(crate) fn under(surveyed: &Surveyed, clock: &Arc<dyn Clock>) -> Self {
        match surveyed {
            Ok(path) => Self::along(path, clock),
            Err(why) => Self::unknown(why.clone()),
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
