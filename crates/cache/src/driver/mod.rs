//! The core over real devices: a [`Device`](plumb_block::Device) whose requests go through the cache.
//!
//! ```text
//!   front queues ── submit ──► core, behind one mutex ── actions ──► queues of the legs and of the backing device
//!        ▲                          │        ▲                                   │
//!        └───────── answers ────────┘        └────────────── outcomes ───────────┘
//! ```
//!
//! Whoever polls a front queue moves the core on and polls the members; in real time a thread does while
//! nobody else is there, and keeps the core's timers. In virtual time the clock does at every event
//! ([`EventSource`](plumb_block::EventSource)).
//!
//! Invariants:
//! - the core decides, the driver carries out: no request reaches a member that is no action of the core;
//! - the lock of the members is taken before that of the core, never the other way round, and the core's is
//!   held over no system call of a member;
//! - every action is answered exactly once, as unknown if the queue of its member breaks.

mod carry_out;
mod device;
mod latency;
mod members;
mod ports;
mod queue;
mod shared;
mod wake;

pub use carry_out::{SerialRequests, carry_out, create, erase};
pub use device::{CachedDevice, Members};
pub use latency::{LatencyBucket, LatencyByRequest, RequestLatency};
