//! [`TargetRequest`]: a target that a command wants to open, the use it makes of it, and the options.

use plumb_linux::FileOptions;

use crate::name::Name;
use crate::permission::Intent;

/// Target that is to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRequest {
    /// Name of the target as it was typed.
    pub name: Name,
    /// Intended use of the target.
    pub intent: Intent,
    /// Options of the descriptor. The access follows from the intent, whatever is said here.
    pub options: FileOptions,
}
