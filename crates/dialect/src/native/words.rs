//! What was typed or written: words with their values, before it is known what they mean together.

use std::collections::{BTreeMap, BTreeSet};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use plumb_block::Nanos;

use super::table::{self, Takes, Word};
use super::vocabulary::Vocabulary;
use crate::error::Error;

/// Words with their values. Each value has the form that its word takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Words(BTreeMap<&'static str, Value>);

/// The value of a word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Of a flag.
    Flag(bool),
    /// Of any other word but the targets: its text form.
    Text(String),
    /// The targets.
    Texts(Vec<String>),
}

impl Words {
    /// The targets that are named.
    pub fn targets(&self) -> Vec<String> {
        match self.0.get("targets") {
            Some(Value::Texts(targets)) => targets.clone(),
            _ => Vec::new(),
        }
    }

    /// The TOML file that is meant, if one target that ends in `.toml` is all that was typed.
    pub fn file(&self) -> Option<String> {
        let mut targets = self.targets();
        let alone = self.0.len() == 1 && targets.len() == 1;
        targets.pop().filter(|target| alone && is_file_of_words(target))
    }

    /// How long and how an application profile is to run, which decides all else itself.
    ///
    /// # Errors
    /// A word that is about what a profile decides.
    pub fn profile_limits(&self) -> Result<ProfileLimits, Error> {
        const TAKEN: [&str; 5] = ["targets", "duration", "count", "threads", "seed"];
        if let Some(other) = self.said().into_iter().find(|word| !TAKEN.contains(word)) {
            let problem = "the profile decides this; with --profile only a target, --duration, --count, --threads and \
                           --seed can be given";
            return Err(Error::new(format!("--{other}"), problem));
        }
        Ok(ProfileLimits {
            duration: self.value("duration"),
            count: self.value("count"),
            threads: self.value("threads"),
            seed: self.value("seed"),
        })
    }

    /// The words that are said and not denied.
    pub(super) fn said(&self) -> BTreeSet<&'static str> {
        let affirmed = self.0.iter().filter(|(_, value)| **value != Value::Flag(false));
        affirmed.map(|(word, _)| *word).collect()
    }

    /// Whether the flag `word` is said.
    pub(super) fn has(&self, word: &str) -> bool {
        self.0.get(word) == Some(&Value::Flag(true))
    }

    /// Whether the flag `word` is denied.
    pub(super) fn denies(&self, word: &str) -> bool {
        self.0.get(word) == Some(&Value::Flag(false))
    }

    /// The text of `word`.
    pub(super) fn text(&self, word: &str) -> Option<&str> {
        match self.0.get(word)? {
            Value::Text(text) => Some(text),
            Value::Flag(_) | Value::Texts(_) => None,
        }
    }

    /// The value of `word`, which takes a `T`.
    pub(super) fn value<T: Vocabulary>(&self, word: &str) -> Option<T> {
        self.text(word).and_then(T::parse)
    }

    /// Says `word`, unless `value` is its default.
    pub(super) fn say_unless<T: Vocabulary + PartialEq>(
        &mut self,
        word: &'static str,
        value: &T,
        default: &T,
    ) {
        if value != default {
            self.say(word, Value::Text(value.show()));
        }
    }

    /// Says `word`, if there is a value.
    pub(super) fn say_some<T: Vocabulary>(&mut self, word: &'static str, value: Option<T>) {
        self.0.extend(value.map(|value| (word, Value::Text(value.show()))));
    }

    /// Says the flag `word`, if it holds.
    pub(super) fn say_flag(&mut self, word: &'static str, holds: bool) {
        self.0.extend(holds.then_some((word, Value::Flag(true))));
    }

    /// Says `word`.
    pub(super) fn say(&mut self, word: &'static str, value: Value) {
        self.0.insert(word, value);
    }

    /// These words, and those of `outer` that `holds` keeps and these do not replace.
    pub(super) fn within(&self, outer: &Self, holds: impl Fn(&str) -> bool) -> Self {
        let kept = outer.0.iter().filter(|(word, _)| holds(word));
        let mut all: BTreeMap<&'static str, Value> =
            kept.map(|(word, value)| (*word, value.clone())).collect();
        all.extend(self.0.clone());
        Self(all)
    }

    /// Takes out what all of `words` say alike.
    pub(super) fn take_common(words: &mut [&mut Self]) -> Self {
        let Some((first, others)) = words.split_first() else { return Self::default() };
        let mut common = first.0.clone();
        common.retain(|word, value| others.iter().all(|other| other.0.get(word) == Some(value)));
        for each in words {
            each.0.retain(|word, _| !common.contains_key(word));
        }
        Self(common)
    }

    /// Adds the words of `other`.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The words as lines of TOML, in their order.
    pub(super) fn lines(&self) -> String {
        let line = |word: &Word| Some(format!("{} = {}\n", word.name, as_toml(word, self.0.get(word.name)?)));
        table::all().filter_map(line).collect()
    }
}

