//! The figures at the head of the page, and the facts about machine and run at its end.

use super::sync_table;
use crate::document::{Environment, RunDocument, RunTarget};
use crate::printable::printable;
use crate::quantity;

/// One large figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    /// What it is.
    pub(super) label: &'static str,
    /// The figure.
    pub(super) value: String,
    /// Its unit.
    pub(super) unit: String,
    /// What to compare it with.
    pub(super) note: String,
}

/// A name and a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fact {
    /// What it is.
    pub(super) name: &'static str,
    /// Its value, with its unit.
    pub(super) value: String,
}

/// The figures that matter most: what a durable write costs and what reaches the storage, or what the load reached.
pub(super) fn figures(document: &RunDocument) -> Vec<Figure> {
    let figures = durable_figures(document);
    if figures.is_empty() { load_figures(document) } else { figures }
}

/// Of the first method that was measured, and of direct writes.
fn durable_figures(document: &RunDocument) -> Vec<Figure> {
    let mut figures = Vec::new();
    if let Some((_, target, latency)) = sync_table::measured(document).next() {
        let (value, unit) = quantity::duration_parts(latency.p50);
        let note = format!("median of {}", quantity::count(latency.count));
        figures.push(Figure { label: "A write and its sync take", value, unit: unit.to_owned(), note });
        let (value, unit) = quantity::duration_parts(latency.p99);
        let note = format!("slowest {}", quantity::duration(latency.max));
        figures.push(Figure { label: "99 of 100 take at most", value, unit: unit.to_owned(), note });
        let flushes = target.sides.storage.as_ref().and_then(|storage| storage.flushes);
        let (value, note) = match (target.sides.flushes_per_sync(), flushes) {
            (Some(per), Some(flushes)) => {
                (format!("{per:.2}"), format!("{} counted", quantity::count(flushes)))
            }
            _ => (quantity::NONE.to_owned(), "not counted here".to_owned()),
        };
        figures.push(Figure { label: "Flushes per durable write", value, unit: String::new(), note });
    }
    let is_direct = |target: &&RunTarget| {
        document.job_of(target).is_some_and(|job| job.name == "write-direct")
            && document.is_check()
            && target.failed_because.is_none()
    };
    if let Some(target) = document.targets.iter().find(is_direct) {
        let side = &target.sides.application;
        figures.push(Figure {
            label: "Direct random writes",
            value: quantity::rate(side.iops),
            unit: "IOPS".to_owned(),
            note: format!("{} MiB/s, not yet durable", quantity::mebibytes(side.bytes_per_second)),
        });
    }
    figures
}

/// What all targets reached together.
fn load_figures(document: &RunDocument) -> Vec<Figure> {
    let total = &document.total;
    let Some(latency) = &total.application.latency else { return Vec::new() };
    let mut figures = vec![Figure {
        label: "The application was served",
        value: quantity::rate(total.application.iops),
        unit: "IOPS".to_owned(),
        note: format!("{} MiB/s", quantity::mebibytes(total.application.bytes_per_second)),
    }];
    if let Some(storage) = &total.storage {
        figures.push(Figure {
            label: "The devices served",
            value: quantity::rate(storage.iops),
            unit: "IOPS".to_owned(),
            note: format!("{} MiB/s", quantity::mebibytes(storage.bytes_per_second)),
        });
    }
    let (value, unit) = quantity::duration_parts(latency.p99);
    let note = format!("half within {}", quantity::duration(latency.p50));
    figures.push(Figure { label: "99 of 100 take at most", value, unit: unit.to_owned(), note });
    if let Some(durable) = &total.durable_latency {
        let (value, unit) = quantity::duration_parts(durable.p50);
        let note = format!("median of {}", quantity::count(durable.count));
        figures.push(Figure { label: "Until a write is durable", value, unit: unit.to_owned(), note });
    }
    figures
}

/// Where and how it was measured.
pub(super) fn facts(document: &RunDocument) -> Vec<Fact> {
    let environment = &document.environment;
    let unknown = || "not known".to_owned();
    let or_unknown = |text: &str| if text.is_empty() { unknown() } else { text.to_owned() };
    let fact = |name, value: String| Fact { name, value: printable(&value) };
    let size = |size: u64| quantity::bytes(size as f64);
    let mut facts = vec![
        fact("Host", environment.host.clone().unwrap_or_else(unknown)),
        fact("Kernel", environment.kernel.clone().unwrap_or_else(unknown)),
        fact("Processors", if environment.cpus == 0 { unknown() } else { environment.cpus.to_string() }),
        fact("Memory", environment.memory_bytes.map_or_else(unknown, size)),
    ];
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

/// How direct requests were submitted, where one way was found for all.
fn engine(environment: &Environment) -> Option<String> {
    let engine = environment.engine.as_deref().filter(|engine| !engine.is_empty())?;
    Some(match &environment.engine_because {
        Some(why) => format!("{engine} (not io_uring: {why})"),
        None => engine.to_owned(),
    })
}
