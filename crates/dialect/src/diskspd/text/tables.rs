//! Tables of I/O: total, reads, writes, and the sums over several time spans.

use plumb_block::{Bytes, Nanos};
use plumb_load::{Direction, SpanResult};

use super::super::measured::{Intervals, Side, is_interrupted, mib_per_second, ms, parts, per_second};
use super::super::profile::TimeSpan;
use super::super::size::shown;
use super::page::{Page, STARS};

/// Writes the three tables of a time span.
pub(super) fn sections(span: &TimeSpan, result: &SpanResult, page: &mut Page) {
    for (heading, side) in [("Total", Side::Total), ("Read", Side::Read), ("Write", Side::Write)] {
        page.line(&format!("\n{heading} IO"));
        Table { span, result, side }.print(page);
    }
}

struct Table<'a> {
    span: &'a TimeSpan,
    result: &'a SpanResult,
    side: Side,
}

impl Table<'_> {
    fn print(&self, page: &mut Page) {
        page.line(&self.heading());
        page.line(&self.border());
        for (thread, part) in parts(self.result) {
            let target = self.result.targets.get(part.target);
            let (name, size) = target.map_or(("", Bytes(0)), |target| (target.name.as_str(), target.size));
            let figures = self.figures(&self.side.direction(&part.outcome));
            page.line(&format!("{thread:>6} | {figures} | {name} ({})", shown(size.0)));
        }
        page.line(&self.border());
        page.line(&format!("total:   {}", self.figures(&self.side.direction(&self.result.total()))));
    }

    fn heading(&self) -> String {
        let (latency, deviation) = (self.span.measure_latency, self.span.iops_deviation);
        format!(
            "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s {}{}{}|  file",
            if latency { "|  AvgLat  " } else { "" },
            if deviation { "| IopsStdDev " } else { "" },
            if latency { "| LatStdDev " } else { "" },
        )
    }

    fn border(&self) -> String {
        let mut width = 78;
        if self.span.measure_latency {
            width += 23;
        }
        if self.span.iops_deviation {
            width += 13;
        }
        "-".repeat(width)
    }

    fn figures(&self, direction: &Direction) -> String {
        let window = self.result.window;
        let (bytes, operations) = (direction.bytes.0, direction.operations());
        let mut figures = format!(
            "{bytes:>15} | {operations:>12} | {:>10.2} | {:>10.2}",
            mib_per_second(bytes, window),
            per_second(operations, window),
        );
        let latency = &direction.latency;
        if self.span.measure_latency {
            figures += &format!(" | {:>8.3}", ms(latency.mean().unwrap_or(0.0)));
        }
        if self.span.iops_deviation {
            let intervals =
                Intervals::from_series(&direction.series, window, self.span.bucket_ms, Nanos::ZERO);
            figures += &format!(" | {:>10.2}", intervals.deviation());
        }
        if self.span.measure_latency {
            figures += &match latency.std() {
                Some(std) => format!(" |  {:>8.3}", ms(std)),
                None => " |       N/A".to_owned(),
            };
        }
        figures
    }
}

/// Writes the totals of all time spans.
pub(super) fn totals(results: &[SpanResult], page: &mut Page) {
    let measured = || results.iter().filter(|result| !is_interrupted(result));
    let window = measured().fold(Nanos::ZERO, |sum, result| sum.saturating_add(result.window));
    let sums = |side: Side| {
        measured()
            .map(|result| side.direction(&result.total()))
            .fold((0, 0), |(bytes, operations), direction| {
                (bytes + direction.bytes.0, operations + direction.operations())
            })
    };
    let row = |name: &str, (bytes, operations): (u64, u64)| {
        let (mib, iops) = (mib_per_second(bytes, window), per_second(operations, window));
        format!("{name:<6} | {bytes:>15} | {operations:>12} | {mib:>10.2} | {iops:>10.2}")
    };
    let border = "-".repeat(STARS.len());
    page.line(&format!("\n\nTotals:\n{STARS}\n"));
    page.line("type   |       bytes     |     I/Os     |    MiB/s   |  I/O per s");
    page.line(&border);
    page.line(&row("write", sums(Side::Write)));
    page.line(&row("read", sums(Side::Read)));
    page.line(&border);
    page.line(&row("total", sums(Side::Total)));
    page.line(&format!("\ntotal test time:\t{:.2}s", window.as_secs_f64()));
}
