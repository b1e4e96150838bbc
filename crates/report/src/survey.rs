//! A survey in words and tables, for the formats that show each path whole.

use plumb_path::{Survey, WritePath};

use crate::headline::sentence;
use crate::outline::{Item, Page, Section};
use crate::printable::printable;
use crate::terminal::path_tree::path_table;
use crate::{exposure, untorn};

/// Returns a section for each path.
pub(crate) fn page(survey: &Survey) -> Page {
    Page { title: "plumb survey", summary: None, sections: survey.paths.iter().map(section).collect() }
}

/// Returns where data is durable on a path, its layers, what a power cut takes, and its findings.
pub(crate) fn section(path: &WritePath) -> Section {
    let mut items =
        vec![Item::text(&sentence(&path.durable_at.sentence)), Item::Table(path_table(path, true))];
    items.extend(path.exposure.iter().flat_map(exposure::items));
    items.extend(untorn::lines(path).into_iter().map(Item::Line));
    items.extend(path.findings.iter().map(Item::finding));
    Section::new(printable(&path.target), items)
}
