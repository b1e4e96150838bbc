//! Attribution of flushes and written bytes, since the devices below a target count those of all programs.
//!
//! A device that only this run can use is its own: a simulated one, or a block device that it has claimed. A
//! mounted file system never is, since sync(2) of any program flushes it. There flushes are traced to the
//! threads that requested them, which takes root. Without a trace they are those of all programs, and prove
//! nothing about the run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use plumb_block::{Bytes, in_one_line};
use plumb_linux::accounting::{written_by_own_group, written_by_this_process};
use plumb_linux::flush_trace::{FlushTrace, TracedFlushes};
use plumb_measure::{Attribution, BytesBy, FlushesOf, StorageSide};

/// Method to distinguish the flushes of this run from those of other programs.
pub(crate) struct FlushAttribution {
    owner: Owner,
    /// First block devices below the target. Requests to them come from a thread of this process, those
    /// further down from kernel threads.
    first: Vec<String>,
    /// True if these devices are the counted ones.
    is_direct: bool,
}

enum Owner {
    /// Only this run uses the device, for this reason.
    Run(String),
    /// Flushes are traced.
    Traced(Box<Mutex<FlushTrace>>),
    /// Other programs may use the devices; with the reason why flushes are not attributed.
    Anybody(String),
}

/// Counts of this run alone at one moment, since an arbitrary start.
#[derive(Clone, Default)]
pub(crate) struct OwnCounts {
    traced: Option<TracedFlushes>,
    by_process: Option<Bytes>,
    by_group: Option<Bytes>,
}

impl FlushAttribution {
    /// Creates the attribution of a device that only the run uses, for this reason.
    pub(crate) fn own(because: String) -> Self {
        Self { owner: Owner::Run(because), first: Vec::new(), is_direct: true }
    }

    /// Returns true if only the run uses the devices.
    pub(crate) const fn is_own(&self) -> bool {
        matches!(self.owner, Owner::Run(_))
    }

    /// Creates the attribution of devices that any program may use; `first` are those directly below the
    /// target.
    pub(crate) fn shared(first: Vec<String>, is_direct: bool) -> Self {
        let because =
            format!("{} may be used by any program, and its flushes were not traced", first.join(", "));
        Self { owner: Owner::Anybody(because), first, is_direct }
    }

    /// Creates the attribution of unknown devices.
    pub(crate) fn unknown(because: String) -> Self {
        Self { owner: Owner::Anybody(because), first: Vec::new(), is_direct: false }
    }

    /// Starts to trace flushes, if that is necessary and possible.
    pub(crate) fn trace(&mut self, except: Option<u32>) {
        let Owner::Anybody(because) = &mut self.owner else { return };
        if self.first.is_empty() {
            return;
        }
        match FlushTrace::begin(&self.first, except) {
            Ok(trace) => self.owner = Owner::Traced(Box::new(Mutex::new(trace))),
            Err(error) => {
                let devices = self.first.join(", ");
                *because = format!(
                    "{devices} may be used by any program, and its flushes could not be traced: {}",
                    in_one_line(&error)
                );
            }
        }
    }

    /// Reads the trace, which must happen before its buffer is full.
    pub(crate) fn read_trace(&self) -> Option<TracedFlushes> {
        let Owner::Traced(trace) = &self.owner else { return None };
        trace.lock().unwrap_or_else(PoisonError::into_inner).read().ok()
    }

    /// Reads this run's own counts on `devices`. The bytes written by the process are a bound only if they
    /// are `written_at_once`, and not at the page cache's discretion.
    pub(crate) fn count(&self, devices: &[String], written_at_once: bool) -> OwnCounts {
        match self.owner {
            Owner::Run(_) => OwnCounts::default(),
            _ => OwnCounts {
                traced: self.read_trace(),
                by_process: written_by_this_process().filter(|_| written_at_once && self.is_direct),
                by_group: written_by_own_group().map(|written| on(devices, &written)),
            },
        }
    }

