//! The formats of a report, and the one function that makes them all, of every kind of run.

use std::fmt;
use std::str::FromStr;

use crate::document::json::pretty;
use crate::document::{
    ComparisonDocument, FleetDocument, FleetRecording, ObservationDocument, ProofDocument, Recorded,
    RunRecording, StudyDocument, TargetRecording,
};
use crate::terminal::{self, Style};
use crate::{comparison, export, fleet, html, markdown, observation, proof, study};

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

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// The name of the file in a run directory.
    pub const fn file_name(self) -> &'static str {
        self.names().1
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Terminal => ("terminal", "report.txt"),
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
            "text" => Some(Self::Terminal),
            "md" => Some(Self::Markdown),
            "prom" => Some(Self::Prometheus),
            "fio-json" | "json+" => Some(Self::Fio),
            _ => Self::ALL.into_iter().find(|format| format.name() == name),
        };
        let expected = "expected terminal, html, markdown, json, csv, prometheus, fio or junit";
        format.ok_or_else(|| format!("`{typed}` is not a format: {expected}"))
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
        /// Object that has no such format.
        what: &'static str,
        /// Formats that exist for the object.
        expected: &'static str,
    },
}

/// Object to be rendered.
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
    /// Many hosts, with the distributions of each that were kept.
    Fleet(&'a FleetDocument, &'a [TargetRecording]),
    /// An observation.
    Observation(&'a ObservationDocument),
}

macro_rules! rendered {
    ($($variant:ident: $document:ident),*) => {$(
        impl<'a> From<&'a $document> for Rendered<'a> {
            fn from(document: &'a $document) -> Self {
                Self::$variant(document)
            }
        }
    )*};
}
rendered!(
    Run: RunRecording, Proof: ProofDocument, Comparison: ComparisonDocument, Study: StudyDocument,
    Observation: ObservationDocument
);

impl<'a> From<&'a FleetDocument> for Rendered<'a> {
    fn from(document: &'a FleetDocument) -> Self {
        Self::Fleet(document, &[])
    }
}

impl<'a> From<&'a FleetRecording> for Rendered<'a> {
    fn from(recording: &'a FleetRecording) -> Self {
        Self::Fleet(&recording.document, &recording.hosts)
    }
}

impl<'a> From<&'a Recorded> for Rendered<'a> {
    fn from(recorded: &'a Recorded) -> Self {
        match recorded {
            Recorded::Run(recording) => Self::Run(recording),
            Recorded::Proof(document) => Self::Proof(document),
            Recorded::Comparison(document) => Self::Comparison(document),
            Recorded::Study(document) => Self::Study(document),
            Recorded::Fleet(recording) => Self::from(&**recording),
            Recorded::Observation(document) => Self::Observation(document),
        }
    }
}

impl Rendered<'_> {
    fn to_json(self) -> Result<String, serde_json::Error> {
        match self {
            Self::Run(recording) => recording.document.to_json(),
            Self::Proof(document) => pretty(document),
            Self::Comparison(document) => pretty(document),
            Self::Study(document) => pretty(document),
            Self::Fleet(document, _) => pretty(document),
            Self::Observation(document) => pretty(document),
        }
    }
}

/// `of` as `format`. `style` matters to [`Format::Terminal`] alone.
///
/// # Errors
/// If there is no such format of it; if a figure of the document cannot be written as JSON, or the page's
/// template fails: neither happens to documents that came from JSON.
pub fn render<'a>(of: impl Into<Rendered<'a>>, format: Format, style: Style) -> Result<String, RenderError> {
    let of = of.into();
    let none = |what, expected| Err(RenderError::NoSuchFormat { format, what, expected });
    let (what, outline) = match of {
        _ if format == Format::Html => return Ok(html::page(of)?),
        _ if format == Format::Json => return Ok(of.to_json()?),
        Rendered::Run(recording) => {
            return Ok(match format {
                Format::Terminal => terminal::run(&recording.document, style),
                Format::Csv => export::csv::csv(recording),
                Format::Prometheus => export::prometheus::prometheus(recording),
                Format::Fio => export::fio::fio(recording)?,
                Format::Html | Format::Json | Format::Markdown => {
                    markdown::ended(markdown::markdown(recording))
                }
                Format::Junit => {
                    return none("a load", "terminal, html, markdown, json, csv, prometheus or fio");
                }
            });
        }
        Rendered::Fleet(document, _) if format == Format::Csv => return Ok(export::csv::fleet(document)),
        Rendered::Fleet(document, hosts) if format == Format::Prometheus => {
            return Ok(export::prometheus::fleet(document, hosts));
        }
        Rendered::Proof(document) if format == Format::Junit => return Ok(export::junit::junit(document)?),
        Rendered::Proof(document) => ("a proof", proof::outline(document)),
        Rendered::Comparison(document) => ("a comparison", comparison::outline(document)),
        Rendered::Observation(document) => ("an observation", observation::outline(document)),
        Rendered::Study(document) => ("a study", study::outline(document)),
        Rendered::Fleet(document, _) => ("many hosts", fleet::outline(document)),
    };
    match (format, of) {
        (Format::Terminal, _) => Ok(terminal::outline(&outline, style)),
        (Format::Html | Format::Json | Format::Markdown, _) => {
            Ok(markdown::ended(markdown::outline(&outline)))
        }
        (_, Rendered::Proof(_)) => none(what, "terminal, html, markdown, json or junit"),
        (_, Rendered::Fleet(..)) => none(what, "terminal, html, markdown, json, csv or prometheus"),
        _ => none(what, "terminal, html, markdown or json"),
    }
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
