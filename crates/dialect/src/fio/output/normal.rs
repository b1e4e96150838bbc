//! Results as fio's text. For each job: head, end and error, rates, latencies and percentiles of each
//! direction and of syncs, processor use, errors, verification and the depth found for a latency target; then
//! groups and disks. Shares of buckets and depths, and samples of rates, are in the JSON only.

use std::fmt::{self, Write};

use plumb_block::Bytes;
use plumb_load::{Direction, SpanResult};
use plumb_measure::Histogram;
use plumb_report::export::fio::latency;
use plumb_workload::{BlockSplit, Job};

use super::entry::{self, Entry};
use super::figure::{bytes, short};
use super::json::{DIRECTIONS, DISK_COUNTS, disk_util, first_error, percent_of};
use super::{direction, time};
use crate::Machine;
use crate::fio::Invocation;

/// Formats the result as fio does.
pub fn normal(invocation: &Invocation, results: &[SpanResult], machine: &Machine) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    write(&mut text, invocation, results, machine).ok();
    text
}

fn write(
    out: &mut String,
    invocation: &Invocation,
    results: &[SpanResult],
    machine: &Machine,
) -> fmt::Result {
    let mut processes = 0;
    for reported in &invocation.reported {
        let jobs = invocation.meaning.scenario.spans.get(reported.span).map(|span| &span.jobs);
        let jobs = jobs.and_then(|jobs| jobs.get(reported.jobs.clone())).unwrap_or_default();
        let clones: u32 = jobs.iter().map(|job| job.threads).sum();
        processes += clones;
        let Some(job) = jobs.first() else { continue };
        let (read, write, trim) = (
            range(&job.workload.blocks.read),
            range(&job.workload.blocks.write),
            range(&job.workload.blocks.trim),
        );
        write_head(out, reported, job, &format!("(R) {read}, (W) {write}, (T) {trim}"))?;
        if clones > 1 {
            writeln!(out, "...")?;
        }
    }
    writeln!(out, "plumb-{}", machine.version)?;
    writeln!(out, "Starting {processes} thread{}\n", if processes == 1 { "" } else { "s" })?;
    let entries = entry::entries(invocation, results);
    for entry in &entries {
        write_entry(out, entry, machine)?;
    }
    write_groups(out, &entries)?;
    write_devices(out, results)
}

fn write_head(out: &mut String, reported: &crate::fio::ReportedJob, job: &Job, blocks: &str) -> fmt::Result {
    let (name, group, rw, engine) = (&reported.name, reported.group, &reported.rw, &reported.engine);
    let depth = job.workload.depth;
    writeln!(out, "{name}: (g={group}): rw={rw}, bs={blocks}, ioengine={engine}, iodepth={depth}")
}

fn range(split: &BlockSplit) -> String {
    let block = |bytes: Bytes| {
        let value = short(bytes.0 as f64, 4, true);
        format!("{value}B")
    };
    format!("{}-{}", block(split.min()), block(split.max()))
}

fn write_entry(out: &mut String, entry: &Entry<'_>, machine: &Machine) -> fmt::Result {
    let (reported, outcome) = (entry.reported, &entry.outcome);
    let error = first_error(outcome);
    writeln!(
        out,
        "{}: (groupid={}, jobs={}): err={error:>2}: pid=0: {}",
        reported.name,
        reported.group,
        entry.clones,
        time::date(machine)
    )?;
    if let Some(description) = &reported.description {
        writeln!(out, "  Description  : [{description}]")?;
    }
    for (name, of) in DIRECTIONS {
        let direction = of(outcome);
        if direction.operations() > 0 {
            write_direction(out, name, direction, entry)?;
        }
    }
    if outcome.flush.operations() > 0 {
        writeln!(out, "  fsync/fdatasync/sync_file_range:")?;
        write_latency(out, "sync", &outcome.flush.latency)?;
        write_percentiles(out, "sync", &outcome.flush.latency, &reported.percentiles)?;
    }
    let (user, system) = (percent_of(entry.cpu.user, entry), percent_of(entry.cpu.system, entry));
    writeln!(out, "  cpu          : usr={user:.2}%, sys={system:.2}%")?;
    if reported.continue_on_error {
        let failures = outcome.operations().failures();
        writeln!(out, "     errors    : total={failures}, first_error={error}")?;
    }
    if let Some(verified) = &outcome.verified {
        let (blocks, wrong) = (verified.blocks, verified.wrong());
        writeln!(
            out,
            "     verified  : blocks={blocks}, wrong={wrong} (lost={}, torn={}, misdirected={}, stale={})",
            verified.lost, verified.torn, verified.misdirected, verified.stale
        )?;
    }
    let Some(target) = reported.latency_target else { return Ok(()) };
    let (goal, window, percentile, depth) =
        (target.latency.0 / 1000, reported.latency_window.0 / 1000, target.percentile, entry.depth);
    writeln!(
        out,
        "     latency   : target={goal}, window={window}, percentile={percentile:.2}%, depth={depth}"
    )
}

