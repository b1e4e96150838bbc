//! From a field of a scenario that makes no sense to the word that said it.

use plumb_workload::Invalid;

use super::table;
use super::word_error::WordError;
use super::words::Words;

/// Fields of a job and of a span by their beginnings, and the words that may have said them, likeliest first.
/// Any other is called like its word.
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
    ("workload.range.length", &["length", "size"]),
    ("workload.access.random.runs", &["run-length", "random-percent"]),
    ("workload.access.random.align", &["align"]),
    ("workload.access.random.distribution", &["distribution"]),
    ("workload.access.sequential.stride", &["stride"]),
    ("workload.access.sequential.walk", &["walk"]),
    ("jobs", &["targets"]),
];

/// Place of an invalid field: its span, its job, and what is left of its name.
pub(super) struct InvalidField {
    /// The number of the span.
    pub(super) span: usize,
    /// The number of the job in it; the first if it is about the span.
    pub(super) job: usize,
    field: String,
    invalid: Invalid,
}

impl InvalidField {
    /// Takes the name of a field of a scenario apart.
    pub(super) fn from_invalid(invalid: Invalid) -> Self {
        let (span, rest) = numbered(&invalid.field, "spans[");
        let (job, rest) = numbered(rest, "jobs[");
        let field = rest.to_owned();
        Self { span: span.unwrap_or(0), job: job.unwrap_or(0), field, invalid }
    }

    /// Returns the word that the field is called like, or the first around it: `steady` of
    /// `steady.rounds_max`.
    fn namesake(&self) -> Option<&'static str> {
        let mut fields = self.field.split('.');
        fields.find_map(|field| table::find(&field.replace('_', "-"))).map(|word| word.name)
    }

    /// Returns the error of the word among those that are said; else of the one that would say it.
    pub(super) fn error(self, said: &Words) -> WordError {
        let word = match FIELDS.iter().find(|(field, _)| self.field.starts_with(field)) {
            Some((_, words)) => words.iter().find(|word| said.has(word)).unwrap_or(&words[0]),
            None => self.namesake().unwrap_or("targets"),
        };
        WordError::unexpected(word, self.invalid.value, self.invalid.expected)
    }
}

/// Splits `spans[3].rest` into 3 and `rest`.
fn numbered<'a>(field: &'a str, list: &str) -> (Option<usize>, &'a str) {
    let taken = field.strip_prefix(list).and_then(|rest| rest.split_once(']'));
    let parsed = taken.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
    parsed.map_or((None, field), |(number, rest)| (Some(number), rest.trim_start_matches('.')))
}
