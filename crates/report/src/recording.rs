//! All that a report of a check is made from, wherever it came from: a run that has just ended, or a run directory.

use std::collections::BTreeMap;
use std::path::Path;

use plumb_block::Nanos;
use plumb_measure::run::{Recording, TaggedHistogram, TimeseriesRow};
use plumb_measure::{Histogram, SeriesPoint};

use crate::document::CheckDocument;

/// A check with its distributions and time series.
#[derive(Debug, Clone)]
pub struct CheckRecording {
    /// What was learnt.
    pub document: CheckDocument,
    /// The distributions of latency. By the name of a phase: of its whole operations; by `PHASE/PART`
    /// (`overwrite-fdatasync/sync`): of that part of them.
    pub histograms: BTreeMap<String, Histogram>,
    /// The time series of each phase, in the order in which the phases ran.
    pub series: Vec<(String, Vec<SeriesPoint>)>,
}

/// The part of a tag that names whole operations, the best first. A phase with none of these has its first one.
const WHOLE: [&str; 4] = ["durable", "service", "read", "write"];

impl CheckRecording {
    /// A recording of a document alone: reports of it lack charts.
    pub fn without_distributions(document: CheckDocument) -> Self {
        Self { document, histograms: BTreeMap::new(), series: Vec::new() }
    }

    /// The check that was recorded in `directory`; `None` if it ended before its first result.
    ///
    /// # Errors
    /// If the directory is not a run, or its result is not that of a check.
    pub fn open(directory: &Path) -> plumb_measure::Result<Option<Self>> {
        Self::of(&Recording::open(directory)?)
    }

    /// The check in a run directory that has been read.
    ///
    /// # Errors
    /// If its result is not that of a check.
    pub(crate) fn of(recording: &Recording) -> plumb_measure::Result<Option<Self>> {
        let Some(document) = recording.result::<CheckDocument>()? else { return Ok(None) };
        Ok(Some(Self {
            document,
            histograms: histograms(&recording.histograms),
            series: series(&recording.timeseries),
        }))
    }
}

/// The histograms by tag, equal tags merged, and each phase's whole operations by its bare name.
fn histograms(tagged: &[TaggedHistogram]) -> BTreeMap<String, Histogram> {
    let mut by_name = merged_histograms(tagged);
    let mut phases: Vec<&str> = Vec::new();
    for entry in tagged {
        if let Some((phase, _)) = entry.tag.split_once('/')
            && !phases.contains(&phase)
        {
            phases.push(phase);
        }
    }
    for phase in phases {
        let whole = WHOLE.iter().find_map(|part| by_name.get(&format!("{phase}/{part}")));
        let first = || tagged.iter().find(|entry| entry.tag.starts_with(&format!("{phase}/")));
        if let Some(histogram) = whole.or_else(|| by_name.get(&first()?.tag)).cloned() {
            by_name.entry(phase.to_owned()).or_insert(histogram);
        }
    }
    by_name
}

/// The histograms by tag, equal tags merged.
fn merged_histograms(tagged: &[TaggedHistogram]) -> BTreeMap<String, Histogram> {
    let mut by_name: BTreeMap<String, Histogram> = BTreeMap::new();
    for entry in tagged {
        by_name.entry(entry.tag.clone()).or_default().merge(&entry.histogram);
    }
    by_name
}

/// The time series by phase, in the order of writing.
fn series(rows: &[TimeseriesRow]) -> Vec<(String, Vec<SeriesPoint>)> {
    let mut series: Vec<(String, Vec<SeriesPoint>)> = Vec::new();
    for row in rows {
        let mean = row.latency_mean.unwrap_or(0.0);
        let point = SeriesPoint {
            at: row.at,
            operations: row.operations,
            bytes: row.bytes,
            latency_sum: Nanos((mean * row.operations as f64 * 1e9) as u64),
            latency_max: Nanos((row.latency_max.unwrap_or(0.0) * 1e9) as u64),
        };
        match series.iter_mut().find(|(phase, _)| *phase == row.phase) {
            Some((_, points)) => points.push(point),
            None => series.push((row.phase.clone(), vec![point])),
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tag: &str, values: &[u64]) -> TaggedHistogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(Nanos(*value)));
        TaggedHistogram { tag: tag.to_owned(), start: Nanos(0), length: Nanos::secs(1), histogram }
    }

    #[test]
    fn a_phase_has_the_distribution_of_its_whole_operations() {
        let all = histograms(&[
            tagged("append-fdatasync/write", &[1]),
            tagged("append-fdatasync/sync", &[2]),
            tagged("append-fdatasync/durable", &[3]),
            tagged("append-fdatasync/durable", &[4]),
            tagged("read-direct/read", &[5]),
            tagged("odd/other", &[6, 7, 8]),
        ]);
        let count = |name: &str| all.get(name).map(Histogram::count);
        assert_eq!(count("append-fdatasync"), Some(2));
        assert_eq!(count("append-fdatasync/sync"), Some(1));
        assert_eq!(count("read-direct"), Some(1));
        assert_eq!(count("odd"), Some(3));
        assert_eq!(count("nothing"), None);
    }
}
