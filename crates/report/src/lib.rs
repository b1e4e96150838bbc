//! The verdict rules and the output formats of a recorded run.
//!
//! Everything here is a pure function of a recording; nothing asks a live device. Only [`streams`],
//! [`progress`] and [`tui::LiveTerminal`] touch a terminal.
//!
//! - [`document`] is what a run learnt, as plain data: [`RunDocument`], and [`RunRecording`] with what was
//!   kept beside it.
//! - [`verdict`] judges a document: what is wrong or worth knowing, each with its evidence and a remedy.
//! - [`render()`] shows a recording in a [`Format`]: on the terminal, as a page, or for another program.
//! - [`progress`] and [`tui`] show a load while it runs.
//! - [`status`] shows how something is (a cache, a drive, a disk), and what a command did.

pub mod balance;
mod closing;
mod comparison;
mod distribution;
pub mod document;
pub mod export;
mod exposure;
mod facts;
mod figures;
#[cfg(test)]
mod fixture;
mod fleet;
pub mod format;
pub mod headline;
pub mod host_recording;
pub mod html;
pub mod levels;
mod markdown;
mod observation;
mod observation_pair;
mod outline;
pub mod printable;
pub mod progress;
mod proof;
pub mod quantity;
mod render;
pub mod rules;
mod sentences;
mod slow;
pub mod status;
pub mod streams;
mod study;
mod survey;
mod tables;
pub mod terminal;
pub mod tui;
mod untorn;
pub mod verdict;
pub mod wording;

pub use closing::Record;
pub use comparison::{
    figure_words, is_rate, main_term, outcome_words, predicted as comparison_predicted,
    standing as comparison_standing,
};
pub use document::{
    Account, CheckDocument, ComparisonDocument, FleetDocument, ObservationDocument, OpenError, ProofDocument,
    RunContents, RunDocument, RunRecording, StudyDocument,
};
pub use format::{Format, Kind, NoSuchFormat};
pub use headline::{Headline, UNKNOWN, machine_busy};
pub use observation::standing as observation_standing;
pub use observation_pair::{ObservationPair, PairRow, PairUnit};
pub use outline::Page;
pub use render::{RenderError, RenderInput, render};
pub use slow::{lost_line, slow_line};
pub use status::StatusDocument;
pub use terminal::{Style, Verbosity};
