//! Import of DiskSpd's text results: the tables of I/O and of percentiles, which are the same in all
//! versions. The requested load is read from the input parameters.

use plumb_block::Bytes;
use plumb_report::document::{Environment, RunJob};

use super::caching::ReportedCaching;
use crate::error::Error;
use crate::imported::{
    COUNT_MAX, DirectionFigures, Distribution, Extremes, Figures, ImportedResult, POSSIBLE_TIMES, Span,
    Target, description, possible_seconds, short_of, start_time,
};

/// Milliseconds in a second.
const PER_SECOND: f64 = 1e3;

/// Reads a result; `file` is its name in errors.
///
/// # Errors
/// The invalid line of a table.
pub(crate) fn read_text_result(text: &str, file: &str) -> Result<ImportedResult, Error> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let value =
        |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_owned());
    let begins: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].starts_with("actual test time:")).collect();
    let job = asked(&lines[..begins.first().copied().unwrap_or(lines.len())]);
    let ends = begins.iter().skip(1).copied().chain([lines.len()]);
    let spans = begins
        .iter()
        .zip(ends)
        .map(|(begin, end)| Page { lines: &lines[*begin..end], begin: *begin, file }.span(&job.0, job.1));
    let spans: Vec<Span> = spans.collect::<Result<_, _>>()?;
    let asked_seconds = value("duration:").and_then(|text| text.trim_end_matches('s').parse().ok());
    Ok(ImportedResult {
        program: "DiskSpd".to_owned(),
        environment: Environment {
            argv: value("Command Line:")
                .iter()
                .flat_map(|line| line.split_whitespace())
                .map(str::to_owned)
                .collect(),
            host: value("computer name:"),
            started_at: value("start time:").map(|time| start_time(&time)).unwrap_or_default(),
            ..Environment::default()
        },
        incomplete_because: spans.iter().find_map(|span| short_of("DiskSpd", span.seconds, asked_seconds?)),
        spans,
        ..ImportedResult::default()
    })
}

/// Returns the requested load of the first target, with its requests in flight.
fn asked(lines: &[&str]) -> (RunJob, Option<u64>) {
    let after = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let number = |name| after(name).and_then(|text| text.parse::<u64>().ok());
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    let block = after("block size:").and_then(|text| text.parse::<Bytes>().ok()).map(|bytes| bytes.0);
    let writes = match after("performing mix test (read/write ratio:") {
        Some(ratio) => ratio
            .split_once('/')
            .and_then(|(_, writes)| writes.trim_end_matches(')').parse().ok())
            .filter(|percent| *percent <= 100)
            .unwrap_or(50),
        None if has("performing write test") => 100,
        None => 0,
    };
    let threads = number("threads per file:").unwrap_or(1);
    let depth =
        number("number of outstanding I/O operations per thread:").map(|each| each.saturating_mul(threads));
    // Early versions have one switch for both.
    let all_off = has("software and hardware write cache disabled");
    let caching = ReportedCaching {
        past_cache: has("software cache disabled") || all_off,
        write_through: has("writethrough on") || all_off,
        mapped: has("memory mapped I/O enabled"),
        flushed: has("flush mode:"),
        writes: writes > 0,
    };
    let job = RunJob {
        name: "diskspd".to_owned(),
        description: description(has("using random I/O"), writes, block.unwrap_or(0)),
        block_bytes: block,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        ..caching.job()
    };
    (job, depth)
}

/// Lines of one span.
struct Page<'a> {
    lines: &'a [&'a str],
    begin: usize,
    file: &'a str,
}

/// Cells of a table row.
type Row<'a> = Vec<&'a str>;

