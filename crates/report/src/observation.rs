//! Outline of an observation, for all formats. All text in it is printable.

use plumb_measure::Latency;
use plumb_path::Severity;
use plumb_text::printable;

use crate::distribution::{self, Distribution};
use crate::document::ObservationDocument;
use crate::document::observation::{
    Arrivals, NO_CALL, ObservedDevice, ObservedDirection, ObservedSync, Source, WritebackError,
};
use crate::exposure;
use crate::facts::{Fact, Figure, facts_of};
use crate::headline::{Headline, capital, incomplete, sentence};
use crate::outline::{Item, Outline, Section};
use crate::quantity::{bytes, count, counted, duration, mebibytes, or_dash, percent, rate, three_digits};
use crate::rules;
use crate::terminal::Table;

/// Maximum number of sizes shown for a direction.
const SIZES_MAX: usize = 6;
/// Note on the cost of recording events, which no counter shows. The figures come from `cargo xtask bench
/// observe`.
const COST: &str = "What the kernel needs to record events comes on top, in the programs that are observed: see `plumb observe --help`.";
/// Rule for writes that failed after the page cache had accepted them.
const LOST: &str = "writeback-failed";
/// Maximum number of files with failed writes that are shown.
const FILES_MAX: usize = 20;
/// Maximum number of callers of syncs.
const CALLERS_MAX: usize = 12;

/// Returns the report of `document`.
pub(crate) fn outline(document: &ObservationDocument) -> Outline<'_> {
    let table = |table| Item::table(Some(table));
    let workload: Vec<Item> = document.workload.lines().map(|line| Item::Command(printable(line))).collect();
    Outline {
        command: "observe",
        of: &document.target,
        headline: headline(document),
        figures: figures(document),
        sections: vec![
            Section::new("Writes that did not reach the device", lost(document)),
            Section::new(exposure::TITLE, exposed(document)),
            Section::new("Requests to the devices", table(asked(document))),
            Section::new("Durations", took(document)),
            Section::new("Flushes", table(flushes(document))),
            Section::new("Queue depth and bursts", table(depths(document))),
            Section::new("Sizes", Item::table(sizes_of(document))),
            Section::new("Who waited for syncs", syncs(document, CALLERS_MAX)),
            Section::new("Counters of the kernel for the process", process(document)),
            Section::new("How it was observed", Item::lines(&how(document))),
            Section::new("Notes", Item::lines(&document.notes)),
            Section::new("As a workload", workload).detail(),
        ],
        facts_title: "Where it was observed",
        facts: facts(document),
        environment: &document.environment,
        run_directory: document.run_directory.as_deref(),
    }
}

/// Returns the loss that a power cut would cause at the end of the observation.
fn exposed(document: &ObservationDocument) -> Vec<Item> {
    let is_alone = document.exposures.len() == 1;
    document.exposures.iter().flat_map(|of| exposure::observed(of, is_alone)).collect()
}

/// Returns the files whose writes failed after the page cache had accepted them, and the remedy.
fn lost(document: &ObservationDocument) -> Vec<Item> {
    let errors: &[WritebackError] = document.writeback_errors.as_deref().unwrap_or_default();
    if errors.is_empty() {
        return Vec::new();
    }
    let inode = |error: &WritebackError| format!("inode {}, which has no name that was found", error.inode);
    let told = |error: &WritebackError| {
        let names: Vec<String> =
            error.reported_to.iter().map(|told| format!("{} ({})", told.name, told.process)).collect();
        match (names.is_empty(), error.reported) {
            (true, _) => "nobody's".to_owned(),
            (false, true) => names.join(", "),
            (false, false) => format!("{}, before the last error", names.join(", ")),
        }
    };
    let table = Table::for_rows(errors.iter().take(FILES_MAX))
        .left("file", |error| error.path.as_ref().map_or_else(|| inode(error), |path| printable(path)))
        .left("on", |error| printable(error.mount_point.as_ref().unwrap_or(&error.device)))
        .left("error", |error| printable(&error.error))
        .right("times", |error| count(error.failures))
        .right("first after", |error| duration(error.first_at))
        .right("last after", |error| duration(error.last_at))
        .left("whose sync of it failed", |error| printable(&told(error)))
        .table();
    let more = errors.len().checked_sub(FILES_MAX).filter(|more| *more > 0);
    let more = more.map(|more| Item::Line(format!("{more} more files are in the JSON document.")));
    let remedy = rules::find(LOST).map(|rule| Item::Line(format!("{} [{LOST}]", rule.remedy)));
    [Item::Table(table)].into_iter().chain(more).chain(remedy).collect()
}

