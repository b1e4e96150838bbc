//! Progress while something runs, on stderr: what is done now, how far it is and how long it still takes.
//!
//! On a terminal one line is redrawn; elsewhere there are so few lines that a log is not flooded.

mod bar;
mod cache;
mod dots;
mod lines;
mod policy;

pub use bar::Bar;
pub use cache::{CacheActivity, CacheGone, laying_out, writing_back};
pub use dots::Dots;
pub use lines::ProgressLines;
pub use policy::PolicyProgress;
