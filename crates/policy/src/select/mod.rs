//! Selection of disks: the expression behind `--where`.
//!
//! ```text
//!   rotational = yes and size >= 4TB and not role = root        (model ~ "ST*" or vendor = seagate) and port ~ ata*
//! ```
//! `=` and `!=` compare without regard to case, `~` with a pattern of `*` (any letters) and `?` (one letter).
//! States are also understood by the words of Windows: `state = "better performance"`.
//!
//! `and` binds tighter than `or`, `not` tightest. An expression about something that a disk does not say (a
//! model that cannot be read) is neither true nor false; a disk is chosen only by what is known to be true,
//! also behind `not`.

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
