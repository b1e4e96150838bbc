//! Lines across the drawing: the place of data when `write` has returned, and when `fsync` has.

use plumb_path::{Layer, WritePath};
use plumb_text::printable;

use crate::html::escape::{LETTER, cut, escape};
use crate::levels::{self, FsyncState, Levels};
use crate::wording;

const FONT: f64 = 12.0;

/// Line across the drawing, above `level`.
pub(super) struct Mark {
    /// Level below the line; the number of levels for the end.
    pub(super) level: usize,
    class: &'static str,
    text: String,
}

impl Mark {
    /// Returns the line at `y` over the whole `width`, with its text above.
    pub(super) fn draw(&self, width: f64, y: f64) -> String {
        let text = cut(&self.text, width, FONT);
        format!(
            r#"<path class="mark {0}" d="M0 {1:.1}H{width}"/><rect class="plate" x="0" y="{2:.1}" width="{3:.0}" height="15"/><text class="label {0}" x="0" y="{4:.1}" font-size="12">{5}</text>"#,
            self.class,
            y + 5.0,
            y - 12.0,
            text.chars().count() as f64 * FONT * LETTER + 6.0,
            y,
            escape(&text)
        )
    }
}

/// Returns the lines of `path`, that of `write` first.
pub(super) fn marks(path: &WritePath, levels: &Levels) -> Vec<Mark> {
    let mut marks = Vec::new();
    if let Some((index, (level, _))) =
        levels::acknowledged_at(path).and_then(|index| Some((index, levels.position(index)?)))
    {
        let text = format!("write returns: data is in {}", called(&path.layers[index]));
        marks.push(Mark { level, class: "ack", text });
    }
    let below_all = levels.levels.len();
    let mark = match levels::synced(path) {
        FsyncState::Durable(index) => Mark {
            level: levels.position(index).map_or(below_all, |(level, _)| level),
            class: "durable",
            text: format!("fsync returns: data is durable in {}", printable(&path.layers[index].name)),
        },
        FsyncState::Lost => Mark {
            level: below_all,
            class: "never",
            text: "fsync returns: nothing is known to be durable".to_owned(),
        },
        FsyncState::NoWrites => {
            Mark { level: below_all, class: "open", text: "fsync returns: nothing can be written".to_owned() }
        }
        FsyncState::Unknown => Mark {
            level: first_unseen(path, levels).unwrap_or(below_all),
            class: "open",
            text: "fsync returns: what lies below cannot be seen".to_owned(),
        },
    };
    marks.push(mark);
    marks
}

/// Returns the first level whose inside is invisible.
fn first_unseen(path: &WritePath, levels: &Levels) -> Option<usize> {
    levels.levels.iter().position(|nodes| {
        nodes.iter().any(|node| wording::is_beyond_sight(path.layers[node.members[0]].kind))
    })
}

/// Returns the name of a layer within a sentence: `the page cache`, `vda`.
fn called(layer: &Layer) -> String {
    match layer.name.as_str() {
        "page cache" => "the page cache".to_owned(),
        name => printable(name),
    }
}
