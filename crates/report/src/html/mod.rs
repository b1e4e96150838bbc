//! The page: one file that opens without a network, to read and to send on.
//!
//! All text and every figure is made here; the script only draws charts and switches between light and dark. The
//! page's own policy forbids every request. Whatever came from outside (paths, labels) is escaped by the template, in
//! the drawing, or as JSON.

mod chart_data;
mod charts;
mod diagram;
mod escape;
mod frame;
mod glyph;
mod page;
mod path_view;
mod sides;
mod style;
mod table;
mod verdict_view;

use askama::Template;

use self::page::Page;
use crate::document::RunRecording;

/// The page of a recording.
///
/// # Errors
/// If the template cannot be rendered, which formatting into memory does not do.
pub fn page(recording: &RunRecording) -> Result<String, askama::Error> {
    let mut page = Page::of(recording).render()?;
    page.push('\n');
    Ok(page)
}
