//! The formats of a report, and which of them there are of each kind of document.

use std::fmt;
use std::str::FromStr;

use crate::quantity;

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text for a terminal.
    Terminal,
    /// One page that opens without a network.
    Html,
    /// Markdown with tables, for an issue tracker.
    Markdown,
    /// The document itself.
    Json,
    /// One row for each figure.
    Csv,
    /// Prometheus' text format, for node_exporter's textfile collector.
    Prometheus,
    /// fio's json+ output.
    Fio,
    /// JUnit XML, for a build server.
    Junit,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::Terminal,
        Self::Html,
        Self::Markdown,
        Self::Json,
        Self::Csv,
        Self::Prometheus,
        Self::Fio,
        Self::Junit,
    ];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the name of the file in a run directory.
    pub const fn file_name(self) -> &'static str {
        self.names().1
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Terminal => ("text", "report.txt"),
            Self::Html => ("html", "report.html"),
            Self::Markdown => ("markdown", "report.md"),
            Self::Json => ("json", "result.json"),
            Self::Csv => ("csv", "result.csv"),
            Self::Prometheus => ("prometheus", "metrics.prom"),
            Self::Fio => ("fio", "fio.json"),
            Self::Junit => ("junit", "junit.xml"),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let name = typed.trim().to_ascii_lowercase();
        let format = match name.as_str() {
            "terminal" => Some(Self::Terminal),
            "md" => Some(Self::Markdown),
            "prom" => Some(Self::Prometheus),
            "fio-json" | "json+" => Some(Self::Fio),
            _ => Self::ALL.into_iter().find(|format| format.name() == name),
        };
        format.ok_or_else(|| format!("`{typed}` is not a format: expected {}", listed(&Self::ALL)))
    }
}

/// Returns `text, html or json`.
fn listed(formats: &[Format]) -> String {
    quantity::listed(&formats.iter().map(|format| format.name()).collect::<Vec<_>>(), "or")
}

/// Kind of a document, by which it is known before there is one which formats it will have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run of a load, or a check.
    Run,
    /// A proof.
    Proof,
    /// A comparison.
    Comparison,
    /// A study.
    Study,
    /// Many hosts.
    Fleet,
    /// An observation.
    Observation,
    /// A survey.
    Survey,
    /// How something is that is monitored: the caches, the disks.
    State,
    /// How something else is, or what a command did.
    Status,
    /// Events, each told when it happens.
    Events,
}

impl Kind {
    /// Returns the formats of such a document.
    pub const fn formats(self) -> &'static [Format] {
        use Format::{Csv, Fio, Html, Json, Junit, Markdown, Prometheus, Terminal};
        match self {
            Self::Run => &[Terminal, Html, Markdown, Json, Csv, Prometheus, Fio],
            Self::Proof => &[Terminal, Html, Markdown, Json, Csv, Junit],
            Self::Fleet | Self::Survey | Self::State | Self::Observation => {
                &[Terminal, Html, Markdown, Json, Csv, Prometheus]
            }
            Self::Events => &[Terminal, Json],
            Self::Comparison | Self::Study | Self::Status => &[Terminal, Html, Markdown, Json, Csv],
        }
    }

    /// Checks that there is such a format of it.
    ///
    /// # Errors
    /// [`NoSuchFormat`], which names the formats that there are.
    pub fn check(self, format: Format) -> Result<Format, NoSuchFormat> {
        if self.formats().contains(&format) { Ok(format) } else { Err(NoSuchFormat { format, of: self }) }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Proof => "a proof",
            Self::Comparison => "a comparison",
            Self::Study => "a study",
            Self::Fleet => "many hosts",
            Self::Observation => "an observation",
            Self::Survey => "a survey",
            Self::State | Self::Status => "a status",
            Self::Events => "events as they happen",
        }
    }
}

/// Error for a format that a document does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{format}` is not a format of {}: expected {}", of.words(), listed(of.formats()))]
pub struct NoSuchFormat {
    /// Format that was typed.
    pub(crate) format: Format,
    /// Kind of the document.
    pub(crate) of: Kind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_known_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("docx".parse::<Format>().is_err());
    }

    #[test]
    fn a_format_that_there_is_not_is_refused_with_those_that_there_are() {
        let refused = Kind::Study.check(Format::Prometheus).unwrap_err().to_string();
        let expected = "`prometheus` is not a format of a study: expected text, html, markdown, json or csv";
        assert_eq!(refused, expected);
        assert_eq!(Kind::State.check(Format::Prometheus), Ok(Format::Prometheus));
    }
}
