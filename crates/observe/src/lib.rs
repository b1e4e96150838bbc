//! Passive observation of what other programs ask of block devices, and of how long they wait for their data
//! to be made durable.
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
//! 1. Nothing is written to what is observed, and what other users of tracing see does not change.
//! 2. From events to figures, and from figures to a workload, is a pure function.
//! 3. What was not seen is said: lost events, missing privileges, a kernel without events.
//!
//! # Limitations
//! A sync through io_uring is no system call of its own: its flushes are seen, and its time is not. `O_DSYNC`
//! writes show as FUA writes or flushes of the device. On which device a process synced that ended at once is
//! known where its file system says so (ext4, xfs, f2fs) or its thread asked the device for something
//! meanwhile; other such syncs are told apart. Requests are of all programs; the kernel's threads write back
//! for whoever made pages dirty.

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
