//! Survey for the formats that show each path whole.

use plumb_path::{Survey, WritePath};
use plumb_text::printable;
use serde::Serialize;

use crate::document::json::pretty;
use crate::headline::Headline;
use crate::outline::{Item, Page, Section};
use crate::terminal::path_tree::path_table;
use crate::{exposure, untorn};

/// The document of a survey, with the outcome of each path.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    kernel: Option<&'a str>,
    paths: Vec<JudgedPath<'a>>,
}

#[derive(Serialize)]
struct JudgedPath<'a> {
    #[serde(flatten)]
    path: &'a WritePath,
    level: &'static str,
    headline: String,
}

/// Returns the document as JSON.
pub(crate) fn to_json(survey: &Survey) -> Result<String, serde_json::Error> {
    let judged = |path| {
        let headline = Headline::of_path(path);
        JudgedPath { path, level: headline.level(&path.findings), headline: headline.in_document() }
    };
    let paths = survey.paths.iter().map(judged).collect();
    pretty(&Document { schema: &survey.schema, kernel: survey.kernel.as_deref(), paths })
}

/// Returns a section for each path.
pub(crate) fn page(survey: &Survey) -> Page {
    Page { title: "plumb survey", summary: None, sections: survey.paths.iter().map(section).collect() }
}

/// Returns the section of a path: where data is durable, its layers, the loss by a power cut, and its
/// findings.
pub(crate) fn section(path: &WritePath) -> Section {
    let headline = Headline::of_path(path);
    let verdict = format!("{}: {}", headline.label.to_uppercase(), headline.verdict);
    let said = [verdict, headline.meaning].into_iter().filter(|text| !text.is_empty());
    let mut items: Vec<Item> = said.map(|text| Item::text(&text)).collect();
    items.push(Item::Table(path_table(path, true)));
    items.extend(path.exposure.iter().flat_map(exposure::items));
    items.extend(untorn::lines(path).into_iter().map(Item::Line));
    items.extend(path.findings.iter().map(Item::finding));
    Section::new(printable(&path.target), items)
}
