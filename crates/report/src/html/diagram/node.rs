//! Node of the drawing: a layer, or several equal ones, with its states.

use plumb_path::{Cache, Flush, WritePath};
use plumb_text::printable;

use crate::html::escape::{BOLD, cut, escape};
use crate::html::glyph::{self, Sign};
use crate::levels::Node;
use crate::wording;

const FONT: f64 = 12.5;
const STATE_FONT: f64 = 11.8;
/// Minimum width of a state, including its sign.
const STATE: f64 = 116.0;

/// Position and size of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rect {
    /// Left edge of the node.
    pub(super) x: f64,
    /// Upper edge of the node.
    pub(super) y: f64,
    /// Horizontal size.
    pub(super) width: f64,
    /// Vertical size.
    pub(super) height: f64,
}

/// Layout of a node's words, depending on its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Name and states in one line.
    Line,
    /// States below the name.
    Two,
    /// States one below the other.
    Tower,
}

impl Shape {
    /// Returns the widest layout that fits.
    pub(super) fn for_width(width: f64) -> Self {
        match width {
            w if w >= 620.0 => Self::Line,
            w if w >= 330.0 => Self::Two,
            _ => Self::Tower,
        }
    }

    /// Returns the height from top to bottom.
    pub(super) const fn height(self) -> f64 {
        match self {
            Self::Line => 42.0,
            Self::Two => 58.0,
            Self::Tower => 106.0,
        }
    }
}

/// Adds `node` at `rect`. `anchor` returns the ID of the element with the evidence of a layer.
pub(super) fn draw(
    out: &mut String,
    path: &WritePath,
    node: &Node,
    rect: Rect,
    shape: Shape,
    anchor: impl Fn(usize) -> String,
) {
    let first = node.members[0];
    let layer = &path.layers[first];
    let Rect { x, y, width, height } = rect;
    let mut class = format!("node {}", wording::cache(layer.cache));
    if layer.flush == Flush::Dropped {
        class.push_str(" drops");
    }
    if wording::is_beyond_sight(layer.kind) {
        class.push_str(" open");
    }
    out.push_str(&format!(r##"<a href="#{}"><g class="{class}">"##, anchor(first)));
    out.push_str(&format!("<title>{}</title>", escape(&hover(path, node))));
    if node.members.len() > 1 {
        out.push_str(&format!(
            r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{height:.1}" rx="2"/>"#,
            x + 5.0,
            y + 5.0,
            width - 5.0
        ));
    }
    let body = if node.members.len() > 1 { width - 5.0 } else { width };
    out.push_str(&format!(
        r#"<rect class="body" x="{x:.1}" y="{y:.1}" width="{body:.1}" height="{height:.1}" rx="2"/>"#
    ));
    let name = match node.members.len() {
        1 => printable(&layer.name),
        n => format!("{n} × {}", printable(&layer.name)),
    };
    let kind = match node.members.len() {
        1 => wording::kind(layer.kind).to_owned(),
        _ => node
            .members
            .iter()
            .map(|member| printable(&path.layers[*member].name))
            .collect::<Vec<_>>()
            .join(" "),
    };
    let kind = if name.starts_with(&kind) { String::new() } else { kind };
    words(out, shape, rect, &name, &kind, glyph::states(layer));
    out.push_str("</g></a>");
}

/// Draws the words within a node.
fn words(out: &mut String, shape: Shape, rect: Rect, name: &str, kind: &str, signs: [Sign; 3]) {
    let Rect { x, y, width, .. } = rect;
    let (left, inner) = (x + 12.0, width - 24.0);
    let mut put = |x: f64, y: f64, class: &str, size: f64, text: &str| {
        out.push_str(&format!(
            r#"<text x="{x:.1}" y="{y:.1}" class="{class}" font-size="{size}">{}</text>"#,
            escape(text)
        ));
    };
    let state_at: [(f64, f64); 3] = match shape {
        Shape::Line => {
            let name = cut(name, if kind.is_empty() { width - 452.0 } else { 260.0 }, 14.0);
            put(left, y + 26.0, "label", 14.0, &name);
            let after = left + name.chars().count() as f64 * 14.0 * BOLD + 10.0;
            put(after, y + 26.0, "soft", FONT, &cut(kind, x + width - 428.0 - after, FONT));
            let from = x + width - 416.0;
            [(from, y + 15.0), (from + 142.0, y + 15.0), (from + 290.0, y + 15.0)]
        }
        Shape::Two => {
            let name = cut(name, if kind.is_empty() { inner } else { inner * 0.55 }, 14.0);
            put(left, y + 22.0, "label", 14.0, &name);
            let after = left + name.chars().count() as f64 * 14.0 * BOLD + 8.0;
            put(after, y + 22.0, "soft", FONT, &cut(kind, x + width - 12.0 - after, FONT));
            let step = (inner - STATE * 3.0).max(0.0) / 3.0 + STATE;
            [(left, y + 35.0), (left + step, y + 35.0), (left + 2.0 * step + 8.0, y + 35.0)]
        }
        Shape::Tower => {
            put(left, y + 20.0, "label", 13.5, &cut(name, inner, 13.5));
            put(left, y + 37.0, "soft", 11.5, &cut(kind, inner, 11.5));
            [(left, y + 47.0), (left, y + 65.0), (left, y + 83.0)]
        }
    };
    for (sign, (x, y)) in signs.iter().zip(state_at) {
        out.push_str(&sign.at(x, y));
        out.push_str(&format!(
            r#"<text x="{:.1}" y="{:.1}" class="{}" font-size="{STATE_FONT}">{} {}</text>"#,
            x + 16.0,
            y + 10.2,
            sign.class,
            sign.of,
            sign.word
        ));
    }
}

/// Returns the tooltip of a node.
fn hover(path: &WritePath, node: &Node) -> String {
    let layer = &path.layers[node.members[0]];
    let names: Vec<String> =
        node.members.iter().map(|member| printable(&path.layers[*member].name)).collect();
    let mut text = format!(
        "{}: {}\ncache {}, flush {}, FUA {}",
        names.join(", "),
        wording::kind(layer.kind),
        wording::cache(layer.cache),
        wording::flush(layer.flush),
        wording::fua(layer)
    );
    if layer.cache == Cache::Volatile {
        text.push_str("\nholds acknowledged data that a power cut empties");
    }
    for evidence in layer.evidence.iter().take(6) {
        text.push_str(&format!(
            "\n{} = {}: {}",
            printable(&evidence.source),
            printable(&evidence.value),
            evidence.means
        ));
    }
    text
}
