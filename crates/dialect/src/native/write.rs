//! A scenario as a TOML file.

use plumb_workload::Scenario;
use toml::Table;

use super::words::Words;

/// `scenario` in words, as [`read()`](super::read()) reads them: what differs from the defaults, sizes and times with
/// their units, and what all jobs have in common first.
pub fn write(scenario: &Scenario) -> String {
    let mut spans: Vec<(Table, Vec<Table>)> = Vec::with_capacity(scenario.spans.len());
    for span in &scenario.spans {
        let mut jobs: Vec<Table> = span.jobs.iter().map(|job| Words::of_job(job).table()).collect();
        let mut words = Words::of_span(span).table();
        words.extend(take_common(&mut jobs.iter_mut().collect::<Vec<_>>()));
        spans.push((words, jobs));
    }
    let file = take_common(&mut spans.iter_mut().map(|(words, _)| words).collect::<Vec<_>>());
    let mut text = show(file);
    let is_single = spans.len() == 1;
    for (words, jobs) in spans {
        if !is_single {
            text += &format!("\n[[span]]\n{}", show(words));
        }
        // All that a single job says is common to all jobs.
        let jobs = if jobs.len() > 1 { jobs } else { Vec::new() };
        for job in jobs {
            text += &format!("\n[[{}job]]\n{}", if is_single { "" } else { "span." }, show(job));
        }
    }
    text
}

/// Takes from all tables what they all say.
fn take_common(tables: &mut [&mut Table]) -> Table {
    let Some((first, others)) = tables.split_first() else { return Table::new() };
    let mut common = Table::clone(first);
    common.retain(|word, value| others.iter().all(|other| other.get(word) == Some(value)));
    for table in tables {
        table.retain(|word, _| !common.contains_key(word));
    }
    common
}

/// The words in their order, one a line.
fn show(words: Table) -> String {
    toml::to_string(&Words::of_table(words))
        .expect("words are strings, integers, booleans and arrays of these")
}
