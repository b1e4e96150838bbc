//! The document of a study, as `plumb study --json` prints it: what field reports have measured, and what the
//! same comes to here.

use serde::{Deserialize, Serialize};

use super::run::Environment;

/// Results of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyDocument {
    /// Name and version of the document: [`StudyDocument::SCHEMA`].
    pub schema: String,
    /// `none` if every expected figure came out, `warning` if one did not, `info` if nothing was expected: on
    /// real devices.
    pub level: String,
    /// Result in one sentence.
    pub headline: String,
    /// Measured object: `simulated drives`, or the target.
    pub on: String,
    /// One for each field report.
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
    /// The title of the field report.
    pub source: String,
    /// Finding of the field report.
    pub finding: String,
    /// Answer to what the finding comes to here, and why.
    pub answer: String,
    /// Figure by figure.
    pub rows: Vec<StudyRow>,
    /// Series of values over time.
    pub series: Vec<StudySeries>,
    /// Notes on what is modelled, and what must not be concluded.
    pub notes: Vec<String>,
}

/// One figure.
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
    /// True if so much or more was reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reported_at_least: bool,
    /// Reason why nothing was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_unknown_because: Option<String>,
    /// Our value; null if it could not be obtained.
    pub ours: Option<f64>,
    /// Reason why it could not be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours_unknown_because: Option<String>,
    /// Ours over reported; null if one of both is not known, or nothing was reported but zero.
    pub ratio: Option<f64>,
    /// Expected range of our value; null if nothing was expected.
    pub expected: Option<ExpectedRange>,
    /// True if our value came out as expected; null if nothing was expected, or our value is not known.
    pub came_out: Option<bool>,
    /// Reason for the result.
    pub why: String,
    /// Choices that ours rests on and that the field report does not tell: windows, sizes, orders. Empty if
    /// there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub chosen: String,
}

impl StudyRow {
    /// Ours is near what was reported within this factor.
    pub const NEAR: f64 = 1.5;

    /// Returns true if our value is near the reported one, or above it if that is a lower bound; `None` if
    /// that cannot be determined.
    pub fn is_near(&self) -> Option<bool> {
        let ratio = if self.reported == self.ours { self.ours.map(|_| 1.0) } else { self.ratio };
        // Nothing is near to none.
        if self.reported == Some(0.0) && self.ours > Some(0.0) {
            return Some(false);
        }
        let high = if self.reported_at_least { f64::INFINITY } else { Self::NEAR };
        ratio.map(|ratio| (1.0 / Self::NEAR..=high).contains(&ratio))
    }

    /// Returns true if it came out: neither otherwise than was expected nor far from what was reported.
    pub fn is_reproduced(&self) -> bool {
        self.came_out != Some(false) && self.is_near() != Some(false)
    }

    /// Works out the ratio, and whether ours came out as expected.
    pub fn judged(mut self) -> Self {
        self.ratio = self.reported.zip(self.ours).map(|(reported, ours)| ours / reported);
        self.ratio = self.ratio.filter(|ratio| ratio.is_finite());
        self.came_out = self.expected.zip(self.ours).map(|(expected, ours)| expected.holds(ours));
        self
    }
}

/// Expected range of a figure. Both ends are included; null means that there is no end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpectedRange {
    /// At least.
    pub low: Option<f64>,
    /// At most.
    pub high: Option<f64>,
}

/// Unit of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyUnit {
    /// Seconds.
    #[default]
    Seconds,
    /// Operations or transactions a second.
    PerSecond,
    /// Bytes a second.
    BytesPerSecond,
    /// Bytes.
    Bytes,
    /// One value over another.
    Times,
    /// A number of things.
    Count,
}

/// Values over time, as one line of a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StudySeries {
    /// The chart that it is a line of.
    pub chart: String,
    /// Name of the line.
    pub name: String,
    /// Operations a second.
    pub points: Vec<StudyPoint>,
}

/// A step of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyPoint {
    /// When, in seconds.
    pub at: f64,
    /// Operations a second from then to the next.
    pub per_second: f64,
}

impl StudyDocument {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/study/1";

    /// Returns all figures.
    pub fn rows(&self) -> impl Iterator<Item = (&Study, &StudyRow)> {
        self.studies.iter().flat_map(|study| study.rows.iter().map(move |row| (study, row)))
    }

    /// Returns how many figures have an expectation and a value, and how many of these came out.
    pub fn expected(&self) -> (usize, usize) {
        let judged: Vec<bool> = self.rows().filter_map(|(_, row)| row.came_out).collect();
        (judged.len(), judged.iter().filter(|came_out| **came_out).count())
    }

    /// Sets the level and the headline from the rows, and whether the studies are complete: not if there is a
    /// reason.
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
    /// Returns true if `value` is within.
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
