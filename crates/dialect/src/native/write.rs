//! Formatting of a scenario as TOML.

use plumb_workload::Scenario;

use super::words::Words;

/// Formats `scenario` for [`read()`](super::read()): words that differ from the defaults, with units, those
/// common to all jobs first.
pub fn write(scenario: &Scenario) -> String {
    let mut spans: Vec<(Words, Vec<Words>)> = Vec::with_capacity(scenario.spans.len());
    for span in &scenario.spans {
        let mut jobs: Vec<Words> = span.jobs.iter().map(Words::of_job).collect();
        let mut words = Words::of_span(span);
        words.extend(&Words::take_common(&mut jobs.iter_mut().collect::<Vec<_>>()));
        spans.push((words, jobs));
    }
    let file = Words::take_common(&mut spans.iter_mut().map(|(words, _)| words).collect::<Vec<_>>());
    let mut text = file.lines();
    let is_single = spans.len() == 1;
    for (words, jobs) in spans {
        if !is_single {
            text += &format!("\n[[span]]\n{}", words.lines());
        }
        // The words of a single job are all common.
        for job in jobs.iter().filter(|_| jobs.len() > 1) {
            text += &format!("\n[[{}job]]\n{}", if is_single { "" } else { "span." }, job.lines());
        }
    }
    text
}
