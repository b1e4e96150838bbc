//! Content of the page's template: every field is ready to print.

use askama::Template;
use plumb_path::Rule;
use plumb_text::printable;

use super::charts::{self, ChartView};
use super::frame::Frame;
use super::path_view::{PathView, path_views};
use super::sections::lines;
use super::verdict_view::{VerdictView, explanations, verdict_count, verdict_view};
use super::{sides, table};
use crate::document::RunRecording;
use crate::facts;
use crate::figures::masthead;
use crate::headline::Headline;
use crate::levels::loses_synced;
use crate::{sentences, tables, terminal};

/// Time series of a load that are not folded: those of its first target.
const SERIES_SHOWN: usize = 4;

/// All of a page.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    frame: Frame,
    /// The write paths, each with its drawings and layers.
    paths: Vec<PathView>,
    /// Reason why one is missing; empty if none is.
    path_unknown: String,
    has_methods: bool,
    /// True if a sync makes nothing durable, so that its cost is not called that of a durable write.
    lost: bool,
    durable: String,
    /// Reason why methods or targets were not measured, and the storage's side is not known.
    unmeasured: Vec<String>,
    cdf: Option<ChartView>,
    sides: String,
    resolution: String,
    series_words: String,
    series: Vec<ChartView>,
    /// Further time series, which are folded.
    more_series: Vec<ChartView>,
    flushes: String,
    flush_words: Vec<String>,
    accounts: String,
    lines: Vec<String>,
    verdict_count: String,
    verdicts: Vec<VerdictView>,
    /// Rules of the verdicts, for their explanations.
    rules: Vec<&'static Rule>,
    root: Vec<String>,
    workload: String,
}

impl Page {
    /// Returns the page of `recording`.
    pub(super) fn new(recording: &RunRecording) -> Self {
        let document = &recording.document;
        let printed = |lines: Vec<String>| lines.iter().map(|line| printable(line)).collect::<Vec<_>>();
        let (cdf, mut drawn) = charts::distributions(recording).unzip();
        let (mut series, over_time) = charts::series(recording);
        // A check is about the durable write; what happened over time is for those who look for a cause.
        let shown = if document.is_check() { 0 } else { SERIES_SHOWN.min(series.len()) };
        let more_series = series.split_off(shown);
        let charts: Vec<_> = drawn.take().into_iter().chain(over_time).collect();
        let durable = terminal::tables::durable_table(document).map(|(unit, durable)| {
            table::table(&durable, &format!("Time of one write of 4 KiB and its sync, in {}", unit.name()))
        });
        let (flushes, flush_words) = tables::flushes(document, &document.labels())
            .map_or_else(Default::default, |(flushes, words)| (table::table(&flushes, ""), words));
        let accounts = tables::accounts(&document.accounting).map(|accounts| {
            table::table(&accounts, "Everything sent to the devices, phase by phase and without a gap")
        });
        let said = sentences::lines(document).into_iter().chain(document.notes.iter().cloned());
        let mut unmeasured = tables::unmeasured_methods(document);
        unmeasured.extend(sentences::unmeasured(document));
        unmeasured.extend(sentences::unknown_storage(document));
        Self {
            frame: Frame {
                what: if document.is_check() { "plumb check" } else { "plumb load" },
                target: facts::places(document).join(", "),
                masthead: masthead(&document.environment),
                headline: Some(Headline::new(document)),
                figures: facts::figures(document),
                command: facts::command(document),
                seed: Some(document.seed),
                facts: facts::facts(document),
                data: String::new(),
            }
            .drawing(&charts),
            paths: path_views(document),
            path_unknown: printable(document.path_unknown_because.as_deref().unwrap_or_default()),
            has_methods: durable.is_some() || document.is_check(),
            lost: document.targets.iter().any(|target| loses_synced(document, target)),
            durable: durable.unwrap_or_default(),
            unmeasured: printed(unmeasured),
            cdf,
            sides: sides::sides(document),
            resolution: printable(&document.latency_resolution),
            series_words: charts::series_words(document),
            series,
            more_series,
            flushes,
            flush_words,
            accounts: accounts.unwrap_or_default(),
            lines: printed(said.collect()),
            verdict_count: verdict_count(&document.verdicts),
            verdicts: document.verdicts.iter().map(verdict_view).collect(),
            rules: explanations(&document.verdicts),
            root: printed(document.environment.root_would_add.clone()),
            // Line ends are what makes it readable; everything else is shown as on the terminal.
            workload: lines(&document.workload),
        }
    }
}
