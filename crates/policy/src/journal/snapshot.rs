//! State before the first change.

use serde::{Deserialize, Serialize};

use crate::mechanism::{Material, ReadBack};
use crate::plan::Plan;
use crate::view::DeviceView;

/// State to which a rollback returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Always [`Snapshot::SCHEMA`].
    pub schema: String,
    /// Time of creation: RFC 3339.
    pub made_at: String,
    /// Identifier of the boot.
    pub boot_id: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Applied plan.
    pub plan: Plan,
    /// Previous state of every disk, in the order of the plan.
    pub disks: Vec<DiskBefore>,
}

/// Previous state of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskBefore {
    /// The device's current, changeable, default and saved settings, its SCT state, both views of the kernel,
    /// and its holders.
    pub view: DeviceView,
    /// Material for a change: the caching page as read, and the files of the kernel.
    pub material: Material,
    /// State that must be read back after a rollback.
    pub found: ReadBack,
}

impl Snapshot {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/policy-snapshot/1";
}
