//! Cumulative counters of block devices: the load as the storage side counts it.
//!
//! On Linux the counters cover the requests that the block layer handed to the driver
//! (Documentation/admin-guide/iostats.rst). Only simulated drives and hypervisors know which of these reached
//! the drive.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::units::{Bytes, Nanos};

/// Reads the counters of the devices beneath a target.
pub trait StorageCounters: Send + Sync {
    /// Returns the current counters: one entry for each device, always the same devices in the same order.
    ///
    /// # Errors
    /// If a device vanished or the counters cannot be read.
    fn read(&self) -> Result<StorageSnapshot>;
}

/// All devices beneath a target at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageSnapshot {
    /// Time at which the counters were read.
    pub at: Nanos,
    /// One entry for each device.
    pub devices: Vec<DeviceCounters>,
}

/// Counters of one block device since it appeared. All of them only grow, except `in_flight`. Serialized
/// times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// The kernel's name of the device, `vda`.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Reads merged into a neighbour before they were issued.
    pub read_merges: u64,
    /// Bytes read.
    pub read_bytes: Bytes,
    /// Time spent on reads, summed over requests.
    #[serde(with = "seconds")]
    pub read_time: Nanos,
    /// Writes completed. The kernel counts an empty flush here too.
    pub writes: u64,
    /// Writes merged into a neighbour before they were issued.
    pub write_merges: u64,
    /// Bytes written.
    pub write_bytes: Bytes,
    /// Time spent on writes, summed over requests.
    #[serde(with = "seconds")]
    pub write_time: Nanos,
    /// Discards completed.
    pub discards: u64,
    /// Bytes discarded.
    pub discard_bytes: Bytes,
    /// Flush requests completed; `None` if the kernel does not count them (before 5.5).
    pub flushes: Option<u64>,
    /// Time spent on flushes.
    #[serde(with = "seconds")]
    pub flush_time: Nanos,
    /// Requests that the driver holds now.
    pub in_flight: u64,
    /// Time during which at least one request was in flight.
    #[serde(with = "seconds")]
    pub busy_time: Nanos,
}

/// Serializes a duration as seconds.
mod seconds {
    use serde::de::{Deserialize, Deserializer};
    use serde::ser::Serializer;

    use crate::units::Nanos;

    pub(super) fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
        f64::deserialize(deserializer).map(Nanos::from_secs_f64)
    }
}
