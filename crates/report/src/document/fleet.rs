//! Document of `plumb fleet`: the results of each host, and of all together.
//!
//! Null means unknown, or not applicable to this command.

use plumb_path::Finding;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run::Environment;
use super::sides::Sides;

/// Results of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetDocument {
    /// Name and version of the document: [`FleetDocument::SCHEMA`].
    pub schema: String,
    /// Command run on the hosts: `load`, `check`, `survey`, `policy show`.
    pub command: String,
    /// Severity of the worst verdict: `none`, `info`, `warning` or `danger`.
    pub level: String,
    /// Result in one sentence.
    pub headline: String,
    /// True if a host is missing or its measurement is incomplete.
    pub partial: bool,
    /// Hosts, in the order given.
    pub hosts: Vec<FleetHost>,
    /// Combined results of the hosts that completed everything. Percentiles are those of all operations, and
    /// rates are the sums of the hosts' rates, each over the host's own window. Null except for a load.
    pub total: Option<Sides>,
    /// Measurements of the other hosts until they were lost or ended, which are not part of `total`; null if
    /// there are none.
    pub unfinished: Option<Sides>,
    /// Seconds from the common start until the first host was done; null except for a load.
    pub first_done: Option<f64>,
    /// Seconds from the common start until the last host was done; null except for a load.
    pub last_done: Option<f64>,
    /// Results of the same load on increasing numbers of hosts; empty if not requested.
    pub scale: Vec<ScaleStep>,
    /// Findings about the hosts together, and about each host.
    pub verdicts: Vec<Finding>,
    /// Load in plumb's own language (TOML); empty for other commands.
    pub workload: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Reason why the result is partial: the hosts that did not complete everything, each with its reason.
    pub incomplete_because: Option<String>,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// Environment of the controller.
    pub environment: Environment,
    /// Path of the recording; null if there is none.
    pub run_directory: Option<String>,
}

/// Result of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetHost {
    /// Name of the host, as given.
    pub name: String,
    /// True if the host completed everything.
    pub ok: bool,
    /// Reason why it did not; null if it did.
    pub because: Option<String>,
    /// Exit code of the command on the host.
    pub exit: Option<u8>,
    /// Offset of the host's monotonic clock from that of the controller at the start, in seconds; positive if
    /// it is ahead.
    pub clock_offset: Option<f64>,
    /// Maximum error of `clock_offset`, in seconds.
    pub clock_error: Option<f64>,
    /// Delay of the start of the load, in seconds.
    pub start_late: Option<f64>,
    /// Seconds from the common start until the host's load was done.
    pub done_after: Option<f64>,
    /// Boot ID of the machine, equal for all names of one machine; null if unknown.
    pub boot_id: Option<String>,
    /// True if all targets of the host are on its own devices; null if unknown, or if they are in memory.
    pub local: Option<bool>,
    /// Severity of the host's worst finding.
    pub level: Option<String>,
    /// Result of the host in one sentence.
    pub headline: Option<String>,
    /// Measurements of the host's load. For a lost host, those that it had sent before.
    pub total: Option<Sides>,
    /// Document that the command printed on the host; null for a load, whose figures are in `total`.
    pub document: Option<Value>,
}

/// Load on a certain number of hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ScaleStep {
    /// Planned number of hosts.
    pub hosts: u64,
    /// Number of hosts that took part.
    pub measured: u64,
    /// Operations per second of all hosts.
    pub iops: f64,
    /// Bytes per second of all hosts.
    pub bytes_per_second: f64,
    /// Performance per host as a share of that in the first step.
    pub efficiency: Option<f64>,
}

impl FleetDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/fleet/1";

    /// Returns the combined measurements of the hosts that completed everything; if there are none, those of
    /// all hosts until they ended.
    pub fn measured(&self) -> Option<&Sides> {
        self.total.as_ref().or(self.unfinished.as_ref())
    }

    /// Returns the hosts that contribute to [`measured`](Self::measured), with their measurements.
    pub fn counted(&self) -> impl Iterator<Item = (&FleetHost, &Sides)> {
        let counted = self.hosts.iter().filter(|host| self.counts(host));
        counted.filter_map(|host| Some((host, host.total.as_ref()?)))
    }

    /// Returns true if the host contributes to [`measured`](Self::measured).
    pub const fn counts(&self, host: &FleetHost) -> bool {
        host.ok == self.total.is_some()
    }

    /// Returns the average rate of the contributing hosts, in bytes per second; zero if there are none.
    pub fn each_bytes_per_second(&self) -> f64 {
        let rates: Vec<f64> = self.counted().map(|(_, total)| total.application.bytes_per_second).collect();
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    }

    /// Returns the hosts that did not complete everything.
    pub fn missing(&self) -> impl Iterator<Item = &FleetHost> {
        self.hosts.iter().filter(|host| !host.ok)
    }
}

/// Disk of a host whose write cache was queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FleetDisk<'a> {
    pub(crate) name: &'a str,
    /// Identity; empty for a disk without one.
    pub(crate) identity: &'a str,
    /// State of the write cache, one of [`FleetDisk::STATES`].
    pub(crate) state: &'a str,
}

impl FleetDisk<'_> {
    /// States of a write cache.
    pub(crate) const STATES: [&'static str; 5] = ["off", "on", "protected", "none", "unknown"];
}

impl FleetHost {
    /// Returns the disks in this host's document of `policy show`.
    pub(crate) fn disks(&self) -> impl Iterator<Item = FleetDisk<'_>> {
        let devices = self.document.as_ref().and_then(|document| document["devices"].as_array());
        devices.into_iter().flatten().filter_map(|device| {
            let text = |key: &str| device[key].as_str();
            let identity = text("identity").unwrap_or_default();
            Some(FleetDisk { name: text("name")?, identity, state: text("state")? })
        })
    }
}
