//! Document of a study, as `plumb study --json` prints it: the values of field reports, and those of their
//! reproduction.

use serde::{Deserialize, Serialize};

use super::run::Environment;

/// Results of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyDocument {
    /// Name and version of the document: [`StudyDocument::SCHEMA`].
    pub schema: String,
    /// `none` if every expected figure was reproduced, `warning` if one was not, `info` without expectations,
    /// as on real devices.
    pub level: String,
    /// Result in one sentence.
    pub headline: String,
    /// Measured object: `simulated drives`, or the target.
    pub on: String,
    /// Studies, one for each field report.
    pub studies: Vec<Study>,
    /// Seed of all random choices.
    pub seed: u64,
    /// True if it ran to its end.
    pub complete: bool,
    /// Reason why it is not complete; null if it is.
    pub incomplete_because: Option<String>,
    /// Environment of the measurement.
    pub environment: Environment,
    /// Path of the recording; null if there is none.
    pub run_directory: Option<String>,
}

/// A field report and its reproduction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Name of the study, as typed: `A`.
    pub name: String,
    /// Subject of the study.
    pub title: String,
    /// Title of the field report.
    pub source: String,
    /// Finding of the field report.
    pub finding: String,
    /// Result of the reproduction, and its reason.
    pub answer: String,
    /// Figures.
    pub rows: Vec<StudyRow>,
    /// Series of values over time.
    pub series: Vec<StudySeries>,
    /// Notes on the model, and on conclusions that must not be drawn.
    pub notes: Vec<String>,
}

/// Figure of a study.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyRow {
    /// Group of the row: the figures of the field report, or a question of its readers.
    pub question: String,
    /// Figure that the row is about.
    pub figure: String,
    /// Unit of both values.
    pub unit: StudyUnit,
    /// Reported value; null if nothing was reported.
    pub reported: Option<f64>,
    /// True if the reported value is a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reported_at_least: bool,
    /// Reason why there is no reported value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_unknown_because: Option<String>,
    /// Our value; null if it could not be obtained.
    pub ours: Option<f64>,
    /// Reason why our value is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours_unknown_because: Option<String>,
    /// Ratio of our value to the reported one; null if one of them is unknown, or the reported value is zero.
    pub ratio: Option<f64>,
    /// Expected range of our value; null without an expectation.
    pub expected: Option<ExpectedRange>,
    /// True if our value is in the expected range; null without an expectation or a value.
    pub came_out: Option<bool>,
    /// Reason for the result.
    pub why: String,
    /// Choices behind our value that the field report does not state: windows, sizes, orders. Empty if there
    /// are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub chosen: String,
}

impl StudyRow {
    /// Factor within which our value counts as near the reported one.
    pub const NEAR: f64 = 1.5;

    /// Returns true if our value is near the reported one, or above it if that is a lower bound; `None` if
    /// that cannot be determined.
    pub fn is_near(&self) -> Option<bool> {
        let ratio = if self.reported == self.ours { self.ours.map(|_| 1.0) } else { self.ratio };
        // No value is near zero.
        if self.reported == Some(0.0) && self.ours > Some(0.0) {
            return Some(false);
        }
        let high = if self.reported_at_least { f64::INFINITY } else { Self::NEAR };
        ratio.map(|ratio| (1.0 / Self::NEAR..=high).contains(&ratio))
    }

    /// Returns true if the value is reproduced: neither outside of the expectation nor far from the reported
    /// value.
    pub fn is_reproduced(&self) -> bool {
        self.came_out != Some(false) && self.is_near() != Some(false)
    }

    /// Sets the ratio, and whether our value met the expectation.
    pub fn judged(mut self) -> Self {
        self.ratio = self.reported.zip(self.ours).map(|(reported, ours)| ours / reported);
        self.ratio = self.ratio.filter(|ratio| ratio.is_finite());
        self.came_out = self.expected.zip(self.ours).map(|(expected, ours)| expected.holds(ours));
        self
    }
}

/// Expected range of a figure, including both ends. Null means unbounded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpectedRange {
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Unit of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyUnit {
    /// Seconds.
    #[default]
    Seconds,
    /// Operations or transactions per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Bytes.
    Bytes,
    /// Ratio of two values.
    Times,
    /// Count.
    Count,
}

/// Values over time, drawn as one line of a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudySeries {
    /// Title of the chart.
    pub chart: String,
    /// Name of the line.
    pub name: String,
    /// Operations per second over time.
    pub points: Vec<StudyPoint>,
}

/// Step of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyPoint {
    /// Start of the step, in seconds.
    pub at: f64,
    /// Operations per second from there to the next step.
    pub per_second: f64,
}

impl StudyDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/study/1";

    /// Returns all figures.
    pub fn rows(&self) -> impl Iterator<Item = (&Study, &StudyRow)> {
        self.studies.iter().flat_map(|study| study.rows.iter().map(move |row| (study, row)))
    }

    /// Returns the number of figures with an expectation and a value, and how many of these met it.
    pub fn expected(&self) -> (usize, usize) {
        let judged: Vec<bool> = self.rows().filter_map(|(_, row)| row.came_out).collect();
        (judged.len(), judged.iter().filter(|came_out| **came_out).count())
    }

    /// Sets the level and the headline from the rows. `incomplete_because` is given if the studies are not
    /// complete.
    pub fn conclude(&mut self, incomplete_because: Option<String>) {
        let (expected, came_out) = self.expected();
        let all = self.rows().count();
        let had = self.rows().filter(|(_, row)| row.ours.is_some()).count();
        let nearness: Vec<bool> = self.rows().filter_map(|(_, row)| row.is_near()).collect();
        let near = nearness.iter().filter(|is_near| **is_near).count();
        let of_reported = format!(
            "{near} of {} reported figures came out within a factor of {}",
            nearness.len(),
            StudyRow::NEAR
        );
        let missed = match expected - came_out {
            0 => String::new(),
            missed => format!("; {missed} of {expected} figures with an expectation are not as expected"),
        };
        let on = &self.on;
        let (level, headline) = match expected {
            _ if self.studies.is_empty() => ("info", "nothing was measured".to_owned()),
            0 if nearness.is_empty() => ("info", format!("{had} of {all} figures could be measured on {on}")),
            0 => ("info", format!("{had} of {all} figures could be measured on {on}; {of_reported}")),
            expected => (
                if expected == came_out { "none" } else { "warning" },
                format!("{of_reported} on {on}{missed}"),
            ),
        };
        (self.level, self.headline) = (level.to_owned(), headline);
        self.complete = incomplete_because.is_none();
        self.incomplete_because = incomplete_because;
    }
}

impl ExpectedRange {
    /// Returns true if `value` is in the range.
    pub fn holds(&self, value: f64) -> bool {
        self.low.is_none_or(|low| value >= low) && self.high.is_none_or(|high| value <= high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_lower_bound_is_as_was_reported_and_more_than_a_figure_is_not() {
        let row = |ours: f64, reported_at_least| StudyRow {
            reported: Some(10.0),
            reported_at_least,
            ours: Some(ours),
            ratio: Some(ours / 10.0),
            ..StudyRow::default()
        };
        let near = |ours| (row(ours, false).is_near(), row(ours, true).is_near());
        assert_eq!(near(11.0), (Some(true), Some(true)));
        assert_eq!(near(23.0), (Some(false), Some(true)));
        assert_eq!(near(5.0), (Some(false), Some(false)));
    }
}
