//! Every state that a power cut may leave, at every moment of a recording at which that matters.
//!
//! What a cut may leave grows as commands are submitted and shrinks only when something becomes durable. So
//! it is enough to look at the moments just before something does, and at the end: a state that a cut may
//! leave at any moment may be left at the next of these as well, where at least as much is acknowledged. Such
//! a moment ends a *window*.
//!
//! Windows with few pieces at risk are explored whole. Of the others come first the states at which software
//! fails most often; each pass (`order::Pass`) goes over all windows before the next begins, so that a limit
//! takes from all alike. A state that was seen with the same acknowledgement is not shown again.

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
