//! Journal of an apply, from which it can be resumed or undone after any interruption.
//!
//! ```text
//!   ROOT/lock                   held (flock) while an apply, a resume or a rollback runs
//!   ROOT/APPLY-ID/snapshot.json earlier state, with the plan: durable before the journal begins
//!   ROOT/APPLY-ID/journal.log   records, one line each; one that announces a step is durable before it
//!
//!   before the first change: snapshot, begun(sum of the snapshot)
//!   for each step:           intent (durable), THE STEP, done (durable with the next intent)
//!   for each disk:           verified | mismatch           at the end: complete | stopped
//! ```
//! State after a crash, and the consequences:
//! 1. no snapshot, or no `begun`: nothing was changed;
//! 2. an `intent` without `done`: that step may have happened or not. All steps are designed so that reading
//!    the disk again, and only that, resolves both cases;
//! 3. a partial line at the end: that record was not written, so the announced action did not start.
//!
//! A damaged line followed by complete ones is not the result of a crash: the journal is refused, with the
//! position. A journal that could not be made durable accepts no further records, so nothing further is
//! changed.

mod error;
mod lock;
mod log;
mod record;
mod snapshot;
mod store;

pub use error::JournalError;
pub use lock::Lock;
pub use log::{Journal, list, snapshot_of};
pub use record::{Entry, Phase, Record};
pub use snapshot::{DiskBefore, Snapshot};
pub use store::{DirectoryStore, JournalStore};
