//! A recording judged, and the results in one document.
//!
//! ```text
//!   Recorded ─► Judge, once for each drive profile ─► minimal case of each class ─► change ─► ProofDocument
//! ```
//! Further recordings of the same work, with chosen writeback, take the same path, and so do the checks of
//! states that wrote to the drive.
//!
//! *Proved* applies to these recordings, one drive profile and one checker, and only if nothing could have
//! hidden a failing state: see `words.rs` for what may hide one.

mod failing_drive;
mod failures;
mod first_recording;
mod kept;
mod minimal_case;
mod plans;
mod prover;
mod ready;
mod recordings;
mod recovery;
mod request;
mod run;
mod subject_words;
mod traced_program;
mod traced_states;
mod words;

pub use first_recording::record_subject;
pub use kept::{KeptRecording, not_one_drive};
pub(crate) use plans::plans;
pub use prover::prove;
pub use ready::ReadyRecording;
pub use request::{Again, ExploreProgress, Request, Watch};
pub use run::{ProofRun, recording_of};
pub use subject_words::{SubjectWords, files_of, from_here};
pub use traced_program::{TracePlace, trace_program};
