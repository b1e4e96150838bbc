//! Formats of reports, and the formats of each kind of document.

use std::fmt;

use plumb_text::nearest;

use crate::quantity;

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text for the terminal.
    Terminal,
    /// Self-contained HTML page, which loads nothing from a network.
    Html,
    /// Markdown with tables, for issue trackers.
    Markdown,
    /// JSON document.
    Json,
    /// CSV with one row for each figure.
    Csv,
    /// Text format of Prometheus, for the textfile collector of node_exporter.
    Prometheus,
    /// Format json+ of fio.
    Fio,
    /// JUnit XML, for build servers.
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

    /// Returns the name of the format on the command line.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the name of the format's file in a run directory.
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

/// Kind of a document, which determines its formats. It is known before the document is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Run of a load or a check.
    Run,
    /// Proof.
    Proof,
    /// Comparison.
    Comparison,
    /// Study.
    Study,
    /// Measurement on many hosts.
    Fleet,
    /// Observation.
    Observation,
    /// Survey.
    Survey,
    /// Status of something monitored: caches, disks.
    State,
    /// Other status, or result of a command.
    Status,
    /// Stream of events.
    Events,
}

impl Kind {
    /// Returns the formats of this kind of document.
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

    /// Checks that this kind of document has the format.
    ///
    /// # Errors
    /// [`NoSuchFormat`], which lists the available formats.
    pub fn check(self, format: Format) -> Result<Format, NoSuchFormat> {
        let typed = || format.name().to_owned();
        self.formats().contains(&format).then_some(format).ok_or_else(|| NoSuchFormat::new(typed(), self))
    }

    /// Returns the format with the name `typed`.
    ///
    /// # Errors
    /// [`NoSuchFormat`], as for [`check`](Self::check).
    pub fn format(self, typed: &str) -> Result<Format, NoSuchFormat> {
        let name = typed.trim().to_ascii_lowercase();
        let format = match name.as_str() {
            "terminal" => Some(Format::Terminal),
            "md" => Some(Format::Markdown),
            "prom" => Some(Format::Prometheus),
            "fio-json" | "json+" => Some(Format::Fio),
            _ => Format::ALL.into_iter().find(|format| format.name() == name),
        };
        format.map_or_else(|| Err(NoSuchFormat::new(typed.to_owned(), self)), |format| self.check(format))
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not a format of {}: {}", of.words(), self.remedy())]
pub struct NoSuchFormat {
    /// Name that the user typed.
    typed: String,
    /// Kind of the document.
    of: Kind,
}

impl NoSuchFormat {
    pub(crate) const fn new(typed: String, of: Kind) -> Self {
        Self { typed, of }
    }

    /// Returns the format that was probably meant, and all available formats.
    fn remedy(&self) -> String {
        let names: Vec<&str> = self.of.formats().iter().map(|format| format.name()).collect();
        let near = nearest(&self.typed.to_ascii_lowercase(), names.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
        format!("{near}expected {}", quantity::listed(&names, "or"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_known_by_its_name() {
        for kind in [Kind::Run, Kind::Proof] {
            for format in kind.formats() {
                assert_eq!(kind.format(format.name()), Ok(*format));
            }
        }
        assert_eq!(Kind::Run.format("MD"), Ok(Format::Markdown));
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_the_document_has() {
        let refused = |typed: &str, kind: Kind| kind.format(typed).unwrap_err().to_string();
        assert_eq!(
            refused("xml", Kind::Run),
            "`xml` is not a format of a run: expected text, html, markdown, json, csv, prometheus or fio"
        );
        assert_eq!(
            refused("junit", Kind::Comparison),
            "`junit` is not a format of a comparison: expected text, html, markdown, json or csv"
        );
        assert_eq!(
            refused("htlm", Kind::Proof),
            "`htlm` is not a format of a proof: did you mean html? expected text, html, markdown, json, csv or junit"
        );
    }

    #[test]
    fn a_format_that_there_is_not_is_refused_with_those_that_there_are() {
        let refused = Kind::Study.check(Format::Prometheus).unwrap_err().to_string();
        let expected = "`prometheus` is not a format of a study: expected text, html, markdown, json or csv";
        assert_eq!(refused, expected);
        assert_eq!(Kind::State.check(Format::Prometheus), Ok(Format::Prometheus));
    }
}
