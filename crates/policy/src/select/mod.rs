//! Selection of disks: the expression behind `--where`.
//!
//! ```text
//!   rotational = yes and size >= 4TB and not role = root        (model ~ "ST*" or vendor = seagate) and port ~ ata*
//! ```
//! `=` and `!=` compare case-insensitively, `~` with a pattern of `*` (any letters) and `?` (one letter).
//! States may also be written in the words of Windows: `state = "better performance"`.
//!
//! `not` binds tightest, then `and`, then `or`. An expression about an unknown property (a model that cannot
//! be read) is neither true nor false; a disk is selected only if the result is known to be true, even with
//! `not`.

mod caret;
mod expression;
mod field;
mod glob;
mod parse;
mod role;
mod size;
#[cfg(test)]
mod tests;
mod token;

pub use caret::SelectError;
pub use expression::{Selection, Truth};
pub use field::Field;
pub use role::{Role, roles, roles_of};
