//! The write path as a drawing: layers as rooms from the application down to the drive, branches side by side.
//!
//! A pipe between rooms is the way of a flush: whole where it arrives, grey where a layer does not say, dotted where
//! it ended above. A line across marks the room in which data is when `write` has returned, and the room in which it
//! is durable when `fsync` has. Two widths are drawn, for a desk and for a phone; the page shows one.

mod mark;
mod room;
mod text;

use plumb_path::{Flush, WritePath};

use self::mark::marks;
use self::room::{Place, Shape};
use self::text::escape;
use crate::floors::{Arrival, Floors};
use crate::printable::printable;

/// The width that is drawn, in user units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::html) enum Width {
    /// For a desk and for paper.
    Wide,
    /// For a phone.
    Narrow,
}

impl Width {
    const fn units(self) -> f64 {
        match self {
            Self::Wide => 860.0,
            Self::Narrow => 372.0,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

const GAP: f64 = 24.0;
const MARK: f64 = 27.0;
const BETWEEN: f64 = 12.0;
const ROOM_MIN: f64 = 112.0;

/// The drawing of `path`; `anchor` names the page's element with the evidence of a layer.
pub(in crate::html) fn draw(path: &WritePath, width: Width, anchor: impl Fn(usize) -> String) -> String {
    let floors = Floors::of(path);
    let marks = marks(path, &floors);
    let mut places: Vec<Option<Place>> = vec![None; path.layers.len()];
    let (mut rooms, mut lines, mut y) = (String::new(), String::new(), 2.0);
    let per_row = ((width.units() + BETWEEN) / (ROOM_MIN + BETWEEN)).floor().max(1.0) as usize;
    for (floor, on_floor) in floors.floors.iter().enumerate() {
        let here = marks.iter().filter(|mark| mark.floor == floor);
        y += if floor > 0 { GAP } else { 0.0 };
        for mark in here {
            lines.push_str(&mark.draw(width.units(), y + 12.0));
            y += MARK;
        }
        for row in on_floor.chunks(per_row) {
            let each = (width.units() - 2.0 - BETWEEN * (row.len() - 1) as f64) / row.len() as f64;
            let shape = Shape::for_width(each);
            for (column, room) in row.iter().enumerate() {
                let place = Place {
                    x: 1.0 + column as f64 * (each + BETWEEN),
                    y,
                    width: each,
                    height: shape.height(),
                };
                room.members.iter().for_each(|member| places[*member] = Some(place));
                room::draw(&mut rooms, path, room, place, shape, &anchor);
            }
            y += shape.height() + BETWEEN;
        }
        y -= BETWEEN;
    }
    for mark in marks.iter().filter(|mark| mark.floor >= floors.floors.len()) {
        lines.push_str(&mark.draw(width.units(), y + GAP));
        y += GAP + 8.0;
    }
    let pipes = draw_pipes(path, &floors, &places);
    format!(
        r#"<svg class="path {}" viewBox="0 0 {} {:.0}" role="group" aria-label="{}">{pipes}{lines}{rooms}</svg>"#,
        width.class(),
        width.units(),
        y + 4.0,
        escape(&format!("The write path of {}, from the application down", printable(&path.target)))
    )
}

fn draw_pipes(path: &WritePath, floors: &Floors, places: &[Option<Place>]) -> String {
    let mut drawn = Vec::new();
    let mut out = String::new();
    for (index, layer) in path.layers.iter().enumerate() {
        let arrival = match layer.flush {
            Flush::Absorbed | Flush::Dropped => Arrival::No,
            Flush::Unknown => Arrival::Unsure,
            Flush::Forwarded => floors
                .place(index)
                .map_or(Arrival::Unsure, |(floor, room)| floors.floors[floor][room].arrival),
        };
        for child in &floors.below[index] {
            let (Some(from), Some(to)) = (places[index], places[*child]) else { continue };
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
