//! The storage's side of the targets: which devices are beneath each, and what they were handed.

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

/// Number of flushes that must be seen alone, and all in the same way, before it is known how they are
/// counted.
const CALIBRATION_FLUSHES: usize = 8;
/// Largest number of flushes that are tried.
const CALIBRATION_FLUSHES_MAX: usize = 64;

/// The write path beneath a target, or why it is not known.
pub(crate) type SurveyedPath = Result<WritePath, String>;

/// Returns the write path beneath an open target.
pub(crate) fn survey_of(target: &OpenedTarget) -> SurveyedPath {
    match (plumb_targets::survey(target), target.surveyed_from()) {
        (Some(mut found), _) => Ok(found.paths.swap_remove(0)),
        (_, Some(path)) => survey(path),
        (_, None) => Err(format!("only its server knows what is behind {}", target.shown)),
    }
}

/// Returns the write path beneath `place` on this machine.
pub(crate) fn survey(place: &Path) -> SurveyedPath {
    survey_path(&LiveTree::new(), &LiveProbe::new(), &place.to_string_lossy())
        .map_err(|error| format!("the write path is not known: {}", in_one_line(&error)))
}

/// Storage beneath one target, and the counters by which it is read.
pub(crate) struct Beneath {
    /// The names of the devices whose counters are read; none if they are not known.
    pub(crate) devices: Vec<String>,
    /// The counters of its devices.
    pub(crate) watch: StorageWatch,
    /// Counters of the block devices above them.
    above: Option<BlockCounters>,
    attribution: FlushAttribution,
}

/// All that was read beneath a target at one moment.
#[derive(Clone)]
pub(crate) struct CounterReading {
    storage: Reading,
    above: Option<StorageSnapshot>,
    own: OwnCounts,
}

impl Beneath {
    /// Returns the counters beneath `target`: those of the target itself, if the kernel does not know it,
    /// otherwise those of what was surveyed.
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

    /// Returns the counters beneath what was surveyed.
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

    /// Notes the sizes of the run's writes, which are all where the devices are its own.
    pub(crate) fn bound_writes(&mut self, sizes: WriteSizes) {
        if self.attribution.is_own() {
            self.watch.set_write_sizes(sizes);
        }
    }

    /// Traces from now on which threads the flushes are of, where that is possible. The thread `except`
    /// measures nothing.
    pub(crate) fn trace_flushes(&mut self, except: Option<u32>) {
        self.attribution.trace(except);
    }

    /// Reads all of it. Whether the run's data is `written_at_once` says what its own bytes are known by.
    pub(crate) fn count(&self, written_at_once: bool) -> CounterReading {
        let own = self.attribution.count(&self.devices, written_at_once);
        CounterReading {
            storage: self.watch.read(),
            above: self.above.as_ref().and_then(|one| one.read().ok()),
            own,
        }
    }

    /// Takes in what is traced while a run goes.
    pub(crate) fn follow(&self) {
        self.attribution.read_trace();
    }

    /// Returns what the devices did between two readings, and the share of this run in it.
    ///
    /// # Errors
    /// The reason, if that is not known.
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

    /// Learns how this kernel counts empty flushes, from some on `device`, of which everything is durable. On
    /// a busy disk most readings show the requests of others as well: each flush is read by itself, and those
    /// count that show nothing else.
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
        // One flush of another program beside ours looks like ours; something else is not taken for an
        // answer.
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
