//! Table of all words, from `words.txt`. The flags of `plumb load`, the keys of files and the manual derive
//! from it.

use std::sync::LazyLock;

use plumb_block::{Bytes, Nanos};
use plumb_workload::{
    Affinity, Amount, Arrival, BlockSplit, Content, Distribution, Division, DurableWrite, EngineChoice,
    LatencyTarget, Layout, PageCache, Priority, Skip, TraceSpeed, Walk, Warmup,
};

use super::vocabulary::{SyncKind, Vocabulary, Weights};

/// A word.
pub(super) struct Word {
    /// Key in a file, and flag without dashes.
    pub(super) name: &'static str,
    /// Name of the value in the help.
    pub(super) value_name: &'static str,
    /// Heading in the help.
    pub(super) heading: &'static str,
    /// One line of help.
    pub(super) help: &'static str,
    /// Kind of value that the word takes.
    pub(super) takes: Takes,
}

/// Kind of value of a word.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    /// Flag on a command line, boolean in a file.
    Nothing,
    /// Any text.
    Text,
    /// One or more texts; positional on a command line.
    Texts,
    /// Value of a type with its own form.
    Value(Form),
}

/// Text form of a type.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Continuation of "expected ..." in messages.
    pub(super) expected: &'static str,
    /// True if a file contains it as an array.
    pub(super) is_list: bool,
    /// All values, if there are few; else empty.
    pub(super) names: fn() -> Vec<&'static str>,
    /// Function that returns true if a text has this form.
    pub(super) accepts: fn(&str) -> bool,
}

impl Takes {
    /// Returns the continuation of "expected ..." in messages.
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Nothing => "true or false",
            Self::Text => "a string",
            Self::Texts => "a target or an array of targets, each a string",
            Self::Value(form) => form.expected,
        }
    }
}

/// Words about a span as a whole.
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

/// Returns all words in order.
pub(super) fn all() -> &'static [Word] {
    &WORDS
}

/// Returns the word `name`.
pub(super) fn find(name: &str) -> Option<&'static Word> {
    all().iter().find(|word| word.name == name)
}

/// Returns the kind of value of the word `name`.
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
