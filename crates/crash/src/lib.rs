//! The crash rules: what a power cut may leave on a device. They are written as code here and nowhere else: a
//! simulated drive draws one cut by them, and a prover enumerates all.
//!
//! ```text
//!   submit, complete, flush, fail ──► Window ──┬─► draw       one cut, from a seed
//!                                      │       ├─► candidates what each block may hold
//!                                      │       └─► enumerate  every cut
//!                                      └─► what became durable (to the caller's store)
//! ```
//!
//! A device sees commands in an order of submissions and completions ([`Span`]). The rules:
//!
//! 1. Command `a` is **older** than `b` if it completed before `b` was submitted. Of two that were in flight
//!    together neither is older.
//! 2. A flush covers the commands that **completed before the flush was submitted**, on any queue; once it
//!    has completed they are durable. It does not cover what was in flight while it was submitted
//!    ([`Window::complete`]).
//! 3. FUA makes its own blocks durable when the command completes. It covers nothing else and orders nothing.
//! 4. Without a volatile cache (or with a protected one) what completed is durable.
//! 5. At a cut, commands that are durable **must** be there, unless something newer or something that was in
//!    flight together with them is there instead; all others that were submitted **may**, in any subset
//!    ([`Obligation`]).
//! 6. A block is what the last of the surviving commands made of it, in an order in which an older command
//!    never comes after a newer one. So nothing at risk replaces what is durable and newer, a block may go
//!    back to any version since its last durable one, and of those in flight together either may be the last.
//! 7. A command tears between logical blocks: any of its blocks may survive. A logical block does not tear. A
//!    **write** no longer than the atomic unit which does not cross the atomic boundary survives whole or not
//!    at all ([`Atomicity`]).
//! 8. A block of a command in flight may be unreadable, unless the command is atomic.
//! 9. A failed or unanswered command leaves each block old, new or unreadable, and may land later: it is
//!    older than nothing.
//! 10. A discard is a write of zeroes that may also do nothing, where the device does not promise zeroes:
//!     such a one replaces nothing for certain. It is at risk as a write is.
//!
//! Sources: NVMe Base Specification 2.0 (Flush, FUA; AWUPF and NAWUPF, 0's based, and NABSPF; Dataset
//! Management), SBC-4 (SYNCHRONIZE CACHE), ACS-4 (FLUSH CACHE EXT), `docs/FAULT_MODEL.md`. The conformance
//! kit of `plumb-block` states the rules of one block a second time, slowly, as the oracle that the tests
//! here are held against.

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
