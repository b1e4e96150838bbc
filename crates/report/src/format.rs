//! The formats of a report, and the one function that makes them all, of every kind of run.

use std::fmt;
use std::str::FromStr;

use crate::document::RunRecording;
use crate::terminal::{self, Style};
use crate::{export, html, markdown};

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
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 7] =
        [Self::Terminal, Self::Html, Self::Markdown, Self::Json, Self::Csv, Self::Prometheus, Self::Fio];

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
#[error("`{typed}` is not a format: expected terminal, html, markdown, json, csv, prometheus or fio")]
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
    /// The page.
    #[error("the page could not be made")]
    Html(#[from] askama::Error),
    /// A JSON format.
    #[error("the JSON could not be made")]
    Json(#[from] serde_json::Error),
}

/// `recording` as `format`. `style` matters to [`Format::Terminal`] alone.
///
/// # Errors
/// If a figure of the document cannot be written as JSON, or the page's template fails; neither happens to documents that
/// came from JSON.
pub fn render(recording: &RunRecording, format: Format, style: Style) -> Result<String, RenderError> {
    Ok(match format {
        Format::Terminal => terminal::run(&recording.document, style),
        Format::Html => html::page(recording)?,
        Format::Markdown => markdown::markdown(recording),
        Format::Json => recording.document.to_json()?,
        Format::Csv => export::csv::csv(recording),
        Format::Prometheus => export::prometheus::prometheus(recording),
        Format::Fio => export::fio::fio(recording)?,
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
