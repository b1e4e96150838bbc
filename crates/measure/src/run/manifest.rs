//! `manifest.json`: what was run, where, and whether it is complete.

use serde::{Deserialize, Serialize};

use crate::process;

/// The manifest of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`Manifest::SCHEMA`].
    pub schema: String,
    /// Version of plumb.
    pub version: String,
    /// Command that was run: `check`, `load`, ...
    pub command: String,
    /// The command line.
    pub argv: Vec<String>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Measured target, as given.
    pub target: Option<String>,
    /// Devices below the target.
    pub devices: Vec<DeviceIdentity>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// Start time, RFC 3339 in UTC.
    pub started_at: String,
    /// End time; null while it runs.
    pub ended_at: Option<String>,
    /// Status of the run.
    pub status: RunStatus,
    /// Reason why the run is incomplete; null if it is complete or still running.
    pub reason: Option<String>,
}

/// Identity of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// Name at the time: `vda`.
    pub name: String,
    /// Identifier that survives a change of names: WWN, serial, UUID. Null if the device has none.
    pub identity: Option<String>,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// No end was recorded: it is still running, or was killed.
    Running,
    /// All phases ran.
    Complete,
    /// The run ended early; its measurements so far are kept.
    Interrupted,
}

impl Manifest {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/manifest/1";
    /// Schema prefix of all versions.
    pub(crate) const SCHEMA_FAMILY: &str = "plumb/manifest/";

    /// Creates the manifest of a run that starts now on this machine: status `running`, unknown fields null.
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
