//! What the template of the page is filled with.

use askama::Template;

use super::chart_data::ChartData;
use super::charts::{self, CdfView, SeriesView};
use super::frame::{Frame, Parts};
use super::path_view::{PathView, path_view};
use super::{accounts, facts, sides, sync_table};
use crate::document::RunRecording;
use crate::figures::masthead;
use crate::headline::Headline;
use crate::printable::{printable, shell_line, shell_word};
use crate::sentences;

/// All of a page: every field is ready to print.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page {
    frame: Frame,
    /// The drawings and layers of the write path; none if it is not known.
    path: Option<PathView>,
    has_methods: bool,
    sync: sync_table::SyncTable,
    cdf: CdfView,
    keys: Vec<Key>,
    io: Vec<sides::Load>,
    resolution: String,
    series_words: String,
    series: Vec<SeriesView>,
    flushes: Vec<sync_table::FlushRow>,
    accounts: Vec<accounts::AccountRow>,
    lines: Vec<String>,
    root: Vec<String>,
    workload: String,
}

/// What a line of the distribution chart is of.
struct Key {
    name: String,
    colour: String,
}

impl Page {
    /// The page of `recording`.
    pub(super) fn of(recording: &RunRecording) -> Self {
        let document = &recording.document;
        let cdf = charts::cdf_lines(recording);
        let (series, phases) = charts::series(recording);
        let what = if document.is_check() { "plumb check" } else { "plumb load" };
        let command = match document.environment.argv.as_slice() {
            [] => format!("{what} {}", shell_word(&document.names().join(" "))),
            argv => shell_line(argv),
        };
        let parts = Parts {
            what,
            target: printable(&document.names().join(", ")),
            masthead: masthead(&document.environment),
            figures: facts::figures(document),
            verdicts: &document.verdicts,
            command,
            seed: document.seed,
            facts: facts::facts(document),
        };
        let keys: Vec<Key> =
            cdf.iter().map(|line| Key { name: line.name.clone(), colour: line.colour.clone() }).collect();
        let sync = sync_table::SyncTable::of(document);
        let io = sides::targets(document);
        let flushes = sync_table::flush_rows(document);
        let said = sentences::lines(document).into_iter().chain(document.notes.iter().cloned());
        let lines: Vec<String> = said.map(|line| printable(&line)).collect();
        let root: Vec<String> =
            document.environment.root_would_add.iter().map(|line| printable(line)).collect();
        let charts = ChartData { cdf, series: phases };
        Self {
            frame: Frame::of(parts, &Headline::of(document), &charts),
            path: document.path.as_ref().map(path_view),
            has_methods: !sync.rows.is_empty() || !sync.notes.is_empty() || document.is_check(),
            sync,
            cdf: CdfView { present: !keys.is_empty(), aria: charts::cdf_words(recording) },
            keys,
            io,
            resolution: printable(&document.latency_resolution),
            series_words: charts::series_words(document),
            series,
            flushes,
            accounts: accounts::rows(&document.accounting),
            lines,
            root,
            // Line ends are what makes it readable; everything else is shown as on the terminal.
            workload: document.workload.lines().map(printable).collect::<Vec<_>>().join("\n"),
        }
    }
}
