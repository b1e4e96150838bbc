//! Progress on stderr: the current action, its progress, and the remaining time.
//!
//! On a terminal one line is redrawn; otherwise there are few lines, which do not flood a log.

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
