//! Write path as a drawing: layers as nodes from the application down to the drive, branches side by side.
//!
//! A pipe between nodes is the path of a flush: solid where it arrives, grey where a layer does not report
//! it, dotted where it ended above. A line across marks the node that holds data when `write` has returned,
//! and the node in which it is durable when `fsync` has. Two widths are drawn, for a wide screen and for a
//! phone; the page shows one of them.

mod mark;
mod node;

use plumb_path::{Flush, WritePath};
use plumb_text::printable;

use self::mark::marks;
use self::node::{Rect, Shape};
use crate::html::escape::escape;
use crate::levels::{Arrival, Levels};

/// Width of the drawing, in user units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::html) enum Width {
    /// Layout for a wide screen and for paper.
    Wide,
    /// Layout for a phone.
    Narrow,
}

impl Width {
    /// Returns the width in user units.
    pub(in crate::html) const fn units(self) -> f64 {
        match self {
            Self::Wide => 860.0,
            Self::Narrow => 372.0,
        }
    }

    /// Returns the CSS class by which the page shows this width.
    pub(in crate::html) const fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

const GAP: f64 = 24.0;
const MARK: f64 = 27.0;
const BETWEEN: f64 = 12.0;
const NODE_MIN: f64 = 112.0;

/// Returns the drawing of `path`; `anchor` names the page's element with the evidence of a layer.
pub(in crate::html) fn draw(path: &WritePath, width: Width, anchor: impl Fn(usize) -> String) -> String {
    let levels = Levels::new(path);
    let marks = marks(path, &levels);
    let mut rects: Vec<Option<Rect>> = vec![None; path.layers.len()];
    let (mut nodes, mut lines, mut y) = (String::new(), String::new(), 2.0);
    let per_row = ((width.units() + BETWEEN) / (NODE_MIN + BETWEEN)).floor().max(1.0) as usize;
    for (level, on_floor) in levels.levels.iter().enumerate() {
        let here = marks.iter().filter(|mark| mark.level == level);
        y += if level > 0 { GAP } else { 0.0 };
        for mark in here {
            lines.push_str(&mark.draw(width.units(), y + 12.0));
            y += MARK;
        }
        for row in on_floor.chunks(per_row) {
            let each = (width.units() - 2.0 - BETWEEN * (row.len() - 1) as f64) / row.len() as f64;
            let shape = Shape::for_width(each);
            for (column, node) in row.iter().enumerate() {
                let rect = Rect {
                    x: 1.0 + column as f64 * (each + BETWEEN),
                    y,
                    width: each,
                    height: shape.height(),
                };
                node.members.iter().for_each(|member| rects[*member] = Some(rect));
                node::draw(&mut nodes, path, node, rect, shape, &anchor);
            }
            y += shape.height() + BETWEEN;
        }
        y -= BETWEEN;
    }
    for mark in marks.iter().filter(|mark| mark.level >= levels.levels.len()) {
        lines.push_str(&mark.draw(width.units(), y + GAP));
        y += GAP + 8.0;
    }
    let pipes = draw_pipes(path, &levels, &rects);
    format!(
        r#"<svg class="path {}" viewBox="0 0 {} {:.0}" role="group" aria-label="{}">{pipes}{lines}{nodes}</svg>"#,
        width.class(),
        width.units(),
        y + 4.0,
        escape(&format!("The write path of {}, from the application down", printable(&path.target)))
    )
}

fn draw_pipes(path: &WritePath, levels: &Levels, rects: &[Option<Rect>]) -> String {
    let mut drawn = Vec::new();
    let mut out = String::new();
    for (index, layer) in path.layers.iter().enumerate() {
        let arrival = match layer.flush {
            Flush::Absorbed | Flush::Dropped => Arrival::No,
            Flush::Unknown => Arrival::Unsure,
            Flush::Forwarded => levels
                .position(index)
                .map_or(Arrival::Unsure, |(level, node)| levels.levels[level][node].arrival),
        };
        for child in &levels.below[index] {
            let (Some(from), Some(to)) = (rects[index], rects[*child]) else { continue };
            let (x1, y1) = (from.x + from.width / 2.0, from.y + from.height);
            let (x2, y2) = (to.x + to.width / 2.0, to.y);
            let key = format!("{x1:.0},{y1:.0},{x2:.0},{y2:.0}");
            if drawn.contains(&key) {
                continue;
            }
            drawn.push(key);
            let class = match arrival {
                Arrival::Yes => "pipe",
                Arrival::Unsure => "pipe unsure",
                Arrival::No => "pipe dry",
            };
            out.push_str(&format!(
                r#"<path class="{class}" d="M{x1:.1} {y1:.1}V{:.1}H{x2:.1}V{y2:.1}"/>"#,
                y1 + 9.0
            ));
            if arrival != Arrival::No {
                let head = if arrival == Arrival::Yes { "head" } else { "head unsure" };
                out.push_str(&format!(
                    r#"<path class="{head}" d="M{:.1} {:.1}h8l-4 7z"/>"#,
                    x2 - 4.0,
                    y2 - 8.0
                ));
            }
        }
    }
    out
}
