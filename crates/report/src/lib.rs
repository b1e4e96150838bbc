//! The verdict rules and the output formats of a recorded run.
//!
//! Everything here is a pure function of a recording; nothing asks a live device. Only [`tui::LiveTerminal`] touches a
//! terminal.
//!
//! - [`verdict`] judges a document: what is wrong or worth knowing, each with its evidence and a remedy.
//! - [`render`] shows a recording in a [`Format`]: on the terminal, as a page, or for another program.
//! - [`Run`] is a run directory of any kind, opened as what it is.
//! - [`tui`] shows a load while it runs.
//! - [`terminal::survey`] shows write paths alone.

pub mod balance;
pub mod document;
pub mod export;
mod figures;
#[cfg(test)]
mod fixture;
pub mod floors;
pub mod format;
pub mod headline;
pub mod html;
mod load_headline;
pub mod printable;
pub mod quantity;
pub mod recording;
pub mod run;
mod sentences;
pub mod terminal;
pub mod tui;
pub mod verdict;
pub mod wording;

pub use document::{Account, CheckDocument, CheckEnvironment, OpenError, RunDocument, RunRecording};
pub use format::{Format, RenderError, Reportable, UnknownFormat, render};
pub use headline::Headline;
pub use recording::CheckRecording;
pub use run::Run;
pub use terminal::Style;
