//! What the template is filled with.

use askama::Template;

use super::chart_data::ChartData;
use super::chart_view::{self, CdfView, SeriesView};
use super::path_view::{PathView, path_view};
use super::verdict_view::{VerdictView, verdict_count, verdict_view};
use super::{accounts, chart_data, facts, glyph, sides, sync_table};
use crate::figures::masthead;
use crate::headline::Headline;
use crate::printable::{printable, shell_line, shell_word};
use crate::recording::CheckRecording;

/// All of a page: every field is ready to print.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    title: String,
    target: String,
    masthead: Vec<String>,
    headline: HeadlineView,
    incomplete: String,
    has_figures: bool,
    figures: Vec<facts::Figure>,
    path: PathView,
    sync: sync_table::SyncTable,
    cdf: CdfView,
    has_io: bool,
    io: Vec<sides::Load>,
    has_series: bool,
    series: Vec<SeriesView>,
    has_flushes: bool,
    flushes: Vec<sync_table::FlushRow>,
    has_accounts: bool,
    accounts: Vec<accounts::AccountRow>,
    verdict_count: String,
    verdicts: Vec<VerdictView>,
    no_verdicts: bool,
    command: String,
    seed: u64,
    facts: Vec<facts::Fact>,
    has_root: bool,
    root: Vec<String>,
    histogram_error: &'static str,
    css: &'static str,
    chart_css: &'static str,
    js: &'static str,
    chart_js: &'static str,
    chart_licence: &'static str,
    data: String,
}

struct HeadlineView {
    class: &'static str,
    glyph: String,
    label: &'static str,
    verdict: String,
    meaning: String,
}

impl Page {
    /// The page of `recording`.
    pub(super) fn of(recording: &CheckRecording) -> Self {
        let document = &recording.document;
        let headline = Headline::of(document);
        let target = printable(&document.target);
        let cdf = chart_view::cdf_lines(recording);
        let (series, phases) = chart_view::series(recording);
        let figures = facts::figures(document);
        let flushes = sync_table::flush_rows(&document.sync);
        let incomplete = headline
            .incomplete
            .as_deref()
            .map_or_else(String::new, |why| format!("Not complete: {}", printable(why)));
        let root: Vec<String> =
            document.environment.root_would_add.iter().map(|line| printable(line)).collect();
        let command = match document.environment.argv.as_slice() {
            [] => format!("plumb check {}", shell_word(&document.target)),
            argv => shell_line(argv),
        };
        Self {
            title: format!("{target} · plumb check"),
            masthead: masthead(&document.environment),
            headline: HeadlineView {
                class: headline.class(),
                glyph: glyph::severity(headline.severity),
                label: headline.label,
                verdict: printable(&headline.verdict),
                meaning: printable(&headline.meaning),
            },
            incomplete,
            has_figures: !figures.is_empty(),
            figures,
            path: path_view(&document.path),
            sync: sync_table::SyncTable::of(&document.sync),
            cdf: CdfView { present: !cdf.is_empty(), aria: chart_view::cdf_words(recording) },
            has_io: !document.io.is_empty(),
            io: sides::loads(&document.io),
            has_series: !series.is_empty(),
            series,
            has_flushes: !flushes.is_empty(),
            flushes,
            has_accounts: !document.accounting.is_empty(),
            accounts: accounts::rows(&document.accounting),
            verdict_count: verdict_count(&document.verdicts),
            verdicts: document.verdicts.iter().map(verdict_view).collect(),
            no_verdicts: document.verdicts.is_empty(),
            command,
            seed: document.environment.seed,
            facts: facts::facts(document),
            has_root: !root.is_empty(),
            root,
            histogram_error: "0.1%",
            css: include_str!("../../assets/report.css"),
            chart_css: include_str!("../../assets/uPlot.min.css"),
            js: include_str!("../../assets/report.js"),
            chart_js: include_str!("../../assets/uPlot.iife.min.js"),
            chart_licence: include_str!("../../assets/uPlot.LICENSE"),
            data: chart_data::embeddable(
                &serde_json::to_string(&ChartData { cdf, series: phases })
                    .unwrap_or_else(|_| r#"{"cdf":[],"series":[]}"#.to_owned()),
            ),
            target,
        }
    }
}
