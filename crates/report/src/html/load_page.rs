//! What the template of a load is filled with.

use askama::Template;

use super::chart_data::ChartData;
use super::chart_view::{CdfView, SeriesView};
use super::facts::{Fact, Figure};
use super::frame::{Frame, Parts};
use super::{load_chart, sides};
use crate::document::{RunDocument, RunRecording};
use crate::headline::Headline;
use crate::printable::{printable, shell_line};
use crate::quantity;
use crate::sentences;

/// All of a page: every field is ready to print.
#[derive(Template)]
#[template(path = "load.html")]
pub(super) struct LoadPage {
    frame: Frame,
    has_io: bool,
    io: Vec<sides::Load>,
    resolution: String,
    cdf: CdfView,
    keys: Vec<Key>,
    has_series: bool,
    series_words: String,
    series: Vec<SeriesView>,
    lines: Vec<String>,
    has_workload: bool,
    workload: String,
}

/// What a line of the distribution chart is of.
struct Key {
    name: String,
    colour: String,
}

impl LoadPage {
    /// The page of `recording`.
    pub(super) fn of(recording: &RunRecording) -> Self {
        let document = &recording.document;
        let cdf = load_chart::cdf_lines(recording);
        let (series, phases) = load_chart::series(recording);
        let environment = &document.environment;
        let mut names: Vec<String> = document.targets.iter().map(|target| printable(&target.name)).collect();
        names.dedup();
        let parts = Parts {
            what: "plumb load",
            target: names.join(", "),
            masthead: crate::figures::masthead(
                environment.host.as_deref(),
                environment.kernel.as_deref(),
                &environment.started_at,
            ),
            figures: figures(document),
            verdicts: &document.verdicts,
            command: shell_line(&environment.argv),
            seed: document.seed,
            facts: facts(document),
        };
        let key =
            |line: &super::chart_data::Line| Key { name: line.name.clone(), colour: line.colour.clone() };
        let keys: Vec<Key> = cdf.iter().map(key).collect();
        let charts = ChartData { cdf, series: phases };
        let all = sentences::lines(document).into_iter().chain(document.notes.iter().cloned());
        Self {
            frame: Frame::of(parts, &Headline::of_load(document), &charts),
            has_io: !document.targets.is_empty(),
            io: sides::targets(document),
            resolution: printable(&document.latency_resolution),
            cdf: CdfView { present: !keys.is_empty(), aria: load_chart::cdf_words(recording) },
            keys,
            has_series: !series.is_empty(),
            series_words: load_chart::series_words(document),
            series,
            lines: all.map(|line| printable(&line)).collect(),
            has_workload: !document.workload.trim().is_empty(),
            // Line ends are what makes it readable; everything else is shown as on the terminal.
            workload: document.workload.lines().map(printable).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// The figures that matter most.
fn figures(document: &RunDocument) -> Vec<Figure> {
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

/// Where it was measured.
fn facts(document: &RunDocument) -> Vec<Fact> {
    let environment = &document.environment;
    let unknown = || "not known".to_owned();
    let fact = |name, value: String| Fact { name, value: printable(&value) };
    let error = document.latency_resolution_seconds.map_or_else(unknown, quantity::duration);
    vec![
        fact("Host", environment.host.clone().unwrap_or_else(unknown)),
        fact("Kernel", environment.kernel.clone().unwrap_or_else(unknown)),
        fact("Processors", if environment.cpus == 0 { unknown() } else { environment.cpus.to_string() }),
        fact("Memory", environment.memory_bytes.map_or_else(unknown, |size| quantity::bytes(size as f64))),
        fact("Latencies too long by at most", error),
        fact("Seed", document.seed.to_string()),
        fact("Started", environment.started_at.clone()),
        fact("plumb", environment.plumb.clone()),
        fact("Recording", document.run_directory.clone().unwrap_or_else(|| "not kept".to_owned())),
    ]
}
