//! Application of a plan: all checks are repeated, every step is journalled, disks are changed in waves and
//! read back, and the run stops at the first unexpected result.
//!
//! ```text
//!   plan ─► lock ─► every disk as planned? ─► snapshot (durable) ─► canary ─► wave 1 ─► wave 2 ...
//!                                                                    │ for each disk, one after the other:
//!                                                                    │   still the same? ─► steps ─► read back, settle
//!                                                                    └ for each wave: read all of it back again
//! ```
//! Decisions:
//! - **One disk at a time**, even within a wave: a wave limits the damage before the next check.
//! - **A mismatch stops the run.** The disk is left as it is, other disks are not touched, and the report
//!   explains how to roll back. An automatic rollback would be a second change of a disk that has just failed
//!   to follow a command.
//! - **Success is decided by reading back.** A refused or ineffective step is not a failure if the device and
//!   the kernel match the goal; a successful step is not a success if they do not.
//! - An interruption takes effect between two steps, never within one.

mod check;
mod disk;
mod progress;
mod report;
mod run;

pub use progress::{Event, Progress};
pub use report::{ApplyEnd, DiskReport, DiskResult, Report};
pub use run::{Session, apply, apply_as, apply_in, resume, resume_in};

pub(crate) use disk::{StepsEnded, Worker};
