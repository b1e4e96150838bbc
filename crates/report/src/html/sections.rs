//! Pages that are their sections, as they are in every format: of many hosts, and of how something is.

use askama::Template;
use plumb_path::{Survey, WritePath};

use super::comparison::{section, sections};
use super::frame::Frame;
use super::path_view::path_view;
use crate::document::FleetDocument;
use crate::fleet;
use crate::headline::sentence;
use crate::outline::{Item, Page, Section};
use crate::printable::printable;
use crate::terminal::path_tree::path_table;
use crate::untorn;

/// All of a page.
#[derive(Template)]
#[template(path = "sections.html")]
pub(super) struct SectionsPage {
    frame: Frame,
    sections: Vec<(String, String)>,
    foot: &'static str,
}

impl SectionsPage {
    /// The page of many hosts.
    pub(super) fn of_fleet(document: &FleetDocument) -> Self {
        let mut outline = fleet::outline(document);
        Self {
            sections: sections(&mut outline),
            frame: Frame::of("plumb fleet", outline, document.seed),
            foot: "Percentiles of all hosts are those of all operations: the distributions are added, never averaged.",
        }
    }

    /// The page of a survey.
    pub(super) fn of_survey(survey: &Survey) -> Self {
        let sections = survey.paths.iter().enumerate().map(|(number, path)| surveyed(path, number));
        Self { sections: sections.collect(), frame: Frame::plain("plumb survey"), foot: "" }
    }

    /// The page of how something is.
    pub(super) fn of_page(page: &Page) -> Self {
        Self {
            sections: page.sections.iter().map(section).collect(),
            frame: Frame::plain(page.title),
            foot: "",
        }
    }
}

/// A write path: where synced data is durable, its drawings and layers, and what was found.
fn surveyed(path: &WritePath, number: usize) -> (String, String) {
    let view = path_view(path, number, "");
    let finding =
        |finding: &plumb_path::Finding| Item::Finding { finding: finding.clone(), about: Vec::new() };
    let mut items =
        vec![Item::text(&sentence(&path.durable_at.sentence)), Item::Table(path_table(path, true))];
    items.extend(untorn::lines(path).into_iter().map(Item::Line));
    items.extend(path.findings.iter().map(finding));
    let (title, words) = section(&Section::new(printable(&path.target), items));
    (title, format!("{}{}{words}", view.wide, view.narrow))
}