fn headline(document: &ObservationDocument) -> Headline {
    let (severity, label) = match document.level.as_str() {
        "danger" => (Some(Severity::Danger), "Danger"),
        "warning" => (Some(Severity::Warning), "Warning"),
        _ => (None, "Observed"),
    };
    let meaning = match (document.source, &document.source_because) {
        (Source::Counters, Some(because)) => {
            format!(
                "Only counters were read: no sizes, no latencies of single requests, no syncs ({because})."
            )
        }
        _ => String::new(),
    };
    Headline {
        severity,
        label,
        verdict: capital(&sentence(&document.headline)),
        meaning,
        quality: String::new(),
        incomplete: incomplete(document.complete, document.incomplete_because.as_deref()),
    }
}

fn figures(document: &ObservationDocument) -> Vec<Figure> {
    let mut figures = Vec::new();
    if let Some(device) = document.devices.first() {
        let iops: f64 = device.transfers().iter().map(|of| of.iops).sum();
        let moved: f64 = device.transfers().iter().map(|of| of.bytes_per_second).sum();
        let note = format!("{} MiB/s at {}", mebibytes(moved), printable(&device.name));
        figures.push(Figure::new("Requests to the device", rate(iops), "IOPS", note));
        if let Some(flushes) = device.flushes_per_second {
            let note = or_dash(device.flush_latency, |of| format!("half within {}", duration(of.p50)));
            figures.push(Figure::new("Flushes", rate(flushes), "per second", note));
        }
    }
    if let Some(latency) = document.sync_latency {
        let note = format!("{} calls, half within {}", count(latency.count), duration(latency.p50));
        figures.push(Figure::duration("99 of 100 syncs take at most", latency.p99, note));
    }
    let note = format!("{} events, {} lost", count(document.cost.events), count(document.cost.events_lost));
    figures.push(Figure::new("Observing took", percent(document.cost.cpu_share), "of a processor", note));
    figures
}

/// Returns the statistic `of` of a latency, or a dash.
fn at(latency: Option<Latency>, of: fn(&Latency) -> Option<f64>) -> String {
    or_dash(latency, |latency| duration(of(&latency)))
}

fn asked(document: &ObservationDocument) -> Table {
    Table::for_rows(directions(document))
        .left("device", |(device, ..)| printable(&device.name))
        .left("", |(_, name, _)| *name)
        .right("per second", |(.., of)| rate(of.iops))
        .right("MiB/s", |(.., of)| mebibytes(of.bytes_per_second))
        .right("mean size", |(.., of)| or_dash(of.io_bytes_mean, bytes))
        .right("sequential", |(.., of)| or_dash(of.sequential, percent))
        .right("in queue p50", |(.., of)| at(of.queue_latency, |of| of.p50))
        .right("p99", |(.., of)| at(of.queue_latency, |of| of.p99))
        .right("at device p50", |(.., of)| at(of.latency, |of| of.p50))
        .right("p99", |(.., of)| at(of.latency, |of| of.p99))
        .right("max", |(.., of)| maximum(document, of.latency))
        .table()
}

/// Returns the maximum latency, which is a lower bound if events were lost.
fn maximum(document: &ObservationDocument, latency: Option<Latency>) -> String {
    let bound = if document.cost.events_lost > 0 { "≥ " } else { "" };
    or_dash(latency, |latency| format!("{bound}{}", duration(latency.max)))
}

/// Returns each direction in which a device received requests. A device without requests has its reads.
fn directions(
    document: &ObservationDocument,
) -> impl Iterator<Item = (&ObservedDevice, &'static str, &ObservedDirection)> {
    document.devices.iter().flat_map(|device| {
        let is_idle = device.ios() == 0;
        let shown = move |(name, of): &(&str, &ObservedDirection)| of.ios > 0 || (is_idle && *name == "read");
        device.directions().into_iter().filter(shown).map(move |(name, of)| (device, name, of))
    })
}

