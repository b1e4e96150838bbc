//! Wear of the devices of a log: bytes written to them, compared with their endurance.

use plumb_guard::cache::device_place::DevicePlace;
use plumb_linux::probe::wire::nvme;
use plumb_linux::probe::{LiveProbe, Probe, ProbedDevice, Request};
use plumb_linux::tree::{LiveTree, Tree};
use plumb_path::disks_below;
use serde::{Deserialize, Serialize};

/// Seconds in a day.
const DAY: f64 = 86_400.0;
/// Minimum time over which writes are counted before a rate is derived from them, in seconds.
const COUNTED_MIN: f64 = 60.0;

/// Wear of each device of a log since the cache was opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wear {
    /// Bytes written to each device; the maximum if they differ.
    pub written_bytes: u64,
    /// Seconds in which they were written.
    pub seconds: f64,
    /// Bytes per day at that rate; omitted in the first minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_day: Option<f64>,
    /// Endurance of a device, the smallest of several; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endurance: Option<Endurance>,
    /// Seconds to use up the whole endurance at that rate; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<f64>,
}

/// Endurance of a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Endurance {
    /// Bytes that may be written to the device in its life.
    pub bytes: u64,
    /// Source of the number.
    pub by: EnduranceBy,
    /// Used share of the life as reported by the drive, 0 to 2.55 (NVMe Percentage Used); omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<f64>,
}

/// Source of an endurance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnduranceBy {
    /// The user.
    Given,
    /// Estimate from the bytes written to an NVMe drive and the share of its life that it reports as used.
    Drive,
}

impl Wear {
    /// Returns the wear of devices to which `written_bytes` each were written within `seconds`.
    pub(crate) fn new(written_bytes: u64, seconds: f64, endurance: Option<Endurance>) -> Self {
        let bytes_per_day = (seconds >= COUNTED_MIN).then(|| written_bytes as f64 * DAY / seconds);
        let lifetime = bytes_per_day.zip(endurance).filter(|(rate, _)| *rate > 0.0);
        let lifetime = lifetime.map(|(rate, endurance)| endurance.bytes as f64 / rate * DAY);
        Self { written_bytes, seconds, bytes_per_day, endurance, lifetime }
    }
}

/// Returns the endurance of the devices at `places`, the smallest of several: the `given` one, or an estimate
/// from the drives below them.
pub(crate) fn endurance(given: Option<u64>, places: &[DevicePlace]) -> Option<Endurance> {
    let (tree, probe) = (LiveTree::new(), LiveProbe::new());
    let disks = places.iter().flat_map(|place| disks_below(&tree, &probe, &place.path));
    let health: Vec<_> = disks.filter_map(|disk| health(&tree, &probe, &disk)).collect();
    let used = health.iter().map(|health| f64::from(health.percentage_used) / 100.0).reduce(f64::max);
    let by_drive = health.iter().filter_map(estimate).min().map(|bytes| (bytes, EnduranceBy::Drive));
    let (bytes, by) = given.map(|bytes| (bytes, EnduranceBy::Given)).or(by_drive)?;
    Some(Endurance { bytes, by, used })
}

fn health(tree: &dyn Tree, probe: &dyn Probe, disk: &str) -> Option<nvme::Health> {
    let number = tree.text(&format!("/sys/class/block/{disk}/dev")).ok()?.trim().parse().ok()?;
    nvme::health(&probe.ask(ProbedDevice { name: disk, number }, Request::NvmeHealth).ok()?)
}

/// Returns the estimated endurance of a drive in bytes, if at least 1 % of it is used.
fn estimate(health: &nvme::Health) -> Option<u64> {
    let bytes = health.written_bytes.checked_mul(100)? / u128::from(health.percentage_used.max(1));
    (health.percentage_used > 0).then(|| u64::try_from(bytes).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_follows_from_a_rate_over_a_minute_or_more() {
        let endurance = Endurance { bytes: 365 << 30, by: EnduranceBy::Given, used: None };
        let wear = Wear::new(1 << 30, 43_200.0, Some(endurance));
        assert_eq!(wear.bytes_per_day, Some((2_u64 << 30) as f64));
        assert_eq!(wear.lifetime, Some(182.5 * DAY));
        let short = Wear::new(1 << 30, 59.0, Some(endurance));
        assert_eq!((short.bytes_per_day, short.lifetime), (None, None));
        assert_eq!(Wear::new(0, 3600.0, Some(endurance)).lifetime, None, "nothing is worn");
    }

    #[test]
    fn a_drive_that_has_used_up_a_percent_says_what_it_is_rated_for() {
        let health = |percentage_used| nvme::Health { percentage_used, written_bytes: 6 << 40 };
        assert_eq!(estimate(&health(2)), Some(300 << 40));
        assert_eq!(estimate(&health(0)), None);
    }
}
