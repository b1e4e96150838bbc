//! Storage side of the targets: the devices below each, and their counters.

use std::path::Path;
use std::sync::Arc;

use plumb_block::{Clock, Device, StorageCounters as _, StorageSnapshot, in_one_line};
use plumb_linux::BlockCounters;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_measure::{Reading, StorageSide, StorageWatch, WriteSizes};
use plumb_path::{WritePath, survey_path};
use plumb_targets::{OpenedTarget, TargetKind};

use crate::attribution::{FlushAttribution, OwnCounts};

/// Number of flushes that must be observed without other requests, and all with the same effect, before the
/// way of counting is known.
const CALIBRATION_FLUSHES: usize = 8;
/// Maximum number of flushes issued for that.
const CALIBRATION_FLUSHES_MAX: usize = 64;

/// Write path below a target, or the reason why it is unknown.
pub(crate) type SurveyedPath = Result<WritePath, String>;

/// Returns the write path below an open target.
pub(crate) fn survey_of(target: &OpenedTarget) -> SurveyedPath {
    match (plumb_targets::survey(target), target.surveyed_from()) {
        (Some(mut found), _) => Ok(found.paths.swap_remove(0)),
        (_, Some(path)) => survey(path),
        (_, None) => Err(format!("only its server knows what is behind {}", target.shown)),
    }
}

/// Returns the write path below `place` on this machine.
pub(crate) fn survey(place: &Path) -> SurveyedPath {
    survey_path(&LiveTree::new(), &LiveProbe::new(), &place.to_string_lossy())
        .map_err(|error| format!("the write path is not known: {}", in_one_line(&error)))
}

/// Storage below one target, with its counters.
pub(crate) struct Beneath {
    /// Names of the devices whose counters are read; empty if unknown.
    pub(crate) devices: Vec<String>,
    /// Counters of these devices.
    pub(crate) watch: StorageWatch,
    /// Counters of the block devices above them.
    above: Option<BlockCounters>,
    attribution: FlushAttribution,
}

/// Readings below a target at one moment.
#[derive(Clone)]
pub(crate) struct CounterReading {
    storage: Reading,
    above: Option<StorageSnapshot>,
    own: OwnCounts,
}

impl Beneath {
    /// Returns the counters below `target`: those of the target itself if the kernel does not know it,
    /// otherwise those of the surveyed devices.
    pub(crate) fn new(target: &OpenedTarget, surveyed: &SurveyedPath, clock: &Arc<dyn Clock>) -> Self {
        match (&target.counters, target.kind) {
            (Some(counters), _) => Self {
                devices: Vec::new(),
                watch: StorageWatch::new(Arc::clone(counters)),
                above: None,
                attribution: FlushAttribution::own(format!("{} is simulated by this run", target.shown)),
            },
            (None, TargetKind::Network) => {
                Self::unknown(format!("only its server knows what is behind {}", target.shown))
            }
            (None, TargetKind::Cache) => {
                Self::unknown(format!("{} counts for itself: `plumb cache status`", target.shown))
            }
            _ => {
                let beneath = Self::under(surveyed, clock);
                let own =
                    target.is_claimed() && target.path().is_some_and(|path| is_only(&beneath.devices, path));
                match own {
                    true => Self {
                        attribution: FlushAttribution::own(format!(
                            "{} is claimed by this run",
                            target.shown
                        )),
                        ..beneath
                    },
                    false => beneath,
                }
            }
        }
    }

    /// Returns the counters below a surveyed path.
    pub(crate) fn under(surveyed: &SurveyedPath, clock: &Arc<dyn Clock>) -> Self {
        match surveyed {
            Ok(path) => Self::along(path, clock),
            Err(why) => Self::unknown(why.clone()),
        }
    }

    /// Returns the devices of a path.
    pub(crate) fn along(path: &WritePath, clock: &Arc<dyn Clock>) -> Self {
        let devices = path.block_devices();
        let open = |devices| Arc::new(BlockCounters::new(devices, Arc::clone(clock))) as _;
        let above = path.devices_above();
        let attribution = match path.server_above_devices() {
            Some(server) => FlushAttribution::unknown(format!(
                "the process that serves {} flushes the devices for its callers, so flushes of all programs count",
                server.name
            )),
            None => FlushAttribution::shared(path.first_devices(), above.is_empty()),
        };
        let above = (!above.is_empty()).then(|| BlockCounters::new(above, Arc::clone(clock)));
        Self { watch: StorageWatch::over(devices.clone(), open), devices, above, attribution }
    }

    fn unknown(why: String) -> Self {
        let (watch, attribution) = (StorageWatch::unknown(why.clone()), FlushAttribution::unknown(why));
        Self { devices: Vec::new(), watch, above: None, attribution }
    }

    /// Sets the lengths of the run's writes. On devices that only the run uses, these are all.
    pub(crate) fn bound_writes(&mut self, sizes: WriteSizes) {
        if self.attribution.is_own() {
            self.watch.set_write_sizes(sizes);
        }
    }

    /// Starts to trace the threads of flushes, if possible, except for the thread `except`.
    pub(crate) fn trace_flushes(&mut self, except: Option<u32>) {
        self.attribution.trace(except);
    }

    /// Takes a reading. `written_at_once` tells how the run's own bytes can be determined.
    pub(crate) fn count(&self, written_at_once: bool) -> CounterReading {
        let own = self.attribution.count(&self.devices, written_at_once);
        CounterReading {
            storage: self.watch.read(),
            above: self.above.as_ref().and_then(|one| one.read().ok()),
            own,
        }
    }

    /// Reads the trace regularly during a run.
    pub(crate) fn follow(&self) {
        self.attribution.read_trace();
    }

    /// Returns the activity of the devices between two readings, and the share of this run in it.
    ///
    /// # Errors
    /// The reason, if it is unknown.
    pub(crate) fn between(
        &self,
        before: &CounterReading,
        after: &CounterReading,
    ) -> Result<StorageSide, String> {
        let side = self.watch.between(before.storage.clone(), after.storage.clone())?;
        let above = before.above.as_ref().zip(after.above.as_ref());
        let above = above.and_then(|(before, after)| plumb_measure::storage::delta(before, after).ok());
        let attribution = self.attribution.attribute(&side, &before.own, &after.own);
        Ok(StorageSide { above: above.unwrap_or_default(), attribution: Some(attribution), ..side })
    }

    /// Determines how this kernel counts empty flushes, from some on `device`, on which everything is
    /// durable. On a busy disk most readings include requests of others, so each flush is read individually,
    /// and only readings without others count.
    ///
    /// # Errors
    /// If a flush fails.
    pub(crate) fn calibrate(&mut self, device: &dyn Device) -> Result<(), plumb_load::FlushError> {
        plumb_load::flush(device, 1)?;
        let mut found = Vec::new();
        for _ in 0..CALIBRATION_FLUSHES_MAX {
            let before = self.watch.read();
            plumb_load::flush(device, 1)?;
            found.extend(self.watch.how_flushes_count(&before, &self.watch.read(), 1));
            if found.len() >= CALIBRATION_FLUSHES {
                break;
            }
        }
        // A single flush of another program looks like ours, so a deviating reading is not accepted as the
        // result.
        if let [first, .., _] = found[..]
            && found.iter().all(|one| *one == first)
        {
            self.watch.set_flush_writes(first);
        }
        Ok(())
    }
}

/// Returns true if the device at `path` is the only one whose counters are read.
fn is_only(devices: &[String], path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    matches!(devices, [one] if name == Some(one))
}
