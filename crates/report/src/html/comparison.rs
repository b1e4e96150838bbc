//! The page of a comparison: ratios with their intervals as a forest plot, the explanation as a waterfall,
//! each block as a mark.

use askama::Template;

use super::escape::{cut, escape};
use super::frame::Frame;
use super::table;
use super::verdict_view::{VerdictView, verdict_view};
use crate::comparison::{self, signed, term_words};
use crate::document::ComparisonDocument;
use crate::document::comparison::{Block, Contrast, Estimate, LevelResult};
use crate::outline::{Item, Outline, Row, Section};
use crate::printable::printable;
use crate::quantity::duration;
use crate::terminal::Cell;

/// The width of every drawing, in its own units: the narrowest screen shows all of it.
pub(super) const WIDTH: f64 = 400.0;
/// Part of [`WIDTH`] that is for names.
pub(super) const NAMES: f64 = 132.0;
pub(super) const ROW: f64 = 22.0;
const FONT: f64 = 11.0;

/// All of a page.
#[derive(Template)]
#[template(path = "comparison.html")]
pub(super) struct ComparisonPage {
    frame: Frame,
    chapters: Vec<Chapter>,
    sections: Vec<(String, String)>,
    workload: String,
}

/// The drawings of one workload.
struct Chapter {
    /// Before the title of each drawing; empty if there is only one workload.
    name: String,
    /// Name, forest plot and waterfall of each contrast.
    contrasts: Vec<(String, String, String)>,
    blocks: String,
    /// The distributions of all levels; empty where none was kept.
    distributions: String,
    /// The levels in the colours of their blocks.
    key: String,
    figure: String,
}

impl Chapter {
    fn of(document: &ComparisonDocument) -> Self {
        let drawn = |contrast: &Contrast| {
            let name = printable(&format!("{} against {}", contrast.compared, contrast.against));
            (name, forest(contrast, &document.figure), waterfall(contrast))
        };
        Self {
            name: comparison::before_title(document),
            contrasts: document.contrasts().map(drawn).collect(),
            blocks: blocks(document),
            distributions: distributions(&document.levels),
            key: key(&document.levels),
            figure: document.figure.clone(),
        }
    }
}

impl ComparisonPage {
    /// The page of `document`.
    pub(super) fn of(document: &ComparisonDocument) -> Self {
        let mut outline = comparison::outline(document);
        let sections = sections(&mut outline);
        let workloads = document.chapters().iter().map(|chapter| lines(&chapter.workload));
        Self {
            frame: Frame::of("plumb compare", outline, document.seed),
            chapters: document.chapters().iter().map(Chapter::of).collect(),
            sections,
            workload: workloads.collect::<Vec<_>>().join("\n\n"),
        }
    }
}

/// The sections that say something, taken out of `outline`: each title with what stands below it.
pub(super) fn sections(outline: &mut Outline<'_>) -> Vec<(String, String)> {
    let all = std::mem::take(&mut outline.sections);
    all.iter().filter(|of| !of.items.is_empty()).map(section).collect()
}

/// The title of a section with what stands below it.
pub(super) fn section(of: &Section) -> (String, String) {
    (of.title.to_string(), of.items.iter().map(item).collect())
}

/// `text` made printable line by line.
pub(super) fn lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

fn item(item: &Item) -> String {
    match item {
        Item::Table(of) | Item::Wide(of) | Item::Fitting { table: of, .. } => table::table(of, ""),
        Item::Rows(rows) if rows.iter().all(|row| row.name.text.is_empty()) => {
            rows.iter().map(|row| format!("<p>{}</p>", escape(&row.text))).collect()
        }
        Item::Rows(rows) => {
            let row =
                |row: &Row| format!("<dt>{}</dt><dd>{}</dd>", escape(&row.name.text), escape(&row.text));
            format!(r#"<dl class="facts">{}</dl>"#, rows.iter().map(row).collect::<String>())
        }
        Item::Text(Cell { text, .. }) | Item::Line(text) | Item::Remedy(text) => {
            format!("<p>{}</p>", escape(text))
        }
        Item::Command(lines) | Item::Block(lines) => format!("<pre><code>{}</code></pre>", escape(lines)),
        Item::Finding { finding, about } => self::finding(&verdict_view(finding), about),
    }
}

fn finding(view: &VerdictView, about: &[String]) -> String {
    let about: String = about.iter().map(|name| format!(" {}", escape(&printable(name)))).collect();
    let paragraph = |text: &String| format!("<p>{}</p>", escape(text));
    let said = view.evidence.iter().chain(Some(&view.remedy).filter(|remedy| !remedy.is_empty()));
    format!(
        "<p><strong>{}</strong> {} <code>{}</code>{about}</p>{}",
        view.label,
        escape(&view.sentence),
        escape(&view.id),
        said.map(paragraph).collect::<String>()
    )
}

/// A scale from `low` to `high` over the part of a drawing that is not for names.
pub(super) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// One that holds all of `values`.
    pub(super) fn holding(values: impl IntoIterator<Item = f64>) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) =
            finite.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let margin = ((high - low) * 0.06).max(0.005);
        Self { low: low - margin, high: high + margin }
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        NAMES + (value.clamp(self.low, self.high) - self.low) / (self.high - self.low) * (WIDTH - NAMES)
    }
}