/// Returns the distributions of syncs, and of the operations of the busiest device.
fn took(document: &ObservationDocument) -> Vec<Item> {
    // Reversed: of equally busy devices the first is taken, as in the headline.
    let busiest = document.devices.iter().rev().max_by_key(|device| device.requests());
    let syncs = Distribution { name: "syncs".to_owned(), buckets: &document.sync_latency_buckets };
    let of_device = busiest.into_iter().flat_map(|device| {
        let of = |operation: &str, buckets| Distribution {
            name: format!("{} {operation}", printable(&device.name)),
            buckets,
        };
        [
            of("flush", &device.flush_latency_buckets),
            of("write", &device.write.latency_buckets),
            of("read", &device.read.latency_buckets),
            of("trim", &device.trim.latency_buckets),
        ]
    });
    let table = distribution::table([syncs].into_iter().chain(of_device));
    // Each bar belongs to the count before it.
    table.map(|table| Item::Fitting { table, columns_min: 3 }).into_iter().collect()
}

fn flushes(document: &ObservationDocument) -> Table {
    Table::for_rows(&document.devices)
        .left("device", |device| printable(&device.name))
        .right("flushes", |device| or_dash(device.flushes, count))
        .right("per second", |device| or_dash(device.flushes_per_second, rate))
        .right("p50", |device| at(device.flush_latency, |of| of.p50))
        .right("p99", |device| at(device.flush_latency, |of| of.p99))
        .right("max", |device| maximum(document, device.flush_latency))
        .right("FUA writes", |device| or_dash(device.fua_writes, count))
        .right("merged I/O", |device| count(device.merges))
        .table()
}

fn depths(document: &ObservationDocument) -> Table {
    let most = |device: &ObservedDevice| {
        device.queue_depth.map(|of| of.max).filter(|_| document.source == Source::Events)
    };
    Table::for_rows(&document.devices)
        .left("device", |device| printable(&device.name))
        .right("at once, mean", |device| or_dash(device.queue_depth, |of| three_digits(of.mean)))
        .right("while busy", |device| or_dash(device.queue_depth, |of| three_digits(of.busy_mean)))
        .right("most", |device| or_dash(most(device), count))
        .right("busy", |device| or_dash(device.queue_depth, |of| percent(of.busy)))
        .left("requests came", |device| or_dash(device.arrivals, came))
        .table()
}

/// Returns additional lines of a live view: for each device with requests, and for the first callers of
/// syncs.
pub fn standing(devices: &[ObservedDevice], syncs: &[ObservedSync]) -> Vec<String> {
    let device = |device: &ObservedDevice| {
        let transfers = device.transfers();
        let ios: u64 = transfers.iter().map(|of| of.ios).sum();
        let bytes_all: u64 = transfers.iter().map(|of| of.bytes).sum();
        let mut parts = vec![
            format!("{} of requests write", percent(device.write.ios as f64 / ios as f64)),
            format!("{} on average", bytes(bytes_all as f64 / ios as f64)),
            format!("{} merged", count(device.merges)),
        ];
        parts.extend(
            device.queue_depth.map(|of| format!("{} at once, at most {}", three_digits(of.mean), of.max)),
        );
        let waits = device
            .write
            .queue_latency
            .map(|of| format!("99 of 100 writes wait up to {} before the device", duration(of.p99)));
        parts.extend(waits);
        parts.extend(device.arrivals.map(|arrivals| format!("they come {}", came(arrivals))));
        format!("{}: {}", printable(&device.name), parts.join(", "))
    };
    let sync = |sync: &ObservedSync| {
        let times = sync
            .latency
            .map(|of| format!(", half within {}, 99 of 100 within {}", duration(of.p50), duration(of.p99)));
        let (name, times) = (printable(&sync.name), times.unwrap_or_default());
        format!("{name} ({}): {} {} per second{times}", sync.process, rate(sync.per_second), sync.call)
    };
    let moves = |device: &&ObservedDevice| device.transfers().iter().any(|of| of.ios > 0);
    let asked = devices.iter().filter(moves).map(device);
    asked.chain(syncs.iter().take(CALLERS_MAX).map(sync)).collect()
}

