//! The page of many hosts: its sections, as they are in every format.

use askama::Template;

use super::comparison::body;
use super::frame::Frame;
use crate::document::FleetDocument;
use crate::fleet;

/// All of a page.
#[derive(Template)]
#[template(path = "fleet.html")]
pub(super) struct FleetPage {
    frame: Frame,
    sections: Vec<(&'static str, String)>,
}

impl FleetPage {
    /// The page of `document`.
    pub(super) fn of(document: &FleetDocument) -> Self {
        let mut outline = fleet::outline(document);
        let sections = std::mem::take(&mut outline.sections);
        let shown = sections.iter().filter(|of| !of.items.is_empty());
        Self {
            sections: shown.map(|of| (of.title, body(of))).collect(),
            frame: Frame::of("plumb fleet", outline, document.seed),
        }
    }
}
