//! Driver of the core with real devices: a [`Device`](plumb_block::Device) whose requests go through the
//! cache.
//!
//! ```text
//!   front queues ── submit ──► core, behind one mutex ── actions ──► queues of the legs and of the backing device
//!        ▲                          │        ▲                                   │
//!        └───────── answers ────────┘        └────────────── outcomes ───────────┘
//! ```
//!
//! A thread that polls a front queue advances the core and polls the members. In real time a separate thread
//! does so while nobody polls, and handles the core's timers. In virtual time the clock does it at every
//! event ([`EventSource`](plumb_block::EventSource)).
//!
//! Invariants:
//! - the core decides and the driver executes: every request to a member is an action of the core;
//! - the lock of the members is taken before that of the core, never in reverse order, and the core's is not
//!   held during a system call of a member;
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
