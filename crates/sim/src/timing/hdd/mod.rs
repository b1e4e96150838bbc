//! A spinning disk: arm, spindle, zones, a queue ordered by positioning time, and read-ahead.
//!
//! ```text
//!   sectors ──► geometry: zone, cylinder, head, angle
//!                  │
//!   queue ────► disk: what can be reached first? ── seek (arm) + spindle (angle at a time) ──► transfer, track by track
//!                  │
//!                  └► read-ahead: what passes under the head while nobody asks
//! ```
//!
//! Nothing is random: the time determines the position of the platter, so equal commands at equal times take
//! the same time. Angles are 32-bit fractions of a revolution, which wrap as the platter does.
//!
//! Not modelled: spin-up, thermal recalibration, retries, remapped sectors, several actuators, shingled
//! recording.

mod disk;
mod geometry;
mod parameters;
mod positioning;
mod read_ahead;
mod seek;
mod spindle;
#[cfg(test)]
mod tests;

pub use disk::Hdd;
pub use parameters::{HddParameters, PublishedFigures};

#[cfg(test)]
pub(in crate::timing) use parameters::tests::desktop as tests_desktop;
