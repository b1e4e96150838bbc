//! The write path in the page: two drawings, and the evidence for each layer below them.

use plumb_path::WritePath;

use super::diagram::{self, Width};
use super::glyph;
use crate::printable::printable;
use crate::wording;

pub(super) struct PathView {
    pub(super) wide: String,
    pub(super) narrow: String,
    pub(super) layers: Vec<LayerView>,
}

pub(super) struct LayerView {
    pub(super) anchor: String,
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) identity: String,
    pub(super) states: Vec<StateView>,
    pub(super) evidence: Vec<EvidenceView>,
    pub(super) gist: String,
}

pub(super) struct StateView {
    pub(super) class: &'static str,
    pub(super) glyph: String,
    pub(super) text: String,
}

pub(super) struct EvidenceView {
    pub(super) source: String,
    pub(super) value: String,
    pub(super) means: String,
}

fn anchor(index: usize) -> String {
    format!("layer-{index}")
}

pub(super) fn path_view(path: &WritePath) -> PathView {
    let layers = path
        .layers
        .iter()
        .enumerate()
        .map(|(index, layer)| LayerView {
            anchor: anchor(index),
            name: printable(&layer.name),
            kind: wording::kind(layer.kind),
            identity: layer.identity.as_deref().map(printable).unwrap_or_default(),
            states: [glyph::cache(layer.cache), glyph::flush(layer.flush), glyph::fua(layer)]
                .iter()
                .map(|sign| StateView {
                    class: sign.class,
                    glyph: sign.icon(),
                    text: format!("{} {}", sign.of, sign.word),
                })
                .collect(),
            gist: layer.evidence.iter().map(|line| printable(&line.means)).collect::<Vec<_>>().join(" · "),
            evidence: layer
                .evidence
                .iter()
                .map(|evidence| EvidenceView {
                    source: printable(&evidence.source),
                    value: printable(&evidence.value),
                    means: printable(&evidence.means),
                })
                .collect(),
        })
        .collect();
    PathView {
        wide: diagram::draw(path, Width::Wide, anchor),
        narrow: diagram::draw(path, Width::Narrow, anchor),
        layers,
    }
}