impl Page<'_> {
    fn wrong(&self, line: usize, problem: impl Into<String>) -> Error {
        Error::new(format!("{}:{}", self.file, self.begin + line + 1), problem)
    }

    fn span(&self, job: &RunJob, depth: Option<u64>) -> Result<Span, Error> {
        let time =
            self.lines[0].strip_prefix("actual test time:").unwrap_or_default().trim().trim_end_matches('s');
        let seconds = time.parse().ok().and_then(|number| possible_seconds(number, 1.0));
        let expected = || self.wrong(0, format!("'{time}': expected seconds, such as 30.00s"));
        let seconds = seconds.ok_or_else(expected)?;
        let [all, reads, writes] = ["Total IO", "Read IO", "Write IO"].map(|heading| self.table(heading));
        let (all, reads, writes) = (all?, reads?, writes?);
        let side = |table: &Table, column| {
            let distribution = self.distribution(table, column)?;
            Ok::<_, Error>(DirectionFigures { distribution, ..table.total.clone() })
        };
        let mut total =
            Figures { read: side(&reads, 0)?, write: side(&writes, 1)?, depth, ..Figures::default() };
        if reads.total.operations == 0 && writes.total.operations == 0 {
            total.write = all.total.clone();
        }
        total.distribution = self.distribution(&all, 2)?;
        let mut targets: Vec<Target> = Vec::new();
        for (name, _) in &all.rows {
            if !targets.iter().any(|target| target.name == *name) {
                let of = |rows: &[(String, DirectionFigures)]| {
                    rows.iter()
                        .filter(|(of, _)| of == name)
                        .map(|(_, counted)| counted.clone())
                        .reduce(DirectionFigures::and)
                        .unwrap_or_default()
                };
                let (read, write) = (of(&reads.rows), of(&writes.rows));
                targets.push(Target {
                    name: name.clone(),
                    figures: Figures { read, write, ..Figures::default() },
                    ..Target::default()
                });
            }
        }
        if job.flush.is_some() {
            total.flush_each_write();
            targets.iter_mut().for_each(|target| target.figures.flush_each_write());
        }
        if let [target] = &mut *targets {
            target.figures = total.clone();
        }
        Ok(Span { seconds, warmup: 0.0, jobs: vec![job.clone()], targets, total, ..Span::default() })
    }

    /// Parses a table: its total and its rows.
    fn table(&self, heading: &str) -> Result<Table, Error> {
        let Some(at) = self.lines.iter().position(|line| *line == heading) else {
            return Ok(Table::default());
        };
        let columns: Row<'_> = self.lines.get(at + 1).map(|line| cells(line)).unwrap_or_default();
        let place = |name: &str| columns.iter().position(|column| *column == name);
        let (mean, deviation) = (place("AvgLat"), place("LatStdDev"));
        let mut rows = Vec::new();
        for (line, text) in self.lines.iter().enumerate().skip(at + 2) {
            if text.starts_with("---") {
                continue;
            }
            let (is_total, text) = match text.strip_prefix("total:") {
                Some(rest) => (true, format!("total | {rest}")),
                None => (false, (*text).to_owned()),
            };
            let row = cells(&text);
            let number = |place: usize| {
                let cell = row.get(place).copied().unwrap_or_default();
                let possible = cell.parse().ok().filter(|number| *number <= COUNT_MAX);
                possible.ok_or_else(|| {
                    self.wrong(line, format!("'{cell}': expected a whole number in the table {heading}"))
                })
            };
            let counted =
                DirectionFigures { bytes: number(1)?, operations: number(2)?, ..DirectionFigures::default() };
            if let Some(expected) = counted.missing_bytes().or_else(|| counted.missing_operations()) {
                return Err(self.wrong(line, format!("0 in the table {heading}: {expected}")));
            }
            if is_total {
                let time = |place: Option<usize>| self.milliseconds(line, place.and_then(|at| row.get(at)));
                let std = time(deviation)?.unwrap_or(0.0);
                return Ok(Table { total: counted, mean: time(mean)?.map(|mean| Mean { mean, std }), rows });
            }
            let file = row.last().copied().unwrap_or_default();
            rows.push((file.rsplit_once(" (").map_or(file, |(name, _)| name).to_owned(), counted));
        }
        Err(self.wrong(at, format!("the table {heading} has no line `total:`")))
    }

    /// Returns the latencies in column `side` of the percentiles; `None` if the extremes were not printed.
    fn distribution(&self, table: &Table, side: usize) -> Result<Option<Distribution>, Error> {
        let heading = self.lines.iter().position(|line| line.starts_with("%-ile"));
        let begin = heading.map_or(self.lines.len(), |at| at + 1);
        let at = |label: &str| {
            let mut rows = self.lines.iter().enumerate().skip(begin).map(|(line, text)| (line, cells(text)));
            match rows.find(|(_, row)| row.first() == Some(&label)) {
                Some((line, row)) => self.milliseconds(line, row.get(side + 1)),
                None => Ok(None),
            }
        };
        let Some(Mean { mean, std }) = table.mean.filter(|_| table.total.operations > 0) else {
            return Ok(None);
        };
        let (Some(min), Some(max)) = (at("min")?, at("max")?) else { return Ok(None) };
        let extremes = Extremes { count: table.total.operations, mean, std, min, max };
        let mut percentiles = [None; 5];
        for (known, label) in percentiles.iter_mut().zip(["25th", "50th", "75th", "99th", "3-nines"]) {
            *known = at(label)?;
        }
        match extremes.contradiction(percentiles, f64::INFINITY) {
            Some(wrong) => Err(self.wrong(begin - 1, format!("the table of percentiles: {wrong}"))),
            None => Ok(Some(extremes.with(percentiles))),
        }
    }

    /// Parses milliseconds and returns seconds; `None` for a missing cell or one without a number, such as
    /// `N/A`.
    fn milliseconds(&self, line: usize, cell: Option<&&str>) -> Result<Option<f64>, Error> {
        let text = cell.copied().unwrap_or_default();
        let Ok(number) = text.parse() else { return Ok(None) };
        let expected = || self.wrong(line, format!("'{text} ms': {POSSIBLE_TIMES}"));
        possible_seconds(number, PER_SECOND).map(Some).ok_or_else(expected)
    }
}

/// A table of operations.
#[derive(Debug, Default)]
struct Table {
    total: DirectionFigures,
    /// Mean latency; `None` if latencies were not recorded.
    mean: Option<Mean>,
    /// Rows by file name.
    rows: Vec<(String, DirectionFigures)>,
}

/// Mean and standard deviation of a time, in seconds.
#[derive(Debug, Clone, Copy)]
struct Mean {
    mean: f64,
    std: f64,
}

fn cells(line: &str) -> Row<'_> {
    line.split('|').map(str::trim).collect()
}
