//! `timeseries.csv`: one line for each bucket of each phase.
//!
//! ```text
//! phase,at_seconds,operations,bytes,latency_mean,latency_max,latency_p50,latency_p99
//! target-0/write,0.1,412,1687552,0.000241,0.0031,,
//! target-0/sync,0.2,37,0,,,0.0021,0.0048
//! ```
//!
//! `at_seconds` is the start of the bucket since the start of its phase; latencies are in seconds, and empty
//! if nothing completed or they are unknown. A line is complete if it ends with a line feed.

use std::path::Path;

use plumb_block::Nanos;

use super::hlog::excerpt;
use crate::error::{Error, Result};
use crate::result::SeriesPoint;

/// First line of the file.
pub(super) const HEADER: &str =
    "phase,at_seconds,operations,bytes,latency_mean,latency_max,latency_p50,latency_p99\n";

/// Description of a valid line, for messages.
const EXPECTED: &str = "phase,at_seconds,operations,bytes,latency_mean,latency_max,latency_p50,latency_p99";

/// A line of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeseriesRow {
    /// The phase.
    pub phase: String,
    /// Start of the bucket since the start of its phase.
    pub at: Nanos,
    /// Operations completed in the bucket.
    pub operations: u64,
    /// Bytes moved by these operations.
    pub bytes: u64,
    /// Mean service time in seconds; `None` if nothing completed or it is unknown.
    pub latency_mean: Option<f64>,
    /// Longest service time in seconds; `None` if nothing completed or it is unknown.
    pub latency_max: Option<f64>,
    /// Median service time in seconds; `None` if nothing completed or it is unknown.
    pub latency_p50: Option<f64>,
    /// 99th percentile of the service time in seconds; `None` if nothing completed or it is unknown.
    pub latency_p99: Option<f64>,
}

impl TimeseriesRow {
    /// Creates the line for a bucket of `phase`.
    pub(crate) fn from_point(phase: &str, point: &SeriesPoint) -> Self {
        let SeriesPoint { at, operations, bytes, latency_sum, latency_max, .. } = *point;
        let known = operations > 0;
        Self {
            phase: phase.to_owned(),
            at,
            operations,
            bytes,
            latency_mean: known.then(|| latency_sum.as_secs_f64() / operations as f64),
            latency_max: known.then(|| latency_max.as_secs_f64()),
            ..Self::default()
        }
    }
}

/// Encodes `rows` as lines to append to the file at `path`.
///
/// # Errors
/// If the name of a phase contains a comma, a quote or a line break.
pub(super) fn lines(path: &Path, rows: impl IntoIterator<Item = TimeseriesRow>) -> Result<Vec<u8>> {
    let mut text = String::new();
    for row in rows {
        let TimeseriesRow { phase, at, operations, bytes, .. } = &row;
        if phase.is_empty() || phase.contains([',', '"', '\n', '\r']) {
            let expected = "a name without commas, quotes and line ends";
            return Err(Error::inexpressible(&format!("the phase `{phase}`"), path, expected));
        }
        text.push_str(&format!("{phase},{},{operations},{bytes}", at.as_secs_f64()));
        for latency in [row.latency_mean, row.latency_max, row.latency_p50, row.latency_p99] {
            text.push(',');
            text.push_str(&latency.map_or_else(String::new, nanoseconds));
        }
        text.push('\n');
    }
    Ok(text.into_bytes())
}

/// Formats seconds with nanosecond precision.
fn nanoseconds(seconds: f64) -> String {
    let text = format!("{seconds:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parses the file. An unterminated last line is the result of a crash and is ignored.
///
/// # Errors
/// Fails at the first complete line that is malformed, with its number.
pub(super) fn parse(path: &Path, text: &[u8]) -> Result<Vec<TimeseriesRow>> {
    let mut rows = Vec::new();
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if !line.ends_with(b"\n") || line == HEADER.as_bytes() {
            continue;
        }
        rows.push(row(line).ok_or_else(|| Error::Malformed {
            path: path.to_owned(),
            line: index as u64 + 1,
            found: excerpt(line),
            expected: EXPECTED,
        })?);
    }
    Ok(rows)
}

fn row(line: &[u8]) -> Option<TimeseriesRow> {
    let line = std::str::from_utf8(line).ok()?.trim_end_matches(['\r', '\n']);
    let fields: Vec<&str> = line.split(',').collect();
    let [phase, at, operations, bytes, mean, max, p50, p99] = &fields[..] else { return None };
    let seconds = |field: &str| match field {
        "" => Some(None),
        _ => field.parse::<f64>().ok().filter(|seconds| seconds.is_finite()).map(Some),
    };
    Some(TimeseriesRow {
        phase: (*phase).to_owned(),
        at: Nanos::from_secs_f64(seconds(at)??),
        operations: operations.parse().ok()?,
        bytes: bytes.parse().ok()?,
        latency_mean: seconds(mean)?,
        latency_max: seconds(max)?,
        latency_p50: seconds(p50)?,
        latency_p99: seconds(p99)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back_and_a_cut_last_one_is_left_out() {
        let point = |at, operations| SeriesPoint {
            at: Nanos::millis(at),
            operations,
            bytes: operations * 4096,
            latency_sum: Nanos::micros(100 * operations),
            latency_max: Nanos::micros(300),
            ..SeriesPoint::default()
        };
        let path = Path::new("timeseries.csv");
        let points = [point(0, 3), point(100, 0), point(200, 7)];
        let rows = points.iter().map(|point| TimeseriesRow::from_point("write", point));
        let text = [HEADER.as_bytes(), &lines(path, rows).unwrap()].concat();
        assert!(String::from_utf8_lossy(&text).contains("\nwrite,0.1,0,0,,,,\n"));
        let rows = parse(path, &text).unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[2].at, rows[2].operations, rows[2].bytes), (Nanos::millis(200), 7, 7 * 4096));
        assert_eq!((rows[2].latency_mean, rows[2].latency_max), (Some(0.0001), Some(0.0003)));
        assert_eq!(rows[1].latency_mean, None);
        assert_eq!(parse(path, &text[..text.len() - 1]).unwrap().len(), 2);
    }

    #[test]
    fn a_broken_row_is_named() {
        let text = format!("{HEADER}read,0.0,1,4096,0.1,0.1,,\nread,0.1,many,4096,0.1,0.1,,\n");
        assert_eq!(
            parse(Path::new("t.csv"), text.as_bytes()).unwrap_err().to_string(),
            "t.csv:3: `read,0.1,many,4096,0.1,0.1,,`: expected phase,at_seconds,operations,bytes,latency_mean,latency_max,latency_p50,latency_p99"
        );
        let comma = TimeseriesRow { phase: "a,b".to_owned(), ..TimeseriesRow::default() };
        assert!(lines(Path::new("t.csv"), [comma]).is_err());
    }

    #[test]
    fn percentiles_are_read_back() {
        let row = TimeseriesRow {
            phase: "target-0/sync".to_owned(),
            at: Nanos::millis(200),
            operations: 37,
            latency_p50: Some(0.0021),
            latency_p99: Some(0.004_8),
            ..TimeseriesRow::default()
        };
        let path = Path::new("timeseries.csv");
        assert_eq!(parse(path, &lines(path, [row.clone()]).unwrap()).unwrap(), [row]);
        for fields in ["read,0.1,4,4096,0.1,0.2\n", "read,0.1,4,4096,0.1,0.2,0.3\n"] {
            assert!(parse(path, fields.as_bytes()).is_err(), "{fields}");
        }
    }
}
