//! Frame of every page: head, the command to run it again, scripts.

use plumb_text::printable;

use super::chart_data::{Chart, embeddable};
use super::escape::prose;
use crate::facts::{Fact, Figure};
use crate::figures::masthead;
use crate::headline::Headline;
use crate::outline::Outline;
use crate::printable::shell_line;

const CSS: &str = include_str!("../../assets/report.css");
const JS: &str = include_str!("../../assets/report.js");
const CHART_CSS: &str = include_str!("../../assets/uPlot.min.css");
const CHART_JS: &str = include_str!("../../assets/uPlot.iife.min.js");
const CHART_LICENCE: &str = include_str!("../../assets/uPlot.LICENSE");

/// Frame of a page.
#[derive(Default)]
pub(super) struct Frame {
    /// Command, such as `plumb check`.
    pub(super) what: &'static str,
    /// Target of the command, ready to print.
    pub(super) target: String,
    /// Host and time, ready to print.
    pub(super) masthead: Vec<String>,
    /// Verdict of a run.
    pub(super) headline: Option<Headline>,
    pub(super) figures: Vec<Figure>,
    /// Command line, ready to print; empty if it is not recorded.
    pub(super) command: String,
    /// Seed of all random choices, if there were any.
    pub(super) seed: Option<u64>,
    pub(super) facts: Vec<Fact>,
    /// Data of the charts, as JSON.
    pub(super) data: String,
}

impl Frame {
    /// Returns the frame of a report without charts drawn by a script.
    pub(super) fn new(what: &'static str, outline: Outline<'_>, seed: impl Into<Option<u64>>) -> Self {
        Self {
            what,
            target: printable(outline.of),
            masthead: masthead(outline.environment),
            headline: Some(outline.headline),
            figures: outline.figures,
            command: shell_line(&outline.environment.argv),
            seed: seed.into(),
            facts: outline.facts,
            data: "[]".to_owned(),
        }
    }

    /// Returns the frame of a page without a run, which has only a title.
    pub(super) fn plain(what: &'static str) -> Self {
        Self { what, data: "[]".to_owned(), ..Self::default() }
    }

    /// Adds `charts` drawn by a script.
    pub(super) fn drawing<'c>(self, charts: impl IntoIterator<Item = &'c Chart>) -> Self {
        let charts: Vec<&Chart> = charts.into_iter().collect();
        let data = serde_json::to_string(&charts).unwrap_or_else(|_| "[]".to_owned());
        Self { data: embeddable(&data), ..self }
    }

    /// Returns the styles of the page, those of the charts only if there are charts.
    pub(super) fn css(&self) -> [&'static str; 2] {
        [if self.has_charts() { CHART_CSS } else { "" }, CSS]
    }

    pub(super) fn scripts(&self) -> String {
        let charts = match self.has_charts() {
            true => format!("<script>/*\n{CHART_LICENCE}\n*/\n{CHART_JS}</script>\n"),
            false => String::new(),
        };
        format!("{charts}<script>{JS}</script>")
    }

    fn has_charts(&self) -> bool {
        self.data != "[]"
    }
}

/// Returns the verdict of `headline` as elements.
pub(super) fn verdict(headline: &Headline) -> String {
    prose(printable(&headline.verdict)).split(' ').map(unbroken).collect::<Vec<_>>().join(" ")
}

/// Maximum length of a name that is kept on one line, in letters.
const NAME_MAX: usize = 16;

/// Returns a word, within an element that keeps it on one line if it is a short name with a hyphen
/// (`sas-15k`).
fn unbroken(word: &str) -> String {
    match word.contains('-') && !word.contains('<') && word.chars().count() <= NAME_MAX {
        true => format!(r#"<span class="name">{word}</span>"#),
        false => word.to_owned(),
    }
}
