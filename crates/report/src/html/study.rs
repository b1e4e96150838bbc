//! Page of a study: a chapter for each field report, with reported values and ours, as drawings and as
//! tables.

use askama::Template;
use plumb_text::printable;

use super::bars::{BarRow, Scale, Sense};
use super::chart_data::{Chart, Line};
use super::charts::ranges;
use super::frame::Frame;
use super::sections::{SectionView, sections};
use super::style::STYLES;
use super::table;
use crate::document::StudyDocument;
use crate::document::study::{Study, StudyRow, StudySeries};
use crate::quantity::or_dash;
use crate::{quantity, study};

/// Content of the page.
#[derive(Template)]
#[template(path = "study.html")]
pub(super) struct StudyPage<'a> {
    frame: Frame,
    /// Summary of several studies.
    sections: Vec<SectionView>,
    chapters: Vec<Chapter<'a>>,
}

/// Chapter of one field report, with its drawings.
struct Chapter<'a> {
    study: &'a Study,
    /// Drawing of our values relative to the reported ones; empty without reported values.
    drawing: String,
    charts: Vec<Chart>,
}

impl<'a> StudyPage<'a> {
    /// Returns the page of `document`.
    pub(super) fn new(document: &'a StudyDocument) -> Self {
        let chapter =
            |study: &'a Study| Chapter { study, drawing: beside(&study.rows), charts: charts(study) };
        let chapters: Vec<Chapter<'_>> = document.studies.iter().map(chapter).collect();
        let mut outline = study::outline(document);
        // The studies have their own chapters; the sections before them are the summary.
        outline.sections.truncate(outline.sections.len().saturating_sub(document.studies.len()));
        let sections = sections(&mut outline);
        let drawn = chapters.iter().flat_map(|chapter| &chapter.charts);
        let frame = Frame::new("plumb study", outline, document.seed).drawing(drawn);
        Self { frame, sections, chapters }
    }
}

/// Draws our value of each figure as a ratio to the reported one; empty without reported values.
fn beside(rows: &[StudyRow]) -> String {
    let row = |row: &StudyRow| {
        let of = row.ratio.filter(|ratio| *ratio > 0.0)?;
        let ours = or_dash(row.ours, |ours| study::value(row.unit, ours));
        let far = if row.is_reproduced() { "" } else { ", not reproduced" };
        Some(BarRow {
            name: printable(&row.figure),
            value: format!("{}×: {ours}, reported {}{far}", quantity::ratio(of), study::reported(row)),
            sense: Sense::new(Some(row.is_reproduced())),
            from: Some(0.0),
            until: Some(of.ln()),
            mark: Some(of.ln()),
        })
    };
    let rows: Vec<BarRow> = rows.iter().filter_map(row).collect();
    // The scale goes at least from half to twice, so that a few percent do not look like a large difference.
    let marks = rows.iter().filter_map(|row| row.mark).map(f64::exp).chain([0.5, 2.0]);
    let scale = Scale::of_ratios(marks.collect::<Vec<_>>());
    if rows.is_empty() { String::new() } else { scale.draw(&rows, "Our figures over the reported ones") }
}

/// Returns the charts of values over time.
fn charts(study: &Study) -> Vec<Chart> {
    let mut names: Vec<&str> = study.series.iter().map(|series| series.chart.as_str()).collect();
    names.dedup();
    let chart = |(number, name): (usize, &&str)| {
        let of: Vec<&StudySeries> = study.series.iter().filter(|series| series.chart == **name).collect();
        let line = |(style, series): (usize, &&StudySeries)| Line {
            name: printable(&series.name),
            style,
            x: series.points.iter().map(|point| point.at).collect(),
            y: series.points.iter().map(|point| Some(point.per_second)).collect(),
        };
        let lines: Vec<Line> = of.iter().enumerate().take(STYLES).map(line).collect();
        let ranges = ranges(&lines, quantity::rate);
        let anchor = format!("study-{}-{number}", study.name.to_lowercase());
        Chart::of_rates(anchor, printable(name), "operations per second", lines, &ranges)
    };
    names.iter().enumerate().map(chart).collect()
}
