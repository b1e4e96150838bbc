//! The languages of workloads: plumb's own, DiskSpd, SQLIO and fio. Each describes a [`Scenario`] and prints
//! its result.
//!
//! A dialect is two pure translations. In: arguments or a file become a scenario, or an error that names the
//! argument or the line. Out: a scenario and its [`SpanResult`](plumb_load::SpanResult)s become the text, XML
//! or JSON that existing parsers read. Nothing here opens a device.

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

/// Meaning of a command line or file.
#[derive(Debug, Clone, PartialEq)]
pub struct Meaning {
    /// Scenario to run.
    pub scenario: Scenario,
    /// Notes that the user should be given once: what is different here, or has no meaning here.
    pub notes: Vec<String>,
}
