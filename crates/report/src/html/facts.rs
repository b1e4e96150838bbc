//! The figures at the head of the page, and the facts about machine and run at its end.

use crate::document::CheckDocument;
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

/// The figures that matter most: the first method that was measured, and what reaches the storage.
pub(super) fn figures(document: &CheckDocument) -> Vec<Figure> {
    let mut figures = Vec::new();
    let measured = document.sync.iter().find_map(|sync| Some((sync, sync.latency.as_ref()?)));
    if let Some((sync, latency)) = measured {
        let (value, unit) = quantity::duration_parts(latency.p50);
        let note = format!("median of {}", quantity::count(latency.count));
        figures.push(Figure { label: "A write and its sync take", value, unit: unit.to_owned(), note });
        let (value, unit) = quantity::duration_parts(latency.p99);
        let note = format!("slowest {}", quantity::duration(latency.max));
        figures.push(Figure { label: "99 of 100 take at most", value, unit: unit.to_owned(), note });
        let (value, note) = match (sync.flushes_per_sync, sync.device_flushes) {
            (Some(per), Some(flushes)) => {
                (format!("{per:.2}"), format!("{} counted", quantity::count(flushes)))
            }
            _ => (quantity::NONE.to_owned(), "not counted here".to_owned()),
        };
        figures.push(Figure { label: "Flushes per durable write", value, unit: String::new(), note });
    }
    let direct =
        document.io.iter().find(|io| io.name == "write-direct").and_then(|io| io.application.as_ref());
    if let Some(side) = direct {
        figures.push(Figure {
            label: "Direct random writes",
            value: quantity::rate(side.iops),
            unit: "IOPS".to_owned(),
            note: format!("{} MiB/s, not yet durable", quantity::mebibytes(side.bytes_per_second)),
        });
    }
    figures
}

/// Where and how it was measured.
pub(super) fn facts(document: &CheckDocument) -> Vec<Fact> {
    let environment = &document.environment;
    let unknown = || "not known".to_owned();
    let engine = match &environment.engine_because {
        Some(why) => format!("{} (not io_uring: {})", environment.engine, why),
        None => environment.engine.clone(),
    };
    let fact = |name, value: String| Fact { name, value: printable(&value) };
    vec![
        fact("Host", environment.host.clone().unwrap_or_else(unknown)),
        fact("Kernel", environment.kernel.clone().unwrap_or_else(unknown)),
        fact("Processors", if environment.cpus == 0 { unknown() } else { environment.cpus.to_string() }),
        fact("Memory", environment.memory_bytes.map_or_else(unknown, |size| quantity::bytes(size as f64))),
        fact("Test file", quantity::bytes(environment.file_bytes as f64)),
        fact("Engine", engine),
        fact("Seed", environment.seed.to_string()),
        fact(
            "Started",
            if environment.started_at.is_empty() { unknown() } else { environment.started_at.clone() },
        ),
        fact("plumb", environment.plumb.clone()),
        fact("Recording", document.run_directory.clone().unwrap_or_else(|| "not kept".to_owned())),
    ]
}
