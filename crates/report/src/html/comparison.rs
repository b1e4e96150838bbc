//! Page of a comparison: ratios with their intervals, the terms that explain the difference, each block, and
//! the distributions of the levels.

use askama::Template;
use plumb_text::printable;

use super::bars::{BarRow, Scale, Sense};
use super::chart_data::{Chart, Line};
use super::charts::ranges;
use super::frame::Frame;
use super::sections::{SectionView, lines, sections};
use super::style::STYLES;
use crate::comparison::{self, figure_words, is_rate, signed, term_words, value};
use crate::document::ComparisonDocument;
use crate::document::comparison::{Contrast, Estimate};
use crate::quantity::{or_dash, percent, ratio};

/// Content of the page.
#[derive(Template)]
#[template(path = "comparison.html")]
pub(super) struct ComparisonPage {
    frame: Frame,
    chapters: Vec<Chapter>,
    sections: Vec<SectionView>,
    workload: String,
}

/// Charts of one workload.
struct Chapter {
    /// Prefix of the title of each chart; empty if there is only one workload.
    name: String,
    /// Name, ratios and explanation of each contrast.
    contrasts: Vec<(String, String, String)>,
    /// Chart of the figure of each block, and chart of the distributions of all levels, if available.
    charts: Vec<Chart>,
    /// Number of practice blocks, which are not drawn.
    practice: usize,
}

impl ComparisonPage {
    /// Returns the page of `document`.
    pub(super) fn new(document: &ComparisonDocument) -> Self {
        let mut outline = comparison::outline(document);
        // The charts show the same figures, so their tables are folded.
        outline.sections.iter_mut().for_each(|of| of.is_detail |= of.is_charted);
        let sections = sections(&mut outline);
        let workloads = document.chapters().iter().map(|chapter| lines(&chapter.workload));
        let workload = workloads.collect::<Vec<_>>().join("\n\n");
        let chapters = document.chapters().iter().enumerate();
        let chapters: Vec<Chapter> = chapters.map(|(number, of)| chapter(of, number)).collect();
        let drawn = chapters.iter().flat_map(|chapter| &chapter.charts);
        let frame = Frame::new("plumb compare", outline, document.seed).drawing(drawn);
        Self { frame, chapters, sections, workload }
    }
}

fn chapter(document: &ComparisonDocument, number: usize) -> Chapter {
    let drawn = |contrast: &Contrast| {
        let name = printable(&format!("{} against {}", contrast.compared, contrast.against));
        (name, forest(contrast, &document.figure), waterfall(contrast))
    };
    let charts = [blocks(document, number), distributions(document, number)];
    Chapter {
        name: comparison::before_title(document),
        contrasts: document.contrasts().map(drawn).collect(),
        charts: charts.into_iter().flatten().collect(),
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
    // The interval excludes 1, on one side.
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

/// Draws the contribution of each term to the time from one operation to the next, each from the end of the
/// previous one; empty without an explanation.
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

/// Returns the figure of each block that counts, in the order of the run.
fn blocks(document: &ComparisonDocument, number: usize) -> Option<Chart> {
    let figure = &document.figure;
    let counted = document.measured.iter().filter(|block| block.round > 0).enumerate();
    let counted: Vec<_> = counted.map(|(place, block)| (place as f64 + 1.0, block)).collect();
    let line = |(level, name): (usize, String)| {
        let own = counted.iter().filter(|(_, block)| block.level == level);
        let (x, y) = own.map(|(place, block)| (*place, block.figure(figure))).unzip();
        Line { name, style: level, x, y }
    };
    let lines: Vec<Line> = names(document).map(line).collect();
    let is_time = !is_rate(figure) && figure != "cpu-per-million";
    let words = ranges(&lines, |of| value(figure, of));
    lines.iter().flat_map(|line| &line.y).any(Option::is_some).then(|| Chart {
        anchor: format!("blocks-{number}"),
        is_share: false,
        unit: if is_time { "seconds" } else { "count" },
        title: figure_words(figure).to_owned(),
        across: "block",
        lines,
        name: "Block by block".to_owned(),
        aria: format!("{} of each block: {words}.", figure_words(figure)),
        words,
    })
}

/// Returns the levels for which a chart has styles, with their names.
fn names(document: &ComparisonDocument) -> impl Iterator<Item = (usize, String)> {
    document.levels.iter().map(|level| printable(&level.name)).enumerate().take(STYLES)
}

/// Returns the distributions of the time of an operation, one line for each level.
fn distributions(document: &ComparisonDocument, number: usize) -> Option<Chart> {
    let line = |(style, name): (usize, String)| {
        let points = document.levels[style].distribution.iter();
        // The share of all operations has no place on this scale, so it is drawn slightly above 99.9 %.
        let nines = |share: f64| -(1.0 - share).max(5e-4).log10();
        let (x, y) = points.map(|point| (point.seconds.max(1e-9), Some(nines(point.share)))).unzip();
        Line { name, style, x, y }
    };
    let lines: Vec<Line> = names(document).map(line).collect();
    let words = "all blocks that count together".to_owned();
    let aria =
        "Distribution of the time of an operation for each level; the table has the figures.".to_owned();
    let is_drawn = lines.iter().any(|line| line.x.len() > 1);
    is_drawn.then(|| Chart::of_shares(format!("distributions-{number}"), lines, words, aria))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::comparison::{Block, Counts, LevelResult};

    #[test]
    fn a_block_that_completed_nothing_is_a_gap_of_its_line() {
        let block = |level, round, operations| Block {
            level,
            round,
            figures: [("iops".to_owned(), if operations == 0 { 0.5 } else { 36.0 })].into(),
            counts: Counts { operations, ..Counts::default() },
            ..Block::default()
        };
        let level = |name: &str| LevelResult { name: name.to_owned(), ..LevelResult::default() };
        let document = ComparisonDocument {
            figure: "iops".to_owned(),
            levels: vec![level("none"), level("wb")],
            measured: vec![block(0, 1, 36), block(1, 1, 0), block(1, 2, 0), block(0, 2, 0)],
            ..ComparisonDocument::default()
        };
        let chart = blocks(&document, 0).unwrap();
        let values: Vec<_> = chart.lines.iter().map(|line| line.y.clone()).collect();
        assert_eq!(values, [vec![Some(36.0), None], vec![None, None]]);
        assert_eq!(chart.words, "none 36/s to 36/s");
    }
}
