//! What every page has around its figures: head, verdicts, the line to run it again, scripts.

use plumb_path::Finding;

use super::chart_data::{self, ChartData};
use super::facts::{Fact, Figure};
use super::glyph;
use super::verdict_view::{VerdictView, verdict_count, verdict_view};
use crate::headline::Headline;
use crate::printable::printable;

/// The frame of a page: every field is ready to print.
pub(super) struct Frame {
    /// Of the window.
    pub(super) title: String,
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
    /// The command line.
    pub(super) command: String,
    pub(super) seed: u64,
    pub(super) facts: Vec<Fact>,
    pub(super) histogram_error: &'static str,
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

/// What a frame is made from, beside the headline and the charts.
pub(super) struct Parts<'a> {
    pub(super) what: &'static str,
    pub(super) target: String,
    pub(super) masthead: Vec<String>,
    pub(super) figures: Vec<Figure>,
    pub(super) verdicts: &'a [Finding],
    pub(super) command: String,
    pub(super) seed: u64,
    pub(super) facts: Vec<Fact>,
}

impl Frame {
    /// The frame around a page.
    pub(super) fn of(parts: Parts<'_>, headline: &Headline, charts: &ChartData) -> Self {
        Self {
            title: format!("{} · {}", parts.target, parts.what),
            what: parts.what,
            target: parts.target,
            masthead: parts.masthead,
            incomplete: headline
                .incomplete
                .as_deref()
                .map_or_else(String::new, |why| format!("Not complete: {}", printable(why))),
            headline: HeadlineView {
                class: headline.class(),
                glyph: glyph::severity(headline.severity),
                label: headline.label,
                verdict: printable(&headline.verdict),
                meaning: printable(&headline.meaning),
            },
            figures: parts.figures,
            verdict_count: verdict_count(parts.verdicts),
            verdicts: parts.verdicts.iter().map(verdict_view).collect(),
            command: parts.command,
            seed: parts.seed,
            facts: parts.facts,
            histogram_error: "0.1%",
            css: include_str!("../../assets/report.css"),
            chart_css: include_str!("../../assets/uPlot.min.css"),
            js: include_str!("../../assets/report.js"),
            chart_js: include_str!("../../assets/uPlot.iife.min.js"),
            chart_licence: include_str!("../../assets/uPlot.LICENSE"),
            data: chart_data::embeddable(
                &serde_json::to_string(charts).unwrap_or_else(|_| r#"{"cdf":[],"series":[]}"#.to_owned()),
            ),
        }
    }
}
