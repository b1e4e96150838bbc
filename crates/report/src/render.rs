//! Renders every kind of document in every format.

use plumb_block::FailureKind;
use plumb_path::Survey;

use crate::document::json::pretty;
use crate::document::{
    ComparisonDocument, FleetDocument, FleetRecording, ObservationDocument, ProofDocument, RunContents,
    RunRecording, StudyDocument, TargetRecording,
};
use crate::format::{Format, Kind, NoSuchFormat};
use crate::printable::printable_labels;
use crate::status::StatusDocument;
use crate::terminal::{self, Style};
use crate::{comparison, export, fleet, html, markdown, observation, proof, study, survey};

/// Error of rendering.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The page or the XML could not be made.
    #[error("cannot make the page or the XML")]
    Html(#[from] askama::Error),
    /// A JSON format could not be made.
    #[error("cannot make the JSON")]
    Json(#[from] serde_json::Error),
    /// The document does not have this format.
    #[error(transparent)]
    NoSuchFormat(#[from] NoSuchFormat),
    /// The observation has no metrics.
    #[error("this observation was recorded without --exposure, so it has no metrics for Prometheus")]
    NoExposure,
}

impl RenderError {
    /// Returns the kind of the failure, which determines the exit code.
    pub const fn failure(&self) -> FailureKind {
        match self {
            Self::NoSuchFormat(_) | Self::NoExposure => FailureKind::Usage,
            Self::Html(_) | Self::Json(_) => FailureKind::Failed,
        }
    }
}

/// Document to render.
#[derive(Debug, Clone, Copy)]
pub enum RenderInput<'a> {
    /// Run of a load or a check.
    Run(&'a RunRecording),
    /// Document of `plumb prove`.
    Proof(&'a ProofDocument),
    /// Document of `plumb compare`.
    Comparison(&'a ComparisonDocument),
    /// Document of `plumb study`.
    Study(&'a StudyDocument),
    /// Measurement on many hosts, with the recorded distributions of each.
    Fleet(&'a FleetDocument, &'a [TargetRecording]),
    /// Document of `plumb observe`.
    Observation(&'a ObservationDocument),
    /// Write paths found by `plumb survey`.
    Survey(&'a Survey),
    /// Status, or result of a command.
    Status(&'a dyn StatusDocument),
}

macro_rules! rendered {
    ($($variant:ident: $document:ident),*) => {$(
        impl<'a> From<&'a $document> for RenderInput<'a> {
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

impl<'a> From<&'a FleetDocument> for RenderInput<'a> {
    fn from(document: &'a FleetDocument) -> Self {
        Self::Fleet(document, &[])
    }
}

impl<'a> From<&'a FleetRecording> for RenderInput<'a> {
    fn from(recording: &'a FleetRecording) -> Self {
        Self::Fleet(&recording.document, &recording.hosts)
    }
}

impl<'a> From<&'a RunContents> for RenderInput<'a> {
    fn from(recorded: &'a RunContents) -> Self {
        match recorded {
            RunContents::Run(recording) => Self::Run(recording),
            RunContents::Proof(document) => Self::Proof(document),
            RunContents::Comparison(document) => Self::Comparison(document),
            RunContents::Study(document) => Self::Study(document),
            RunContents::Fleet(recording) => Self::from(&**recording),
            RunContents::Observation(document) => Self::Observation(document),
        }
    }
}

impl RenderInput<'_> {
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
            Self::Survey(survey) => survey::to_json(survey),
            Self::Status(status) => status.to_json(),
        }
    }

    /// Renders text or Markdown.
    fn words(self, of: Words, style: Style) -> String {
        let outline = match self {
            Self::Run(recording) if of == Words::Terminal => {
                return terminal::run(&recording.document, style);
            }
            Self::Run(recording) => return markdown::markdown(recording),
            Self::Survey(survey) if of == Words::Terminal => return terminal::surveyed(survey, style),
            Self::Survey(of) => return markdown::page(&survey::page(of)),
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
            Self::Observation(document) => export::prometheus::observation(document),
            Self::Status(status) => status.metrics(),
            _ => None,
        }
    }
}

/// Formats for people that have no elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Terminal,
    Markdown,
}

/// Renders `of` as `format`. `style` applies only to [`Format::Terminal`].
///
/// # Errors
/// If the document does not have the format, a figure cannot be written as JSON, or the template of the page
/// fails. The last two do not occur for documents read from JSON.
pub fn render<'a>(
    of: impl Into<RenderInput<'a>>,
    format: Format,
    style: Style,
) -> Result<String, RenderError> {
    let of = of.into();
    of.kind().check(format)?;
    let none = || match of {
        RenderInput::Observation(_) => RenderError::NoExposure,
        _ => NoSuchFormat::new(format.name().to_owned(), of.kind()).into(),
    };
    Ok(match (format, of) {
        (Format::Terminal, _) => of.words(Words::Terminal, style),
        (Format::Markdown, _) => markdown::ended(of.words(Words::Markdown, style)),
        (Format::Html, _) => html::page(of)?,
        (Format::Json, _) => of.to_json()?,
        (Format::Csv, RenderInput::Run(recording)) => export::csv::csv(recording),
        (Format::Csv, RenderInput::Fleet(document, _)) => export::csv::fleet(document),
        (Format::Csv, _) => export::csv::values(&serde_json::from_slice(of.to_json()?.as_bytes())?),
        (Format::Prometheus, _) => printable_labels(&of.metrics().ok_or_else(none)?),
        (Format::Fio, RenderInput::Run(recording)) => export::fio::fio(recording)?,
        (Format::Junit, RenderInput::Proof(document)) => export::junit::junit(document)?,
        (Format::Fio | Format::Junit, _) => return Err(none()),
    })
}
