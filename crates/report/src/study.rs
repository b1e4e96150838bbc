//! Outline of a study, for all formats. All text in it is printable.

use plumb_path::Severity;
use plumb_text::printable;

use crate::document::StudyDocument;
use crate::document::study::{ExpectedRange, Study, StudyRow, StudyUnit};
use crate::facts::{Fact, Figure, facts_of};
use crate::headline::{Headline, capital, incomplete, sentence};
use crate::outline::{Item, Outline, Section};
use crate::quantity::{NONE, bytes, count, duration, mebibytes, or_dash, rate, ratio};
use crate::terminal::{Cell, Ink, Table};

/// Returns the report of `document`.
pub(crate) fn outline(document: &StudyDocument) -> Outline<'_> {
    Outline {
        command: "study",
        of: &document.on,
        headline: headline(document),
        figures: figures(document),
        sections: summary(document).into_iter().chain(document.studies.iter().map(section)).collect(),
        facts_title: "How it was done",
        facts: facts(document),
        environment: &document.environment,
        run_directory: document.run_directory.as_deref(),
    }
}

/// Returns a section with a row for each of several studies.
fn summary(document: &StudyDocument) -> Option<Section> {
    let near = |study: &Study| {
        let judged: Vec<bool> = study.rows.iter().filter_map(StudyRow::is_near).collect();
        let near = judged.iter().filter(|is_near| **is_near).count();
        let ink = if near == judged.len() { Ink::Green } else { Ink::Red };
        Cell::inked(ink, format!("{near} of {}", judged.len()))
    };
    let farthest = |study: &Study| {
        let apart = |row: &&StudyRow| row.ratio.map_or(0.0, |ratio| ratio.ln().abs());
        let far = study.rows.iter().filter(|row| row.is_near() == Some(false) && row.ratio > Some(0.0));
        let far = far.max_by(|one, other| apart(one).total_cmp(&apart(other)));
        or_dash(far, |row| format!("{}: {} times", printable(&row.figure), or_dash(row.ratio, ratio)))
    };
    let table = Table::for_rows(&document.studies)
        .left("study", |study| printable(&study.name))
        .left("about", |study| printable(&study.title))
        .right("near the report", |study| near(study))
        .left("farthest from it", |study| farthest(study))
        .table();
    let title = format!("All studies: figures within a factor of {} of the report", StudyRow::NEAR);
    (document.studies.len() > 1).then(|| Section::new(title, vec![Item::Table(table)]))
}

fn section(study: &Study) -> Section {
    let line = |text: String| Item::Line(printable(&text));
    let mut items = vec![
        line(format!("Reported: {} (\"{}\")", sentence(&study.finding), study.source)),
        line(format!("Here: {}", sentence(&study.answer))),
    ];
    for QuestionTable { question, chosen, table } in tables(study) {
        items.push(line(question));
        items.extend(chosen.map(line));
        items.push(Item::Table(table));
    }
    items.extend(study.notes.iter().map(|note| line(sentence(note))));
    Section::new(printable(&format!("{}. {}", study.name, study.title)), items)
}

/// Figures that answer one question of a study.
pub(crate) struct QuestionTable {
    pub(crate) question: String,
    /// Choices common to all of the figures, in a sentence.
    pub(crate) chosen: Option<String>,
    pub(crate) table: Table,
}

/// Returns the figures of a study as tables, one for each question.
pub(crate) fn tables(study: &Study) -> Vec<QuestionTable> {
    let of_question = study.rows.chunk_by(|one, next| one.question == next.question);
    let titled = |rows: &[StudyRow]| {
        let first = &rows[0];
        // Choices common to several rows are stated above them, once.
        let is_shared = rows.len() > 1 && rows.iter().all(|row| row.chosen == first.chosen);
        let chosen = (is_shared && !first.chosen.is_empty()).then(|| format!("Chosen: {}.", first.chosen));
        QuestionTable { question: first.question.clone(), chosen, table: table(rows, is_shared) }
    };
    of_question.map(titled).collect()
}

