//! What the template of a check is filled with.

use askama::Template;

use super::chart_data::ChartData;
use super::chart_view::{self, CdfView, SeriesView};
use super::frame::{Frame, Parts};
use super::path_view::{PathView, path_view};
use super::{accounts, facts, sides, sync_table};
use crate::headline::Headline;
use crate::printable::{printable, shell_line, shell_word};
use crate::recording::CheckRecording;

/// All of a page: every field is ready to print.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    frame: Frame,
    path: PathView,
    sync: sync_table::SyncTable,
    cdf: CdfView,
    has_io: bool,
    io: Vec<sides::Load>,
    has_series: bool,
    series_words: &'static str,
    series: Vec<SeriesView>,
    has_flushes: bool,
    flushes: Vec<sync_table::FlushRow>,
    has_accounts: bool,
    accounts: Vec<accounts::AccountRow>,
    has_root: bool,
    root: Vec<String>,
}

impl Page {
    /// The page of `recording`.
    pub(super) fn of(recording: &CheckRecording) -> Self {
        let document = &recording.document;
        let cdf = chart_view::cdf_lines(recording);
        let (series, phases) = chart_view::series(recording);
        let flushes = sync_table::flush_rows(&document.sync);
        let root: Vec<String> =
            document.environment.root_would_add.iter().map(|line| printable(line)).collect();
        let command = match document.environment.argv.as_slice() {
            [] => format!("plumb check {}", shell_word(&document.target)),
            argv => shell_line(argv),
        };
        let parts = Parts {
            what: "plumb check",
            target: printable(&document.target),
            masthead: crate::figures::masthead(
                document.environment.host.as_deref(),
                document.environment.kernel.as_deref(),
                &document.environment.started_at,
            ),
            figures: facts::figures(document),
            verdicts: &document.verdicts,
            command,
            seed: document.environment.seed,
            facts: facts::facts(document),
        };
        let present = !cdf.is_empty();
        let charts = ChartData { cdf, series: phases };
        Self {
            frame: Frame::of(parts, &Headline::of(document), &charts),
            path: path_view(&document.path),
            sync: sync_table::SyncTable::of(&document.sync),
            cdf: CdfView { present, aria: chart_view::cdf_words(recording) },
            has_io: !document.io.is_empty(),
            io: sides::loads(&document.io),
            has_series: !series.is_empty(),
            series_words: "Operations per second in each 100 ms of each phase. Every chart has its own scale, from zero.",
            series,
            has_flushes: !flushes.is_empty(),
            flushes,
            has_accounts: !document.accounting.is_empty(),
            accounts: accounts::rows(&document.accounting),
            has_root: !root.is_empty(),
            root,
        }
    }
}
