//! The page of a comparison: ratios with their intervals, the terms that explain the difference, each block,
//! and the distributions of the levels.

use std::collections::BTreeSet;

use askama::Template;
use plumb_text::printable;

use super::bars::{BarRow, Scale, Sense};
use super::chart_data::{Chart, Line, TIME_OF_OPERATION};
use super::charts::{ChartView, ranges};
use super::frame::Frame;
use super::sections::{SectionView, lines, sections};
use super::style::STYLES;
use crate::comparison::{self, figure_words, is_rate, signed, term_words, value};
use crate::document::ComparisonDocument;
use crate::document::comparison::{Contrast, Estimate};
use crate::quantity::{or_dash, percent, ratio};

/// All of a page.
#[derive(Template)]
#[template(path = "comparison.html")]
pub(super) struct ComparisonPage {
    frame: Frame,
    chapters: Vec<Chapter>,
    sections: Vec<SectionView>,
    workload: String,
}

/// The charts of one workload.
struct Chapter {
    /// Prefix of the title of each chart; empty if there is only one workload.
    name: String,
    /// Name, ratios and explanation of each contrast.
    contrasts: Vec<(String, String, String)>,
    /// The figure of each block, and the distributions of all levels, where there are such.
    charts: Vec<ChartView>,
    /// Number of blocks of practice, which are not drawn.
    practice: usize,
}

impl ComparisonPage {
    /// Returns the page of `document`.
    pub(super) fn new(document: &ComparisonDocument) -> Self {
        let mut outline = comparison::outline(document);
        // The charts have the same figures; those who want to copy them open the tables.
        outline.sections.iter_mut().for_each(|of| of.is_detail |= of.is_charted);
        let sections = sections(&mut outline);
        let workloads = document.chapters().iter().map(|chapter| lines(&chapter.workload));
        let workload = workloads.collect::<Vec<_>>().join("\n\n");
        let mut all = Vec::new();
        let chapters = document.chapters().iter().enumerate();
        let chapters = chapters.map(|(number, of)| chapter(of, number, &mut all)).collect();
        let frame = Frame::new("plumb compare", outline, document.seed).drawing(&all);
        Self { frame, chapters, sections, workload }
    }
}

fn chapter(document: &ComparisonDocument, number: usize, all: &mut Vec<Chart>) -> Chapter {
    let drawn = |contrast: &Contrast| {
        let name = printable(&format!("{} against {}", contrast.compared, contrast.against));
        (name, forest(contrast, &document.figure), waterfall(contrast))
    };
    let charts = [blocks(document, number), distributions(document, number)];
    let (charts, data): (Vec<_>, Vec<_>) = charts.into_iter().flatten().unzip();
    all.extend(data);
    Chapter {
        name: comparison::before_title(document),
        contrasts: document.contrasts().map(drawn).collect(),
        charts,
        practice: document.measured.iter().filter(|block| block.round == 0).count(),
    }
}

/// Draws each ratio with its interval on a logarithmic scale.
fn forest(contrast: &Contrast, figure: &str) -> String {
    let mut rows: Vec<(&str, Estimate)> = contrast.ratio.map(|ratio| (figure, ratio)).into_iter().collect();
    let others = contrast.ratios.iter().filter(|(name, _)| *name != figure);
    rows.extend(others.map(|(name, ratio)| (name.as_str(), *ratio)));
    let ends = |of: &Estimate| [Some(of.median), of.low, of.high];
    let scale = Scale::of_ratios(rows.iter().flat_map(|(_, of)| ends(of)).flatten());
    let rows: Vec<BarRow> = rows.iter().map(|(name, of)| estimate(name, of)).collect();
    scale.draw(&rows, "Ratios with their intervals")
}

fn estimate(name: &str, of: &Estimate) -> BarRow {
    // The interval leaves out 1, to one side.
    let is_more = match (of.low, of.high) {
        (Some(low), _) if low > 1.0 => Some(true),
        (_, Some(high)) if high < 1.0 => Some(false),
        _ => None,
    };
    let sense = Sense::new(is_more.map(|is_more| is_more == is_rate(name)));
    let words = match sense {
        Sense::Better => ", better",
        Sense::Worse => ", worse",
        Sense::Neutral => "",
    };
    let (median, ends) = (ratio(of.median), comparison::ends(of, ratio));
    BarRow {
        name: figure_words(name).to_owned(),
        value: format!("{median}× ({ends}){words}"),
        sense,
        from: of.low.map(f64::ln),
        until: of.high.map(f64::ln),
        mark: Some(of.median.ln()),
    }
}