/// A value as a file holds it: whole numbers as such, lists as arrays.
fn as_toml(word: &Word, value: &Value) -> toml::Value {
    let number_or_text = |text: &str| match text.parse::<i64>() {
        Ok(number) => toml::Value::Integer(number),
        Err(_) => toml::Value::from(text),
    };
    match (value, word.takes) {
        (Value::Flag(holds), _) => toml::Value::from(*holds),
        (Value::Texts(texts), _) => toml::Value::from(texts.clone()),
        (Value::Text(text), Takes::Value(form)) if form.is_list => {
            toml::Value::Array(text.split(',').map(number_or_text).collect())
        }
        (Value::Text(text), Takes::Value(_)) => number_or_text(text),
        (Value::Text(text), _) => toml::Value::from(text.as_str()),
    }
}

impl Args for Words {
    fn augment_args(command: Command) -> Command {
        let arguments = table::GROUPS.iter().flat_map(|(heading, words)| {
            words.iter().map(move |word| match word.takes {
                Takes::Texts => argument(word),
                _ => argument(word).long(word.name).help_heading(*heading),
            })
        });
        command.args(arguments)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(word: &'static Word) -> Arg {
    let argument = Arg::new(word.name).help(word.help);
    if matches!(word.takes, Takes::Nothing) {
        return argument.action(ArgAction::SetTrue);
    }
    let argument = argument.value_name(word.value_name);
    match word.takes {
        Takes::Texts => argument.action(ArgAction::Append),
        Takes::Nothing | Takes::Text => argument,
        Takes::Value(form) => {
            let names = (form.names)();
            if names.is_empty() {
                argument.value_parser(move |text: &str| {
                    (form.accepts)(text).then(|| text.to_owned()).ok_or(format!("expected {}", form.expected))
                })
            } else {
                argument.value_parser(PossibleValuesParser::new(names))
            }
        }
    }
}

impl FromArgMatches for Words {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |word: &Word| match word.takes {
            Takes::Nothing => matches.get_flag(word.name).then_some(Value::Flag(true)),
            Takes::Texts => matches.get_many(word.name).map(|texts| Value::Texts(texts.cloned().collect())),
            Takes::Text | Takes::Value(_) => matches.get_one(word.name).cloned().map(Value::Text),
        };
        Ok(Self(table::all().filter_map(|word| Some((word.name, value(word)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.extend(Self::from_arg_matches(matches)?);
        Ok(())
    }
}

/// Whether a target is rather a file of words: it ends in `.toml`, and is no model of a simulated drive.
pub fn is_file_of_words(target: &str) -> bool {
    target.ends_with(".toml") && !target.starts_with("sim:")
}

/// How long and how an application profile is to run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProfileLimits {
    /// For so long.
    pub duration: Option<Nanos>,
    /// So many transactions.
    pub count: Option<u64>,
    /// By so many threads.
    pub threads: Option<u32>,
    /// From this seed.
    pub seed: Option<u64>,
}
