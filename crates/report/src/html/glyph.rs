//! Signs of the page. Each state has its own shape, so that colour is never the only difference.
//!
//! Shapes are strokes in a box of 12 by 12, coloured by `report.css`.

use plumb_path::{Cache, Flush, Fua, Layer, Severity};

use crate::quantity::NONE;
use crate::wording;

/// Drawn state of a layer: a shape, a colour class and a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    /// Class for the colour.
    pub(super) class: &'static str,
    /// Subject of the state: `cache`, `flush`, `FUA`.
    pub(super) of: &'static str,
    /// Word for the state.
    pub(super) word: &'static str,
    shape: &'static str,
}

const RING: &str = r#"<circle cx="6" cy="6" r="4.2"/>"#;
const HALF: &str = r#"<circle cx="6" cy="6" r="4.2"/><path class="solid" d="M1.8 6a4.2 4.2 0 0 0 8.4 0z"/>"#;
const SHIELD: &str = r#"<path d="M6 1.2l4.2 1.5v3c0 2.5-1.7 4.2-4.2 5.1-2.5-.9-4.2-2.6-4.2-5.1v-3zM4.2 5.9l1.4 1.4 2.4-2.6"/>"#;
const QUESTION: &str =
    r#"<path d="M4 4.3a2 2 0 1 1 2.9 1.9c-.6.3-.9.7-.9 1.4"/><circle class="solid" cx="6" cy="10" r=".95"/>"#;
const DOWN: &str = r#"<path d="M6 1.5v8.4M2.8 6.8L6 10l3.2-3.2"/>"#;
const BAR: &str = r#"<path d="M6 1.2v5.6M3.4 4.3L6 6.9l2.6-2.6M2 10.3h8"/>"#;
const DASH: &str = r#"<path d="M3 6h6"/>"#;
const CROSS: &str = r#"<path d="M2.6 2.6l6.8 6.8M9.4 2.6L2.6 9.4"/>"#;
const BEND: &str = r#"<path d="M3 1.5v5.6h6.2M6.6 4.5l2.6 2.6-2.6 2.6"/>"#;
const OCTAGON: &str = r#"<path d="M4 1.2h4L10.8 4v4L8 10.8H4L1.2 8V4zM6 3.6v2.9"/><circle class="solid" cx="6" cy="8.5" r=".8"/>"#;
const TRIANGLE: &str =
    r#"<path d="M6 1.4l4.9 9H1.1zM6 4.8v2.4"/><circle class="solid" cx="6" cy="8.9" r=".75"/>"#;
const LETTER_I: &str =
    r#"<circle cx="6" cy="6" r="4.8"/><path d="M6 5.6v2.9"/><circle class="solid" cx="6" cy="3.7" r=".8"/>"#;

/// Returns the signs of `layer` for data, a flush and FUA.
pub(super) fn states(layer: &Layer) -> [Sign; 3] {
    [cache(layer.cache), flush(layer.flush), fua(layer)]
}

/// Returns the sign of a cache.
const fn cache(cache: Cache) -> Sign {
    let (class, shape) = match cache {
        Cache::None => ("st-still", RING),
        Cache::Volatile => ("st-held", HALF),
        Cache::Protected => ("st-good", SHIELD),
        Cache::Unknown => ("st-open", QUESTION),
    };
    Sign { class, of: "cache", word: wording::cache(cache), shape }
}

/// Returns the symbol for the fate of a FLUSH.
const fn flush(flush: Flush) -> Sign {
    let (class, shape) = match flush {
        Flush::Forwarded => ("st-flow", DOWN),
        Flush::Absorbed => ("st-still", BAR),
        Flush::Dropped => ("st-bad", CROSS),
        Flush::Unknown => ("st-open", QUESTION),
    };
    Sign { class, of: "flush", word: wording::flush(flush), shape }
}

/// Returns the sign for the fate of FUA at `layer`.
fn fua(layer: &Layer) -> Sign {
    let (class, shape) = match layer.fua {
        // A layer without FUA forwards none.
        _ if wording::fua(layer) == NONE => ("st-still", DASH),
        Fua::Dropped if layer.flush == Flush::Absorbed => ("st-still", BAR),
        Fua::Native => ("st-flow", DOWN),
        Fua::Emulated => ("st-flow", BEND),
        Fua::Dropped => ("st-bad", CROSS),
        Fua::Unknown => ("st-open", QUESTION),
    };
    Sign { class, of: "FUA", word: wording::fua(layer), shape }
}

/// Returns the sign of a severity as an image for the page; a ring for `None`.
pub(super) fn severity<'a>(severity: impl Into<Option<&'a Severity>>) -> String {
    icon(match severity.into() {
        Some(Severity::Danger) => OCTAGON,
        Some(Severity::Warning) => TRIANGLE,
        Some(Severity::Info) => LETTER_I,
        None => RING,
    })
}

impl Sign {
    /// Returns the sign as an image for the page.
    pub(super) fn icon(&self) -> String {
        icon(self.shape)
    }

    /// Returns the sign within a drawing, with the upper left corner of its box at `x`, `y`.
    pub(super) fn at(&self, x: f64, y: f64) -> String {
        format!(r#"<g class="glyph {}" transform="translate({x:.1} {y:.1})">{}</g>"#, self.class, self.shape)
    }
}

fn icon(shape: &str) -> String {
    format!(r#"<svg class="glyph" viewBox="0 0 12 12" aria-hidden="true">{shape}</svg>"#)
}
