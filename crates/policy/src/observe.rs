//! Is switching disruptive? What a light load on the disk felt while the policy was changed.
//!
//! The load is somebody else's: it yields [`LoadSample`]s on the same clock as the [`SwitchRecorder`]. The
//! report is a pure function of the samples and of the times of the switches.
//!
//! An operation counts for a switch if it was under way at any time of it, so that one that was held up from
//! before until after is counted. Limitation: a load with one operation at a time sees a stall only as that
//! operation's latency; the report says how many operations a switch saw, and none means that nothing is
//! known.

use std::sync::Mutex;

use plumb_block::{Clock, Nanos};
use serde::Serialize;

use crate::apply::{Event, Progress};

/// One operation of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSample {
    /// When it was submitted.
    pub submitted_at: Nanos,
    /// Time that it took.
    pub latency: Nanos,
    /// Reason why it failed, if it did.
    pub error: Option<String>,
}

/// When a disk was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// The disk.
    pub disk: String,
    /// When the first step began.
    pub begun_at: Nanos,
    /// When it was read back.
    pub ended_at: Nanos,
}

/// Effect of the switches on the load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// Always [`Observation::SCHEMA`].
    pub schema: String,
    /// One for each disk that was changed.
    pub switches: Vec<ObservedSwitch>,
    /// Operations outside of all switches.
    pub undisturbed: UndisturbedLoad,
}

/// Effect of one switch on the load. Durations in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObservedSwitch {
    /// The disk.
    pub disk: String,
    /// Time that the switch took.
    pub duration: f64,
    /// Number of operations that were under way during it.
    pub operations: u64,
    /// The longest of them; null if there was none.
    pub longest_stall: Option<f64>,
    /// Errors of the load, in the order of time.
    pub errors: Vec<String>,
}

/// Behaviour of the load at other times. Durations in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UndisturbedLoad {
    /// Number of operations.
    pub operations: u64,
    /// Median latency of the operations; null if there was none.
    pub median: Option<f64>,
    /// Longest latency of the operations.
    pub max: Option<f64>,
    /// Number of failures.
    pub errors: u64,
}

impl Observation {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-observation/1";

    /// Puts what the load did beside what was changed.
    pub fn from_samples(samples: &[LoadSample], switches: &[Switch]) -> Self {
        let outside: Vec<&LoadSample> =
            samples.iter().filter(|sample| !switches.iter().any(|switch| overlap(sample, switch))).collect();
        let mut latencies: Vec<Nanos> = outside.iter().map(|sample| sample.latency).collect();
        latencies.sort_unstable();
        Self {
            schema: Self::SCHEMA.to_owned(),
            switches: switches.iter().map(|switch| observed(samples, switch)).collect(),
            undisturbed: UndisturbedLoad {
                operations: outside.len() as u64,
                median: latencies.get(latencies.len() / 2).map(|latency| latency.as_secs_f64()),
                max: latencies.last().map(|latency| latency.as_secs_f64()),
                errors: outside.iter().filter(|sample| sample.error.is_some()).count() as u64,
            },
        }
    }
}

fn observed(samples: &[LoadSample], switch: &Switch) -> ObservedSwitch {
    let during: Vec<&LoadSample> = samples.iter().filter(|sample| overlap(sample, switch)).collect();
    ObservedSwitch {
        disk: switch.disk.clone(),
        duration: switch.ended_at.since(switch.begun_at).as_secs_f64(),
        operations: during.len() as u64,
        longest_stall: during.iter().map(|sample| sample.latency).max().map(Nanos::as_secs_f64),
        errors: during.iter().filter_map(|sample| sample.error.clone()).collect(),
    }
}

fn overlap(sample: &LoadSample, switch: &Switch) -> bool {
    let ended_at = sample.submitted_at.saturating_add(sample.latency);
    sample.submitted_at <= switch.ended_at && ended_at >= switch.begun_at
}

/// Notes when each disk is changed, and passes all events on.
pub struct SwitchRecorder<'a> {
    clock: &'a dyn Clock,
    next: &'a dyn Progress,
    switches: Mutex<Vec<Switch>>,
}

impl<'a> SwitchRecorder<'a> {
    /// Creates a recorder on the clock of the load.
    pub fn new(clock: &'a dyn Clock, next: &'a dyn Progress) -> Self {
        Self { clock, next, switches: Mutex::new(Vec::new()) }
    }

    /// Returns all switches, in the order of time.
    pub fn into_switches(self) -> Vec<Switch> {
        self.switches.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Progress for SwitchRecorder<'_> {
    fn event(&self, event: &Event<'_>) {
        let now = self.clock.now();
        let mut switches = self.switches.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            Event::DiskBegun { disk, .. } => {
                switches.push(Switch { disk: (*disk).to_owned(), begun_at: now, ended_at: now });
            }
            Event::DiskEnded { .. } => {
                if let Some(last) = switches.last_mut() {
                    last.ended_at = now;
                }
            }
            _ => {}
        }
        drop(switches);
        self.next.event(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(submitted_ms: u64, latency_ms: u64, error: Option<&str>) -> LoadSample {
        LoadSample {
            submitted_at: Nanos::millis(submitted_ms),
            latency: Nanos::millis(latency_ms),
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn a_stall_that_spans_the_whole_switch_counts() {
        let samples = [
            sample(0, 1, None),
            sample(10, 90, None),
            sample(60, 2, Some("EIO")),
            sample(200, 3, None),
            sample(210, 5, Some("ENOSPC")),
        ];
        let switch = |disk: &str, from, to| Switch {
            disk: disk.into(),
            begun_at: Nanos::millis(from),
            ended_at: Nanos::millis(to),
        };
        let seen = Observation::from_samples(&samples, &[switch("sda", 50, 70), switch("sdb", 500, 510)]);
        assert_eq!(seen.switches[0].operations, 2);
        assert_eq!(seen.switches[0].longest_stall, Some(0.09));
        assert_eq!(seen.switches[0].errors, ["EIO"]);
        assert_eq!(seen.switches[1].longest_stall, None, "nothing ran, so nothing is known");
        assert_eq!(seen.undisturbed.operations, 3);
        assert_eq!(seen.undisturbed.median, Some(0.003));
        assert_eq!((seen.undisturbed.max, seen.undisturbed.errors), (Some(0.005), 1));
    }
}
