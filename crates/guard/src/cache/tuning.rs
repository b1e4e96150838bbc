//! Settings of a cache that may be changed while it is served: thresholds of writing back, and the rated
//! endurance of its log.

use plumb_block::Nanos;
use plumb_cache::DestageOptions;
use serde::{Deserialize, Serialize};

/// Settings of a cache that may be changed at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// Thresholds that let the backing device sleep; `None` to write data back soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Sleep>,
    /// Rated endurance of each log device: bytes that may be written in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endurance_bytes: Option<u64>,
}

/// Thresholds of writing back to a device that sleeps in between.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sleep {
    /// Percentage of the log in use from which everything is written back.
    pub at_percent: u32,
    /// Age of the oldest record, in seconds, from which everything is written back.
    pub age: f64,
    /// Idle time, in seconds, after which the device is assumed to have spun down.
    pub spin_down: f64,
}

impl Sleep {
    /// Maximum of [`at_percent`](Self::at_percent): a fuller log slows writes down.
    pub const PERCENT_MAX: u32 = 60;
    /// Default thresholds: 50 %, one day, 10 minutes.
    pub const DEFAULT: Self = Self { at_percent: 50, age: 86_400.0, spin_down: 600.0 };
}

impl Tuning {
    /// Returns true if every setting is the default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the options of writing back.
    pub fn destage(&self) -> DestageOptions {
        let Some(Sleep { at_percent, age, spin_down }) = self.sleep else { return DestageOptions::DEFAULT };
        DestageOptions {
            start: f64::from(at_percent.clamp(1, Sleep::PERCENT_MAX)) / 100.0,
            age: Nanos::from_secs_f64(age),
            idle: Nanos(u64::MAX),
            rests: true,
            spin_down: Nanos::from_secs_f64(spin_down),
        }
    }
}
