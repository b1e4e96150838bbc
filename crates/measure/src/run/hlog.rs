//! `hist.hlog`: latencies as an HDR interval log, version 1.3, readable by HdrHistogram's tools in any
//! language.
//!
//! ```text
//! #[Histogram log format version 1.3]
//! #unit: nanoseconds; tag: PHASE/LATENCY; times: seconds since the start of the run
//! "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
//! Tag=write-direct/write,12.000,3.001,412671,HISTFAAA...
//! ```
//!
//! Each line holds one latency of one phase. A line is complete if it ends with a line feed. Count and
//! percentiles are preserved; mean, deviation and extremes are read back with three digits (the exact ones
//! are in `result.json`).

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use plumb_block::Nanos;

use crate::error::{Error, Result};
use crate::histogram::Histogram;

/// Beginning of a log.
pub(super) const HEADER: &str = concat!(
    "#[Histogram log format version 1.3]\n",
    "#unit: nanoseconds; tag: PHASE/LATENCY; times: seconds since the start of the run\n",
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
);

/// Description of a valid line, for messages.
const EXPECTED: &str = "Tag=NAME,START,LENGTH,MAX,HISTOGRAM in base64";

/// A line of the log.
#[derive(Debug, Clone)]
pub struct TaggedHistogram {
    /// Tag of the latency: `PHASE/LATENCY`, such as `write-direct/write`. No spaces, no commas.
    pub tag: String,
    /// Start of the window since the start of the run.
    pub start: Nanos,
    /// Length of the window.
    pub length: Nanos,
    /// Distribution of the latency.
    pub histogram: Histogram,
}

/// Encodes `histograms` as lines to append to the log at `path`.
///
/// # Errors
/// If a tag contains a comma, a space or a line break.
pub(super) fn lines(path: &Path, histograms: &[TaggedHistogram]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .begin_log_with(&mut bytes, &mut serializer)
        .map_err(|source| Error::io("write", path, source))?;
    for line in histograms {
        let inexpressible =
            |expected| Error::inexpressible(&format!("the tag `{}`", line.tag), path, expected);
        let tag = Tag::new(&line.tag).filter(|tag| !tag.is_empty());
        let tag = tag.ok_or_else(|| inexpressible("a name without spaces and commas"))?;
        let (start, length) = (Duration::from(line.start), Duration::from(line.length));
        log.write_histogram(&line.histogram.distribution, start, length, Some(tag))
            .map_err(|_| inexpressible("a histogram that serialises"))?;
    }
    Ok(bytes)
}

/// Parses a log. An unterminated last line is the result of a crash and is ignored.
///
/// # Errors
/// Fails at the first complete line that is malformed, with its number.
pub(super) fn parse(path: &Path, text: &[u8]) -> Result<Vec<TaggedHistogram>> {
    let mut histograms = Vec::new();
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let malformed = || Error::Malformed {
            path: path.to_owned(),
            line: index as u64 + 1,
            found: excerpt(line),
            expected: EXPECTED,
        };
        if !line.ends_with(b"\n") || line.starts_with(b"#") || line.starts_with(b"\"") || line == b"\n" {
            continue;
        }
        match IntervalLogIterator::new(line).next() {
            Some(Ok(LogEntry::Interval(entry))) => histograms.push(tagged(&entry).ok_or_else(malformed)?),
            _ => return Err(malformed()),
        }
    }
    Ok(histograms)
}

fn tagged(entry: &IntervalLogHistogram<'_>) -> Option<TaggedHistogram> {
    let blob = STANDARD.decode(entry.encoded_histogram()).ok()?;
    let distribution = Deserializer::new().deserialize(&mut blob.as_slice()).ok()?;
    // Converted to our own bounds, whatever the file has, since all histograms of plumb can be merged.
    let histogram = Histogram::from_distribution(&distribution)?;
    Some(TaggedHistogram {
        tag: entry.tag().map_or_else(String::new, |tag| tag.as_str().to_owned()),
        start: Nanos::from(entry.start_timestamp()),
        length: Nanos::from(entry.duration()),
        histogram,
    })
}

/// Returns the start of a line, for an error message.
pub(super) fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tag: &str) -> TaggedHistogram {
        let mut histogram = Histogram::new();
        for value in [1_200, 45_000, 45_000, 21_139_000, Histogram::HIGHEST.0] {
            histogram.record(Nanos(value));
        }
        TaggedHistogram { tag: tag.to_owned(), start: Nanos::millis(1500), length: Nanos::secs(3), histogram }
    }

    fn log(histograms: &[TaggedHistogram]) -> Vec<u8> {
        [HEADER.as_bytes(), &lines(Path::new("hist.hlog"), histograms).unwrap()].concat()
    }

    #[test]
    fn what_was_written_reads_back() {
        let written = [sample("a/read"), sample("a/sync")];
        let read = parse(Path::new("hist.hlog"), &log(&written)).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[1].tag.as_str(), read[1].start, read[1].length),
            ("a/sync", Nanos::millis(1500), Nanos::secs(3))
        );
        let (was, is) = (written[0].histogram.summary().unwrap(), read[0].histogram.summary().unwrap());
        assert_eq!((is.count, is.p50), (was.count, was.p50));
        assert!((is.mean - was.mean).abs() < was.mean * 1e-3);
        assert!((is.max - was.max).abs() < was.max * 1e-3);
    }

    #[test]
    fn a_cut_last_line_is_left_out_and_a_broken_one_is_named() {
        let whole = log(&[sample("a/read"), sample("b/read")]);
        let line = lines(Path::new("hist.hlog"), &[sample("b/read")]).unwrap();
        for cut in 1..=line.len() {
            let read = parse(Path::new("hist.hlog"), &whole[..whole.len() - cut]).unwrap();
            assert_eq!(read.len(), 1);
        }
        let broken = String::from_utf8(whole).unwrap().replacen("HISTF", "HIS-F", 1);
        let error = parse(Path::new("run/hist.hlog"), broken.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("run/hist.hlog:4: `Tag=a/read,1.500,3.000,"), "{error}");
        assert!(error.ends_with("expected Tag=NAME,START,LENGTH,MAX,HISTOGRAM in base64"), "{error}");
    }

    #[test]
    fn a_tag_that_would_break_the_line_is_refused() {
        for tag in ["a b", "a,b", "a\nb", ""] {
            assert!(lines(Path::new("hist.hlog"), &[sample(tag)]).is_err(), "{tag:?} was taken");
        }
    }
}
