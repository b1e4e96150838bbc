//! A recording judged, and what was found put into one document.
//!
//! ```text
//!   Recorded ─► Judge, once for each drive profile ─► minimal case of each class ─► change ─► ProofDocument
//! ```
//! Further recordings of the same work, with writeback chosen, take the same way, and so do the checks of
//! states that wrote to the drive.
//!
//! *Proved* is said of these recordings, one drive profile and one checker, and only if nothing could have
//! hidden a failing state: `words.rs` lists what may.

mod failures;
mod kept;
mod minimal_case;
mod plans;
mod prover;
mod recordings;
mod recovery;
mod request;
mod traced_states;
mod words;

pub use kept::{KeptRecording, SubjectWords};
pub(crate) use plans::plans;
pub use prover::prove;
pub use request::{Again, ExploreProgress, Further, Request, Watch};
pub use traced_states::traced_states;