fn write_direction(out: &mut String, name: &str, direction: &Direction, entry: &Entry<'_>) -> fmt::Result {
    let (reported, length) = (entry.reported, entry.outcome.length);
    let (bandwidth, iops) = direction::mean_rates(direction, length);
    let ((mib, mb), (moved, _)) = (bytes(bandwidth), bytes(direction.bytes.0 as f64));
    let (iops, time) = (short(iops, 4, false), length.0 / 1_000_000);
    writeln!(out, "  {name}: IOPS={iops}, BW={mib}/s ({mb}/s)({moved}/{time}msec)")?;
    write_latency(out, "clat", &direction.latency)?;
    write_latency(out, " lat", &direction.latency)?;
    if reported.clat_percentiles {
        write_percentiles(out, "clat", &direction.latency, &reported.percentiles)?;
    }
    if reported.lat_percentiles {
        write_percentiles(out, "lat", &direction.latency, &reported.percentiles)?;
    }
    Ok(())
}

/// Returns the fitting unit of time: its name, and its length in nanoseconds.
fn unit(least: f64, most: f64) -> (&'static str, f64) {
    if least > 2e6 && most > 99_999_999.0 {
        ("msec", 1e6)
    } else if least > 2000.0 && most > 99_999.0 {
        ("usec", 1e3)
    } else {
        ("nsec", 1.0)
    }
}

fn write_latency(out: &mut String, name: &str, histogram: &Histogram) -> fmt::Result {
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else { return Ok(()) };
    let (unit, ns) = unit(min.0 as f64, max.0 as f64);
    let figure = |value: u64| short((value as f64 / ns).floor(), 6, false);
    let scaled = |seconds: Option<f64>| seconds.unwrap_or(0.0) * 1e9 / ns;
    writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        figure(min.0),
        figure(max.0),
        scaled(histogram.mean()),
        scaled(histogram.std())
    )
}

fn write_percentiles(out: &mut String, name: &str, histogram: &Histogram, list: &[f64]) -> fmt::Result {
    let found = latency::percentiles(histogram, list);
    let (Some((_, least)), Some((_, most))) = (found.first(), found.last()) else { return Ok(()) };
    let (unit, ns) = unit(*least as f64, *most as f64);
    let values: Vec<(f64, u64)> =
        found.iter().map(|(percentile, value)| (*percentile, (*value as f64 / ns).round() as u64)).collect();
    let width = values.iter().map(|(_, value)| value.to_string().len()).max().unwrap_or(1).max(5);
    let line = (73 / (width + 14)).max(1);
    writeln!(out, "    {name} percentiles ({unit}):")?;
    let count = values.len();
    for (index, (percentile, value)) in values.into_iter().enumerate() {
        if index % line == 0 {
            write!(out, "     |")?;
        }
        write!(out, " {percentile:>5.2}th=[{value:>width$}]")?;
        match (index + 1 == count, (index + 1) % line == 0) {
            (true, _) => writeln!(out)?,
            (false, true) => writeln!(out, ",")?,
            (false, false) => write!(out, ",")?,
        }
    }
    Ok(())
}

fn write_groups(out: &mut String, entries: &[Entry<'_>]) -> fmt::Result {
    let groups: std::collections::BTreeSet<u32> = entries.iter().map(|entry| entry.reported.group).collect();
    for group in groups {
        writeln!(out, "\nRun status group {group} (all jobs):")?;
        for (name, of) in DIRECTIONS {
            let parts: Vec<(&Direction, plumb_block::Nanos)> = entries
                .iter()
                .filter(|entry| entry.reported.group == group && of(&entry.outcome).operations() > 0)
                .map(|entry| (of(&entry.outcome), entry.outcome.length))
                .collect();
            if !parts.is_empty() {
                write_group(out, &name.to_uppercase(), &parts)?;
            }
        }
    }
    Ok(())
}

fn write_group(out: &mut String, name: &str, parts: &[(&Direction, plumb_block::Nanos)]) -> fmt::Result {
    let rates: Vec<f64> = parts.iter().map(|(part, length)| direction::mean_rates(part, *length).0).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let moved: u64 = parts.iter().map(|(part, _)| part.bytes.0).sum();
    let times = || parts.iter().map(|(_, length)| length.0 / 1_000_000);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let ((all, all_si), (low, low_si), (high, high_si)) =
        (bytes(rates.iter().sum()), bytes(least), bytes(most));
    let (moved, moved_si) = bytes(moved as f64);
    writeln!(
        out,
        "{name:>7}: bw={all}/s ({all_si}/s), {low}/s-{high}/s ({low_si}/s-{high_si}/s), io={moved} ({moved_si}), \
         run={first}-{last}msec"
    )
}

fn write_devices(out: &mut String, results: &[SpanResult]) -> fmt::Result {
    let devices = disk_util(results);
    if devices.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nDisk stats (read/write):")?;
    for device in devices {
        let [read, write, read_merges, write_merges, read_ticks, write_ticks, queue] =
            DISK_COUNTS.map(|name| &device[name]);
        let name = device["name"].as_str().unwrap_or_default();
        let busy = device["util"].as_f64().unwrap_or(0.0);
        writeln!(
            out,
            "  {name}: ios={read}/{write}, merge={read_merges}/{write_merges}, ticks={read_ticks}/{write_ticks}, \
             in_queue={queue}, util={busy:.2}%"
        )?;
    }
    Ok(())
}
