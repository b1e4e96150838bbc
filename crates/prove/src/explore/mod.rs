//! Every state that a power cut may leave, at every moment of a recording that matters.
//!
//! The set of states that a cut may leave grows as commands are submitted, and shrinks only when something
//! becomes durable. So it is enough to cut just before something becomes durable, and at the end: a state
//! possible at any moment is also possible at the next of these, where at least as much is acknowledged. Such
//! a moment ends a *window*.
//!
//! Windows with few pieces at risk are explored exhaustively. For the others the states at which software
//! fails most often come first. Each pass (`order::Pass`) covers all windows before the next begins, so that
//! a limit affects all windows alike. A state that was already shown with the same acknowledgement is not
//! shown again.

mod choice;
mod coverage;
mod cursor;
mod cut;
mod explorer;
mod image;
mod order;
mod reduce;
mod replay;

pub use choice::Choice;
pub use coverage::{Coverage, Limits, WindowCoverage};
pub use cursor::{OwnedState, State};
pub use explorer::Explorer;
pub use image::Image;
pub(crate) use reduce::reduce;
