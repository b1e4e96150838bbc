//! All that a report of a load is made from, wherever it came from: a run that has just ended, or a run directory.
//!
//! In a run directory the histograms and the time series of a load go by the place of the target in
//! [`LoadDocument::targets`](super::LoadDocument): `target-0/read`, `target-0/sync`; the series `target-0` is of
//! reads, writes and trims together.

use std::collections::BTreeMap;
use std::path::Path;

use plumb_measure::run::Recording;
use plumb_measure::{Histogram, SeriesPoint};

use super::document::LoadDocument;
use crate::recording::{merged_histograms, series};

/// A load with its distributions and time series.
#[derive(Debug, Clone)]
pub struct LoadRecording {
    /// What was learnt.
    pub document: LoadDocument,
    /// The distributions of latency, by [`histogram_tag`].
    pub histograms: BTreeMap<String, Histogram>,
    /// The time series, by [`series_name`].
    pub series: Vec<(String, Vec<SeriesPoint>)>,
}

/// Which latencies of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Reads.
    Read,
    /// Writes, until they were acknowledged.
    Write,
    /// Trims.
    Trim,
    /// Flushes.
    Sync,
    /// From a write to the end of its flush.
    Durable,
    /// Reads, since their intended start.
    ReadIntended,
    /// Writes, since their intended start.
    WriteIntended,
    /// Trims, since their intended start.
    TrimIntended,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Trim,
        Self::Sync,
        Self::Durable,
        Self::ReadIntended,
        Self::WriteIntended,
        Self::TrimIntended,
    ];

    /// As it stands in a tag.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
            Self::Durable => "durable",
            Self::ReadIntended => "read-from-intended-start",
            Self::WriteIntended => "write-from-intended-start",
            Self::TrimIntended => "trim-from-intended-start",
        }
    }
}

/// The tag under which the latencies of a target are kept in a run directory; `target` is its place in the document.
pub fn histogram_tag(target: usize, part: Part) -> String {
    format!("target-{target}/{}", part.name())
}

/// The name under which the time series of a target is kept: reads, writes and trims together.
pub fn series_name(target: usize) -> String {
    format!("target-{target}")
}

impl LoadRecording {
    /// A recording of a document alone: reports of it lack charts.
    pub fn without_distributions(document: LoadDocument) -> Self {
        Self { document, histograms: BTreeMap::new(), series: Vec::new() }
    }

    /// The load that was recorded in `directory`; `None` if it ended before its first result.
    ///
    /// # Errors
    /// If the directory is not a run, or its result is not that of a load.
    pub fn open(directory: &Path) -> plumb_measure::Result<Option<Self>> {
        Self::of(&Recording::open(directory)?)
    }

    /// The load in a run directory that has been read.
    ///
    /// # Errors
    /// If its result is not that of a load.
    pub(crate) fn of(recording: &Recording) -> plumb_measure::Result<Option<Self>> {
        let Some(document) = recording.result::<LoadDocument>()? else { return Ok(None) };
        Ok(Some(Self {
            document,
            histograms: merged_histograms(&recording.histograms),
            series: series(&recording.timeseries),
        }))
    }

    /// The distribution of one part of a target, if it was kept.
    pub fn histogram(&self, target: usize, part: Part) -> Option<&Histogram> {
        self.histograms.get(&histogram_tag(target, part)).filter(|histogram| histogram.count() > 0)
    }

    /// The time series of a target; empty if it was not kept.
    pub fn series_of(&self, target: usize) -> &[SeriesPoint] {
        let name = series_name(target);
        self.series.iter().find(|(series, _)| *series == name).map_or(&[], |(_, points)| points)
    }
}