/// Describes the regularity of requests.
fn came(arrivals: Arrivals) -> String {
    match arrivals.bursts {
        Some(bursts) => format!(
            "in {} bursts of {} with pauses of {}",
            count(bursts.count),
            three_digits(bursts.ios_mean),
            duration(bursts.pause_mean)
        ),
        None if arrivals.variation < 0.5 => "at regular intervals".to_owned(),
        None if arrivals.variation < 1.5 => "like those of independent clients".to_owned(),
        None => "irregularly".to_owned(),
    }
}

fn sizes_of(document: &ObservationDocument) -> Option<Table> {
    let most_common = |of: &ObservedDirection| {
        let mut sizes = of.sizes.clone();
        sizes.sort_by_key(|size| std::cmp::Reverse(size.ios));
        let share = |ios: u64| percent(ios as f64 / of.ios as f64);
        let shown = sizes.iter().take(SIZES_MAX);
        let mut words: Vec<String> =
            shown.map(|size| format!("{} {}", bytes(size.bytes as f64), share(size.ios))).collect();
        let rest: u64 = sizes.iter().skip(SIZES_MAX).map(|size| size.ios).sum();
        words.extend((rest > 0).then(|| format!("others {}", share(rest))));
        words.join(", ")
    };
    let table = Table::for_rows(directions(document).filter(|(.., of)| of.ios > 0))
        .left("device", |(device, ..)| printable(&device.name))
        .left("", |(_, name, _)| *name)
        .left("sizes, most common first", |(.., of)| most_common(of));
    let of = document.devices.iter().flat_map(ObservedDevice::directions);
    of.map(|(_, of)| of).any(|of| !of.sizes.is_empty()).then(|| table.table())
}

fn syncs(document: &ObservationDocument, most: usize) -> Vec<Item> {
    let Some(syncs) = &document.syncs else {
        let why = document.syncs_unknown_because.as_deref().unwrap_or("unknown");
        return vec![Item::Line(printable(&format!("Not seen: {why}.")))];
    };
    if syncs.is_empty() {
        // Durable writes and flushes of io_uring are not such calls.
        let sum =
            |of: fn(&ObservedDevice) -> Option<u64>| document.devices.iter().map(of).sum::<Option<u64>>();
        let received = |number: Option<u64>, what: &str| Some(counted(number?, what));
        let (flushes, durable) = (sum(|device| device.flushes), sum(|device| device.fua_writes));
        let all = [received(flushes, "flush"), received(durable, "FUA write")];
        let all: Vec<String> = all.into_iter().flatten().collect();
        let line = match all.join(" and ") {
            none if none.is_empty() => "No sync call was seen. Flushes are not counted here.".to_owned(),
            received => format!("No sync call was seen. The devices received {received}."),
        };
        return vec![Item::Line(line), unseen()];
    }
    let file = |sync: &ObservedSync| match (&sync.file, &*sync.call) {
        (Some(file), _) => printable(file),
        (None, "sync") => "all file systems: sync(2)".to_owned(),
        (None, _) if sync.counted => "not known".to_owned(),
        (None, _) => "not known, nor on which device".to_owned(),
    };
    let table = Table::for_rows(syncs.iter().take(most))
        .left("process", |sync| printable(&sync.name))
        .left("", |sync| if sync.process == 0 { "ended".to_owned() } else { sync.process.to_string() })
        .left("call", |sync| printable(&sync.call))
        .right("calls", |sync| count(sync.count))
        .right("per second", |sync| rate(sync.per_second))
        .right("p50", |sync| at(sync.latency, |of| of.p50))
        .right("p99", |sync| at(sync.latency, |of| of.p99))
        .right("max", |sync| maximum(document, sync.latency))
        .left("file", |sync| file(sync));
    let mut items = vec![Item::Table(table.table())];
    if syncs.iter().take(most).any(|sync| sync.call == NO_CALL) {
        let what = "No call: writes with O_DSYNC or RWF_DSYNC, io_uring, or the kernel itself, as for a loop device.";
        items.push(Item::Line(what.to_owned()));
    }
    items.push(unseen());
    if let Some(more) = syncs.len().checked_sub(most).filter(|more| *more > 0) {
        items.push(Item::Line(format!(
            "{more} more callers, on whom less time was spent, are in the JSON document."
        )));
    }
    items
}

