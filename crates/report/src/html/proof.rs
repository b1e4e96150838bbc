//! Page of a proof.

use askama::Template;

use super::diagram::Width;
use super::frame::Frame;
use super::{lanes, table};
use crate::document::ProofDocument;
use crate::document::proof::{Coverage, WindowResult};
use crate::proof;

/// Maximum number of windows shown individually in the strip. With more, each part of it shows the lowest
/// coverage of its windows.
const CELLS: usize = 120;
/// Maximum number of windows with a row in the table.
const ROWS: usize = 200;

/// Content of the page.
#[derive(Template)]
#[template(path = "proof.html")]
pub(super) struct ProofPage<'a> {
    frame: Frame,
    document: &'a ProofDocument,
    /// Table of windows, and the number of those left out.
    windows: (String, u64),
    /// Number of windows in a part of the strip.
    each: usize,
}

impl<'a> ProofPage<'a> {
    /// Returns the page of `document`.
    pub(super) fn new(document: &'a ProofDocument) -> Self {
        let (windows, left_out) = proof::windows(document, ROWS);
        Self {
            frame: Frame::new(proof::command(document), proof::outline(document), document.seed),
            document,
            windows: (table::table(&windows, ""), left_out),
            each: document.windows.len().div_ceil(CELLS).max(1),
        }
    }
}

/// Returns the strip of windows, `each` in a part. The height shows the coverage, and a mark below a failing
/// state.
fn strip(windows: &[WindowResult], each: &usize) -> String {
    let mut out = String::new();
    let cells = windows.chunks(*each);
    let count = cells.len().max(1);
    for (number, cell) in cells.enumerate() {
        let least = cell.iter().map(|window| window.coverage).min().unwrap_or_default();
        let height = match least {
            Coverage::Exhaustive => 24,
            Coverage::Bounded => 16,
            Coverage::Sampled => 8,
        };
        let mut bar = |class, y, height| {
            out.push_str(&format!(
                r#"<rect class="{class}" x="{number}" y="{y}" width=".86" height="{height}"/>"#
            ));
        };
        bar(proof::coverage_words(least), 24 - height, height);
        if cell.iter().any(|window| window.failing > 0) {
            bar("failing", 26, 8);
        }
    }
    format!(
        r#"<svg class="strip" viewBox="0 0 {count} 34" preserveAspectRatio="none" aria-hidden="true">{out}</svg>"#
    )
}
