//! Which system calls a program made, and what it leaves to luck by them.

mod audit;
mod strace;

pub use audit::{Audit, Change, Finding, Lapse};
pub use strace::{Argument, Call, Calls};
