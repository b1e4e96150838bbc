//! Tests of the window, the draw and the enumeration against slow implementations of the rules.
//!
//! - `history`: the histories, and their application to both sides.
//! - `exhaustive`: the window against the conformance kit's rules of one block, on every history up to five
//!   commands.
//! - `whole_drive`: draw and enumeration against brute force over all commands, atomic writes included.
//! - `mutated`: wrong devices, each of which the same comparisons must find.

#![expect(clippy::unwrap_used, reason = "tests")]

mod exhaustive;
mod history;
mod mutated;
mod whole_drive;
