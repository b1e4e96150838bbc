//! What to write: a [`Workload`] is plain data, and the operations follow from it alone.
//!
//! Nothing here knows a device, a clock or a thread. The same workload with the same seed gives the same operations
//! on every machine: no libm, no addresses, no time. That is what lets a reader of a recording, a verifier or a
//! prover rebuild what was written without keeping it.

pub mod generator;
pub mod invalid;
pub mod schedule;
pub mod share;
pub mod workload;

pub use generator::{Generator, Operation};
pub use invalid::Invalid;
pub use schedule::Schedule;
pub use share::Share;
pub use workload::{Access, ByteRange, Content, Rate, Stop, Workload};
