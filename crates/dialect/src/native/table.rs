//! All words, as data: `words.txt` has their names and help. Flags of `plumb load`, keys of a file and the
//! manual follow from it.

use std::sync::LazyLock;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Affinity, Amount, Arrival, BlockSplit, Content, Distribution, Division, DurableWrite, EngineChoice,
    LatencyTarget, Layout, PageCache, Priority, Skip, TraceSpeed, Walk, Warmup,
};

use super::vocabulary::{SyncKind, Vocabulary, Weights};

/// One word.
pub(super) struct Word {
    /// The key in a file; the flag has dashes before it.
    pub(super) name: &'static str,
    /// Name of its value in the help.
    pub(super) value_name: &'static str,
    /// The heading of the help under which it stands.
    pub(super) heading: &'static str,
    /// One line of help.
    pub(super) help: &'static str,
    /// Kind of value that the word takes.
    pub(super) takes: Takes,
}

/// Kind of value that a word takes.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    /// Nothing on a command line, true or false in a file.
    Nothing,
    /// Any text.
    Text,
    /// One or more texts; on a command line those without a flag.
    Texts,
    /// A value with a form of its own.
    Value(Form),
}

/// The text form of a type of values.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Completes the sentence "expected ...".
    pub(super) expected: &'static str,
    /// True if a file holds it as an array.
    pub(super) is_list: bool,
    /// All values, where there are few.
    pub(super) names: fn() -> Vec<&'static str>,
    /// Function that returns true if a text has this form.
    pub(super) accepts: fn(&str) -> bool,
}

impl Takes {
    /// Completes the sentence "expected ...".
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Nothing => "true or false",
            Self::Text => "a string",
            Self::Texts => "a target or an array of targets, each a string",
            Self::Value(form) => form.expected,
        }
    }
}

/// The words that are about a span rather than one of its jobs.
pub(super) const SPAN_WORDS: [&str; 5] = ["warmup", "cooldown", "precondition", "steady", "latency-target"];

static WORDS: LazyLock<Vec<Word>> = LazyLock::new(|| {
    let mut words = Vec::new();
    let mut heading = "";
    for line in include_str!("words.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(" | ") {
            None => heading = line.trim_matches(['[', ']']),
            Some((word, help)) => {
                let (name, value_name) = word.split_once(' ').unwrap_or((word, ""));
                words.push(Word { name, value_name, heading, help, takes: takes(name) });
            }
        }
    }
    words
});

/// Returns all words in their order.
pub(super) fn all() -> &'static [Word] {
    &WORDS
}

/// Returns the word of this name.
pub(super) fn find(name: &str) -> Option<&'static Word> {
    all().iter().find(|word| word.name == name)
}

/// Returns the kind of value that the word of this name takes.
fn takes(name: &str) -> Takes {
    match name {
        "targets" => Takes::Texts,
        "name" | "trace" => Takes::Text,
        "weights" => value::<Weights>(),
        "offset" | "length" | "size" | "stride" | "align" | "trace-align" | "bytes" => value::<Bytes>(),
        "division" => value::<Division>(),
        "block-size" | "write-block-size" | "trim-block-size" => value::<BlockSplit>(),
        "write" | "trim" | "random-percent" => value::<u8>(),
        "walk" => value::<Walk>(),
        "distribution" => value::<Distribution>(),
        "run-length" | "sync-every" | "dsync-every" | "depth" | "threads" | "burst" | "steady" => {
            value::<u32>()
        }
        "trace-speed" => value::<TraceSpeed>(),
        "trace-scale" | "seed" | "count" => value::<u64>(),
        "trace-skip" => value::<Skip>(),
        "content" => value::<Content>(),
        "sync-kind" => value::<SyncKind>(),
        "durable-write" => value::<DurableWrite>(),
        "rate" => value::<Amount>(),
        "arrival" => value::<Arrival>(),
        "pause" | "duration" | "cooldown" | "start-delay" => value::<Nanos>(),
        "latency-target" => value::<LatencyTarget>(),
        "warmup" => value::<Warmup>(),
        "page-cache" => value::<PageCache>(),
        "layout" => value::<Layout>(),
        "engine" => value::<EngineChoice>(),
        "affinity" => value::<Affinity>(),
        "priority" => value::<Priority>(),
        _ => Takes::Nothing,
    }
}

fn value<T: Vocabulary>() -> Takes {
    let accepts = |text: &str| T::parse(text).is_some();
    Takes::Value(Form { expected: T::EXPECTED, is_list: T::IS_LIST, names: T::names, accepts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_value_say_what_it_is_called() {
        assert_eq!(all().len(), 65);
        for (place, word) in all().iter().enumerate() {
            assert_eq!(matches!(word.takes, Takes::Nothing), word.value_name.is_empty(), "{}", word.name);
            assert!(all()[..place].iter().all(|earlier| earlier.name != word.name), "{} twice", word.name);
        }
        assert!(SPAN_WORDS.iter().all(|word| find(word).is_some()));
    }
}
