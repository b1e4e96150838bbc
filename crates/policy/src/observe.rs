//! Disturbance by a switch: the effect of a policy change on a light load on the disk.
//!
//! The load is external: it supplies [`LoadSample`]s on the same clock as the [`SwitchRecorder`]. The report
//! is a pure function of the samples and of the times of the switches.
//!
//! An operation counts for a switch if it was in flight at any time during it, so one delayed from before
//! until after is included. Limitation: a load with one operation at a time shows a stall only as that
//! operation's latency; the report gives the number of operations during a switch, and zero means that
//! nothing is known.

use std::cell::RefCell;

use plumb_block::{Clock, Nanos};
use serde::Serialize;

use crate::apply::{Event, Progress};

/// An operation of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSample {
    /// Time of submission.
    pub submitted_at: Nanos,
    /// Duration.
    pub latency: Nanos,
    /// Error, if it failed.
    pub error: Option<String>,
}

/// A change of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// The disk.
    pub disk: String,
    /// Start of the first step.
    pub begun_at: Nanos,
    /// End of the read-back.
    pub ended_at: Nanos,
}

/// Effect of the switches on the load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    /// Always [`Observation::SCHEMA`].
    pub schema: String,
    /// Effect of the switch of each changed disk.
    pub switches: Vec<ObservedSwitch>,
    /// Operations outside of all switches.
    pub undisturbed: UndisturbedLoad,
}

/// Effect of one switch on the load. Durations in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObservedSwitch {
    /// The disk.
    pub disk: String,
    /// Duration of the switch.
    pub duration: f64,
    /// Number of operations in flight during the switch.
    pub operations: u64,
    /// Longest latency of these operations; null if there was none.
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
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-observation/1";

    /// Relates the load's operations to the switches.
    pub(crate) fn from_samples(samples: &[LoadSample], switches: &[Switch]) -> Self {
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

/// Records when each disk is changed, and forwards all events.
pub struct SwitchRecorder<'a> {
    clock: &'a dyn Clock,
    next: Progress<'a>,
    switches: RefCell<Vec<Switch>>,
}

impl<'a> SwitchRecorder<'a> {
    /// Creates a recorder on the clock of the load.
    pub fn new(clock: &'a dyn Clock, next: Progress<'a>) -> Self {
        Self { clock, next, switches: RefCell::default() }
    }

    /// Returns all switches, in the order of time.
    pub(crate) fn into_switches(self) -> Vec<Switch> {
        self.switches.into_inner()
    }

    /// Notes a switch that begins or ends, and passes the event on.
    pub fn on(&self, event: &Event<'_>) {
        let (now, mut switches) = (self.clock.now(), self.switches.borrow_mut());
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
        (self.next)(event);
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
