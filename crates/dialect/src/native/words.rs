//! Words with their values, before translation.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use plumb_application::Limits;
use plumb_block::Nanos;

use super::rules;
use super::table::{self, Takes, Word};
use super::vocabulary::Vocabulary;
use crate::error::Error;

/// Words with values of the right form, each word at most once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Words(Vec<(&'static str, Value)>);

/// Value of a word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Value of a flag.
    Flag(bool),
    /// Text form of a value.
    Text(String),
    /// Targets.
    Texts(Vec<String>),
}

impl Words {
    /// Parses words in shell syntax: `--random --write 100 'a file'`.
    ///
    /// # Errors
    /// An unterminated quote, an unknown word, or an invalid value.
    pub fn of_line(line: &str) -> Result<Self, Error> {
        let arguments = split(line).ok_or_else(|| Error::new(line, "a quote has no end"))?;
        Self::of_arguments(arguments)
    }

    /// Parses words that are already split into arguments.
    ///
    /// # Errors
    /// Fails as [`of_line`](Self::of_line).
    pub fn of_arguments(arguments: Vec<String>) -> Result<Self, Error> {
        let line = arguments.join(" ");
        let known = Self::augment_args(Command::new("words").no_binary_name(true).disable_help_flag(true));
        let matches = known.try_get_matches_from(arguments).map_err(|error| {
            let said = error.to_string();
            let problem = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Error::new(line, problem).remedy("`plumb load --help` lists the words")
        })?;
        let words =
            Self::from_arg_matches(&matches).map_err(|error| Error::new("words", error.to_string()))?;
        rules::check_agreement(&words).map_err(|error| error.typed())?;
        Ok(words)
    }

    /// Returns these words, with those of `outer` that they neither replace nor contradict as defaults.
    /// Targets replace targets and a file replaces a file, but neither replaces the other.
    #[must_use]
    pub fn within(&self, outer: &Self) -> Self {
        let mut words = outer.clone();
        words.retain(|word| !rules::gives_way(word, self));
        words.extend(self);
        let mut targets = self.targets();
        let is_replaced =
            |name: &String| targets.iter().any(|nearer| is_file_of_words(nearer) == is_file_of_words(name));
        let kept: Vec<String> = outer.targets().into_iter().filter(|name| !is_replaced(name)).collect();
        targets.extend(kept);
        if !targets.is_empty() {
            words.say("targets", Value::Texts(targets));
        }
        words
    }

    /// Returns the first word of `outer`, except targets, that these words replace or contradict.
    pub fn replaced_of(&self, outer: &Self) -> Option<&'static str> {
        let is_replaced = |word: &str| self.get(word).is_some() || rules::gives_way(word, self);
        outer.words().find(|word| *word != "targets" && is_replaced(word))
    }

    /// Returns the targets.
    pub fn targets(&self) -> Vec<String> {
        match self.get("targets") {
            Some(Value::Texts(targets)) => targets.clone(),
            _ => Vec::new(),
        }
    }

    /// Returns the duration of the measurement, if given.
    pub fn duration(&self) -> Option<Nanos> {
        self.value("duration")
    }

    /// Returns the TOML file among the targets, if any, and the other words.
    ///
    /// # Errors
    /// Fails if there are two files.
    pub fn file(&self) -> Result<Option<(String, Self)>, Error> {
        let (files, targets): (Vec<String>, Vec<String>) =
            self.targets().into_iter().partition(|target| is_file_of_words(target));
        let file = match &files[..] {
            [] => return Ok(None),
            [file] => file.clone(),
            [_, other, ..] => {
                return Err(Error::new(other, "a second file of words: run one after the other"));
            }
        };
        let mut beside = self.clone();
        beside.retain(|word| word != "targets");
        if !targets.is_empty() {
            beside.say("targets", Value::Texts(targets));
        }
        Ok(Some((file, beside)))
    }

    /// Returns the limits for an application profile, which determines everything else; the seed is
    /// `default_seed` unless given.
    ///
    /// # Errors
    /// A word that the profile determines.
    pub fn profile_limits(&self, default_seed: u64) -> Result<Limits, Error> {
        const TAKEN: [&str; 5] = ["targets", "duration", "count", "threads", "seed"];
        if let Some(other) = self.words().find(|word| self.has(word) && !TAKEN.contains(word)) {
            let problem = "the profile decides this; with --profile only a target, --duration, --count, --threads and \
                           --seed can be given";
            return Err(Error::new(format!("--{other}"), problem));
        }
        Ok(Limits {
            duration: self.value("duration"),
            count: self.value("count"),
            threads: self.value("threads"),
            scale: None,
            seed: self.value("seed").unwrap_or(default_seed),
        })
    }

    /// Returns the names of all words.
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(word, _)| *word)
    }

    fn get(&self, word: &str) -> Option<&Value> {
        self.0.iter().find(|(said, _)| *said == word).map(|(_, value)| value)
    }

    /// Returns true if `word` is present and not negated.
    pub(super) fn has(&self, word: &str) -> bool {
        self.get(word).is_some_and(|value| *value != Value::Flag(false))
    }

    /// Returns true if the flag `word` is negated.
    pub(super) fn denies(&self, word: &str) -> bool {
        self.get(word) == Some(&Value::Flag(false))
    }

    /// Returns the text value of `word`.
    pub(super) fn text(&self, word: &str) -> Option<&str> {
        match self.get(word)? {
            Value::Text(text) => Some(text),
            Value::Flag(_) | Value::Texts(_) => None,
        }
    }

    /// Returns the value of `word` as a `T`.
    pub(super) fn value<T: Vocabulary>(&self, word: &str) -> Option<T> {
        self.text(word).and_then(T::parse)
    }

    /// Sets `word` unless `value` is the default.
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

    /// Sets `word` if there is a value.
    pub(super) fn say_some<T: Vocabulary>(&mut self, word: &'static str, value: Option<T>) {
        if let Some(value) = value {
            self.say(word, Value::Text(value.show()));
        }
    }

    /// Sets the flag `word` if `holds`.
    pub(super) fn say_flag(&mut self, word: &'static str, holds: bool) {
        if holds {
            self.say(word, Value::Flag(true));
        }
    }

    /// Sets `word`, replacing an earlier value.
    #[inline(never)]
    pub(super) fn say(&mut self, word: &'static str, value: Value) {
        match self.0.iter_mut().find(|(said, _)| *said == word) {
            Some((_, said)) => *said = value,
            None => self.0.push((word, value)),
        }
    }

    /// Sets all words of `other`.
    pub(super) fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|(word, value)| self.say(word, value.clone()));
    }

    /// Removes the words for which `holds` returns false.
    pub(super) fn retain(&mut self, holds: impl Fn(&str) -> bool) {
        self.0.retain(|(word, _)| holds(word));
    }

    /// Removes the words that all of `words` have with equal values, and returns them.
    pub(super) fn take_common(words: &mut [&mut Self]) -> Self {
        let Some((first, others)) = words.split_first() else { return Self::default() };
        let mut common = (*first).clone();
        common.0.retain(|(word, value)| others.iter().all(|other| other.get(word) == Some(value)));
        for each in words {
            each.retain(|word| common.get(word).is_none());
        }
        common
    }

    /// Formats the words as lines of TOML, in table order.
    pub(super) fn lines(&self) -> String {
        let line = |word: &Word| Some(format!("{} = {}\n", word.name, as_toml(word, self.get(word.name)?)));
        table::all().iter().filter_map(line).collect()
    }
}

