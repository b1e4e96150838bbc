//! The document of `plumb fleet`: what each host answered, and what they did together.
//!
//! Each null is: it is not known, or not of this command.

use plumb_path::Finding;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run::Environment;
use super::sides::Sides;

/// All that was learnt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetDocument {
    /// [`FleetDocument::SCHEMA`].
    pub schema: String,
    /// Command given to the hosts: `load`, `check`, `survey`, `policy show`.
    pub command: String,
    /// The severity of the worst verdict: `none`, `info`, `warning` or `danger`.
    pub level: String,
    /// The result in one sentence.
    pub headline: String,
    /// True if a host is missing, or what it measured is not whole.
    pub partial: bool,
    /// The hosts, in the order in which they were named.
    pub hosts: Vec<FleetHost>,
    /// Combined results of the hosts that did everything requested: percentiles of all operations, and rates
    /// that are the sums of those of the hosts, each over the time that it ran; null except for a load.
    pub total: Option<Sides>,
    /// Measurements of the other hosts until they were lost or ended, not part of `total`; null if there are
    /// none.
    pub unfinished: Option<Sides>,
    /// Seconds from the common start until the first host was done; null but for a load.
    pub first_done: Option<f64>,
    /// Until the last was.
    pub last_done: Option<f64>,
    /// Results of the same load on more and more hosts; empty if that was not requested.
    pub scale: Vec<ScaleStep>,
    /// Findings that are wrong or worth knowing: of the hosts together, and of each.
    pub verdicts: Vec<Finding>,
    /// The load in plumb's own language (TOML); empty for other commands.
    pub workload: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// Reason why it is partial: which hosts did not do all, and each reason.
    pub incomplete_because: Option<String>,
    /// Remarks that supplement the figures.
    pub notes: Vec<String>,
    /// Where the controller ran.
    pub environment: Environment,
    /// Where the recording is; null if it is not kept.
    pub run_directory: Option<String>,
}

/// One host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetHost {
    /// Name of the host, as given.
    pub name: String,
    /// True if it did all that it was asked for.
    pub ok: bool,
    /// Reason why not.
    pub because: Option<String>,
    /// The exit code of the command there.
    pub exit: Option<u8>,
    /// How far its monotonic clock was ahead of the controller's at the start, in seconds.
    pub clock_offset: Option<f64>,
    /// The most that `clock_offset` may be wrong, in seconds.
    pub clock_error: Option<f64>,
    /// How late its load started, in seconds.
    pub start_late: Option<f64>,
    /// Seconds from the common start until its load was done.
    pub done_after: Option<f64>,
    /// Boot id of its machine, which all names of one machine share; null if it is not known.
    pub boot_id: Option<String>,
    /// True if all targets of the host are on its own devices; null where that is not known, or they are in
    /// memory.
    pub local: Option<bool>,
    /// The severity of what it found.
    pub level: Option<String>,
    /// Result of the host in one sentence.
    pub headline: Option<String>,
    /// Measurements of the host's load; for a lost host, those that it had sent until then.
    pub total: Option<Sides>,
    /// The document that the command printed there; null for a load, whose figures are in `total`.
    pub document: Option<Value>,
}

/// A load on so many hosts at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ScaleStep {
    /// How many were to take part.
    pub hosts: u64,
    /// How many did.
    pub measured: u64,
    /// Operations per second of all of them.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Performance of each host as a share of what each reached in the first step.
    pub efficiency: Option<f64>,
}

impl FleetDocument {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/fleet/1";

    /// Returns the combined measurements of the hosts that did everything or, if none did, of all until they
    /// ended.
    pub fn measured(&self) -> Option<&Sides> {
        self.total.as_ref().or(self.unfinished.as_ref())
    }

    /// Returns the hosts whose figures are in [`measured`](Self::measured), with these.
    pub fn counted(&self) -> impl Iterator<Item = (&FleetHost, &Sides)> {
        let counted = self.hosts.iter().filter(|host| self.counts(host));
        counted.filter_map(|host| Some((host, host.total.as_ref()?)))
    }

    /// Returns true if what this host measured is in [`measured`](Self::measured).
    pub const fn counts(&self, host: &FleetHost) -> bool {
        host.ok == self.total.is_some()
    }

    /// Returns the average rate of the counted hosts, in bytes per second for each; zero if there are none.
    pub fn each_bytes_per_second(&self) -> f64 {
        let rates: Vec<f64> = self.counted().map(|(_, total)| total.application.bytes_per_second).collect();
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    }

    /// Returns the hosts that did not do all that they were asked for.
    pub fn missing(&self) -> impl Iterator<Item = &FleetHost> {
        self.hosts.iter().filter(|host| !host.ok)
    }
}

/// A disk of a host that was asked for its write caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FleetDisk<'a> {
    pub(crate) name: &'a str,
    /// Empty where it has none.
    pub(crate) identity: &'a str,
    /// One of [`FleetDisk::STATES`].
    pub(crate) state: &'a str,
}

impl FleetDisk<'_> {
    /// The states of a write cache.
    pub(crate) const STATES: [&'static str; 5] = ["off", "on", "protected", "none", "unknown"];
}

impl FleetHost {
    /// Returns the disks in the document of `policy show` of this host.
    pub(crate) fn disks(&self) -> impl Iterator<Item = FleetDisk<'_>> {
        let devices = self.document.as_ref().and_then(|document| document["devices"].as_array());
        devices.into_iter().flatten().filter_map(|device| {
            let text = |key: &str| device[key].as_str();
            let identity = text("identity").unwrap_or_default();
            Some(FleetDisk { name: text("name")?, identity, state: text("state")? })
        })
    }
}
