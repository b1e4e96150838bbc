//! `timeseries.csv`: one line for each bucket of each phase.
//!
//! ```text
//! phase,at_seconds,operations,bytes,latency_mean,latency_max
//! write-direct,0.1,412,1687552,0.000241,0.0031
//! write-direct,0.2,0,0,,
//! ```
//!
//! `at_seconds` is the start of the bucket since the start of its phase; latencies are in seconds and empty where
//! nothing completed. A line is complete if it ends with a line feed.

use std::fmt::Write as _;
use std::path::Path;

use plumb_block::Nanos;

use super::hlog::excerpt;
use crate::error::{Error, Result};
use crate::result::SeriesPoint;

/// The first line.
pub(super) const HEADER: &str = "phase,at_seconds,operations,bytes,latency_mean,latency_max\n";

/// What a well-formed line is.
const EXPECTED: &str = "phase,at_seconds,operations,bytes,latency_mean,latency_max";

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeseriesRow {
    /// The phase.
    pub phase: String,
    /// The start of the bucket since the start of its phase.
    pub at: Nanos,
    /// Operations that completed in it.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their mean service time in seconds; `None` if none completed.
    pub latency_mean: Option<f64>,
    /// The longest of them in seconds; `None` if none completed.
    pub latency_max: Option<f64>,
}

/// The lines of `points`, for appending to the file at `path`.
///
/// # Errors
/// If the name of the phase holds a comma, a quote or a line's end.
pub(super) fn lines(path: &Path, phase: &str, points: &[SeriesPoint]) -> Result<Vec<u8>> {
    if phase.is_empty() || phase.contains([',', '"', '\n', '\r']) {
        return Err(Error::Inexpressible {
            path: path.to_owned(),
            found: format!("the phase `{phase}`"),
            expected: "a name without commas, quotes and line ends",
        });
    }
    let mut text = String::with_capacity(points.len() * 64);
    for point in points {
        let SeriesPoint { at, operations, bytes, latency_sum, latency_max } = point;
        let written = match operations {
            0 => writeln!(text, "{phase},{},0,{bytes},,", at.as_secs_f64()),
            _ => {
                let mean = latency_sum.as_secs_f64() / *operations as f64;
                let longest = latency_max.as_secs_f64();
                writeln!(text, "{phase},{},{operations},{bytes},{mean:.9},{longest}", at.as_secs_f64())
            }
        };
        written.expect("writing to a String cannot fail");
    }
    Ok(text.into_bytes())
}

/// Reads the file. A last line without an end is what a crash left, and is left out.
///
/// # Errors
/// At the first complete line that is not well-formed, with its number.
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
    let fields: [&str; 6] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
    let [phase, at, operations, bytes, mean, max] = fields;
    let seconds = |field: &str| match field {
        "" => Some(None),
        _ => field.parse::<f64>().ok().filter(|seconds| seconds.is_finite()).map(Some),
    };
    Some(TimeseriesRow {
        phase: phase.to_owned(),
        at: Nanos::from_secs_f64(seconds(at)??),
        operations: operations.parse().ok()?,
        bytes: bytes.parse().ok()?,
        latency_mean: seconds(mean)?,
        latency_max: seconds(max)?,
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
        };
        let path = Path::new("timeseries.csv");
        let text =
            [HEADER.as_bytes(), &lines(path, "write", &[point(0, 3), point(100, 0), point(200, 7)]).unwrap()]
                .concat();
        assert!(String::from_utf8_lossy(&text).contains("\nwrite,0.1,0,0,,\n"));
        let rows = parse(path, &text).unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[2].at, rows[2].operations, rows[2].bytes), (Nanos::millis(200), 7, 7 * 4096));
        assert_eq!((rows[2].latency_mean, rows[2].latency_max), (Some(0.0001), Some(0.0003)));
        assert_eq!(rows[1].latency_mean, None);
        assert_eq!(parse(path, &text[..text.len() - 1]).unwrap().len(), 2);
    }

    #[test]
    fn a_broken_row_is_named() {
        let text = format!("{HEADER}read,0.0,1,4096,0.1,0.1\nread,0.1,many,4096,0.1,0.1\n");
        assert_eq!(
            parse(Path::new("t.csv"), text.as_bytes()).unwrap_err().to_string(),
            "t.csv:3: `read,0.1,many,4096,0.1,0.1`: expected phase,at_seconds,operations,bytes,latency_mean,latency_max"
        );
        assert!(lines(Path::new("t.csv"), "a,b", &[]).is_err());
    }
}
