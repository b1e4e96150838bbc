//! [`TargetRequest`]: name, intended use and options of a target to open.

use plumb_linux::FileOptions;

use crate::name::Name;
use crate::permission::Intent;

/// Request to open a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRequest {
    /// Name of the target as typed.
    pub name: Name,
    /// Intended use of the target.
    pub intent: Intent,
    /// Options of the descriptor. Their access is ignored, as it follows from the intent.
    pub options: FileOptions,
}
