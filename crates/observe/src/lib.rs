//! Passive observation of the requests of other programs to block devices, and of the time that they wait for
//! their data to be made durable.
//!
//! ```text
//! target ──devices, whose syncs──► session ──pages of the kernel's tracing──► decode ──Event──► fold (matcher, syncs, writeback)
//!                                     │                                                          │finished requests and syncs
//!                                     │                         slow events, metrics ◄── live ◄──┤
//!                                     │                                                          ▼
//!                                     │                              observer (device, sync_figures, arrivals) ──► ObservationDocument
//!                                     └──without tracing: counters ──► counted ───────────────────────────────────────►│
//!                                                                                           a Scenario ◄── workload ◄──┘
//! ```
//!
//! Invariants:
//! 1. Nothing is written to the observed devices and files, and other users of tracing see no change.
//! 2. The conversions from events to figures, and from figures to a workload, are pure functions.
//! 3. Missing observations are reported: lost events, missing privileges, a kernel without events.
//!
//! # Limitations
//! A sync through io_uring is not a separate system call: its flushes are visible, but its time is not.
//! `O_DSYNC` writes appear as FUA writes or flushes of the device. The device of a sync of a process that has
//! already ended is known if its file system reports it (ext4, xfs, f2fs) or its thread sent a request to the
//! device during the sync; other such syncs are listed separately. Requests include those of all programs;
//! the kernel's threads write back for all programs that made pages dirty.

mod arrivals;
mod counted;
pub mod decode;
mod device;
pub mod event;
mod exposures;
mod file_systems;
pub mod fold;
mod headline;
mod inodes;
mod live;
pub mod matcher;
mod observer;
mod processes;
pub mod requests;
mod session;
mod sync_figures;
mod syncs;
mod target;
mod tasks;
mod tracer;
pub mod workload;
mod writeback;

pub use device::WatchedDevice;
pub use exposures::{ExposureError, Exposures};
pub use file_systems::FileSystem;
pub use fold::SoFar;
pub use live::{ClockReading, Meter};
pub use observer::{FinishedDevice, Observer};
pub use session::{Keep, LiveSurroundings, Look, LostWrite, Options, Surroundings, observe, observe_live};
pub use syncs::{Caller, FinishedSync, Place, Processes, Scope, SyncedFile};
pub use target::{NoTarget, RequestedTarget, Target};
