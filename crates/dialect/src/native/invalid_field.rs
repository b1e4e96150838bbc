//! From a field of a scenario that makes no sense to the word that said it.

use plumb_workload::Invalid;

use super::word_error::WordError;
use super::words::Words;

/// Fields of a job and of a span by their beginnings, and the words that may have said them, likeliest first.
const FIELDS: [(&str, &[&str]); 51] = [
    ("name", &["name"]),
    ("targets[", &["weights", "targets"]),
    ("targets", &["targets"]),
    ("threads_shared", &["threads-shared"]),
    ("same_threads", &["same-threads"]),
    ("threads", &["threads"]),
    ("depth_shared", &["depth-shared"]),
    ("opening.engine", &["engine", "mapped"]),
    ("opening.flush", &["sync-kind", "mapped"]),
    ("opening", &["cached", "drop-behind", "mapped", "direct"]),
    ("append", &["append"]),
    ("page_cache", &["page-cache"]),
    ("affinity", &["affinity"]),
    ("start_delay", &["start-delay"]),
    ("steady", &["steady"]),
    ("trace.path", &["trace"]),
    ("trace.speed", &["trace-speed"]),
    ("trace.scale", &["trace-scale"]),
    ("trace.align", &["trace-align"]),
    ("trace.skip", &["trace-skip"]),
    ("trace", &["trace"]),
    ("latency_target", &["latency-target"]),
    ("workload.blocks.read", &["block-size"]),
    ("workload.blocks.write", &["write-block-size", "block-size"]),
    ("workload.blocks.trim", &["trim-block-size", "block-size"]),
    ("workload.write_percent", &["write"]),
    ("workload.trim_percent", &["trim"]),
    ("workload.depth", &["depth"]),
    ("workload.stop.duration", &["duration"]),
    ("workload.stop.operations", &["count"]),
    ("workload.stop.bytes", &["bytes"]),
    ("workload.stop", &["duration"]),
    ("workload.durability.flush_every", &["sync-every"]),
    ("workload.durability.flush_at_end", &["sync-at-end"]),
    ("workload.durability.fua_every", &["dsync", "dsync-every", "sync-every"]),
    ("workload.rate", &["rate"]),
    ("workload.burst.operations", &["burst"]),
    ("workload.burst.pause", &["pause"]),
    ("workload.range.offset", &["offset"]),
    ("workload.range.length", &["length", "size"]),
    ("workload.access.random.align", &["align"]),
    ("workload.access.random.runs", &["run-length", "random-percent"]),
    ("workload.access.random.distribution", &["distribution"]),
    ("workload.access.sequential.stride", &["stride"]),
    ("workload.access.sequential.walk", &["walk"]),
    ("workload.division", &["division"]),
    ("workload.content", &["content"]),
    ("workload.verify", &["verify"]),
    ("workload.access", &["distribution"]),
    ("workload", &["block-size"]),
    ("jobs", &["targets"]),
];

/// Which job of which span an invalid field is in, and what is left of its name.
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
    pub(super) fn of(invalid: Invalid) -> Self {
        let (span, rest) = numbered(&invalid.field, "spans[");
        let (job, rest) = numbered(rest, "jobs[");
        let field = rest.to_owned();
        Self { span: span.unwrap_or(0), job: job.unwrap_or(0), field, invalid }
    }

    /// The error of the word among those that are said; else of the one that would say it.
    pub(super) fn error(self, said: &Words) -> WordError {
        let known = FIELDS.iter().find(|(field, _)| self.field.starts_with(field));
        let words = known.map_or(&["targets"][..], |(_, words)| words);
        let word = words.iter().find(|word| said.has(word)).unwrap_or(&words[0]);
        WordError::unexpected(word, self.invalid.value, self.invalid.expected)
    }
}

/// `spans[3].rest` is 3 and `rest`.
fn numbered<'a>(field: &'a str, list: &str) -> (Option<usize>, &'a str) {
    let taken = field.strip_prefix(list).and_then(|rest| rest.split_once(']'));
    let parsed = taken.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
    parsed.map_or((None, field), |(number, rest)| (Some(number), rest.trim_start_matches('.')))
}
