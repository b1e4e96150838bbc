//! Everything as it was before the first change.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::view::DeviceView;

/// What a rollback goes back to.
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
    /// Every disk of the plan: the device's current, changeable, default and saved settings, its SCT state, both views of
    /// the kernel, and what stands on it. In the order of the plan.
    pub disks: Vec<DeviceView>,
}

impl Snapshot {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-snapshot/1";

    /// The disk of this name as it was.
    pub fn disk(&self, name: &str) -> Option<&DeviceView> {
        self.disks.iter().find(|view| view.name == name)
    }
}
