//! Everything as it was before the first change.

use serde::{Deserialize, Serialize};

use crate::mechanism::{Material, ReadBack};
use crate::plan::Plan;
use crate::view::DeviceView;

/// State that a rollback goes back to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Always [`Snapshot::SCHEMA`].
    pub schema: String,
    /// When it was taken: RFC 3339.
    pub made_at: String,
    /// The boot in which it was taken.
    pub boot_id: String,
    /// The kernel's release then.
    pub kernel: Option<String>,
    /// The plan that was applied.
    pub plan: Plan,
    /// Every disk of the plan as it was, in the order of the plan.
    pub disks: Vec<DiskBefore>,
}

/// One disk as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskBefore {
    /// The device's current, changeable, default and saved settings, its SCT state, both views of the kernel,
    /// and what stands on it.
    pub view: DeviceView,
    /// Material that a change is made from: its caching page as it came, and the files of the kernel.
    pub material: Material,
    /// State that a rollback must read again.
    pub found: ReadBack,
}

impl Snapshot {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-snapshot/1";
}
