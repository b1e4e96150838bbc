//! Rules of the words that contradict each other, and of those that mean nothing without another.

use super::word_error::WordError;
use super::words::Words;

/// Any of the first with any of the second.
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

/// Words for what a trace says, or what a replay cannot do.
const TRACE_SAYS: &str = "append weights offset length division block-size write-block-size trim-block-size write trim \
    random sequential stride walk align distribution random-percent run-length verify sync-at-end \
    dsync depth-shared same-threads threads rate arrival burst pause count bytes";

/// The first means nothing without one of the others.
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

/// Returns true if `inherited`, a default, gives way to one of the words that are said nearer by.
pub(super) fn gives_way(inherited: &str, said: &Words) -> bool {
    let has = |words: &str| words.split(' ').any(|word| said.has(word));
    let is_in = |words: &str| words.split(' ').any(|word| word == inherited);
    CONTRADICTIONS.iter().any(|(left, right)| (is_in(left) && has(right)) || (is_in(right) && has(left)))
}

/// Checks that words given together do not contradict each other.
pub(super) fn check_agreement(said: &Words) -> Result<(), WordError> {
    let find = |words: &'static str| words.split(' ').find(|word| said.has(word));
    for (left, right) in CONTRADICTIONS {
        if let (Some(one), Some(other)) = (find(left), find(right)) {
            return Err(WordError::contradiction(one, other));
        }
    }
    Ok(())
}

/// All words of a job together must make sense.
pub(super) fn check_completeness(said: &Words) -> Result<(), WordError> {
    for (word, needed) in NEEDS {
        if said.has(word) && !needed.split(' ').any(|word| said.has(word)) {
            return Err(WordError::need(word, needed));
        }
    }
    Ok(())
}
