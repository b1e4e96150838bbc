//! Documents, verdict rules and output formats.
//!
//! Everything here is a pure function of a recording and queries no device. Only [`streams`], [`progress`]
//! and [`tui::LiveTerminal`] use a terminal.
//!
//! - [`document`]: the results of a run as plain data. [`RunDocument`], and [`RunRecording`] with the series
//!   and distributions stored with it.
//! - [`verdict`]: judges a document. Each verdict has its evidence and a remedy.
//! - [`render()`]: renders a recording in a [`Format`]: for the terminal, as a page, or for another program.
//! - [`progress`] and [`tui`]: progress of a running load.
//! - [`status`]: status of a cache, a drive or a disk, and the results of commands.

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
