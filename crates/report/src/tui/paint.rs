//! Colours and boxes of the live view.

use ratatui::style::{Color, Modifier, Style as Paint};
use ratatui::widgets::Block;

use super::view::LiveView;

/// Colours of the lines, in the order of the targets, distinct on light and dark backgrounds.
const COLOURS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::Blue, Color::Red];

/// Returns a box with a title.
pub(super) fn frame_of(view: &LiveView, name: &'static str) -> Block<'static> {
    Block::bordered().title(name).border_style(ink(view, Paint::new().add_modifier(Modifier::DIM)))
}

/// Returns the colour of the target at `index`.
pub(super) fn colour_of(index: usize) -> Paint {
    Paint::new().fg(COLOURS[index % COLOURS.len()])
}

/// Returns `paint` if the view has colours, otherwise none.
pub(super) fn ink(view: &LiveView, paint: Paint) -> Paint {
    if view.style.colour { paint } else { Paint::new() }
}