/// Names the durable writes without events: XFS has an event for the beginning of a sync but not for its end,
/// and btrfs has neither.
fn unseen() -> Item {
    let what = "On XFS and btrfs a write with O_DSYNC or RWF_DSYNC is not listed: it shows only as a flush or FUA \
                write of the device.";
    Item::Line(what.to_owned())
}

fn process(document: &ObservationDocument) -> Vec<Item> {
    let Some(process) = &document.process else { return Vec::new() };
    let amount = |of: Option<u64>| or_dash(of, |of| bytes(of as f64));
    let line = format!(
        "{} ({}): {} read and {} written by system calls; {} read from storage, {} made dirty or written to it.",
        process.name,
        process.process,
        amount(process.read_calls_bytes),
        amount(process.write_calls_bytes),
        amount(process.read_bytes),
        amount(process.write_bytes)
    );
    vec![Item::Line(printable(&line))]
}

fn how(document: &ObservationDocument) -> Vec<String> {
    let cost = &document.cost;
    let mut lines = Vec::new();
    match document.source {
        Source::Counters => lines.push(format!(
            "By the counters of /proc/diskstats, which count an empty flush among the writes too: no events ({}).",
            document.source_because.as_deref().unwrap_or("unknown")
        )),
        Source::Events => {
            for device in &document.devices {
                lines.extend(agreement(device));
            }
            let lost = match cost.events_lost {
                0 => "none was lost".to_owned(),
                lost => format!(
                    "{} were lost. Counts and rates of devices are therefore the kernel's counters; sizes and latencies are those of the \
                     requests that were seen, syncs are lower bounds, and bursts and the course over time are left out",
                    count(lost)
                ),
            };
            lines.push(format!("{} events were read, and {lost}.", count(cost.events)));
            lines.extend(failures(document).map(str::to_owned));
        }
    }
    lines.push(format!(
        "Observing took {} of processor time, {} of one processor. {COST}",
        duration(cost.cpu_seconds),
        percent(cost.cpu_share)
    ));
    lines
}

/// Returns that no write failed, or that failures were not visible; `None` if some failed, which the report
/// states first.
fn failures(document: &ObservationDocument) -> Option<&'static str> {
    match document.writeback_errors.as_deref() {
        Some([]) => Some("No write failed after the page cache had taken it."),
        Some(_) => None,
        None => Some(
            "This kernel does not tell which writes fail after the page cache has taken them (Linux 4.13 and later do).",
        ),
    }
}

/// Compares the events of a device with its counters; `None` if it has no counters.
fn agreement(device: &ObservedDevice) -> Option<String> {
    let counters = device.counters.as_ref()?;
    let name = &device.name;
    Some(match device.counters_agree {
        Some(true) => format!("{name}: the events are as many as /proc/diskstats counted."),
        Some(false) => format!(
            "{name}: /proc/diskstats counted {} reads and {} writes, and further writes without data, as which the kernel counts flushes; \
             the events show {} and {}.",
            count(counters.reads),
            count(
                counters
                    .writes
                    .saturating_sub(counters.flushes.unwrap_or(0).min(device.flushes.unwrap_or(0)))
            ),
            count(device.read.ios),
            count(device.write.ios)
        ),
        None => {
            format!("{name}: requests were on their way when it began or ended, so counters differ by these.")
        }
    })
}

fn facts(document: &ObservationDocument) -> Vec<Fact> {
    let names: Vec<&str> = document.devices.iter().map(|device| device.name.as_str()).collect();
    let own = [("Observed for", duration(document.seconds)), ("Devices", names.join(", "))];
    facts_of(own, &document.environment, document.run_directory.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durable_writes_that_no_event_names_are_said_whatever_was_seen() {
        for seen in [Vec::new(), vec![ObservedSync { call: "fsync".to_owned(), ..ObservedSync::default() }]] {
            let document = ObservationDocument { syncs: Some(seen), ..ObservationDocument::default() };
            let items = syncs(&document, CALLERS_MAX);
            let said =
                items.iter().any(|item| matches!(item, Item::Line(line) if line.contains("XFS and btrfs")));
            assert!(said, "{:?}", document.syncs);
        }
    }
}
