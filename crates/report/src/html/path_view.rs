//! The write paths in the page: two drawings of each, and the evidence for each layer below them.

use plumb_path::{Evidence, WritePath};
use plumb_text::printable;

use super::diagram::{self, Width};
use super::glyph::{self, Sign};
use crate::document::RunDocument;
use crate::levels::as_measured;
use crate::wording;

pub(super) struct PathView {
    /// The targets that it is beneath; empty if there is only one path.
    pub(super) targets: String,
    pub(super) wide: String,
    pub(super) narrow: String,
    pub(super) layers: Vec<LayerView>,
}

pub(super) struct LayerView {
    pub(super) anchor: String,
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) identity: String,
    pub(super) states: [Sign; 3],
    /// Each is ready to print.
    pub(super) evidence: Vec<Evidence>,
    pub(super) gist: String,
}

/// Returns the paths of a run, each once.
pub(super) fn path_views(document: &RunDocument) -> Vec<PathView> {
    if document.paths.is_empty() {
        return document.path.iter().map(|path| path_view(&as_measured(path, document), 0, "")).collect();
    }
    let several = document.paths.len() > 1;
    let named = document
        .paths
        .iter()
        .map(|one| (&one.path, if several { one.targets.join(", ") } else { String::new() }));
    let view = |(number, (path, targets)): (usize, (&WritePath, String))| {
        path_view(&as_measured(path, document), number, &targets)
    };
    named.enumerate().map(view).collect()
}

pub(super) fn path_view(path: &WritePath, number: usize, targets: &str) -> PathView {
    let anchor = |index: usize| format!("layer-{number}-{index}");
    let layers = path
        .layers
        .iter()
        .enumerate()
        .map(|(index, layer)| LayerView {
            anchor: anchor(index),
            name: printable(&layer.name),
            kind: wording::kind(layer.kind),
            identity: layer.identity.as_deref().map(printable).unwrap_or_default(),
            states: [glyph::cache(layer.cache), glyph::flush(layer.flush), glyph::fua(layer)],
            gist: layer.evidence.iter().map(|line| printable(&line.means)).collect::<Vec<_>>().join(" · "),
            evidence: layer
                .evidence
                .iter()
                .map(|evidence| Evidence {
                    source: printable(&evidence.source),
                    value: printable(&evidence.value),
                    means: printable(&evidence.means),
                })
                .collect(),
        })
        .collect();
    PathView {
        targets: printable(targets),
        wide: diagram::draw(path, Width::Wide, anchor),
        narrow: diagram::draw(path, Width::Narrow, anchor),
        layers,
    }
}
