//! Write paths in the page: two drawings of each, with the evidence for each layer below.

use plumb_path::WritePath;
use plumb_text::printable;

use super::diagram::{self, Width};
use crate::document::RunDocument;
use crate::levels::as_measured;

pub(super) struct PathView {
    /// Index of the path in the page.
    pub(super) number: usize,
    /// Targets above the path; empty if there is only one path.
    pub(super) targets: String,
    pub(super) path: WritePath,
}

impl PathView {
    /// Returns the ID of the element with the evidence of a layer.
    pub(super) fn anchor(&self, layer: &usize) -> String {
        format!("layer-{}-{layer}", self.number)
    }

    /// Draws the path for a wide screen and for a phone; the page shows one of them.
    pub(super) fn drawings(&self) -> [String; 2] {
        [Width::Wide, Width::Narrow]
            .map(|width| diagram::draw(&self.path, width, |index| self.anchor(&index)))
    }
}

/// Returns the paths of a run, each once.
pub(super) fn path_views(document: &RunDocument) -> Vec<PathView> {
    let view = |(number, (targets, path)): (usize, (String, &WritePath))| PathView {
        number,
        targets: printable(&targets),
        path: as_measured(path, document),
    };
    document.named_paths().into_iter().enumerate().map(view).collect()
}
