//! Output in the layout of SQLIO v1.5.SG: throughput, and with `-L` latencies in whole milliseconds. The
//! counters of the devices, which SQLIO does not print, follow it.

use std::fmt::Write as _;

use plumb_load::{Direction, SpanResult};
use plumb_measure::StorageSide;

use super::{Buffering, Invocation, Pattern};
use crate::machine::Machine;

/// Latency in milliseconds at which the last column of the histogram begins.
const LONGEST_MS: u64 = 24;

/// Formats the result of a run.
pub fn text(invocation: &Invocation, result: &SpanResult, machine: &Machine) -> String {
    let mut lines = vec![format!("sqlio v1.5.SG (plumb {})", machine.version)];
    if invocation.latency {
        lines.push("using system counter for latency timings, 1000000000 counts per second".to_owned());
    }
    input(invocation, result, &mut lines);
    lines.push("initialization done".to_owned());
    lines.push("CUMULATIVE DATA:".to_owned());
    let total = result.total();
    throughput(if invocation.writes { &total.write } else { &total.read }, result, &mut lines);
    if invocation.latency {
        latency(if invocation.writes { &total.write } else { &total.read }, &mut lines);
    }
    storage(result, &mut lines);
    lines.iter().fold(String::new(), |mut text, line| {
        // Writing to a string cannot fail.
        let written = writeln!(text, "{line}");
        debug_assert!(written.is_ok(), "a string refused to be written to");
        text
    })
}

fn input(invocation: &Invocation, result: &SpanResult, lines: &mut Vec<String>) {
    if let Some(file) = &invocation.param_file {
        lines.push(format!("parameter file used: {file}"));
    }
    let doing = if invocation.writes { "writing" } else { "reading" };
    let (to, kib) = (if invocation.writes { "to" } else { "from" }, invocation.block >> 10);
    for file in &invocation.files {
        let (threads, noun) = (file.threads, if file.threads == 1 { "thread" } else { "threads" });
        lines.push(format!(
            "{threads} {noun} {doing} for {} secs {to} file {}",
            invocation.seconds, file.name
        ));
    }
    lines.push(match invocation.pattern {
        Pattern::Random => format!("\tusing {kib}KB random IOs"),
        Pattern::Sequential => format!("\tusing {kib}KB sequential IOs"),
        Pattern::Stripe(blocks) => format!("\tusing {kib}KB IOs over {}KB stripes", kib * u64::from(blocks)),
    });
    if invocation.outstanding > 1 {
        let outstanding = invocation.outstanding;
        lines.push(format!("\tenabling multiple I/Os per thread with {outstanding} outstanding"));
    }
    lines.push(match invocation.buffering {
        Buffering::None => "\tbuffering set to not use file nor disk caches (as is SQL Server)".to_owned(),
        Buffering::All => "\tbuffering set to use both file and disk caches".to_owned(),
        Buffering::Hardware => "\tbuffering set to use hardware disk cache (but not file cache)".to_owned(),
        Buffering::Software => "\tbuffering set to use software file cache (but not disk cache)".to_owned(),
    });
    for (file, target) in invocation.files.iter().zip(&result.targets) {
        let how = if file.size.is_some() { "specified" } else { "current" };
        lines.push(format!("using {how} size: {} MB for file: {}", target.size.0 >> 20, target.name));
    }
}

fn throughput(direction: &Direction, result: &SpanResult, lines: &mut Vec<String>) {
    let seconds = result.window.as_secs_f64();
    let rate = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    lines.push("throughput metrics:".to_owned());
    lines.push(format!("IOs/sec: {:>8.2}", rate(direction.operations() as f64)));
    lines.push(format!("MBs/sec: {:>8.2}", rate(direction.bytes.0 as f64 / f64::from(1 << 20))));
}

fn latency(direction: &Direction, lines: &mut Vec<String>) {
    let histogram = &direction.latency;
    let whole_ms = |seconds: f64| (seconds * 1e3) as u64;
    let extreme = |time: Option<plumb_block::Nanos>| time.map_or(0, |time| time.0 / 1_000_000);
    lines.push("latency metrics:".to_owned());
    lines.push(format!("Min_Latency(ms): {}", extreme(histogram.min())));
    lines.push(format!("Avg_Latency(ms): {}", whole_ms(histogram.mean().unwrap_or(0.0))));
    lines.push(format!("Max_Latency(ms): {}", extreme(histogram.max())));
    let mut counts = [0_u64; LONGEST_MS as usize + 1];
    for (latency, count) in histogram.bins() {
        counts[(latency.0 / 1_000_000).min(LONGEST_MS) as usize] += count;
    }
    let all = histogram.count().max(1) as f64;
    let column = |text: String| format!("{text:>3}");
    let names = (0..LONGEST_MS).map(|ms| column(ms.to_string()));
    let percents = counts.iter().map(|count| column(format!("{:.0}", 100.0 * *count as f64 / all)));
    lines.push("histogram:".to_owned());
    lines.push(format!("ms:{} {LONGEST_MS}+", names.collect::<String>()));
    lines.push(format!("%: {}", percents.collect::<String>()));
}

fn storage(result: &SpanResult, lines: &mut Vec<String>) {
    lines.push("\nStorage: what the devices beneath were handed".to_owned());
    for target in &result.targets {
        let handed = match &target.storage {
            Ok(side) => handed(side),
            Err(reason) => format!("not known: {reason}"),
        };
        lines.push(format!("{}: {handed}", target.name));
    }
}

fn handed(side: &StorageSide) -> String {
    let flushes = side.flushes.map_or_else(|| "unknown".to_owned(), |flushes| flushes.to_string());
    let mean = side.io_bytes_mean.map_or_else(|| "none".to_owned(), |bytes| format!("{bytes:.0} bytes"));
    let (reads, writes, iops) = (side.reads, side.writes, side.iops);
    let mib = side.bytes_per_second / f64::from(1 << 20);
    format!(
        "reads {reads}, writes {writes}, flushes {flushes}, IOs/sec {iops:.2}, MBs/sec {mib:.2}, mean I/O {mean}"
    )
}