    /// Returns the share of this run in `side`, which was counted between two readings.
    pub(crate) fn attribute(&self, side: &StorageSide, before: &OwnCounts, after: &OwnCounts) -> Attribution {
        if let Owner::Run(because) = &self.owner {
            return Attribution {
                flushes: FlushesOf::OwnDevice,
                own_flushes: side.flushes,
                foreign_flushes: side.flushes.map(|_| 0),
                own_write_bytes: Some(side.write_bytes),
                bytes_by: Some(BytesBy::OwnDevice),
                because: because.clone(),
                ..Attribution::default()
            };
        }
        let grown = |of: fn(&OwnCounts) -> Option<Bytes>| Some(of(after)?.0.saturating_sub(of(before)?.0));
        let by_group = grown(|own| own.by_group).map(|bytes| (bytes, BytesBy::Cgroup));
        let by_process = grown(|own| own.by_process).map(|bytes| (bytes, BytesBy::Process));
        let (bytes, bytes_by) = by_group.or(by_process).unzip();
        let base = Attribution {
            own_write_bytes: bytes.map(|bytes| bytes.min(side.write_bytes)),
            bytes_by,
            ..Attribution::default()
        };
        let devices = self.first.join(", ");
        match (&self.owner, before.traced.zip(after.traced)) {
            (Owner::Traced(_), Some((before, after))) if before.lost == after.lost => Attribution {
                flushes: FlushesOf::Traced,
                own_flushes: Some(after.own - before.own),
                journal_flushes: Some(after.kernel - before.kernel),
                foreign_flushes: Some(after.others - before.others),
                because: format!(
                    "each flush to {devices} was traced to its thread (tracefs, block_bio_queue)"
                ),
                ..base
            },
            (Owner::Traced(_), _) => Attribution {
                because: format!(
                    "{devices} may be used by any program, and the trace of its flushes has gaps"
                ),
                ..base
            },
            (Owner::Anybody(because) | Owner::Run(because), _) => {
                Attribution { because: because.clone(), ..base }
            }
        }
    }
}

/// Returns the bytes that were written to devices, by their numbers.
fn on(devices: &[String], written: &HashMap<String, Bytes>) -> Bytes {
    let number = |name: &String| std::fs::read_to_string(format!("/sys/class/block/{name}/dev")).ok();
    let bytes = devices.iter().filter_map(number).filter_map(|number| written.get(number.trim()));
    Bytes(bytes.map(|bytes| bytes.0).sum())
}

#[cfg(test)]
mod tests {
    use plumb_block::{DeviceCounters, Nanos, StorageSnapshot};
    use plumb_measure::{FlushWrites, storage_side};

    use super::*;

    /// 1,200 flushes and 8 MiB on a device within a second.
    fn side() -> StorageSide {
        let at = |seconds, flushes, mib| {
            let device = DeviceCounters {
                name: "vda".into(),
                flushes: Some(flushes),
                write_bytes: Bytes::mib(mib),
                ..DeviceCounters::default()
            };
            StorageSnapshot { at: Nanos::secs(seconds), devices: vec![device] }
        };
        storage_side(&at(0, 0, 0), &at(1, 1200, 8), FlushWrites::Unknown).unwrap()
    }

    #[test]
    fn the_flushes_of_a_shared_device_are_nobodys() {
        let shared = FlushAttribution::shared(vec!["vda".into()], true);
        let attribution = shared.attribute(&side(), &OwnCounts::default(), &OwnCounts::default());
        assert_eq!(attribution.flushes, FlushesOf::AllPrograms);
        assert_eq!((attribution.own_flushes, attribution.own_write_bytes), (None, None));
        assert!(attribution.because.contains("vda"), "{}", attribution.because);
    }

    #[test]
    fn all_of_an_own_device_is_the_runs() {
        let own = FlushAttribution::own("sim:x is simulated".into());
        let attribution = own.attribute(&side(), &OwnCounts::default(), &OwnCounts::default());
        assert_eq!(attribution.flushes, FlushesOf::OwnDevice);
        assert_eq!((attribution.own_flushes, attribution.foreign_flushes), (Some(1200), Some(0)));
        assert_eq!(attribution.own_write_bytes, Some(8 << 20));
    }

    #[test]
    fn bytes_are_a_lower_bound_and_a_group_knows_them_better_than_a_process() {
        let shared = FlushAttribution::shared(vec!["vda".into()], true);
        let after = OwnCounts { by_process: Some(Bytes::mib(20)), ..OwnCounts::default() };
        let before = OwnCounts { by_process: Some(Bytes::mib(17)), ..OwnCounts::default() };
        let attribution = shared.attribute(&side(), &before, &after);
        assert_eq!(
            (attribution.own_write_bytes, attribution.bytes_by),
            (Some(3 << 20), Some(BytesBy::Process))
        );
        let with = |own: OwnCounts, mib| OwnCounts { by_group: Some(Bytes::mib(mib)), ..own };
        let attribution = shared.attribute(&side(), &with(before, 1), &with(after, 90));
        assert_eq!(attribution.bytes_by, Some(BytesBy::Cgroup));
        assert_eq!(attribution.own_write_bytes, Some(8 << 20), "never more than the devices wrote");
    }
}
