//! Record of what an apply did, kept so that it can be continued or undone whenever it was cut off.
//!
//! ```text
//!   ROOT/lock                   held (flock) while an apply, a resume or a rollback runs
//!   ROOT/APPLY-ID/snapshot.json everything as it was, with the plan: durable before the journal begins
//!   ROOT/APPLY-ID/journal.log   one line for each record: what announces a step is durable before it
//!
//!   before the first change: snapshot, begun(sum of the snapshot)
//!   for each step:           intent (durable), THE STEP, done (durable with the next intent)
//!   for each disk:           verified | mismatch           at the end: complete | stopped
//! ```
//! What a cut leaves, and what follows from it:
//! 1. no snapshot, or no `begun`: nothing was changed;
//! 2. an `intent` without `done`: that one step may have happened or not. Steps are such that both are mended
//!    by looking at the disk again, and only at the disk;
//! 3. half a line at the end: that record was not written, so what it was to announce did not begin.
//!
//! A line that is damaged with whole lines behind it is no cut: the journal is refused with the place. A
//! journal that could not be made durable takes no further record, so nothing further is changed.

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
