//! Failing case as a drawing: time goes down, with a row for each event, in the lane of its kind. A bar
//! reaches from the row of its beginning to that of its end, so that concurrent items are side by side; rows
//! are not to scale. The line of the power cut is at the bottom. Of many events those next to a loss and next
//! to the cut are shown.

use plumb_text::printable;

use super::diagram::Width;
use super::escape::{cut, escape};
use crate::document::proof::{Fate, Lane, MinimalCase, TimelineItem};
use crate::quantity::duration;

/// Maximum number of rows drawn.
const ROWS: usize = 40;
const FONT: f64 = 12.0;
/// Number of bars of a lane that are drawn side by side.
const ABREAST: usize = 4;

/// Row: an event, or the number of events left out.
enum Row<'a> {
    Item(&'a TimelineItem),
    LeftOut(usize),
}

/// Returns the drawing of `case`.
pub(super) fn draw(case: &MinimalCase, width: Width) -> String {
    let (each, time, lane, step) = match width {
        Width::Wide => (21.0, 78.0, 56.0, 10.0),
        Width::Narrow => (34.0, 0.0, 41.0, 9.0),
    };
    let mut items: Vec<&TimelineItem> = case.timeline.iter().filter(|item| item.from <= case.at).collect();
    items.sort_by(|one, other| one.from.total_cmp(&other.from));
    let rows = rows(&items);
    let mut lanes: Vec<Lane> = items.iter().map(|item| item.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let (top, words_at) = (24.0, time + lane * lanes.len() as f64 + 8.0);
    let end = top + each * rows.len() as f64;
    let mut out = String::new();
    for (number, of) in lanes.iter().enumerate() {
        let x = time + lane * number as f64;
        put(&mut out, x, 12.0, "soft", lane / 4.9, short(*of));
        out.push_str(&format!(r#"<path class="rail" d="M{:.1} {top}V{end:.1}"/>"#, x + step * 0.4));
    }
    let mut busy: Vec<(Lane, usize, f64)> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let y = top + each * number as f64;
        let item = match row {
            Row::Item(item) => item,
            Row::LeftOut(count) => {
                put(&mut out, words_at, y + 14.0, "soft", FONT, &format!("{count} more, none of them lost"));
                continue;
            }
        };
        let ended = |row: &Row<'_>| matches!((row, item.until), (Row::Item(later), Some(until)) if later.from >= until);
        let last = rows.iter().skip(number + 1).position(ended);
        let height = match (last, item.until) {
            (Some(last), _) => each * last as f64 + each - 8.0,
            (None, Some(until)) if until <= case.at => each * (rows.len() - number) as f64 - 8.0,
            _ => end - y,
        };
        busy.retain(|(_, _, until)| *until > y);
        let taken = |slot: &usize| busy.iter().any(|(of, at, _)| *of == item.lane && at == slot);
        let slot = (0..ABREAST).find(|slot| !taken(slot)).unwrap_or(ABREAST - 1);
        busy.push((item.lane, slot, y + height));
        let column = lanes.iter().position(|of| *of == item.lane).unwrap_or_default();
        let x = time + lane * column as f64 + step * slot as f64;
        let (class, fate) = fate(item.fate);
        out.push_str(&format!(
            r#"<g><title>{}</title><rect class="bar {class}" x="{x:.1}" y="{:.1}" width="{:.1}" height="{height:.1}" rx="1.5"/></g>"#,
            escape(&hover(item, case.at, fate)),
            y + 4.0,
            step - 2.0
        ));
        let before = format!("−{}", duration(case.at - item.from));
        let room = width.units() - words_at;
        let label = printable(&item.label);
        match width {
            Width::Wide => {
                put(&mut out, 0.0, y + 14.0, "soft", 11.0, &before);
                put(&mut out, words_at, y + 14.0, class, FONT, &cut(&label, room - 70.0, FONT));
                put(&mut out, width.units() - 62.0, y + 14.0, class, FONT, fate);
            }
            Width::Narrow => {
                put(&mut out, words_at, y + 13.0, class, FONT, &cut(&label, room, FONT));
                put(&mut out, words_at, y + 26.0, class, 11.0, format!("{before} {fate}").trim_end());
            }
        }
    }
    with_cut(case, width, end, out)
}

/// Returns the drawing of the rows, with the line of the power cut at its `end`.
fn with_cut(case: &MinimalCase, width: Width, end: f64, mut out: String) -> String {
    let at = format!("The power goes, {} after the recording began", duration(case.at));
    out.push_str(&format!(r#"<path class="mark never" d="M0 {:.1}H{}"/>"#, end + 1.0, width.units()));
    put(&mut out, 0.0, end + 16.0, "label never", FONT, &cut(&at, width.units(), FONT));
    format!(
        r#"<svg class="path lanes {}" viewBox="0 0 {} {:.0}" role="img" aria-label="{}">{out}</svg>"#,
        width.class(),
        width.units(),
        end + 22.0,
        escape(&format!("What happened before the power went: {}", crate::proof::case(case)))
    )
}

/// Selects the `items` to draw: those that are lost, those next to them, and the last ones before the cut.
fn rows<'a>(items: &[&'a TimelineItem]) -> Vec<Row<'a>> {
    let mut kept = vec![items.len() <= ROWS; items.len()];
    let mut left = ROWS;
    let mut keep = |index: usize| {
        if left > 0 && kept.get(index) == Some(&false) {
            kept[index] = true;
            left -= 1;
        }
    };
    let lost = items.iter().enumerate().rev().filter(|(_, item)| is_lost(item));
    for (index, _) in lost.take(ROWS / 4) {
        [Some(index), index.checked_sub(1), Some(index + 1)].into_iter().flatten().for_each(&mut keep);
    }
    (0..items.len()).rev().for_each(&mut keep);
    let mut rows = Vec::new();
    for (item, kept) in items.iter().zip(kept) {
        match rows.last_mut() {
            _ if kept => rows.push(Row::Item(item)),
            Some(Row::LeftOut(count)) => *count += 1,
            _ => rows.push(Row::LeftOut(1)),
        }
    }
    rows
}

fn is_lost(item: &TimelineItem) -> bool {
    matches!(item.fate, Some(Fate::Dropped | Fate::Torn))
}

const fn short(lane: Lane) -> &'static str {
    match lane {
        Lane::Acknowledgement => "ack",
        Lane::SystemCall => "call",
        Lane::Write => "write",
        Lane::Discard => "discard",
        Lane::Flush => "flush",
    }
}

/// Returns the CSS class and the word for a fate.
const fn fate(fate: Option<Fate>) -> (&'static str, &'static str) {
    match fate {
        None => ("plain", ""),
        Some(Fate::Durable) => ("durable", "durable"),
        Some(Fate::Survived) => ("survived", "survived"),
        Some(Fate::Dropped) => ("dropped", "dropped"),
        Some(Fate::Torn) => ("torn", "torn"),
    }
}

fn hover(item: &TimelineItem, cut: f64, fate: &str) -> String {
    let took = item.until.map_or_else(
        || "in flight at the cut".to_owned(),
        |until| format!("took {}", duration(until - item.from)),
    );
    let begun = duration(cut - item.from);
    format!("{}\n{begun} before the cut, {took}\n{fate}", printable(&item.label)).trim_end().to_owned()
}

fn put(out: &mut String, x: f64, y: f64, class: &str, size: f64, text: &str) {
    let text = escape(text);
    out.push_str(&format!(r#"<text x="{x:.1}" y="{y:.1}" class="{class}" font-size="{size}">{text}</text>"#));
}
