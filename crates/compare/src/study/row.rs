//! Rows of a study, built up from what is known of a figure.

use plumb_measure::Latency;
use plumb_report::document::study::{Expected, StudyRow, StudyUnit};

/// What a figure of nobody's report is.
const A_QUESTION: &str = "a question of readers, not a figure of the report";

/// A row about `figure`, of which nothing is known yet.
pub(super) fn row(question: &str, figure: impl Into<String>, unit: StudyUnit) -> StudyRow {
    StudyRow {
        question: question.to_owned(),
        figure: figure.into(),
        unit,
        reported_unknown_because: Some(A_QUESTION.to_owned()),
        ours_unknown_because: Some("it was not measured".to_owned()),
        ..StudyRow::default()
    }
}

/// Within this factor of what was reported.
pub(super) fn within(factor: f64, reported: f64) -> Expected {
    Expected::between(reported / factor, reported * factor)
}

/// A figure of a latency by its name.
pub(super) type LatencyFigure = (&'static str, fn(&Latency) -> f64);

/// The figures of a latency that reports tell.
pub(super) const LATENCY_FIGURES: [LatencyFigure; 7] = [
    ("mean", |of| of.mean),
    ("std", |of| of.std),
    ("min", |of| of.min),
    ("p25", |of| of.p25),
    ("p50", |of| of.p50),
    ("p75", |of| of.p75),
    ("max", |of| of.max),
];
