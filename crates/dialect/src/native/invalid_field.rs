//! Mapping of an invalid field of a scenario to the word that set it.

use plumb_workload::{Invalid, Scenario};

use super::word_error::WordError;
use super::words::Words;
use super::{foreign, table};
use crate::Error;

/// Prefixes of field names of jobs and spans, and the words that may have set them, likeliest first. Other
/// fields have the name of their word.
const FIELDS: [(&str, &[&str]); 29] = [
    ("targets[", &["weights", "targets"]),
    ("opening.engine", &["engine", "mapped"]),
    ("opening.flush", &["sync-kind", "mapped"]),
    ("opening.untorn", &["atomic"]),
    ("opening", &["cached", "drop-behind", "mapped", "direct"]),
    ("trace.speed", &["trace-speed"]),
    ("trace.scale", &["trace-scale"]),
    ("trace.align", &["trace-align"]),
    ("trace.skip", &["trace-skip"]),
    ("trace", &["trace"]),
    ("workload.blocks.read", &["block-size"]),
    ("workload.blocks.write", &["write-block-size", "block-size"]),
    ("workload.blocks.trim", &["trim-block-size", "block-size"]),
    ("workload.write_percent", &["write"]),
    ("workload.trim_percent", &["trim"]),
    ("workload.stop.operations", &["count"]),
    ("workload.stop.bytes", &["bytes"]),
    ("workload.stop", &["duration"]),
    ("workload.durability.flush_every", &["sync-every"]),
    ("workload.durability.flush_at_end", &["sync-at-end"]),
    ("workload.durability.fua_every", &["dsync", "dsync-every", "sync-every"]),
    ("workload.burst.operations", &["burst"]),
    ("workload.length", &["length", "size"]),
    ("workload.access.random.runs", &["run-length", "random-percent"]),
    ("workload.access.random.align", &["align"]),
    ("workload.access.random.distribution", &["distribution"]),
    ("workload.access.sequential.stride", &["stride"]),
    ("workload.access.sequential.walk", &["walk"]),
    ("jobs", &["targets"]),
];

/// An invalid field: its span, its job, and the rest of its name.
pub(crate) struct InvalidField {
    /// Index of the span.
    pub(crate) span: usize,
    /// Index of the job in the span; 0 for a field of the span.
    pub(crate) job: usize,
    field: String,
    invalid: Invalid,
}

impl InvalidField {
    /// Parses the name of a field of a scenario.
    pub(crate) fn from_invalid(invalid: Invalid) -> Self {
        let (span, rest) = numbered(&invalid.field, "spans[");
        let (job, rest) = numbered(rest, "jobs[");
        let field = rest.to_owned();
        Self { span: span.unwrap_or(0), job: job.unwrap_or(0), field, invalid }
    }

    /// Returns the word with the name of the field or of its longest prefix: `steady` for
    /// `steady.rounds_max`.
    fn namesake(&self) -> Option<&'static str> {
        let mut fields = self.field.split('.');
        fields.find_map(|field| table::find(&field.replace('_', "-"))).map(|word| word.name)
    }

    /// Returns the words that may have set the field, likeliest first.
    fn words(&self) -> Vec<&'static str> {
        match FIELDS.iter().find(|(field, _)| self.field.starts_with(field)) {
            Some((_, words)) => words.to_vec(),
            None => vec![self.namesake().unwrap_or("targets")],
        }
    }

    /// Returns the error, attributed to one of the words in `said` if possible, else to the likeliest word.
    pub(super) fn error(self, said: &Words) -> WordError {
        let words = self.words();
        let word = words.iter().find(|word| said.has(word)).unwrap_or(&words[0]);
        WordError::unexpected(word, self.invalid.value, self.invalid.expected)
    }

    /// Returns the options of `program` that may have set the field, likeliest first.
    pub(crate) fn called_in(&self, program: &str) -> Vec<&'static str> {
        self.words().iter().filter_map(|word| foreign::called(program, word)).collect()
    }

    /// Returns the problem in the terms of `program`.
    pub(crate) fn problem_in(&self, program: &str) -> String {
        let word = self.called_in(program).first().copied().unwrap_or_else(|| self.words()[0]);
        format!("{word} is {}: expected {}", self.invalid.value, self.invalid.expected)
    }
}

/// Checks a scenario that was typed for `program`; the error names the target.
///
/// # Errors
/// The first invalid field.
pub(crate) fn check(scenario: &Scenario, program: &str) -> Result<(), Error> {
    scenario.validate().map_err(|invalid| {
        let field = InvalidField::from_invalid(invalid);
        let job = scenario.spans.get(field.span).and_then(|span| span.jobs.get(field.job));
        let target = job.and_then(|job| job.targets.first());
        Error::new(target.map_or("the command line", |target| &target.name), field.problem_in(program))
    })
}

/// Splits `spans[3].rest` into 3 and `rest`.
fn numbered<'a>(field: &'a str, list: &str) -> (Option<usize>, &'a str) {
    let taken = field.strip_prefix(list).and_then(|rest| rest.split_once(']'));
    let parsed = taken.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
    parsed.map_or((None, field), |(number, rest)| (Some(number), rest.trim_start_matches('.')))
}