/// Returns a value in its TOML form: integers as such, lists as arrays.
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
        command.args(table::all().iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(word: &'static Word) -> Arg {
    let argument = Arg::new(word.name).help(word.help);
    if matches!(word.takes, Takes::Texts) {
        return argument.value_name(word.value_name).action(ArgAction::Append);
    }
    let argument = argument.long(word.name).help_heading(word.heading);
    let Takes::Value(form) = word.takes else {
        let is_flag = matches!(word.takes, Takes::Nothing);
        return if is_flag {
            argument.action(ArgAction::SetTrue)
        } else {
            argument.value_name(word.value_name)
        };
    };
    let argument = argument.value_name(word.value_name);
    // `plumb check` uses the alias.
    let argument = if word.name == "duration" { argument.visible_alias("seconds") } else { argument };
    let names = (form.names)();
    if !names.is_empty() {
        return argument.value_parser(PossibleValuesParser::new(names));
    }
    argument.value_parser(move |text: &str| {
        (form.accepts)(text).then(|| text.to_owned()).ok_or(format!("expected {}", form.expected))
    })
}

impl FromArgMatches for Words {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |word: &Word| match word.takes {
            Takes::Nothing => matches.get_flag(word.name).then_some(Value::Flag(true)),
            Takes::Texts => matches.get_many(word.name).map(|texts| Value::Texts(texts.cloned().collect())),
            Takes::Text | Takes::Value(_) => matches.get_one(word.name).cloned().map(Value::Text),
        };
        Ok(Self(table::all().iter().filter_map(|word| Some((word.name, value(word)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.extend(&Self::from_arg_matches(matches)?);
        Ok(())
    }
}

/// Returns true if a target is a file of words: it ends in `.toml` and is not the model of a simulated drive.
fn is_file_of_words(target: &str) -> bool {
    target.ends_with(".toml") && !target.starts_with("sim:")
}

/// Splits a line into arguments by the quoting rules of a shell; `None` for an unterminated quote.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut arguments = Vec::new();
    let mut argument: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => arguments.extend(argument.take()),
            '\'' | '"' => {
                let quoted = argument.get_or_insert_default();
                loop {
                    match letters.next()? {
                        end if end == letter => break,
                        '\\' if letter == '"' => quoted.push(letters.next()?),
                        other => quoted.push(other),
                    }
                }
            }
            '\\' => argument.get_or_insert_default().push(letters.next()?),
            other => argument.get_or_insert_default().push(other),
        }
    }
    arguments.extend(argument);
    Some(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parted_as_a_shell_does() {
        let parted = |line: &str| split(line).map(|words| words.join("|"));
        assert_eq!(
            parted(r#" --write 100  'a file' "b \"c" d\ e '' "#).unwrap(),
            r#"--write|100|a file|b "c|d e|"#
        );
        assert_eq!(parted("'a"), None);
        assert_eq!(parted("a\\"), None);
    }

    #[test]
    fn nearer_words_replace_and_contradict_outer_ones() {
        let of = |line: &str| Words::of_line(line).unwrap();
        let in_any_order = |words: Words| words.0.into_iter().collect::<std::collections::BTreeMap<_, _>>();
        let outer = of("--direct --write 100 --depth 8 x.dat");
        let nearer = of("--cached --depth 4").within(&outer);
        assert_eq!(in_any_order(nearer), in_any_order(of("--cached --write 100 --depth 4 x.dat")));
        let of_file = of("sim:null").within(&of("w.toml x.dat"));
        assert_eq!(of_file.targets(), ["sim:null", "w.toml"]);
        assert_eq!(of("v.toml").within(&of("w.toml x.dat")).targets(), ["v.toml", "x.dat"]);
        assert!(Words::of_line("--cached --direct").is_err());
        assert!(Words::of_line("--nothing").unwrap_err().to_string().contains("--nothing"));
    }
}
