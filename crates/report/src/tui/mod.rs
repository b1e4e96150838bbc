//! Live view of a load.
//!
//! The view is a pure function of the samples: [`LiveView`] stores them, and [`LiveView::draw`] draws them
//! into a frame of any size. [`Live`] feeds it the events of a run. Only [`LiveTerminal`] uses a terminal,
//! and restores it in all cases.

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
