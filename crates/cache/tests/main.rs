//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.
//!
//! All but `driver` hold the state machine against what its user may see: no threads, no clock, everything
//! from a seed that each failure prints.
//!
//! ```text
//!   history (steps from a seed) ──► world: Cache + medium of each member (by plumb_crash) ──► oracle of the user
//!      random        20,000 histories, a million in `cargo xtask soak cache`
//!      exhaustive    every cut of every short scenario
//!      sensitivity   without any one flush, write or wait some history fails
//!      flips         flipped bits all over a small log
//!      refusals      legs that are not the log of this backing
//!      ordered       the backing alone in ordered mode
//!      figures       write amplification, counted
//!      pacing        how fast writes come in when the log is full
//!      marks         the backing device marked: no honest crash is refused, an old log and a foreign write are
//!      sealed        a log that fails writes, or is to be replaced: written back, gone past, moved from
//!      unreadable    more places that cannot be read than the log can let go of
//! ```

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod buffers;
mod driver;
mod exhaustive;
mod figures;
mod flips;
mod history;
mod marks;
mod medium;
mod ordered;
mod pacing;
mod random;
mod refusals;
mod sealed;
mod sensitivity;
mod setup;
mod unreadable;
mod world;