/// Place in a drawing, in its units from the upper left corner.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Draws `words` from `at` on, cut to `room` units.
pub(super) fn text(out: &mut String, at: Point, class: &str, words: &str, room: f64) {
    let Point { x, y } = at;
    let words = escape(&cut(words, room, FONT));
    out.push_str(&format!(
        r#"<text x="{x:.1}" y="{y:.1}" class="{class}" font-size="{FONT}">{words}</text>"#
    ));
}

pub(super) fn drawing(body: &str, height: f64, label: &str) -> String {
    let label = escape(label);
    format!(
        r#"<svg class="path plot" viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{label}">{body}</svg>"#
    )
}

/// Each ratio with its interval on a logarithmic scale; the line is no difference.
fn forest(contrast: &Contrast, figure: &str) -> String {
    let mut rows: Vec<(&str, Estimate)> = contrast.ratio.map(|ratio| (figure, ratio)).into_iter().collect();
    let others = contrast.ratios.iter().filter(|(name, _)| *name != figure);
    rows.extend(others.map(|(name, ratio)| (name.as_str(), *ratio)));
    let all =
        |ratio: &Estimate| [Some(ratio.median), ratio.low, ratio.high].into_iter().flatten().map(f64::ln);
    let scale = Scale::holding(rows.iter().flat_map(|(_, ratio)| all(ratio)));
    let height = ROW * rows.len() as f64 + 20.0;
    let mut out = format!(r#"<path class="rail" d="M{0:.1} 0V{1:.1}"/>"#, scale.x(0.0), height - 16.0);
    for (number, (name, ratio)) in rows.iter().enumerate() {
        let y = ROW * number as f64 + ROW / 2.0;
        let class = if number == 0 { "first" } else { "later" };
        text(&mut out, Point { x: 0.0, y: y + 4.0 }, class, name, NAMES - 6.0);
        let from = scale.x(ratio.low.map_or(scale.low, f64::ln));
        let until = scale.x(ratio.high.map_or(scale.high, f64::ln));
        let middle = scale.x(ratio.median.ln());
        out.push_str(&format!(
            r#"<path class="span {class}" d="M{from:.1} {y:.1}H{until:.1}"/><rect class="{class}" x="{:.1}" y="{:.1}" width="8" height="8"/>"#,
            middle - 4.0,
            y - 4.0
        ));
    }
    let words = ["less", "the same", "more"];
    for (words, x) in words.into_iter().zip([NAMES, scale.x(0.0) - 22.0, WIDTH - 30.0]) {
        let is_apart = words == "the same" || (x - scale.x(0.0) + 22.0).abs() > 60.0;
        if is_apart {
            text(&mut out, Point { x: x.min(WIDTH - 50.0), y: height - 3.0 }, "soft", words, 60.0);
        }
    }
    drawing(&out, height, "Ratios with their intervals; the table below has the figures")
}

/// Draws what each term adds to the time from one operation to the next.
fn waterfall(contrast: &Contrast) -> String {
    if contrast.explanation.is_empty() {
        return String::new();
    }
    let mut at = 0.0;
    let steps: Vec<(f64, f64)> = contrast
        .explanation
        .iter()
        .map(|term| {
            let from = at;
            at += term.seconds;
            (from, at)
        })
        .collect();
    let unit =
        steps.iter().flat_map(|(from, until)| [from.abs(), until.abs()]).fold(f64::MIN_POSITIVE, f64::max);
    let scale = Scale::holding(steps.iter().flat_map(|(from, until)| [from / unit, until / unit]));
    let height = ROW * (steps.len() + 1) as f64;
    let mut out = format!(r#"<path class="rail" d="M{0:.1} 0V{height:.1}"/>"#, scale.x(0.0));
    let named = contrast.explanation.iter().map(term_words).chain(["together"]);
    for (number, (name, (from, until))) in named.zip(steps.iter().copied().chain([(0.0, at)])).enumerate() {
        let y = ROW * number as f64;
        let (low, high) = (scale.x(from.min(until) / unit), scale.x(from.max(until) / unit));
        let class = match name {
            "together" => "whole",
            _ if until > from => "costs",
            _ => "saves",
        };
        text(&mut out, Point { x: 0.0, y: y + 15.0 }, "", name, NAMES - 6.0);
        out.push_str(&format!(
            r#"<g><title>{}</title><rect class="{class}" x="{low:.1}" y="{:.1}" width="{:.1}" height="{}"/></g>"#,
            escape(&format!("{name}: {}", signed(until - from))),
            y + 4.0,
            (high - low).max(1.0),
            ROW - 8.0
        ));
    }
    drawing(
        &out,
        height,
        "What each term adds to the time from one operation to the next; the table below has the figures",
    )
}

/// The figure of each block, in the order in which they ran.
fn blocks(document: &ComparisonDocument) -> String {
    const HEIGHT: f64 = 150.0;
    let values: Vec<(usize, u64, f64)> = document
        .measured
        .iter()
        .filter_map(|block| Some((block.level, block.round, *block.figures.get(&document.figure)?)))
        .collect();
    // Rates within a block are drawn where the figure is a rate, and only there.
    let rates = |level: usize, round: u64| {
        let of = |block: &&Block| (block.level, block.round) == (level, round) && document.figure == "iops";
        document.measured.iter().find(of).map_or(&[][..], |block| &block.rates)
    };
    let all = values.iter().flat_map(|(level, round, value)| rates(*level, *round).iter().chain([value]));
    let highest = all.fold(f64::MIN_POSITIVE, |highest, value| highest.max(*value));
    let step = WIDTH / values.len().max(1) as f64;
    let mut out = format!(r#"<path class="rail" d="M0 {HEIGHT}H{WIDTH}"/>"#);
    for (number, (level, round, value)) in values.iter().enumerate() {
        let (x, y) = (step * (number as f64 + 0.5), HEIGHT - value / highest * (HEIGHT - 12.0));
        let class = if *round == 0 { "practice" } else { "block" };
        let within = rates(*level, *round);
        let points = within.iter().enumerate().map(|(part, rate)| {
            let x = step * (number as f64 + (part as f64 + 0.5) / within.len() as f64);
            (x, HEIGHT - rate / highest * (HEIGHT - 12.0))
        });
        out.push_str(&line(points, *level, "within"));
        let colour = level % super::style::STYLES + 1;
        let mark = match level {
            0 => format!(
                r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3.4" style="color:var(--series-{colour})"/>"#
            ),
            _ => format!(
                r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="6" height="6" style="color:var(--series-{colour})"/>"#,
                x - 3.0,
                y - 3.0
            ),
        };
        out.push_str(&mark);
    }
    drawing(&out, HEIGHT + 4.0, "The figure of each block in the order in which they ran")
}

/// A line through points, in the colour of a level.
fn line(points: impl Iterator<Item = (f64, f64)>, level: usize, class: &str) -> String {
    let path: Vec<String> = points.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let colour = level % super::style::STYLES + 1;
    match path.is_empty() {
        true => String::new(),
        false => format!(
            r#"<path class="line {class}" d="M{}" style="color:var(--series-{colour})"/>"#,
            path.join("L")
        ),
    }
}

/// The distributions of the time of an operation, one over the other: nines upwards, times on a logarithmic
/// scale.
fn distributions(levels: &[LevelResult]) -> String {
    const HEIGHT: f64 = 190.0;
    const LEFT: f64 = 44.0;
    let times =
        || levels.iter().flat_map(|level| &level.distribution).map(|point| point.seconds.max(1e-9).ln());
    let (low, high) = times().fold((f64::MAX, f64::MIN), |(low, high), time| (low.min(time), high.max(time)));
    if low >= high {
        return String::new();
    }
    let x = |seconds: f64| LEFT + (seconds.max(1e-9).ln() - low) / (high - low) * (WIDTH - LEFT - 4.0);
    // 0 at the bottom, one step for each nine; all of them is drawn a little above 99.9 %.
    let nines = |share: f64| (-(1.0 - share).max(5e-4).log10()) / 3.31;
    let y = |share: f64| (HEIGHT - 22.0) * (1.0 - nines(share)) + 4.0;
    let mut out = String::new();
    for (share, words) in [(0.5, "50%"), (0.9, "90%"), (0.99, "99%"), (0.999, "99.9%")] {
        out.push_str(&format!(r#"<path class="rail" d="M{LEFT} {0:.1}H{WIDTH}"/>"#, y(share)));
        text(&mut out, Point { x: 0.0, y: y(share) + 4.0 }, "soft", words, LEFT);
    }
    for (part, at) in [(0.0, LEFT), (0.5, f64::midpoint(LEFT, WIDTH) - 16.0), (1.0, WIDTH - 52.0)] {
        text(
            &mut out,
            Point { x: at, y: HEIGHT - 3.0 },
            "soft",
            &duration((low + part * (high - low)).exp()),
            60.0,
        );
    }
    for (number, level) in levels.iter().enumerate() {
        let points = level.distribution.iter().map(|point| (x(point.seconds), y(point.share)));
        out.push_str(&line(points, number, "whole"));
    }
    drawing(
        &out,
        HEIGHT,
        "The share of operations that ended within a time, of each level; the table below has the figures",
    )
}

/// The key of the blocks: the levels in their colours.
fn key(levels: &[LevelResult]) -> String {
    let level = |(number, level): (usize, &LevelResult)| {
        let (colour, name) = (number % super::style::STYLES + 1, escape(&printable(&level.name)));
        format!(r#"<span><i style="background:var(--series-{colour})"></i>{name}</span>"#)
    };
    levels.iter().enumerate().map(level).collect()
}
