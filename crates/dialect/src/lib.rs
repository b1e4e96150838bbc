//! Dialects: the command lines and outputs of plumb itself, DiskSpd, SQLIO and fio. Each describes a
//! [`Scenario`] and formats its result.
//!
//! A dialect consists of two pure translations. Input: arguments or a file become a scenario, or an error
//! that names the argument or line. Output: a scenario and its [`SpanResult`](plumb_load::SpanResult)s become
//! text, XML or JSON for existing parsers. No device is opened here.

pub mod diskspd;
pub mod error;
pub mod fio;
pub mod imported;
pub mod machine;
pub mod native;
mod processors;
pub mod sqlio;

pub use error::{Error, may_be_suggested};
pub use machine::{Machine, ProcessorPlace};

use plumb_workload::Scenario;

/// Translation of a command line or file.
#[derive(Debug, Clone, PartialEq)]
pub struct Meaning {
    /// Scenario to run.
    pub scenario: Scenario,
    /// Notes for the user, each given once: options that differ here or have no effect.
    pub notes: Vec<String>,
}
