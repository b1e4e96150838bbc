//! The formats of a report, and the one function that makes them all, of every kind of run.

use std::fmt;
use std::str::FromStr;

use plumb_path::Survey;

use crate::document::json::pretty;
use crate::document::{
    ComparisonDocument, FleetDocument, FleetRecording, ObservationDocument, ProofDocument, Recorded,
    RunRecording, StudyDocument, TargetRecording,
};
use crate::status::StatusDocument;
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
        format.ok_or_else(|| format!("`{typed}` is not a format: expected {}", listed(&Self::ALL)))
    }
}

/// `terminal, html or json`.
fn listed(formats: &[Format]) -> String {
    let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => names.concat(),
    }
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
            Self::Fleet | Self::Survey | Self::State => &[Terminal, Html, Markdown, Json, Csv, Prometheus],
            Self::Events => &[Terminal, Json],
            Self::Comparison | Self::Study | Self::Observation | Self::Status => {
                &[Terminal, Html, Markdown, Json, Csv]
            }
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

/// There is no such format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{format}` is not a format of {}: expected {}", of.words(), listed(of.formats()))]
pub struct NoSuchFormat {
    format: Format,
    of: Kind,
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
    #[error(transparent)]
    NoSuchFormat(#[from] NoSuchFormat),
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
    /// A survey.
    Survey(&'a Survey),
    /// How something is, or what a command did.
    Status(&'a dyn StatusDocument),
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
    Observation: ObservationDocument, Survey: Survey
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
    /// Returns the kind of the document.
    pub fn kind(self) -> Kind {
        match self {
            Self::Run(_) => Kind::Run,
            Self::Proof(_) => Kind::Proof,
            Self::Comparison(_) => Kind::Comparison,
            Self::Study(_) => Kind::Study,
            Self::Fleet(..) => Kind::Fleet,
            Self::Observation(_) => Kind::Observation,
            Self::Survey(_) => Kind::Survey,
            Self::Status(status) => status.kind(),
        }
    }

    fn to_json(self) -> Result<String, serde_json::Error> {
        match self {
            Self::Run(recording) => recording.document.to_json(),
            Self::Proof(document) => pretty(document),
            Self::Comparison(document) => pretty(document),
            Self::Study(document) => pretty(document),
            Self::Fleet(document, _) => pretty(document),
            Self::Observation(document) => pretty(document),
            Self::Survey(survey) => pretty(survey),
            Self::Status(status) => status.to_json(),
        }
    }

    /// Renders a format that is not the same for all: text or Markdown.
    fn words(self, of: Words, style: Style) -> String {
        let outline = match self {
            Self::Run(recording) if of == Words::Terminal => {
                return terminal::run(&recording.document, style);
            }
            Self::Run(recording) => return markdown::markdown(recording),
            Self::Survey(survey) if of == Words::Terminal => return terminal::surveyed(survey, style),
            Self::Survey(survey) => return markdown::survey(survey),
            Self::Status(status) if of == Words::Terminal => return terminal::page(&status.page(), style),
            Self::Status(status) => return markdown::page(&status.page()),
            Self::Proof(document) => proof::outline(document),
            Self::Comparison(document) => comparison::outline(document),
            Self::Observation(document) => observation::outline(document),
            Self::Study(document) => study::outline(document),
            Self::Fleet(document, _) => fleet::outline(document),
        };
        match of {
            Words::Terminal => terminal::outline(&outline, style),
            Words::Markdown => markdown::outline(&outline),
        }
    }

    fn metrics(self) -> Option<String> {
        match self {
            Self::Run(recording) => Some(export::prometheus::prometheus(recording)),
            Self::Fleet(document, hosts) => Some(export::prometheus::fleet(document, hosts)),
            Self::Survey(survey) => Some(export::prometheus::survey(survey)),
            Self::Status(status) => status.metrics(),
            _ => None,
        }
    }
}

/// A format for people without elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Terminal,
    Markdown,
}

/// `of` as `format`. `style` matters to [`Format::Terminal`] alone.
///
/// # Errors
/// If there is no such format of it; if a figure of the document cannot be written as JSON, or the page's
/// template fails: neither happens to documents that came from JSON.
pub fn render<'a>(of: impl Into<Rendered<'a>>, format: Format, style: Style) -> Result<String, RenderError> {
    let of = of.into();
    let none = || NoSuchFormat { format, of: of.kind() };
    of.kind().check(format)?;
    Ok(match (format, of) {
        (Format::Terminal, _) => of.words(Words::Terminal, style),
        (Format::Markdown, _) => markdown::ended(of.words(Words::Markdown, style)),
        (Format::Html, _) => html::page(of)?,
        (Format::Json, _) => of.to_json()?,
        (Format::Csv, Rendered::Run(recording)) => export::csv::csv(recording),
        (Format::Csv, Rendered::Fleet(document, _)) => export::csv::fleet(document),
        (Format::Csv, _) => export::csv::values(&serde_json::from_str(&of.to_json()?)?),
        (Format::Prometheus, _) => of.metrics().ok_or_else(none)?,
        (Format::Fio, Rendered::Run(recording)) => export::fio::fio(recording)?,
        (Format::Junit, Rendered::Proof(document)) => export::junit::junit(document)?,
        (Format::Fio | Format::Junit, _) => return Err(none().into()),
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

    #[test]
    fn a_format_that_there_is_not_is_refused_with_those_that_there_are() {
        let refused = Kind::Study.check(Format::Prometheus).unwrap_err().to_string();
        let expected =
            "`prometheus` is not a format of a study: expected terminal, html, markdown, json or csv";
        assert_eq!(refused, expected);
        assert_eq!(Kind::State.check(Format::Prometheus), Ok(Format::Prometheus));
    }
}