/// Draws what each term adds to the time from one operation to the next, each from where the one before it
/// ended; empty if nothing is explained.
fn waterfall(contrast: &Contrast) -> String {
    let mut at = 0.0;
    let step = |(name, words, seconds): (&str, String, f64)| {
        let from = at;
        at += seconds;
        BarRow {
            name: name.to_owned(),
            value: words,
            sense: Sense::new((seconds != 0.0).then_some(seconds < 0.0)),
            from: Some(from),
            until: Some(at),
            mark: None,
        }
    };
    let terms = contrast.explanation.iter().map(|term| {
        let share = or_dash(term.share, percent);
        (
            term_words(term),
            format!("{} ({share}): {}", signed(term.seconds), printable(&term.sentence)),
            term.seconds,
        )
    });
    let mut rows: Vec<BarRow> = terms.map(step).collect();
    if rows.is_empty() {
        return String::new();
    }
    rows.push(BarRow {
        name: "together".to_owned(),
        value: signed(at),
        sense: Sense::Neutral,
        from: Some(0.0),
        until: Some(at),
        mark: None,
    });
    let scale = Scale::of_seconds(rows.iter().flat_map(|row| [row.from, row.until]).flatten());
    scale.draw(&rows, "Time that each term adds from one operation to the next")
}

/// Returns the figure of each block that counts, in the order in which they ran.
fn blocks(document: &ComparisonDocument, number: usize) -> Option<(ChartView, Chart)> {
    let figure = &document.figure;
    let counted = document.measured.iter().filter(|block| block.round > 0).enumerate();
    let counted: Vec<_> = counted.map(|(place, block)| (place as f64 + 1.0, block)).collect();
    let line = |(level, name): (usize, String)| {
        let own = counted.iter().filter(|(_, block)| block.level == level);
        let (x, y) = own.map(|(place, block)| (*place, block.figures.get(figure).copied())).unzip();
        Line { name, style: level, x, y }
    };
    let levels: Vec<Line> = names(document).map(line).collect();
    let is_time = !is_rate(figure) && figure != "cpu-per-million";
    let chart = Chart {
        anchor: format!("blocks-{number}"),
        is_share: false,
        unit: if is_time { "seconds" } else { "count" },
        title: figure_words(figure).to_owned(),
        across: "block",
        lines: levels,
    };
    let drawn: BTreeSet<usize> =
        chart.lines.iter().filter(|line| !line.x.is_empty()).map(|line| line.style).collect();
    let words = ranges(&chart.lines, |of| value(figure, of));
    let aria = format!("{} of each block: {words}.", figure_words(figure));
    (!drawn.is_empty()).then(|| (ChartView::new(&chart, "Block by block", words, aria), chart))
}

/// Returns the levels that a chart has styles for, with their names.
fn names(document: &ComparisonDocument) -> impl Iterator<Item = (usize, String)> {
    document.levels.iter().map(|level| printable(&level.name)).enumerate().take(STYLES)
}

/// Returns the distributions of the time of an operation, one line for each level.
fn distributions(document: &ComparisonDocument, number: usize) -> Option<(ChartView, Chart)> {
    let line = |(style, name): (usize, String)| {
        let points = document.levels[style].distribution.iter();
        // All of them has no place on this scale: it is drawn a little above 99.9 %.
        let nines = |share: f64| -(1.0 - share).max(5e-4).log10();
        let (x, y) = points.map(|point| (point.seconds.max(1e-9), Some(nines(point.share)))).unzip();
        Line { name, style, x, y }
    };
    let lines: Vec<Line> = names(document).map(line).collect();
    let chart = Chart {
        anchor: format!("distributions-{number}"),
        is_share: true,
        unit: "seconds",
        title: "share of operations".to_owned(),
        across: TIME_OF_OPERATION,
        lines,
    };
    let words = "all blocks that count together".to_owned();
    let aria =
        "Distribution of the time of an operation for each level; the table has the figures.".to_owned();
    let is_drawn = chart.lines.iter().any(|line| line.x.len() > 1);
    is_drawn.then(|| (ChartView::new(&chart, "Share that ended within a time", words, aria), chart))
}
