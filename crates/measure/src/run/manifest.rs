//! `manifest.json`: what was run, where, and whether it is complete.

use serde::{Deserialize, Serialize};

use crate::process;

/// The manifest of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`Manifest::SCHEMA`].
    pub schema: String,
    /// plumb's own version.
    pub version: String,
    /// Command that was run: `check`, `load`, ...
    pub command: String,
    /// The command line.
    pub argv: Vec<String>,
    /// The seed of all random choices.
    pub seed: u64,
    /// Measured target, as given.
    pub target: Option<String>,
    /// The devices beneath the target.
    pub devices: Vec<DeviceIdentity>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The host's name.
    pub host: Option<String>,
    /// When it began, RFC 3339 in UTC.
    pub started_at: String,
    /// When it ended; null while it runs.
    pub ended_at: Option<String>,
    /// Status of the run: whether it is complete.
    pub status: RunStatus,
    /// Reason why it is not complete; null if it is, or still runs.
    pub reason: Option<String>,
}

/// Identity of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// The name it had: `vda`.
    pub name: String,
    /// Identifier that stays the same when names change: WWN, serial, UUID. Null if the device has none.
    pub identity: Option<String>,
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// The run has not reported an end: it still runs, or was killed.
    Running,
    /// Every phase ran.
    Complete,
    /// The run ended early; what was measured until then is kept.
    Interrupted,
}

impl Manifest {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/manifest/1";
    /// Prefix of the schema of every version.
    pub(crate) const SCHEMA_FAMILY: &str = "plumb/manifest/";

    /// Returns the manifest of a run that begins now on this machine: status `running`, everything unknown
    /// still null.
    pub fn starting(
        command: impl Into<String>,
        argv: Vec<String>,
        seed: u64,
        started_at: impl Into<String>,
    ) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.into(),
            argv,
            seed,
            target: None,
            devices: Vec::new(),
            kernel: process::kernel(),
            host: process::host(),
            started_at: started_at.into(),
            ended_at: None,
            status: RunStatus::Running,
            reason: None,
        }
    }
}
