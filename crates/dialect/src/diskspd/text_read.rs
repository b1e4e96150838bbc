//! Results that DiskSpd has printed as text: the tables of I/O and of percentiles, which all versions have alike. What was asked is taken
//! from the input parameters.

use plumb_block::Bytes;
use plumb_measure::Latency;
use plumb_report::document::{Environment, RunJob};
use plumb_workload::Caching;

use crate::error::Error;
use crate::imported::{Counted, Figures, Imported, Span, Target, description, start_time};

const MS: f64 = 1e-3;

/// Reads a result; `file` is its name for errors.
///
/// # Errors
/// The line of a table that makes no sense.
pub(crate) fn read_text_result(text: &str, file: &str) -> Result<Imported, Error> {
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
    Ok(Imported {
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
        spans: spans.collect::<Result<_, _>>()?,
        notes: Vec::new(),
    })
}

/// What the input parameters ask for, and the requests in flight: of the first target.
fn asked(lines: &[&str]) -> (RunJob, Option<u64>) {
    let after = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let number = |name| after(name).and_then(|text| text.parse::<u64>().ok());
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    let block = after("block size:").and_then(|text| text.parse::<Bytes>().ok()).map(|bytes| bytes.0);
    let writes = match after("performing mix test (read/write ratio:") {
        Some(ratio) => ratio
            .split_once('/')
            .and_then(|(_, writes)| writes.trim_end_matches(')').parse().ok())
            .unwrap_or(50),
        None if has("performing write test") => 100,
        None => 0,
    };
    let threads = number("threads per file:").unwrap_or(1);
    let depth = number("number of outstanding I/O operations per thread:").map(|each| each * threads);
    let job = RunJob {
        name: "diskspd".to_owned(),
        description: description(has("using random I/O"), writes, block.unwrap_or(0)),
        block_bytes: block,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        caching: if has("software cache disabled") { Caching::Direct } else { Caching::Cached },
        durable_write_every: has("using hardware and software write cache disabled")
            .then_some(1)
            .or_else(|| has("hardware write cache disabled").then_some(1)),
        ..RunJob::default()
    };
    (job, depth)
}

/// The lines of one span.
struct Page<'a> {
    lines: &'a [&'a str],
    begin: usize,
    file: &'a str,
}

/// A row of a table: its cells.
type Row<'a> = Vec<&'a str>;

impl Page<'_> {
    fn wrong(&self, line: usize, problem: impl Into<String>) -> Error {
        Error::new(format!("{}:{}", self.file, self.begin + line + 1), problem)
    }

    fn span(&self, job: &RunJob, depth: Option<u64>) -> Result<Span, Error> {
        let time =
            self.lines[0].strip_prefix("actual test time:").unwrap_or_default().trim().trim_end_matches('s');
        let seconds =
            time.parse().map_err(|_| self.wrong(0, format!("'{time}': expected seconds, such as 30.00s")))?;
        let [all, reads, writes] = ["Total IO", "Read IO", "Write IO"].map(|heading| self.table(heading));
        let (all, reads, writes) = (all?, reads?, writes?);
        let mut total = Figures { read: reads.0, write: writes.0, depth, ..Figures::default() };
        if reads.0.operations + writes.0.operations == 0 {
            total.write = all.0;
        }
        let means = [&reads.0, &writes.0, &all.0].map(|of| of.latency);
        let [read, write, both] =
            self.percentiles(means, [reads.0.operations, writes.0.operations, all.0.operations]);
        (total.read.latency, total.write.latency, total.latency) = (read, write, both);
        let mut targets: Vec<Target> = Vec::new();
        for (name, _) in &all.1 {
            if !targets.iter().any(|target| target.name == *name) {
                let of = |rows: &[(String, Counted)]| {
                    rows.iter()
                        .filter(|(of, _)| of == name)
                        .map(|(_, counted)| *counted)
                        .reduce(Counted::and)
                        .unwrap_or_default()
                };
                let [read, write] =
                    [of(&reads.1), of(&writes.1)].map(|counted| Counted { latency: None, ..counted });
                targets.push(Target {
                    name: name.clone(),
                    figures: Figures { read, write, ..Figures::default() },
                    ..Target::default()
                });
            }
        }
        if let [target] = &mut *targets {
            target.figures = total.clone();
        }
        Ok(Span { seconds, warmup: 0.0, jobs: vec![job.clone()], targets, total, storage: None })
    }

    /// The total of a table and its rows, each with the name of its file. The mean alone is known of latencies here.
    fn table(&self, heading: &str) -> Result<(Counted, Vec<(String, Counted)>), Error> {
        let Some(at) = self.lines.iter().position(|line| *line == heading) else {
            return Ok((Counted::default(), Vec::new()));
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
                cell.parse::<u64>().map_err(|_| {
                    self.wrong(line, format!("'{cell}': expected a whole number in the table {heading}"))
                })
            };
            let time = |place: Option<usize>| Some(row.get(place?)?.parse::<f64>().ok()? * MS);
            let std = time(deviation).unwrap_or(0.0);
            let latency = time(mean).map(|mean| Latency { std, ..only_mean(mean) });
            let counted = Counted { bytes: number(1)?, operations: number(2)?, latency, errors: 0 };
            if is_total {
                return Ok((counted, rows));
            }
            let file = row.last().copied().unwrap_or_default();
            rows.push((file.rsplit_once(" (").map_or(file, |(name, _)| name).to_owned(), counted));
        }
        Err(self.wrong(at, format!("the table {heading} has no line `total:`")))
    }

    /// The latencies of reads, writes and both; `None` where not all percentiles were printed.
    fn percentiles(&self, means: [Option<Latency>; 3], counts: [u64; 3]) -> [Option<Latency>; 3] {
        let begin = self
            .lines
            .iter()
            .position(|line| line.starts_with("%-ile"))
            .map_or(self.lines.len(), |at| at + 1);
        let row = |label: &str| {
            self.lines[begin.min(self.lines.len())..]
                .iter()
                .map(|line| cells(line))
                .find(|row| row.first() == Some(&label))
        };
        [0, 1, 2].map(|side| {
            let known = means[side].filter(|_| counts[side] > 0)?;
            let at = |label: &str| {
                row(label).and_then(|row| row.get(side + 1)?.parse::<f64>().ok()).map(|ms| ms * MS)
            };
            Some(Latency {
                count: counts[side],
                min: at("min")?,
                p25: at("25th")?,
                p50: at("50th")?,
                p75: at("75th")?,
                p99: at("99th")?,
                p999: at("3-nines")?,
                max: at("max")?,
                ..known
            })
        })
    }
}

fn cells(line: &str) -> Row<'_> {
    line.split('|').map(str::trim).collect()
}

/// A latency of which nothing but the mean is known yet.
fn only_mean(mean: f64) -> Latency {
    Latency {
        count: 0,
        mean,
        std: 0.0,
        min: mean,
        p25: mean,
        p50: mean,
        p75: mean,
        p99: mean,
        p999: mean,
        max: mean,
    }
}
