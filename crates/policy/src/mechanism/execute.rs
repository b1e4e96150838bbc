//! Carrying one step out.

use plumb_block::Errno;

use super::Step;
use crate::gateway::{Gateway, GatewayError};

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// It was carried out.
    Done,
    /// It was not needed: what it is for holds already.
    NotNeeded,
    /// The kernel refused it, as it may: reading back tells.
    Refused,
}

/// Carries `step` out, unless what it is for holds already.
///
/// # Errors
/// As [`Gateway::carry_out`]. Whatever is said here, only reading back tells what is.
pub fn execute(gateway: &dyn Gateway, step: &Step) -> Result<Execution, GatewayError> {
    if let Some(condition) = &step.only_unless
        && gateway.tree().text(&condition.path).is_ok_and(|says| says == condition.says)
    {
        return Ok(Execution::NotNeeded);
    }
    match gateway.carry_out(&step.disk, &step.change) {
        Ok(()) => Ok(Execution::Done),
        Err(GatewayError::Os { errno: Errno::EINVAL, .. }) if step.may_be_refused => Ok(Execution::Refused),
        Err(error) => Err(error),
    }
}
