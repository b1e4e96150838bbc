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

/// What is learnt of a row.
pub(super) trait Learn: Sized {
    /// So much was reported.
    fn reported(self, value: f64) -> Self;
    /// So much or more was reported.
    fn reported_at_least(self, value: f64) -> Self;
    /// Nothing was, because.
    fn unreported(self, because: &str) -> Self;
    /// So much it is here; `None` if it could not be had, because.
    fn ours_or(self, value: Option<f64>, because: &str) -> Self;
    /// So much it is here.
    fn ours(self, value: f64) -> Self {
        self.ours_or(Some(value), "")
    }
    /// This is expected of ours.
    fn expecting(self, expected: Expected) -> Self;
    /// What makes it so.
    fn why(self, why: impl Into<String>) -> Self;
}

impl Learn for StudyRow {
    fn reported(mut self, value: f64) -> Self {
        (self.reported, self.reported_unknown_because) = (Some(value), None);
        self.judged()
    }

    fn reported_at_least(mut self, value: f64) -> Self {
        self.reported_at_least = true;
        self.reported(value)
    }

    fn unreported(mut self, because: &str) -> Self {
        self.reported_unknown_because = Some(because.to_owned());
        self
    }

    fn ours_or(mut self, value: Option<f64>, because: &str) -> Self {
        let value = value.filter(|value| value.is_finite());
        self.ours = value;
        self.ours_unknown_because = value.is_none().then(|| because.to_owned());
        self.judged()
    }

    fn expecting(mut self, expected: Expected) -> Self {
        self.expected = Some(expected);
        self.judged()
    }

    fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }
}

/// Judges a row by what is known of it.
trait Judged {
    fn judged(self) -> Self;
}

impl Judged for StudyRow {
    fn judged(mut self) -> Self {
        self.ratio = self.reported.zip(self.ours).map(|(reported, ours)| ours / reported);
        self.ratio = self.ratio.filter(|ratio| ratio.is_finite());
        self.came_out = self.expected.zip(self.ours).map(|(expected, ours)| expected.holds(ours));
        self
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
