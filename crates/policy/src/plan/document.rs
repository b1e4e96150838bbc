//! The plan as a document: planned changes, refused disks, and disks that stay as they are.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mechanism::Goal;
use crate::state::{FoundState, State};
use crate::view::{DeviceSide, Holder, KernelSide, Protection};

use super::hash;

/// Requested result of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanRequest {
    /// Disabled cache: [`State::Off`].
    Off,
    /// Enabled cache: [`State::On`].
    On,
    /// Protected cache: [`State::Protected`].
    Protected,
    /// Views of the kernel and of the layers above that match the drive, which is not changed.
    Heal,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always [`Plan::SCHEMA`].
    pub schema: String,
    /// SHA-256 over everything else, as JSON with sorted keys and without white space: `sha256:` and 64
    /// hexadecimal digits.
    pub hash: String,
    /// Time of creation: RFC 3339.
    pub made_at: String,
    /// Boot in which the plan was made. In another boot, names of disks mean nothing.
    pub boot_id: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Requested state.
    pub asked: PlanRequest,
    /// Changes, in order.
    pub changes: Vec<PlannedChange>,
    /// Disks that are not changed although that was requested.
    pub refused: Vec<RefusedDisk>,
    /// Disks that already are in the requested state.
    pub unchanged: Vec<UnchangedDisk>,
}

/// A planned change of one disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedChange {
    /// Kernel name at the time of planning.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: String,
    /// Model, for display.
    pub model: Option<String>,
    /// Found state.
    pub from: FoundState,
    /// Requested state of the disk.
    pub to: PlanRequest,
    /// Requested state of the cache after a power cut; null: unchanged.
    pub saved: Option<bool>,
    /// Wave, from 0. All disks of a wave are verified before the next starts.
    pub wave: usize,
    /// True if the disk is changed first, alone.
    pub canary: bool,
    /// Port of the disk.
    pub port: String,
    /// Arrays and pools of which the disk is a member.
    pub redundancy_groups: Vec<String>,
    /// State reported by the device.
    pub device: DeviceSide,
    /// View of the kernel.
    pub kernel: KernelSide,
    /// Holders of the disk.
    pub holders: Vec<Holder>,
    /// Other disks with the same write cache, which change with it: other namespaces of an NVMe controller.
    pub shares_cache_with: Vec<SharedCache>,
    /// Claim on which `protected` relies.
    pub protection: Option<Protection>,
    /// Steps in order. A step whose goal is already met is skipped.
    pub steps: Vec<PlannedStep>,
}

/// A disk that changes with another one because they share a write cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedCache {
    /// Kernel name.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: Option<String>,
    /// Holders of the disk.
    pub holders: Vec<Holder>,
}

/// A planned step, described and as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Target device: the disk, or one of its holders.
    pub on: String,
    /// Purpose of the step.
    pub words: String,
    /// Bytes sent or written, as printed by `--explain`.
    pub bytes: Vec<String>,
    /// Condition to wait for before the step, at most two seconds; null if there is none.
    pub waits_for: Option<String>,
    /// Condition under which the step is skipped; null if there is none.
    pub left_out_if: Option<String>,
}

/// A disk that is not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedDisk {
    /// Name of the disk, as requested.
    pub name: String,
    /// Reason.
    pub reason: String,
    /// Remedy: what to do.
    pub remedy: String,
}

/// A disk that already is in the requested state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnchangedDisk {
    /// Kernel name.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: Option<String>,
    /// Present state.
    pub state: FoundState,
}

impl Plan {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-plan/1";

    /// Computes the hash of the present contents.
    pub fn hash_now(&self) -> String {
        hash::compute(serde_json::to_value(self).expect("a plan is plain data with names for keys"))
    }

    /// Returns the number of waves.
    pub fn waves(&self) -> usize {
        self.changes.iter().map(|change| change.wave + 1).max().unwrap_or(0)
    }
}

impl PlanRequest {
    /// Returns the requested state, if it is one.
    pub const fn state(self) -> Option<State> {
        match self {
            Self::Off => Some(State::Off),
            Self::On => Some(State::On),
            Self::Protected => Some(State::Protected),
            Self::Heal => None,
        }
    }
}

impl PlannedChange {
    /// Returns the goal that the device and the kernel must match afterwards. A healed disk keeps its cache
    /// enabled, and receives flushes.
    pub fn goal(&self) -> Goal {
        Goal { state: self.to.state().unwrap_or(State::On), saved: self.saved }
    }
}

impl From<State> for PlanRequest {
    fn from(state: State) -> Self {
        match state {
            State::Off => Self::Off,
            State::On => Self::On,
            State::Protected => Self::Protected,
        }
    }
}

impl fmt::Display for PlanRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.state().map_or("heal", State::word))
    }
}
