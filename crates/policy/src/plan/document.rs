//! The plan as a document: planned changes, refused disks, and disks that stay as they are.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mechanism::Goal;
use crate::state::{FoundState, State};
use crate::view::{DeviceSide, Holder, KernelSide, Protection};

use super::hash;

/// Request of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanRequest {
    /// The cache is to be off: [`State::Off`].
    Off,
    /// The cache is to be on: [`State::On`].
    On,
    /// The disk is to be in [`State::Protected`].
    Protected,
    /// The views of the kernel and of the layers above are brought to what the drive says; the drive stays as
    /// it is.
    Heal,
}

/// Planned changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always [`Plan::SCHEMA`].
    pub schema: String,
    /// SHA-256 over all else, as JSON with sorted keys and without white space: `sha256:` and 64 hexadecimal
    /// digits.
    pub hash: String,
    /// When it was made: RFC 3339.
    pub made_at: String,
    /// The boot in which it was made. Names of disks mean nothing in another one.
    pub boot_id: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// Requested state.
    pub asked: PlanRequest,
    /// Changes, in order.
    pub changes: Vec<PlannedChange>,
    /// Disks that are not changed although that was requested.
    pub refused: Vec<RefusedDisk>,
    /// Disks that are in the requested state already.
    pub unchanged: Vec<UnchangedDisk>,
}

/// One disk that is changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedChange {
    /// The kernel's name at the time of planning.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: String,
    /// The model, for people.
    pub model: Option<String>,
    /// The state in which it was found.
    pub from: FoundState,
    /// Requested state of the disk.
    pub to: PlanRequest,
    /// State that the drive itself is to start with after a power cut; null: as until now.
    pub saved: Option<bool>,
    /// The wave, from 0. All of a wave are verified before the next begins.
    pub wave: usize,
    /// True if it is changed first, alone.
    pub canary: bool,
    /// Where it hangs.
    pub port: String,
    /// Arrays and pools of which it is a member.
    pub redundancy_groups: Vec<String>,
    /// State that the device reported.
    pub device: DeviceSide,
    /// State that the kernel believed in.
    pub kernel: KernelSide,
    /// Holders of the disk: what stood on it.
    pub holders: Vec<Holder>,
    /// Other disks with the same write cache, which change with it: the further namespaces of an NVMe
    /// controller.
    pub shares_cache_with: Vec<SharedCache>,
    /// The claim that `protected` rests on.
    pub protection: Option<Protection>,
    /// Steps, in order. A step whose purpose holds already when its turn comes is left out.
    pub steps: Vec<PlannedStep>,
}

/// A disk that changes with another one, because both have one write cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedCache {
    /// The kernel's name.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: Option<String>,
    /// Holders of the disk: what stood on it.
    pub holders: Vec<Holder>,
}

/// One step in words and bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// The device that it is done to: the disk, or what stands on it.
    pub on: String,
    /// Purpose of the step.
    pub words: String,
    /// Bytes that are sent or written, as `--explain` prints them.
    pub bytes: Vec<String>,
    /// Condition that is waited for before the step is done, for two seconds at most; null if there is none.
    pub waits_for: Option<String>,
    /// Condition that makes the step needless when its turn comes; null if there is none.
    pub left_out_if: Option<String>,
}

/// One disk that is not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedDisk {
    /// Name of the disk, as it was requested.
    pub name: String,
    /// Why.
    pub reason: String,
    /// Remedy: what to do.
    pub remedy: String,
}

/// One disk that is as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnchangedDisk {
    /// The kernel's name.
    pub name: String,
    /// WWN, EUI-64, NGUID or serial.
    pub identity: Option<String>,
    /// The state in which it is.
    pub state: FoundState,
}

impl Plan {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-plan/1";

    /// Returns the hash that the plan should have, as it is now.
    pub fn hash_now(&self) -> String {
        hash::compute(serde_json::to_value(self).expect("a plan is plain data with names for keys"))
    }

    /// Returns the number of waves.
    pub fn waves(&self) -> usize {
        self.changes.iter().map(|change| change.wave + 1).max().unwrap_or(0)
    }
}

impl PlanRequest {
    /// Returns the state, if it is one.
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
    /// Returns the goal that the device and the kernel must agree with afterwards. A healed disk keeps its
    /// cache on, and is sent flushes.
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
