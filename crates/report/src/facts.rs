//! Figures at the head of a report, and facts about the machine and the run at its end.

use std::path::Path;

use plumb_block::{Caching, SyncMethod};
use plumb_measure::Latency;
use plumb_text::{printable, shell_word};

use crate::document::{Environment, RunDocument, RunTarget, Sides};
use crate::figures::{FlushCount, P99_FROM, SINCE_INTENDED};
use crate::levels;
use crate::printable::shell_line;
use crate::terminal::tables::measured;
use crate::{quantity, wording};

/// One large figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// Label of the figure.
    pub(crate) label: &'static str,
    /// Value of the figure.
    pub(crate) value: String,
    /// Unit of the figure.
    pub(crate) unit: String,
    /// Note to compare the figure with.
    pub(crate) note: String,
}

impl Figure {
    /// Returns a figure with its unit.
    pub(crate) fn new(label: &'static str, value: String, unit: &str, note: String) -> Self {
        Self { label, value, unit: unit.to_owned(), note }
    }

    /// Returns a duration in the unit that fits, or a dash.
    pub(crate) fn duration(label: &'static str, seconds: impl Into<Option<f64>>, note: String) -> Self {
        let unknown = || (quantity::NONE.to_owned(), "");
        let (value, unit) = seconds.into().map_or_else(unknown, quantity::duration_parts);
        Self::new(label, value, unit, note)
    }
}

/// A name and a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact {
    /// Name of the fact.
    pub(crate) name: &'static str,
    /// Value of the fact, with its unit.
    pub(crate) value: String,
}