fn table(rows: &[StudyRow], is_chosen_above: bool) -> Table {
    let ink = |came_out| match came_out {
        Some(true) => Ink::Green,
        Some(false) => Ink::Red,
        None => Ink::Plain,
    };
    let expected = |row: &StudyRow| match (row.expected, row.came_out) {
        (Some(expected), Some(false)) => Cell::inked(Ink::Red, format!("not {}", range(row.unit, expected))),
        (expected, _) => Cell::inked(Ink::Dim, or_dash(expected, |expected| range(row.unit, expected))),
    };
    let why = |row: &StudyRow| match &row.ours_unknown_because {
        Some(because) => printable(&format!("not had: {because}")),
        None if is_chosen_above || row.chosen.is_empty() => printable(&row.why),
        None => printable(&format!("{} (chosen: {})", row.why, row.chosen)),
    };
    Table::for_rows(rows)
        .left("figure", |row| printable(&row.figure))
        .right("reported", |row| reported(row))
        .right("ours", |row| Cell::inked(ink(row.came_out), or_dash(row.ours, |ours| value(row.unit, ours))))
        .right("ratio", |row| or_dash(row.ratio, ratio))
        .left("expected", |row| expected(row))
        .left("why", |row| why(row))
        .table()
}

/// Formats the published value as in its publication.
pub(crate) fn reported(row: &StudyRow) -> String {
    let more = if row.reported_at_least { " or more" } else { "" };
    or_dash(row.reported, |reported| format!("{}{more}", value(row.unit, reported)))
}

/// Returns a value with its unit.
pub(crate) fn value(unit: StudyUnit, value: f64) -> String {
    match unit {
        StudyUnit::Seconds => duration(value),
        StudyUnit::PerSecond => format!("{}/s", rate(value)),
        StudyUnit::BytesPerSecond => format!("{} MiB/s", mebibytes(value)),
        StudyUnit::Bytes => bytes(value),
        StudyUnit::Times => format!("{}x", ratio(value)),
        StudyUnit::Count => count(value.max(0.0).round() as u64),
    }
}

fn range(unit: StudyUnit, expected: ExpectedRange) -> String {
    match (expected.low, expected.high) {
        (Some(low), Some(high)) if low == high => value(unit, low),
        (Some(low), Some(high)) => format!("{} to {}", value(unit, low), value(unit, high)),
        (Some(low), None) => format!("at least {}", value(unit, low)),
        (None, Some(high)) => format!("at most {}", value(unit, high)),
        (None, None) => NONE.to_owned(),
    }
}

fn headline(document: &StudyDocument) -> Headline {
    let (all, came_out) = document.expected();
    let (severity, label) = match () {
        () if document.studies.is_empty() => (None, "Not measured"),
        () if all == 0 => (None, "Measured"),
        () if all > came_out => (Some(Severity::Warning), "Not all reproduced"),
        () if document.rows().any(|(_, row)| !row.is_reproduced()) => (None, "Reproduced in part"),
        () => (None, "Reproduced"),
    };
    let named = |what: &str, is_so: fn(&StudyRow) -> bool| {
        let rows = document.rows().filter(|(_, row)| is_so(row));
        let named: Vec<String> = rows.map(|(study, row)| format!("{}: {}", study.name, row.figure)).collect();
        (!named.is_empty()).then(|| format!("{what}: {}.", named.join("; ")))
    };
    let missed = named("Not as expected", |row| row.came_out == Some(false));
    let far = named("Figures far from the report", |row| row.came_out != Some(false) && !row.is_reproduced());
    let meaning = missed.into_iter().chain(far).collect::<Vec<_>>().join(" ");
    Headline {
        severity,
        label,
        verdict: capital(&sentence(&document.headline)),
        meaning,
        quality: String::new(),
        incomplete: incomplete(document.complete, document.incomplete_because.as_deref()),
    }
}

fn figures(document: &StudyDocument) -> Vec<Figure> {
    let (all, came_out) = document.expected();
    let rows = document.rows().count();
    let had = document.rows().filter(|(_, row)| row.ours.is_some()).count();
    let nearness: Vec<bool> = document.rows().filter_map(|(_, row)| row.is_near()).collect();
    let near = nearness.iter().filter(|is_near| **is_near).count();
    vec![
        Figure::new(
            "As reported",
            count(near as u64),
            "",
            format!("of {}, within a factor of {}", count(nearness.len() as u64), StudyRow::NEAR),
        ),
        Figure::new("Field reports", count(document.studies.len() as u64), "", String::new()),
        Figure::new("Figures", count(had as u64), "", format!("of {}", count(rows as u64))),
        Figure::new(
            "As expected",
            count(came_out as u64),
            "",
            format!("of {} with an expectation", count(all as u64)),
        ),
    ]
}

fn facts(document: &StudyDocument) -> Vec<Fact> {
    let own = [("Measured on", document.on.clone())];
    facts_of(own, &document.environment, document.run_directory.as_ref())
}
