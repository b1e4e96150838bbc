//! DiskSpd 2.2: its command line, profiles and outputs.
//!
//! ```text
//! arguments ──┬─► switch ───► Profile ◄── overrides (-W -d -C -R -v -z -:)
//!             └─► xml_read ─►   ├──► meaning ──► Scenario ──► (it runs) ──► SpanResult
//!                               │                                               │
//!                               └──► xml_write, text (input parameters)   text, result_xml
//! ```
//!
//! Options are accepted as by DiskSpd, but numbers are parsed strictly (`-d10s` is an error, not 10), and
//! options that would silently have no effect are refused. Differences on Linux are reported once, in
//! [`Meaning::notes`].
//!
//! # Limitations
//! The wait statistics of `-vs` are plumb's own. Intervals of `-D` are multiples of 0.1 s.

mod access;
mod affinity;
mod arguments;
mod caching;
mod conflicts;
pub mod distribution;
mod drive;
mod meaning;
mod measured;
mod notes;
mod overrides;
pub mod profile;
mod result_read;
mod result_xml;
mod size;
mod switch;
mod target;
mod templates;
mod text;
mod text_read;
mod xml;
mod xml_fields;
mod xml_read;
mod xml_write;

pub use arguments::parse;
pub use meaning::SizeOf;
pub use profile::{Profile, ResultFormat};
pub(crate) use result_read::read_xml_result;
pub use result_xml::xml;
pub(crate) use size::number_within;
pub(crate) use templates::check_name;
pub use text::text;
pub(crate) use text_read::read_text_result;
pub use xml_read::profile as read_profile;
pub use xml_write::profile as write_profile;

use plumb_load::SpanResult;

use crate::Meaning;
use crate::error::Error;
use crate::machine::Machine;

/// Text printed by `-?`.
pub const USAGE: &str = include_str!("usage.txt");

/// Request of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Print [`USAGE`].
    Usage,
    /// Run, or print the profile.
    Run(Invocation),
}

/// A run requested on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Profile with the load and the output options.
    pub profile: Profile,
    /// Print the profile without running it (`-Rp`).
    pub profile_only: bool,
}

impl Invocation {
    /// Translates the profile for this machine: see [`Profile::meaning`].
    ///
    /// # Errors
    /// The unsupported option, and the reason.
    pub fn meaning(&self, machine: &Machine, size_of: SizeOf<'_>) -> Result<Meaning, Error> {
        self.profile.meaning(machine, size_of)
    }

    /// Returns the output of `-Rp`: the profile as text or XML.
    pub fn profile_output(&self, machine: &Machine) -> String {
        self.printed(|| text::profile(&self.profile, machine), || xml_write::profile(&self.profile))
    }

    /// Returns the output of a run: the results of its time spans, in order, as text or XML.
    pub fn output(&self, results: &[SpanResult], machine: &Machine) -> String {
        self.printed(|| text(&self.profile, results, machine), || xml(&self.profile, results, machine))
    }

    fn printed(&self, text: impl FnOnce() -> String, xml: impl FnOnce() -> String) -> String {
        match self.profile.result_format {
            ResultFormat::Text => text(),
            ResultFormat::Xml => xml(),
        }
    }
}
