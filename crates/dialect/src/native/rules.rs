//! Rules about combinations of words: contradictions and prerequisites.

use super::word_error::WordError;
use super::words::Words;

/// Each of the first words contradicts each of the second.
const CONTRADICTIONS: [(&str, &str); 9] = [
    ("random", "sequential stride walk"),
    ("align distribution random-percent run-length", "sequential stride walk"),
    ("random-percent", "run-length"),
    ("direct", "cached drop-behind mapped"),
    ("cached", "drop-behind mapped"),
    ("drop-behind", "mapped"),
    ("atomic", "cached drop-behind mapped append"),
    ("dsync", "dsync-every"),
    ("trace trace-speed trace-scale trace-align trace-skip", TRACE_SAYS),
];

/// Words that a trace determines, or that a replay does not support.
const TRACE_SAYS: &str = "append weights offset length division block-size write-block-size trim-block-size write trim \
    random sequential stride walk align distribution random-percent run-length verify sync-at-end \
    dsync depth-shared same-threads threads rate arrival burst pause count bytes";

/// The first word requires one of the others.
const NEEDS: [(&str, &str); 10] = [
    ("weights", "depth-shared"),
    ("sync-kind", "sync-every sync-at-end"),
    ("durable-write", "dsync dsync-every sync-kind"),
    ("arrival", "rate"),
    ("burst", "pause"),
    ("pause", "burst"),
    ("trace-speed", "trace"),
    ("trace-scale", "trace"),
    ("trace-align", "trace"),
    ("trace-skip", "trace"),
];

/// Returns true if the default `inherited` yields to one of the more specific words `said`.
pub(super) fn gives_way(inherited: &str, said: &Words) -> bool {
    let has = |words: &str| words.split(' ').any(|word| said.has(word));
    let is_in = |words: &str| words.split(' ').any(|word| word == inherited);
    CONTRADICTIONS.iter().any(|(left, right)| (is_in(left) && has(right)) || (is_in(right) && has(left)))
}

/// Checks that no two words contradict each other.
pub(super) fn check_agreement(said: &Words) -> Result<(), WordError> {
    let find = |words: &'static str| words.split(' ').find(|word| said.has(word));
    for (left, right) in CONTRADICTIONS {
        if let (Some(one), Some(other)) = (find(left), find(right)) {
            return Err(WordError::contradiction(one, other));
        }
    }
    Ok(())
}

/// Checks that all prerequisites are met, for the complete words of a job.
pub(super) fn check_completeness(said: &Words) -> Result<(), WordError> {
    for (word, needed) in NEEDS {
        if said.has(word) && !needed.split(' ').any(|word| said.has(word)) {
            return Err(WordError::need(word, needed));
        }
    }
    Ok(())
}
