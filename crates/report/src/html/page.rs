//! Content of the page's template.

use askama::Template;

use super::chart_data::Chart;
use super::charts;
use super::frame::Frame;
use super::glyph;
use super::path_view::{PathView, path_views};
use super::sections::lines;
use super::verdict_view::{explanations, verdict_count};
use super::{sides, table};
use crate::document::{RunDocument, RunRecording};
use crate::facts;
use crate::figures::masthead;
use crate::headline::{Headline, sentence};
use crate::levels::loses_synced;
use crate::{rules, sentences, tables, terminal, wording};

/// Number of time series of a load that are not folded: those of its first target.
const SERIES_SHOWN: usize = 4;

/// Content of the page.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page<'a> {
    frame: Frame,
    document: &'a RunDocument,
    /// Write paths, each with its drawings and layers.
    paths: Vec<PathView>,
    has_methods: bool,
    /// True if a sync makes nothing durable, so that its time is not the cost of a durable write.
    lost: bool,
    durable: String,
    /// Reasons why methods or targets were not measured, and why the storage side is unknown.
    unmeasured: Vec<String>,
    cdf: Option<Chart>,
    sides: String,
    series: Vec<Chart>,
    /// Further time series, folded.
    more_series: Vec<Chart>,
    flushes: String,
    flush_words: Vec<String>,
    accounts: String,
    lines: Vec<String>,
}

impl<'a> Page<'a> {
    /// Returns the page of `recording`.
    pub(super) fn new(recording: &'a RunRecording) -> Self {
        let document = &recording.document;
        let cdf = charts::distributions(recording);
        let mut series = charts::series(recording);
        let frame = Frame {
            what: if document.is_check() { "plumb check" } else { "plumb load" },
            target: facts::places(document).join(", "),
            masthead: masthead(&document.environment),
            headline: Some(Headline::new(document)),
            figures: facts::figures(document),
            command: facts::command(document),
            seed: Some(document.seed),
            facts: facts::facts(document),
            data: String::new(),
        };
        let frame = frame.drawing(cdf.iter().chain(&series));
        // A check is about durable writes, so its time series are folded.
        let shown = if document.is_check() { 0 } else { SERIES_SHOWN.min(series.len()) };
        let more_series = series.split_off(shown);
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
            frame,
            document,
            paths: path_views(document),
            has_methods: durable.is_some() || document.is_check(),
            lost: document.targets.iter().any(|target| loses_synced(document, target)),
            durable: durable.unwrap_or_default(),
            unmeasured,
            cdf,
            sides: sides::sides(document),
            series,
            more_series,
            flushes,
            flush_words,
            accounts: accounts.unwrap_or_default(),
            lines: said.collect(),
        }
    }
}