/// Returns the facts of a document: `own` first, then place, time and version of the measurement, and its run
/// directory.
pub(crate) fn facts_of<const N: usize>(
    own: [(&'static str, String); N],
    environment: &Environment,
    run_directory: Option<&String>,
) -> Vec<Fact> {
    let or_none = |text: Option<&String>| text.cloned().unwrap_or_else(|| quantity::NONE.to_owned());
    let made = [
        ("Host", or_none(environment.host.as_ref())),
        ("Kernel", or_none(environment.kernel.as_ref())),
        ("Started", environment.started_at.clone()),
        ("plumb", environment.plumb.clone()),
        ("Recording", run_directory.cloned().unwrap_or_else(|| "not kept".to_owned())),
    ];
    let fact = |(name, value): (_, String)| Fact { name, value: printable(&value) };
    own.into_iter().chain(made).map(fact).collect()
}

/// Returns the most important figures: the cost of a durable write and the flushes that reach the storage, or
/// the results of the load.
pub(crate) fn figures(document: &RunDocument) -> Vec<Figure> {
    let figures = durable_figures(document);
    if figures.is_empty() { load_figures(document) } else { figures }
}

/// Returns the figures of the method that logs and databases use, an append followed by fdatasync, or of the
/// first measured method; and those of direct writes.
fn durable_figures(document: &RunDocument) -> Vec<Figure> {
    let mut figures = Vec::new();
    let appended = measured(document).find(|(method, ..)| *method == SyncMethod::AppendFdatasync);
    if let Some((method, target, latency)) = appended.or_else(|| measured(document).next()) {
        let label = match method {
            SyncMethod::AppendFdatasync => "An append and its fdatasync take",
            SyncMethod::OverwriteFdatasync => "A write and its fdatasync take",
            SyncMethod::OverwriteFsync => "A write and its fsync take",
            SyncMethod::DirectDsync => "A write with O_DSYNC takes",
        };
        let others = measured(document).filter(|(other, ..)| *other != method);
        let others = others.map(|(other, _, latency)| {
            format!("; {} {}", wording::method_short(other), quantity::duration(latency.p50))
        });
        let note = format!("median of {}{}", quantity::count(latency.count), others.collect::<String>());
        figures.push(Figure::duration(label, latency.p50, note));
        let note = format!("slowest {}", quantity::duration(latency.max));
        figures.push(Figure::duration(LONGEST, latency.p99, note));
        let per_sync = "Flushes for each sync";
        let of_method = wording::method(method);
        let (label, value, note) = match target.sides.storage.as_ref().and_then(FlushCount::from_storage) {
            // Flushes of all programs prove nothing about the flushes of these syncs.
            Some(all) if all.is_of_all() => {
                ("Flushes meanwhile", quantity::count(all.count), format!("of all programs, {of_method}"))
            }
            Some(own) => {
                let per = own.count as f64 / target.sides.syncs().max(1) as f64;
                let counted = format!("{} counted, {of_method}", quantity::count(own.count));
                (per_sync, format!("{per:.2}"), counted)
            }
            None => (per_sync, quantity::NONE.to_owned(), "not counted here".to_owned()),
        };
        figures.push(Figure::new(label, value, "", note));
    }
    // The load of a check is separate from its durable writes.
    let is_direct = |target: &&RunTarget| {
        document.job_of(target).is_some_and(|job| job.method.is_none() && job.caching == Caching::Direct)
            && document.is_check()
            && target.sides.write.ios > 0
            && target.failed_because.is_none()
    };
    if let Some(target) = document.targets.iter().find(is_direct) {
        let side = &target.sides.application;
        let durable = document.path_of(target).map(|path| &path.durable_at);
        let is_durable = durable.is_some_and(|at| at.write.is_some() || at.direct.is_some());
        let worth = if is_durable { "durable when acknowledged" } else { "not yet durable" };
        let note = format!("{} MiB/s, {worth}", quantity::mebibytes(side.bytes_per_second));
        figures.push(Figure::new("Direct random writes", quantity::rate(side.iops), "IOPS", note));
    }
    figures
}

/// Label of the time of nearly all operations.
pub(crate) const LONGEST: &str = "99 of 100 take at most";
/// Label of that time if it does not include the syncs of writes.
const LONGEST_WITHOUT_SYNCS: &str = "Without their syncs, 99 of 100 take at most";

/// Returns the time of nearly all operations, or of the slowest if there were too few.
fn longest(label: &'static str, latency: &Latency, note: String) -> Figure {
    match (latency.count >= P99_FROM, label) {
        (true, _) => Figure::duration(label, latency.p99, note),
        (false, LONGEST_WITHOUT_SYNCS) => {
            Figure::duration("Without its sync, the slowest takes", latency.max, note)
        }
        (false, _) => Figure::duration("The slowest takes", latency.max, note),
    }
}

/// Returns the time of nearly all syncs, for a note; empty if it is unknown.
pub(crate) fn syncs_alone(total: &Sides) -> String {
    let p99 = total.sync.latency.and_then(|syncs| syncs.p99.filter(|_| syncs.count >= P99_FROM));
    p99.map_or_else(String::new, |p99| format!("; 99 of 100 syncs within {}", quantity::duration(Some(p99))))
}

/// Returns the figures of all targets together.
fn load_figures(document: &RunDocument) -> Vec<Figure> {
    let total = &document.total;
    let moved = |label, iops, bytes| {
        Figure::new(label, quantity::rate(iops), "IOPS", format!("{} MiB/s", quantity::mebibytes(bytes)))
    };
    let done = document.transactions.as_ref().filter(|transactions| transactions.count > 0);
    let by_transactions = done.and_then(|done| Some((done, done.latency.as_ref()?)));
    let (latency, first) = match (by_transactions, total.operation_latency()) {
        (Some((done, &latency)), _) => {
            let note = format!("{} in all", quantity::count(done.count));
            (latency, Figure::new("Transactions", quantity::rate(done.per_second), "per second", note))
        }
        (None, Some(latency)) => {
            let side = &total.application;
            (latency, moved("The application was served", side.iops, side.bytes_per_second))
        }
        (None, None) => return Vec::new(),
    };
    let mut figures = vec![first];
    figures.extend(total.storage.iter().map(|side| {
        let mut figure = moved("The devices served", side.iops, side.bytes_per_second);
        if let Some(discards) = total.discards().filter(|_| document.duration > 0.0) {
            let per_second = |amount: u64| amount as f64 / document.duration;
            let (count, bytes) = (per_second(discards.count), per_second(discards.bytes));
            let (count, bytes) = (quantity::rate(count), quantity::mebibytes(bytes));
            figure.note.push_str(&format!("; {count} discards/s of {bytes} MiB/s"));
        }
        figure
    }));
    let is_apart = by_transactions.is_none() && total.has_separate_syncs();
    let label = if is_apart { LONGEST_WITHOUT_SYNCS } else { LONGEST };
    let mut note = format!("half within {}", quantity::duration(latency.p50));
    if let Some(service) = total.service_time().filter(|_| by_transactions.is_none()) {
        let (share, time) =
            if service.count >= P99_FROM { ("99 of 100", service.p99) } else { ("all", Some(service.max)) };
        let served = quantity::duration(time);
        note.push_str(&format!(", {SINCE_INTENDED}; the service alone: {share} within {served}"));
    }
    if is_apart {
        note.push_str(&syncs_alone(total));
    }
    figures.push(longest(label, &latency, note));
    if let Some(durable) = &total.durable_latency {
        let note = format!("median of {}", quantity::count(durable.count));
        let lost = document.targets.iter().any(|target| levels::loses_synced(document, target));
        let label = if lost { "A write and its sync take" } else { "Until a write is durable" };
        figures.push(Figure::duration(label, durable.p50, note));
    }
    figures
}

/// Returns the command line as it was typed, for a shell.
pub(crate) fn command(document: &RunDocument) -> String {
    match document.environment.argv.as_slice() {
        [] => {
            format!(
                "plumb {} {}",
                document.command(),
                document.names().into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
            )
        }
        argv => shell_line(argv),
    }
}

/// Returns the named places, each once. Files have absolute paths if the working directory of the run is
/// known.
pub(crate) fn places(document: &RunDocument) -> Vec<String> {
    let directory = document.environment.directory.as_deref();
    let absolute = |name: &str| match directory {
        Some(directory) if !has_scheme(name) => Path::new(directory).join(name).display().to_string(),
        _ => name.to_owned(),
    };
    document.names().into_iter().map(|name| printable(&absolute(name))).collect()
}

/// Returns true for a name with a scheme, as of a simulated drive or an export of a server.
fn has_scheme(name: &str) -> bool {
    name.split_once(':').is_some_and(|(scheme, _)| !scheme.contains(['/', '.']) && scheme.len() > 1)
}

/// Returns the mounts below the targets, each once: the file system, its mount point and its device.
fn mounts(document: &RunDocument) -> Vec<String> {
    let mut mounts = Vec::new();
    for layer in document.all_paths().into_iter().flat_map(|path| &path.layers) {
        let mut from = layer.evidence.iter().filter(|evidence| evidence.source.ends_with("mountinfo"));
        if let Some(evidence) = from.next() {
            let mount = format!("{} ({})", layer.name, evidence.value);
            if !mounts.contains(&mount) {
                mounts.push(mount);
            }
        }
    }
    mounts
}

/// Returns the facts about the place and the conditions of the measurement.
pub(crate) fn facts(document: &RunDocument) -> Vec<Fact> {
    let environment = &document.environment;
    let unknown = || "not known".to_owned();
    let or_unknown = |text: &str| if text.is_empty() { unknown() } else { text.to_owned() };
    let fact = |name, value: String| Fact { name, value: printable(&value) };
    let size = |size: u64| quantity::bytes(size as f64);
    let mut facts: Vec<Fact> = places(document).into_iter().map(|place| fact("Target", place)).collect();
    facts.extend(mounts(document).into_iter().map(|mount| fact("Mount", mount)));
    facts.extend([
        fact("Host", environment.host.clone().unwrap_or_else(unknown)),
        fact("Kernel", environment.kernel.clone().unwrap_or_else(unknown)),
        fact("Processors", if environment.cpus == 0 { unknown() } else { environment.cpus.to_string() }),
        fact("Memory", environment.memory_bytes.map_or_else(unknown, size)),
    ]);
    facts.extend(environment.file_bytes.map(|bytes| fact("Test file", size(bytes))));
    facts.extend(engine(environment).map(|engine| fact("Engine", engine)));
    let error = document.latency_resolution_seconds.map(quantity::duration);
    facts.extend(error.map(|error| fact("Latencies too long by at most", error)));
    facts.extend([
        fact("Seed", document.seed.to_string()),
        fact("Started", or_unknown(&environment.started_at)),
        fact("plumb", environment.plumb.clone()),
        fact("Recording", document.run_directory.clone().unwrap_or_else(|| "not kept".to_owned())),
    ]);
    facts
}

/// Returns the method by which direct requests were submitted, if it was the same for all.
fn engine(environment: &Environment) -> Option<String> {
    let engine = environment.engine.as_deref().filter(|engine| !engine.is_empty())?;
    Some(match &environment.engine_because {
        Some(why) => format!("{engine} (not io_uring: {why})"),
        None => engine.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn few_operations_have_a_slowest_and_no_99_of_100() {
        let document = fixture::virtual_machine();
        let mut latency = document.targets.iter().find_map(|target| target.sides.durable_latency).unwrap();
        for (count, label) in [(P99_FROM, LONGEST), (3, "The slowest takes")] {
            latency.count = count;
            assert_eq!(longest(LONGEST, &latency, String::new()).label, label);
        }
    }

    #[test]
    fn direct_writes_are_found_by_what_they_do_and_not_by_a_name() {
        let labels = |document: &RunDocument| -> Vec<String> {
            durable_figures(document).into_iter().map(|figure| figure.label.to_string()).collect()
        };
        let mut document = fixture::virtual_machine();
        let before = labels(&document);
        assert!(before.iter().any(|label| label == "Direct random writes"), "{before:?}");
        for (number, job) in document.spans.iter_mut().flat_map(|span| &mut span.jobs).enumerate() {
            job.name = format!("job {number}");
        }
        assert_eq!(labels(&document), before);
    }
}
