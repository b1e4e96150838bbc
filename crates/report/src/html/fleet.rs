//! The page of many hosts: its sections, as they are in every format.

use askama::Template;

use super::comparison::sections;
use super::frame::Frame;
use crate::document::FleetDocument;
use crate::fleet;

/// All of a page.
#[derive(Template)]
#[template(path = "fleet.html")]
pub(super) struct FleetPage {
    frame: Frame,
    sections: Vec<(String, String)>,
}

impl FleetPage {
    /// The page of `document`.
    pub(super) fn of(document: &FleetDocument) -> Self {
        let mut outline = fleet::outline(document);
        Self { sections: sections(&mut outline), frame: Frame::of("plumb fleet", outline, document.seed) }
    }
}
