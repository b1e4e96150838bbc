//! The crash rules: what a power cut may leave. The only place: a simulated drive chooses by them, and whoever explores
//! all that a cut may leave enumerates by them.
//!
//! A drive sees commands in an order of submissions and answers ([`Span`]). Contents are per logical block; the rules
//! of one block do not depend on another's, but for atomic writes.
//!
//! 1. Command `a` is **older** than `b` if it was answered as done before `b` was submitted. Of two that were in flight
//!    together neither is older.
//! 2. A flush covers the commands that were **answered before the flush was submitted**, on any queue; once it is
//!    answered they are durable. What was in flight while it was submitted is not covered ([`flush_covers`]).
//! 3. FUA makes its own blocks durable when it is answered. It covers nothing else and orders nothing.
//! 4. Without a volatile cache (or with a protected one) what is answered is durable.
//! 5. At a cut, commands that are durable **must** be there, unless something newer or something in flight together
//!    with them is there instead; all others that were submitted **may**, in any subset ([`Window`]).
//! 6. A block is what the last of the surviving commands made of it, in an order in which an older command never comes
//!    after a newer one. So nothing at risk goes over what is durable and newer, a block may go back to any version
//!    since its last durable one, and of those in flight together either may be the last.
//! 7. A command tears between logical blocks: any of its blocks may survive. A logical block does not tear. A **write**
//!    no longer than the atomic unit which does not cross the atomic boundary survives whole or not at all
//!    ([`is_atomic`]).
//! 8. A block of a command in flight may be unreadable, unless the command is atomic.
//! 9. A failed or unanswered command leaves each block old, new or unreadable, and may land later: it is older than
//!    nothing.
//! 10. A discard is a write of zeroes that may also do nothing, where the drive does not promise zeroes. It is at risk
//!     as a write is.
//!
//! Sources: NVMe Base Specification 2.0 (Flush, FUA; AWUPF and NAWUPF, 0's based, and NABSPF; Dataset Management), SBC-4
//! (SYNCHRONIZE CACHE), ACS-4 (FLUSH CACHE EXT), `docs/FAULT_MODEL.md`.
//!
//! The choice among what is legal ([`draw`]) reaches every legal outcome, but prefers the ones at which software fails.

mod atomic;
mod keep;
pub(crate) mod planted;
mod span;
mod survival;
mod window;

pub use atomic::{Atomicity, is_atomic};
pub use keep::Keep;
pub use span::{Moment, NEVER, Span, flush_covers};
pub use survival::{Chosen, Contender, Strategy, Survival, draw};
pub(crate) use survival::{below, happens};
pub use window::{Entry, Kind, Standing, Window};
