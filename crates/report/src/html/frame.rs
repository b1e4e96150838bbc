//! What every page has around its figures: head, verdicts, the line to run it again, scripts.

use plumb_path::Rule;

use super::chart_data::{self, Chart};
use super::glyph;
use super::verdict_view::{VerdictView, explanations, verdict_count, verdict_view};
use crate::document::RunDocument;
use crate::facts::{self, Fact, Figure};
use crate::figures::masthead;
use crate::headline::Headline;
use crate::printable::printable;

/// The frame of a page: every field is ready to print.
pub(super) struct Frame {
    /// `plumb check`.
    pub(super) what: &'static str,
    /// What it was done to.
    pub(super) target: String,
    /// Host and time.
    pub(super) masthead: Vec<String>,
    pub(super) headline: HeadlineView,
    /// Why the run is not complete; empty if it is.
    pub(super) incomplete: String,
    pub(super) figures: Vec<Figure>,
    pub(super) verdict_count: String,
    pub(super) verdicts: Vec<VerdictView>,
    /// What the rules of the verdicts mean.
    pub(super) rules: Vec<&'static Rule>,
    /// The command line.
    pub(super) command: String,
    pub(super) seed: u64,
    pub(super) facts: Vec<Fact>,
    pub(super) css: &'static str,
    pub(super) chart_css: &'static str,
    pub(super) js: &'static str,
    pub(super) chart_js: &'static str,
    pub(super) chart_licence: &'static str,
    /// What the charts are drawn from.
    pub(super) data: String,
}

/// The verdict in one sentence, and what it means.
pub(super) struct HeadlineView {
    pub(super) class: &'static str,
    pub(super) glyph: String,
    pub(super) label: &'static str,
    pub(super) verdict: String,
    pub(super) meaning: String,
}

impl Frame {
    /// The frame around the page of `document`.
    pub(super) fn of(document: &RunDocument, charts: &[Chart]) -> Self {
        let headline = Headline::of(document);
        let incomplete = headline.incomplete.as_deref();
        Self {
            what: if document.is_check() { "plumb check" } else { "plumb load" },
            target: facts::places(document).join(", "),
            masthead: masthead(&document.environment),
            incomplete: incomplete
                .map_or_else(String::new, |why| format!("Not complete: {}", printable(why))),
            headline: HeadlineView {
                class: headline.class(),
                glyph: glyph::severity(headline.severity),
                label: headline.label,
                verdict: printable(&headline.verdict),
                meaning: printable(&headline.meaning),
            },
            figures: facts::figures(document),
            verdict_count: verdict_count(&document.verdicts),
            verdicts: document.verdicts.iter().map(verdict_view).collect(),
            rules: explanations(&document.verdicts),
            command: facts::command(document),
            seed: document.seed,
            facts: facts::facts(document),
            css: include_str!("../../assets/report.css"),
            chart_css: include_str!("../../assets/uPlot.min.css"),
            js: include_str!("../../assets/report.js"),
            chart_js: include_str!("../../assets/uPlot.iife.min.js"),
            chart_licence: include_str!("../../assets/uPlot.LICENSE"),
            data: chart_data::embeddable(&serde_json::to_string(charts).unwrap_or_else(|_| "[]".to_owned())),
        }
    }
}
