//! Input of a live view: running totals.

use plumb_measure::Latency;

use crate::document::observation::ObservedDevice;

/// Sample of a load. Totals count from its start, including the warm-up. The view computes rates from two
/// samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveSample {
    /// Seconds since the start.
    pub elapsed: f64,
    /// Total expected duration in seconds, including the cool-down; `None` if unknown.
    pub expected: Option<f64>,
    /// Current phase of the load.
    pub phase: LivePhase,
    /// Targets, always the same in the same order.
    pub targets: Vec<LiveTarget>,
    /// Further remarks, one per line.
    pub remarks: Vec<String>,
}

/// Phase of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LivePhase {
    /// Creating and filling files, preconditioning; not measured.
    #[default]
    Preparing,
    /// Running, but not measured yet.
    WarmUp,
    /// Measured.
    Measuring,
    /// Still running, but no longer measured.
    CoolDown,
    /// Reading back the written data.
    Verifying,
    /// Not a load: a served cache is monitored.
    Serving,
}

/// State of one target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveTarget {
    /// Name of the target.
    pub name: String,
    /// Operations as seen by the workers.
    pub application: LiveApplication,
    /// Seconds from its start to the time of its figures, if they have times of their own; `None` if they are
    /// of the sample.
    pub taken_at: Option<f64>,
    /// Requests to the underlying devices; `None` if they cannot be counted.
    pub storage: Option<LiveStorage>,
    /// True if these devices also receive requests of other targets, so that the figures are of all of them.
    pub shares_devices: bool,
}

/// Application side: totals, and the latencies since the last sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LiveApplication {
    /// Completed reads, writes and trims.
    pub operations: u64,
    /// Bytes of these operations.
    pub bytes: u64,
    /// Completed flushes.
    pub flushes: u64,
    /// Latency of reads, writes and trims since the last sample.
    pub latency: LivePercentiles,
    /// Latency of flushes since the last sample.
    pub sync: LivePercentiles,
}

/// Latencies in seconds; `None` if nothing completed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LivePercentiles {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    pub p999: Option<f64>,
    /// Approximate maximum.
    pub max: Option<f64>,
}

impl From<Latency> for LivePercentiles {
    fn from(of: Latency) -> Self {
        Self { p50: of.p50, p99: of.p99, p999: of.p999, max: Some(of.max) }
    }
}

impl From<ObservedDevice> for LiveTarget {
    /// Returns a device, with the times of its busiest direction.
    fn from(device: ObservedDevice) -> Self {
        Self {
            application: LiveApplication {
                operations: device.transfers().iter().map(|of| of.ios).sum(),
                bytes: device.transfers().iter().map(|of| of.bytes).sum(),
                flushes: device.flushes.unwrap_or(0),
                latency: device.busiest_latency().map(Into::into).unwrap_or_default(),
                sync: device.flush_latency.map(Into::into).unwrap_or_default(),
            },
            name: device.name,
            ..Self::default()
        }
    }
}

/// Storage side: totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveStorage {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Flushes; `None` if the kernel does not count them.
    pub flushes: Option<u64>,
}

impl LivePhase {
    /// Returns the name of the phase, one or two words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::WarmUp => "warm-up",
            Self::Measuring => "measuring",
            Self::CoolDown => "cool-down",
            Self::Verifying => "verifying",
            Self::Serving => "serving",
        }
    }
}

impl LiveSample {
    /// Returns the elapsed share of the duration, 0 to 1; `None` if the duration is unknown.
    pub fn share(&self) -> Option<f64> {
        let expected = self.expected.filter(|expected| expected.is_finite() && *expected > 0.0)?;
        Some((self.elapsed / expected).clamp(0.0, 1.0))
    }

    /// Returns the remaining seconds; `None` if the duration is unknown.
    pub fn left(&self) -> Option<f64> {
        let expected = self.expected.filter(|expected| expected.is_finite())?;
        Some((expected - self.elapsed).max(0.0))
    }
}

/// Rates of a target between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) iops: f64,
    pub(super) bytes: f64,
    pub(super) flushes: f64,
    pub(super) storage: Option<StorageRates>,
}

/// Rates of a target's storage between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct StorageRates {
    pub(super) iops: f64,
    pub(super) bytes: f64,
    pub(super) flushes: Option<f64>,
}

/// Returns the rates of the target at `index` from `before` to `now`; without an earlier sample since the
/// start. `None` if no time has passed, or the target is missing.
pub(super) fn rates(before: Option<&LiveSample>, now: &LiveSample, index: usize) -> Option<Rates> {
    let nothing = LiveTarget::default();
    let target = now.targets.get(index)?;
    let earlier = before.and_then(|sample| sample.targets.get(index)).unwrap_or(&nothing);
    let seconds = match target.taken_at {
        Some(taken_at) => taken_at - earlier.taken_at.unwrap_or(0.0),
        None => now.elapsed - before.map_or(0.0, |sample| sample.elapsed),
    };
    if !seconds.is_finite() || seconds <= 0.0 {
        return None;
    }
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let (mine, old) = (&target.application, &earlier.application);
    let storage = target.storage.zip(earlier.storage.or(before.is_none().then(LiveStorage::default)));
    Some(Rates {
        iops: rate(mine.operations, old.operations),
        bytes: rate(mine.bytes, old.bytes),
        flushes: rate(mine.flushes, old.flushes),
        storage: storage.map(|(mine, old)| StorageRates {
            iops: rate(mine.reads.saturating_add(mine.writes), old.reads.saturating_add(old.writes)),
            bytes: rate(mine.bytes, old.bytes),
            flushes: mine.flushes.map(|flushes| rate(flushes, old.flushes.unwrap_or(0))),
        }),
    })
}
