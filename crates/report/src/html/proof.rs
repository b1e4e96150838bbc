//! What the template of a proof's page is filled with: every field is ready to print.

use askama::Template;

use super::diagram::Width;
use super::frame::Frame;
use super::{lanes, table};
use crate::document::ProofDocument;
use crate::document::proof::{Coverage, WindowResult};
use crate::figures::masthead;
use crate::headline::{capital, sentence};
use crate::printable::{printable, shell_line};
use crate::proof;

/// At most so many windows stand one by one in the strip; of more, each part of it shows the least that is true of all of its windows.
const CELLS: usize = 120;
/// At most so many windows are rows of the table.
const ROWS: usize = 200;

/// All of a page.
#[derive(Template)]
#[template(path = "proof.html")]
pub(super) struct ProofPage {
    frame: Frame,
    failures: Vec<FailureView>,
    /// What was explored, in one line.
    coverage: String,
    flushes: String,
    strip: String,
    /// How many windows a part of the strip stands for.
    each: usize,
    windows: String,
    left_out: usize,
    profiles: String,
    not_proved: Vec<String>,
    notes: Vec<String>,
}

/// A way to fail.
struct FailureView {
    class: &'static str,
    states: u64,
    case: String,
    words: String,
    /// What to do; empty if nothing was found.
    change: String,
    replay: String,
    wide: String,
    narrow: String,
}

impl ProofPage {
    /// The page of `document`.
    pub(super) fn of(document: &ProofDocument) -> Self {
        let printed = |lines: &[String]| lines.iter().map(|line| printable(line)).collect::<Vec<_>>();
        let failures = document.failures.iter().map(|failure| FailureView {
            class: proof::class(failure.class),
            states: failure.states,
            case: capital(&sentence(&proof::case(&failure.minimal))),
            words: proof::words(failure),
            change: failure.change.as_ref().map(proof::change).unwrap_or_default(),
            replay: printable(&failure.replay),
            wide: lanes::draw(&failure.minimal, Width::Wide),
            narrow: lanes::draw(&failure.minimal, Width::Narrow),
        });
        let (windows, left_out) = proof::windows(document, ROWS);
        let each = document.windows.len().div_ceil(CELLS).max(1);
        let headline = proof::headline(document);
        Self {
            failures: failures.collect(),
            coverage: headline.quality.clone(),
            frame: Frame {
                what: "plumb prove app",
                target: printable(&document.subject),
                masthead: masthead(&document.environment),
                headline,
                figures: proof::figures(document),
                command: shell_line(&document.environment.argv),
                seed: document.seed,
                facts: proof::facts(document),
                data: "[]".to_owned(),
            },
            flushes: proof::flushes(document).unwrap_or_default(),
            strip: strip(&document.windows, each),
            each,
            windows: table::table(&windows, ""),
            left_out,
            profiles: proof::profiles(document)
                .map_or_else(String::new, |profiles| table::table(&profiles, "")),
            not_proved: printed(&document.not_proved_because),
            notes: printed(&document.notes),
        }
    }
}

/// The windows side by side: the higher, the more of it was explored; a mark below those with a state that fails.
fn strip(windows: &[WindowResult], each: usize) -> String {
    let mut out = String::new();
    let cells = windows.chunks(each);
    let count = cells.len();
    for (number, cell) in cells.enumerate() {
        let least = cell.iter().map(|window| window.coverage).min().unwrap_or_default();
        let height = match least {
            Coverage::Exhaustive => 24,
            Coverage::Bounded => 16,
            Coverage::Sampled => 8,
        };
        let words = proof::coverage_words(least);
        let (y, failing) = (24 - height, cell.iter().map(|window| window.failing).sum::<u64>());
        out.push_str(&format!(
            r#"<rect class="{words}" x="{number}" y="{y}" width=".86" height="{height}"/>"#
        ));
        if failing > 0 {
            out.push_str(&format!(r#"<rect class="failing" x="{number}" y="26" width=".86" height="8"/>"#));
        }
    }
    format!(
        r#"<svg class="strip" viewBox="0 0 {} 34" preserveAspectRatio="none" aria-hidden="true">{out}</svg>"#,
        count.max(1)
    )
}
