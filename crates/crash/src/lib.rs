//! The crash rules: the possible states of a device after a power cut. This crate is their only
//! implementation: a simulated drive uses it to draw one cut, and a prover to enumerate all of them.
//!
//! ```text
//!   submit, complete, flush, fail ──► Window ──┬─► draw       one cut, from a seed
//!                                      │       ├─► candidates what each block may hold
//!                                      │       └─► enumerate  every cut
//!                                      └─► what became durable (to the caller's store)
//! ```
//!
//! A device sees commands as a sequence of submissions and completions ([`Span`]). The rules:
//!
//! 1. Command `a` is **older** than `b` if it completed before `b` was submitted. Of two commands in flight
//!    at the same time neither is older.
//! 2. A flush covers the commands that **completed before the flush was submitted**, on any queue; once the
//!    flush has completed they are durable. It does not cover commands in flight at its submission
//!    ([`Window::complete`]).
//! 3. FUA makes its own blocks durable when the command completes. It covers nothing else and orders nothing.
//! 4. Without a volatile cache (or with a protected one) completed commands are durable.
//! 5. After a cut, durable commands **must** be present, unless something newer, or in flight at the same
//!    time, replaced them. All other submitted commands **may** be present, in any subset ([`Obligation`]).
//! 6. A block holds the result of the last surviving command, in an order in which an older command never
//!    follows a newer one. So nothing at risk replaces a newer durable version, a block may revert to any
//!    version since its last durable one, and of commands in flight at the same time any may be the last.
//! 7. A command tears between logical blocks: any of its blocks may survive. A logical block does not tear. A
//!    **write** no longer than the atomic unit that does not cross the atomic boundary survives completely or
//!    not at all ([`Atomicity`]).
//! 8. A block of a command in flight may be unreadable, unless the command is atomic.
//! 9. A failed or unanswered command leaves each block old, new or unreadable, and may land later: it is not
//!    older than anything.
//! 10. A discard is a write of zeroes that may also do nothing if the device does not guarantee zeroes:
//!     such a one replaces nothing for certain. It is at risk as a write is.
//!
//! Sources: NVMe Base Specification 2.0 (Flush, FUA; AWUPF and NAWUPF, 0's based, and NABSPF; Dataset
//! Management), SBC-4 (SYNCHRONIZE CACHE), ACS-4 (FLUSH CACHE EXT), `docs/FAULT_MODEL.md`. The conformance
//! kit of `plumb-block` implements the rules for one block a second time, as a slow oracle for the tests of
//! this crate.

mod atomicity;
mod chance;
mod command;
mod draw;
mod enumerate;
mod keep;
mod promise;
mod run;
mod settle;
mod window;

pub use atomicity::Atomicity;
pub use chance::{below, happens};
pub use command::{Command, Kind, Landing, Moment, NEVER, Span};
pub use draw::{DrawnCut, Remainder, Strategy, Survival};
pub use enumerate::{Candidates, Grain, Options, Survivor};
pub use keep::Keep;
pub use promise::{FlushKept, FuaKept, Promise};
pub use run::{Contender, Run};
pub use window::{Obligation, Window};
