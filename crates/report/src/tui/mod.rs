//! The live view of a load.
//!
//! What is shown is a pure function of what was fed in: [`LiveView`] keeps the samples, [`LiveView::draw`] draws
//! them into a frame of any size, and [`line`] says the same in one line where there is no terminal. Only
//! [`LiveTerminal`] touches a terminal; it gives it back as it was, on every way out.

mod chart;
mod draw;
mod progress;
mod sample;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

pub use progress::line;
pub use sample::{LiveApplication, LivePhase, LiveSample, LiveStorage, LiveTarget};
pub use terminal::{LiveTerminal, TerminalError};
pub use view::LiveView;
