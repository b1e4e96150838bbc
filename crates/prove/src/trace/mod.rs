//! System calls of a program, the operations that it leaves unsynced, and new runs with additional sync
//! calls.

mod audit;
mod document;
mod injection;
mod lane;
mod leftovers;
mod names;
mod run;
mod strace;
mod sync_call;
mod thread_state;
mod traced;
mod writeback;

pub use audit::{Audit, Finding, Lapse};
pub(crate) use audit::{has_flag, may_create};
pub(crate) use document::document_of;
pub use injection::{Injection, Sync, candidates};
pub(crate) use lane::lane;
pub use names::FileNames;
pub(crate) use run::TraceOptions;
pub use run::Tracer;
pub(crate) use strace::kind;
pub use strace::{Argument, Call, Lines};
pub use sync_call::SyncCall;
pub(crate) use sync_call::sync_calls;
pub(crate) use thread_state::{is_held, traced_by, tracer};
pub use traced::TracedCalls;
pub(crate) use writeback::syncs_before_changes;
pub use writeback::{Extent, Writeback};
