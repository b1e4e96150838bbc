//! Logs in fio's format: `ms, value, direction, block size, offset, priority`, a line for each interval.

use std::fmt::Write;

use plumb_block::Nanos;
use plumb_load::{Direction, SpanResult};

use super::entry::{self, Entry};
use super::json::DIRECTIONS;
use crate::Machine;
use crate::fio::invocation::Logs;
use crate::fio::{Invocation, LogKind};

/// A log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// File name, such as `prefix_bw.1.log`.
    pub name: String,
    /// Lines of the log.
    pub text: String,
}

/// Returns the requested logs. A latency log is written as `_lat` and, with the same values, as `_clat`. As
/// in fio the block size is 0 on lines for several operations.
pub fn logs(invocation: &Invocation, results: &[SpanResult], machine: &Machine) -> Vec<LogFile> {
    let mut files: Vec<LogFile> = Vec::new();
    for (index, entry) in entry::entries(invocation, results).iter().enumerate() {
        let logs = &entry.reported.logs;
        let epoch = if logs.unix_epoch { machine.started_unix_ms } else { 0 };
        for (kind, prefix) in &logs.files {
            let text = lines(entry, *kind, epoch);
            for name in names(logs, *kind, prefix, index) {
                match files.iter_mut().find(|file| file.name == name) {
                    Some(file) => file.text.push_str(&text),
                    None => files.push(LogFile { name, text: text.clone() }),
                }
            }
        }
    }
    files
}

/// Returns the names of the files of [`logs`], as far as known before the run: for jobs with a thread for
/// each clone.
pub fn log_names(invocation: &Invocation) -> Vec<String> {
    let mut names_of_all: Vec<String> = Vec::new();
    let (mut index, mut groups) = (0, Vec::new());
    for reported in &invocation.reported {
        let jobs = invocation
            .meaning
            .scenario
            .spans
            .get(reported.span)
            .and_then(|span| span.jobs.get(reported.jobs.clone()));
        let clones = jobs.into_iter().flatten().map(|job| u64::from(job.threads)).sum::<u64>().max(1);
        let entries = match reported.grouped {
            true if groups.contains(&reported.group) => 0,
            true => 1,
            false => clones,
        };
        groups.extend(reported.grouped.then_some(reported.group));
        for _ in 0..entries {
            let files = reported.logs.files.iter();
            names_of_all.extend(files.flat_map(|(kind, prefix)| names(&reported.logs, *kind, prefix, index)));
            index += 1;
        }
    }
    names_of_all
}

/// Returns the file names of one kind of log for the entry `index`.
fn names(logs: &Logs, kind: LogKind, prefix: &str, index: usize) -> Vec<String> {
    let name = |ending: &&str| match logs.per_job {
        true => format!("{prefix}_{ending}.{}.log", index + 1),
        false => format!("{prefix}_{ending}.log"),
    };
    endings(kind).iter().map(name).collect()
}

fn endings(kind: LogKind) -> &'static [&'static str] {
    match kind {
        LogKind::Bandwidth => &["bw"],
        LogKind::Latency => &["lat", "clat"],
        LogKind::Iops => &["iops"],
    }
}

fn lines(entry: &Entry<'_>, kind: LogKind, epoch: u64) -> String {
    let (length, interval) = (entry.outcome.length, entry.reported.logs.interval);
    let mut lines = Vec::new();
    for (number, (_, of)) in DIRECTIONS.iter().enumerate() {
        let direction = of(&entry.outcome);
        if direction.operations() > 0 {
            let values = values(direction, length, interval, kind, entry.reported.logs.maximum);
            lines.extend(values.into_iter().map(|(at, value)| (at, number, value)));
        }
    }
    lines.sort_unstable();
    lines.into_iter().fold(String::new(), |mut text, (at, direction, value)| {
        // Writing to a string cannot fail.
        writeln!(text, "{}, {value}, {direction}, 0, 0, 0", epoch + at / 1_000_000).ok();
        text
    })
}

/// Returns the end of each interval in nanoseconds with its value. Intervals without operations have no
/// latency.
fn values(
    direction: &Direction,
    length: Nanos,
    interval: Nanos,
    kind: LogKind,
    maximum: bool,
) -> Vec<(u64, u64)> {
    let bucket = direction.series.width();
    let together = usize::try_from(interval.0.div_ceil(bucket.0)).unwrap_or(usize::MAX).max(1);
    let points = direction.series.whole_points(length);
    let value = |(index, chunk): (usize, &[plumb_measure::SeriesPoint])| {
        let end = bucket.0 * (index * together + chunk.len()) as u64;
        let seconds = (bucket * chunk.len() as u64).as_secs_f64();
        let operations: u64 = chunk.iter().map(|point| point.operations).sum();
        let value = match kind {
            LogKind::Bandwidth => {
                chunk.iter().map(|point| point.bytes).sum::<u64>() as f64 / 1024.0 / seconds
            }
            LogKind::Iops => operations as f64 / seconds,
            LogKind::Latency if operations == 0 => return None,
            LogKind::Latency if maximum => {
                chunk.iter().map(|point| point.latency_max.0).max().unwrap_or(0) as f64
            }
            LogKind::Latency => {
                chunk.iter().map(|point| point.latency_sum.0).sum::<u64>() as f64 / operations as f64
            }
        };
        Some((end, value.round() as u64))
    };
    points.chunks(together).enumerate().filter_map(value).collect()
}
