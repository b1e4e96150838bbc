//! The live view of a load.
//!
//! What is shown is a pure function of what was fed in: [`LiveView`] keeps the samples, and
//! [`LiveView::draw`] draws them into a frame of any size; [`Live`] feeds it the events of a run. Only
//! [`LiveTerminal`] touches a terminal; it gives it back as it was, on every way out.

mod caches;
mod chart;
mod draw;
mod live;
mod paint;
mod sample;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

pub use live::Live;
pub use sample::{LiveApplication, LivePercentiles, LivePhase, LiveSample, LiveStorage, LiveTarget};
pub use terminal::{LiveTerminal, TerminalError};
pub use view::LiveView;
