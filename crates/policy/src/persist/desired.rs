//! Desired states of disks at every start, one file for each disk.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::PersistError;
use super::persistence::Persistence;
use crate::file;
use crate::state::State;
use crate::view::DeviceView;

/// A desired state for one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DesiredState {
    /// WWN, EUI-64, NGUID or `serial.` and the serial number, as printed by `plumb policy show`.
    pub identity: String,
    /// Desired state.
    pub state: State,
    /// Mechanism that makes it persist.
    pub means: Persistence,
    /// Transport of the disk, which determines what a rule can do.
    pub transport: String,
    /// Attribute of the kernel for the cache: `cache_type` below the SCSI device or the disk, or none.
    pub cache_type: CacheType,
    /// Model, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number, for display and as identification without a WWN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
}

/// Location of the kernel's attribute for the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheType {
    /// `device/scsi_disk/H:C:T:L/cache_type`.
    Scsi,
    /// `cache_type` of a virtio disk.
    Virtio,
    /// The disk has no such attribute.
    Nowhere,
}

impl DesiredState {
    /// Creates the desired state of a disk from its view.
    ///
    /// # Errors
    /// If the disk cannot be recognised at the next start.
    pub fn from_view(view: &DeviceView, state: State, means: Persistence) -> Result<Self, PersistError> {
        let nameless = || PersistError::Nameless { name: view.name.clone() };
        Ok(Self {
            identity: view.identity.clone().filter(|identity| !identity.is_empty()).ok_or_else(nameless)?,
            state,
            means,
            transport: view.transport.clone(),
            cache_type: match (view.kernel.cache_type.is_some(), view.transport.as_str()) {
                (false, _) => CacheType::Nowhere,
                (true, "virtio") => CacheType::Virtio,
                (true, _) => CacheType::Scsi,
            },
            model: view.model.clone(),
            serial: view.serial.clone(),
        })
    }

    /// Returns the file name: harmless characters, with a checksum to make it unique.
    pub fn file_name(&self) -> String {
        let plain: String = self
            .identity
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        let plain = plain.trim_start_matches('.');
        let mut sum = plumb_state::digest::sha256_hex(self.identity.as_bytes());
        sum.truncate(8);
        format!("{}-{sum}.toml", plain.get(..60).unwrap_or(plain))
    }
}

/// Returns all desired states in a directory, ordered by identity. A missing directory has none.
///
/// # Errors
/// If one of them cannot be read or parsed; then none is used, since that one may matter.
pub fn load_desired(directory: &Path) -> Result<Vec<DesiredState>, PersistError> {
    let mut desired_states: Vec<DesiredState> = Vec::new();
    for path in file::list(directory)? {
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(file::failed("read", &path))?;
        let malformed = |what: String| PersistError::Malformed { path: path.clone(), what };
        let desired: DesiredState =
            toml::from_str(&text).map_err(|error| malformed(error.to_string().trim().to_owned()))?;
        if desired_states.iter().any(|other| other.identity == desired.identity) {
            return Err(malformed(format!("there is another file for {}", desired.identity)));
        }
        desired_states.push(desired);
    }
    desired_states.sort_by(|left, right| left.identity.cmp(&right.identity));
    Ok(desired_states)
}
