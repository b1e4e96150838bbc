//! The page of a study: a chapter for each field report, with what was reported beside ours, drawn and as
//! tables.

use askama::Template;

use super::chart_data::{Chart, Line};
use super::charts::{ChartView, ranges};
use super::comparison::{Point, ROW, Scale, WIDTH, drawing, text};
use super::escape::escape;
use super::frame::Frame;
use super::style::STYLES;
use super::table;
use crate::document::StudyDocument;
use crate::document::study::{Study, StudyRow, StudySeries};
use crate::printable::printable;
use crate::{quantity, study};

/// All of a page.
#[derive(Template)]
#[template(path = "study.html")]
pub(super) struct StudyPage {
    frame: Frame,
    chapters: Vec<Chapter>,
}

/// Content about one field report; every field is ready to print.
struct Chapter {
    name: String,
    title: String,
    source: String,
    finding: String,
    answer: String,
    /// Reported beside ours; empty if nothing was reported.
    drawing: String,
    charts: Vec<ChartView>,
    /// Each question with its figures.
    tables: Vec<(String, String)>,
    notes: Vec<String>,
}

impl StudyPage {
    /// The page of `document`.
    pub(super) fn of(document: &StudyDocument) -> Self {
        let mut all = Vec::new();
        let chapters = document.studies.iter().map(|study| chapter(study, &mut all)).collect();
        let frame = Frame::of("plumb study", study::outline(document), document.seed);
        Self { frame: frame.drawing(&all), chapters }
    }
}

fn chapter(study: &Study, all: &mut Vec<Chart>) -> Chapter {
    let (views, charts): (Vec<_>, Vec<_>) = charts(study).into_iter().unzip();
    all.extend(charts);
    let tables = study::tables(study);
    Chapter {
        name: printable(&study.name),
        title: printable(&study.title),
        source: printable(&study.source),
        finding: printable(&study.finding),
        answer: printable(&study.answer),
        drawing: beside(&study.rows),
        charts: views,
        tables: tables
            .iter()
            .map(|(question, figures)| (printable(question), table::table(figures, "")))
            .collect(),
        notes: study.notes.iter().map(|note| printable(note)).collect(),
    }
}

/// Draws the reported value (open) and ours (filled) of each figure, as far from one another as their ratio
/// says.
fn beside(rows: &[StudyRow]) -> String {
    let both: Vec<(&StudyRow, f64)> = rows.iter().filter_map(|row| Some((row, row.ratio?.ln()))).collect();
    if both.is_empty() {
        return String::new();
    }
    // At least from half to twice, so that a few percent do not look like a difference.
    let least = [-std::f64::consts::LN_2, std::f64::consts::LN_2];
    let scale = Scale::holding(both.iter().map(|(_, ratio)| *ratio).chain(least));
    let height = 2.0 * ROW * both.len() as f64 + 20.0;
    let mut out = format!(r#"<path class="rail" d="M{0:.1} 0V{1:.1}"/>"#, scale.x(0.0), height - 16.0);
    for (number, (row, ratio)) in both.iter().enumerate() {
        // The name has a line of its own above its ratio: it is a sentence.
        let y = 2.0 * ROW * number as f64 + 1.4 * ROW;
        text(&mut out, Point { x: 0.0, y: y - 0.55 * ROW }, "", &printable(&row.figure), WIDTH);
        let (from, until) = (scale.x(0.0), scale.x(*ratio));
        let class = if row.came_out == Some(false) { "costs" } else { "first" };
        let told =
            format!("{}: {} times what was reported", printable(&row.figure), quantity::ratio(ratio.exp()));
        out.push_str(&format!(
            r#"<g><title>{}</title><path class="span" d="M{from:.1} {y:.1}H{until:.1}"/><rect class="{class}" x="{:.1}" y="{:.1}" width="8" height="8"/></g>"#,
            escape(&told),
            until - 4.0,
            y - 4.0
        ));
    }
    text(
        &mut out,
        Point { x: (scale.x(0.0) - 24.0).min(WIDTH - 50.0), y: height - 3.0 },
        "soft",
        "reported",
        60.0,
    );
    drawing(
        &out,
        height,
        "Each figure of ours as a ratio to what was reported, on a logarithmic scale; the tables have the figures",
    )
}

/// The charts of what happened over time.
fn charts(study: &Study) -> Vec<(ChartView, Chart)> {
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
        let words = format!("operations per second: {}", ranges(&lines, quantity::rate));
        let chart = Chart {
            anchor: format!("study-{}-{number}", study.name.to_lowercase()),
            is_share: false,
            unit: "count",
            title: "operations per second",
            lines,
        };
        let name = printable(name);
        (ChartView::of(&chart, &name, words.clone(), format!("{name}, {words}.")), chart)
    };
    names.iter().enumerate().map(chart).collect()
}
