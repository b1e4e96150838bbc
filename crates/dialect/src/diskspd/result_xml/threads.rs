//! Results of each thread on each of its targets, and I/Os over time.

use plumb_block::Nanos;
use plumb_load::{LoadOutcome, SpanResult};
use plumb_measure::SeriesPoint;

use super::super::measured::{Intervals, asked, effective, ms, parts, three_decimals};
use super::super::profile::{Target, TimeSpan};
use super::super::xml::XmlWriter;
use super::latency;

pub(super) fn write(span: &TimeSpan, result: &SpanResult, writer: &mut XmlWriter) {
    for number in 0..result.threads.len() {
        writer.open("Thread");
        writer.value("Id", number);
        for (_, part) in parts(result).filter(|(owner, _)| *owner == number) {
            writer.open("Target");
            target(span, result, part.target, &part.outcome, writer);
            writer.close("Target");
        }
        writer.close("Thread");
    }
}

fn target(span: &TimeSpan, result: &SpanResult, place: usize, outcome: &LoadOutcome, writer: &mut XmlWriter) {
    let Some(target) = result.targets.get(place) else { return };
    let (read, write) = (&outcome.read, &outcome.write);
    writer.value("Path", &target.name);
    writer.value("BytesCount", read.bytes.0 + write.bytes.0);
    writer.value("FileSize", target.size.0);
    writer.value("IOCount", read.operations() + write.operations());
    writer.value("ReadBytes", read.bytes.0);
    writer.value("ReadCount", read.operations());
    writer.value("WriteBytes", write.bytes.0);
    writer.value("WriteCount", write.operations());
    if let Some(asked) = asked(span, result, place) {
        distribution(span, asked, target.size.0, writer);
    }
    if span.measure_latency {
        latency::of_target(outcome, writer);
    }
    if span.iops_deviation {
        iops(span, result, outcome, writer);
    }
}

fn distribution(span: &TimeSpan, target: &Target, size: u64, writer: &mut XmlWriter) {
    let Some(zones) = effective(span, target, size) else { return };
    writer.open("Distribution");
    writer.open("Absolute");
    let mut range = |io: f64, length: u64| writer.line(&format!("<Range IO=\"{io}\">{length}</Range>"));
    let mut covered = 0;
    for zone in zones {
        let from = zone.range.offset.0;
        if from > covered {
            range(0.0, from - covered);
        }
        range(zone.io_percent, zone.range.length.0);
        covered = from + zone.range.length.0;
    }
    writer.close("Absolute");
    writer.close("Distribution");
}

/// Writes the I/Os per second over time, with their deviation.
pub(super) fn iops(span: &TimeSpan, result: &SpanResult, outcome: &LoadOutcome, writer: &mut XmlWriter) {
    let width = outcome.read.series.width().max(outcome.write.series.width());
    let of = |series| Intervals::from_series(series, result.window, span.bucket_ms, width);
    let (reads, writes) = (of(&outcome.read.series), of(&outcome.write.series));
    let mut both = outcome.read.series.clone();
    both.merge(&outcome.write.series);
    writer.open("Iops");
    if outcome.read.operations() > 0 {
        writer.value("ReadIopsStdDev", three_decimals(reads.deviation()));
    }
    if outcome.write.operations() > 0 {
        writer.value("WriteIopsStdDev", three_decimals(writes.deviation()));
    }
    writer.value("IopsStdDev", three_decimals(of(&both).deviation()));
    for (place, (read, write)) in reads.buckets.iter().zip(&writes.buckets).enumerate() {
        bucket(reads.length, place as u64 + 1, *read, *write, writer);
    }
    writer.close("Iops");
}

fn bucket(length: Nanos, number: u64, read: SeriesPoint, write: SeriesPoint, writer: &mut XmlWriter) {
    let per_second = |operations: u64| operations as f64 / length.as_secs_f64();
    let latencies = |side: &str, point: SeriesPoint| {
        let [min, max, mean, deviation] =
            [point.latency_min, point.latency_max, point.latency_mean(), point.latency_deviation()]
                .map(|time| three_decimals(ms(time.as_secs_f64())));
        format!(
            " {side}MinLatencyMilliseconds=\"{min}\" {side}MaxLatencyMilliseconds=\"{max}\" \
             {side}AvgLatencyMilliseconds=\"{mean}\" {side}LatencyStdDev=\"{deviation}\""
        )
    };
    writer.line(&format!(
        "<Bucket SampleMillisecond=\"{}\" Read=\"{:.0}\" Write=\"{:.0}\" Total=\"{:.0}\"{}{}/>",
        length.0 / 1_000_000 * number,
        per_second(read.operations),
        per_second(write.operations),
        per_second(read.operations + write.operations),
        latencies("Read", read),
        latencies("Write", write),
    ));
}
