//! Workloads: a [`Scenario`] is plain data that determines all operations.
//!
//! Nothing here depends on a device, a clock or a thread. The same workload with the same seed generates the
//! same operations on every machine: no system libm, no addresses, no time. A reader of a recording, a
//! verifier or a prover can therefore regenerate what was written without storing it.

pub mod access;
pub mod block_sizes;
mod byte_range;
pub mod generator;
mod grid;
pub mod invalid;
pub mod pace;
pub mod replay;
pub mod scenario;
pub mod schedule;
mod seed;
pub mod share;
pub mod trace;
pub mod unit;
mod validate;
pub mod workload;

pub use access::{Access, Distribution, Random, Runs, Sequential, Walk, Zone, ZoneLength};
pub use block_sizes::{BlockSizes, BlockSplit};
pub use byte_range::ByteRange;
pub use generator::{Cursor, EffectiveZone, Generator, Operation};
pub use invalid::Invalid;
pub use pace::{Amount, Arrival, Burst, Rate, Stop};
pub use plumb_block::{Caching, DurableWrite, EngineChoice, FlushCall, Opening, Priority};
pub use replay::{RecordedEvents, Replay, Replays};
pub use scenario::{
    Affinity, Job, LatencyTarget, Layout, PageCache, Program, Role, Scenario, Span, Steady, TargetUse,
    Thread, Warmup,
};
pub use schedule::Schedule;
pub use share::Share;
pub use trace::{Skip, Trace, TraceEvent, TraceOp, TraceSpeed, TraceUse};
pub use unit::common_unit;
pub use workload::{Content, Division, Durability, Workload};
