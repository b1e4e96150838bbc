//! Carrying a plan out: everything is checked again, written down, done in waves, read back, and stopped at
//! the first thing that is not as it should be.
//!
//! ```text
//!   plan ─► lock ─► every disk as planned? ─► snapshot (durable) ─► canary ─► wave 1 ─► wave 2 ...
//!                                                                    │ for each disk, one after the other:
//!                                                                    │   still the same? ─► steps ─► read back, settle
//!                                                                    └ for each wave: read all of it back again
//! ```
//! Decisions:
//! - **One disk at a time**, also within a wave: a wave bounds what goes wrong before it is looked at again.
//! - **A mismatch stops.** The disk is left as it is, the others are not touched, and the report says how to
//!   go back. Going back by itself would be a second change on a disk that has just shown that it does not do
//!   what it is told.
//! - **Success is what was read back.** A step that was refused or did nothing is no failure if the device
//!   and the kernel agree with the goal; a step that succeeded is none if they do not.
//! - An interruption is heeded between two steps, never within one.

mod check;
mod disk;
mod progress;
mod report;
mod run;

pub use progress::{Event, Progress, Silent};
pub use report::{ApplyEnd, DiskReport, DiskResult, Report};
pub use run::{Session, apply, apply_as, apply_in, resume, resume_in};

pub(crate) use disk::{StepsEnded, Worker};
