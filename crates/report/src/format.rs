//! The formats of a report, and the one function that makes them all, of every kind of run.

use std::fmt;
use std::str::FromStr;

use crate::document::{
    ComparisonDocument, FleetDocument, ObservationDocument, ProofDocument, Recorded, RunRecording,
    StudyDocument,
};
use crate::terminal::{self, Style};
use crate::{comparison, export, fleet, html, markdown, observation, proof, study};

/// What a report is made as.
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

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Prometheus => "prometheus",
            Self::Fio => "fio",
            Self::Junit => "junit",
        }
    }

    /// The name of the file in a run directory.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Terminal => "report.txt",
            Self::Html => "report.html",
            Self::Markdown => "report.md",
            Self::Json => "result.json",
            Self::Csv => "result.csv",
            Self::Prometheus => "metrics.prom",
            Self::Fio => "fio.json",
            Self::Junit => "junit.xml",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no format of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{typed}` is not a format: expected terminal, html, markdown, json, csv, prometheus, fio or junit")]
pub struct UnknownFormat {
    /// What was typed.
    pub typed: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        let name = typed.trim().to_ascii_lowercase();
        let format = match name.as_str() {
            "text" => Some(Self::Terminal),
            "md" => Some(Self::Markdown),
            "prom" => Some(Self::Prometheus),
            "fio-json" | "json+" => Some(Self::Fio),
            _ => Self::ALL.into_iter().find(|format| format.name() == name),
        };
        format.ok_or_else(|| UnknownFormat { typed: typed.to_owned() })
    }
}

/// A report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The page, or the XML.
    #[error("the page or the XML could not be made")]
    Html(#[from] askama::Error),
    /// A JSON format.
    #[error("the JSON could not be made")]
    Json(#[from] serde_json::Error),
    /// There is no such format of this.
    #[error("{format} is no format of {what}: expected {expected}")]
    NoSuchFormat {
        /// The format.
        format: Format,
        /// Of what.
        what: &'static str,
        /// What there is.
        expected: &'static str,
    },
}

/// What is rendered.
#[derive(Debug, Clone, Copy)]
pub enum Rendered<'a> {
    /// A run of a load, or a check.
    Run(&'a RunRecording),
    /// A proof.
    Proof(&'a ProofDocument),
    /// A comparison.
    Comparison(&'a ComparisonDocument),
    /// A study.
    Study(&'a StudyDocument),
    /// Many hosts.
    Fleet(&'a FleetDocument),
    /// An observation.
    Observation(&'a ObservationDocument),
}

impl<'a> From<&'a RunRecording> for Rendered<'a> {
    fn from(recording: &'a RunRecording) -> Self {
        Self::Run(recording)
    }
}

impl<'a> From<&'a ProofDocument> for Rendered<'a> {
    fn from(document: &'a ProofDocument) -> Self {
        Self::Proof(document)
    }
}

impl<'a> From<&'a ComparisonDocument> for Rendered<'a> {
    fn from(document: &'a ComparisonDocument) -> Self {
        Self::Comparison(document)
    }
}

impl<'a> From<&'a ObservationDocument> for Rendered<'a> {
    fn from(document: &'a ObservationDocument) -> Self {
        Self::Observation(document)
    }
}

impl<'a> From<&'a StudyDocument> for Rendered<'a> {
    fn from(document: &'a StudyDocument) -> Self {
        Self::Study(document)
    }
}

impl<'a> From<&'a FleetDocument> for Rendered<'a> {
    fn from(document: &'a FleetDocument) -> Self {
        Self::Fleet(document)
    }
}

impl<'a> From<&'a Recorded> for Rendered<'a> {
    fn from(recorded: &'a Recorded) -> Self {
        match recorded {
            Recorded::Run(recording) => Self::Run(recording),
            Recorded::Proof(document) => Self::Proof(document),
            Recorded::Comparison(document) => Self::Comparison(document),
            Recorded::Study(document) => Self::Study(document),
            Recorded::Fleet(document) => Self::Fleet(document),
            Recorded::Observation(document) => Self::Observation(document),
        }
    }
}

/// `of` as `format`. `style` matters to [`Format::Terminal`] alone.
///
/// # Errors
/// If there is no such format of it; if a figure of the document cannot be written as JSON, or the page's template fails: neither
/// happens to documents that came from JSON.
pub fn render<'a>(of: impl Into<Rendered<'a>>, format: Format, style: Style) -> Result<String, RenderError> {
    let none = |what, expected| Err(RenderError::NoSuchFormat { format, what, expected });
    Ok(match (of.into(), format) {
        (of, Format::Html) => html::page(of)?,
        (Rendered::Run(recording), _) => match format {
            Format::Terminal => terminal::run(&recording.document, style),
            Format::Json => recording.document.to_json()?,
            Format::Csv => export::csv::csv(recording),
            Format::Prometheus => export::prometheus::prometheus(recording),
            Format::Fio => export::fio::fio(recording)?,
            Format::Html | Format::Markdown => markdown::markdown(recording),
            Format::Junit => {
                return none("a load", "terminal, html, markdown, json, csv, prometheus or fio");
            }
        },
        (Rendered::Proof(document), _) => match format {
            Format::Terminal => terminal::outline(&proof::outline(document), style),
            Format::Json => document.to_json()?,
            Format::Junit => export::junit::junit(document)?,
            Format::Html | Format::Markdown => markdown::outline(&proof::outline(document)),
            Format::Csv | Format::Prometheus | Format::Fio => {
                return none("a proof", "terminal, html, markdown, json or junit");
            }
        },
        (Rendered::Comparison(document), _) => match format {
            Format::Terminal => terminal::outline(&comparison::outline(document), style),
            Format::Json => document.to_json()?,
            Format::Html | Format::Markdown => markdown::outline(&comparison::outline(document)),
            Format::Csv | Format::Prometheus | Format::Fio | Format::Junit => {
                return none("a comparison", "terminal, html, markdown or json");
            }
        },
        (Rendered::Observation(document), _) => match format {
            Format::Terminal => terminal::outline(&observation::outline(document), style),
            Format::Json => document.to_json()?,
            Format::Html | Format::Markdown => markdown::outline(&observation::outline(document)),
            Format::Csv | Format::Prometheus | Format::Fio | Format::Junit => {
                return none("an observation", "terminal, html, markdown or json");
            }
        },
        (Rendered::Study(document), _) => match format {
            Format::Terminal => terminal::outline(&study::outline(document), style),
            Format::Json => document.to_json()?,
            Format::Html | Format::Markdown => markdown::outline(&study::outline(document)),
            Format::Csv | Format::Prometheus | Format::Fio | Format::Junit => {
                return none("a study", "terminal, html, markdown or json");
            }
        },
        (Rendered::Fleet(document), _) => match format {
            Format::Terminal => terminal::outline(&fleet::outline(document), style),
            Format::Json => document.to_json()?,
            Format::Html | Format::Markdown => markdown::outline(&fleet::outline(document)),
            Format::Csv | Format::Prometheus | Format::Fio | Format::Junit => {
                return none("many hosts", "terminal, html, markdown or json");
            }
        },
    })
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
}
