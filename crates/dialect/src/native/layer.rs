//! Words of one table of a TOML file: the file itself, a span, or a job.

use plumb_text::nearest;
use toml::de::{DeTable, DeValue};

use super::foreign;
use super::lines::Lines;
use super::rules;
use super::table::{self, SPAN_WORDS, Takes, Word};
use super::word_error::WordError;
use super::words::{Value, Words};
use crate::{Error, may_be_suggested};

/// Words with their positions.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) words: Words,
    /// Position of the table, for words that are not in it.
    place: String,
    /// Position of each word; `None` if it was typed on the command line.
    places: Vec<(&'static str, Option<String>)>,
}

/// Kind of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The file or a span.
    Span,
    /// A job of a span.
    Job,
}

impl Layer {
    /// Parses the words of `table` at `place`: known words with valid values and without contradictions.
    /// `inner` are the keys of nested tables.
    pub(super) fn of_table(
        table: &DeTable<'_>,
        place: String,
        scope: Scope,
        inner: &[&str],
        lines: &Lines<'_>,
    ) -> Result<Self, Error> {
        let mut words = Words::default();
        let mut places = Vec::new();
        for (key, value) in table.iter().filter(|(key, _)| !inner.contains(&key.get_ref().as_ref())) {
            let place = lines.place(key.span().start);
            let word = find_word(key.get_ref(), &place, scope, inner)?;
            let value = value_of(word, value.get_ref()).ok_or_else(|| {
                let (found, expected) = (lines.quote(value.span()), word.takes.expected());
                Error::new(&place, format!("{}: found {found}, expected {expected}", word.name))
            })?;
            words.say(word.name, value);
            places.push((word.name, Some(place)));
        }
        let layer = Self { words, place, places };
        rules::check_agreement(&layer.words).map_err(|error| layer.located(&error))?;
        Ok(layer)
    }

    /// Returns these words, with those of `outer` that they neither replace nor contradict as defaults.
    pub(super) fn within(&self, outer: &Self) -> Self {
        let words = self.words.within(&outer.words);
        let places = self.places.iter().chain(&outer.places).cloned().collect();
        Self { words, place: self.place.clone(), places }
    }

    /// Returns these words with the `typed` ones replacing those of the same name or in contradiction.
    pub(super) fn under(&self, typed: &Words) -> Self {
        let places = typed.words().map(|word| (word, None)).collect();
        Self { words: typed.clone(), place: self.place.clone(), places }.within(self)
    }

    /// Returns the error with the position of its word.
    pub(super) fn located(&self, error: &WordError) -> Error {
        match self.places.iter().find(|(said, _)| *said == error.word) {
            Some((_, None)) => error.typed(),
            Some((_, Some(place))) => error.written(place.clone()),
            None => error.written(self.place.clone()),
        }
    }
}

fn find_word(name: &str, place: &str, scope: Scope, inner: &[&str]) -> Result<&'static Word, Error> {
    if scope == Scope::Job && SPAN_WORDS.contains(&name) {
        let problem = format!("{name}: is about a span, not about one of its jobs");
        return Err(Error::new(place, problem).remedy("say it before the first job"));
    }
    if let Some(word) = table::find(name) {
        return Ok(word);
    }
    let shown: String = name.chars().take(40).collect();
    let error = Error::new(place, format!("{shown}: no such word"));
    let candidates = table::all().iter().map(|word| word.name).filter(|word| may_be_suggested(word));
    Err(match foreign::meant(name).or_else(|| nearest(&shown, candidates.chain(inner.iter().copied()))) {
        Some(near) => error.remedy(format!("did you mean {near}?")),
        None => error.remedy("`plumb load --help` lists the words, here without their dashes"),
    })
}

/// Parses the value of `word`; `None` if it has the wrong form.
fn value_of(word: &Word, value: &DeValue<'_>) -> Option<Value> {
    let text = |value: &DeValue<'_>| value.as_str().map(str::to_owned);
    match word.takes {
        Takes::Nothing => value.as_bool().map(Value::Flag),
        Takes::Text => text(value).map(Value::Text),
        Takes::Texts => match value {
            DeValue::Array(texts) => texts.iter().map(|each| text(each.get_ref())).collect(),
            _ => text(value).map(|text| vec![text]),
        }
        .map(Value::Texts),
        Takes::Value(form) => text_of(value).filter(|text| (form.accepts)(text)).map(Value::Text),
    }
}

/// Returns strings and numbers as text, and arrays of them separated by commas.
fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().ok().map(|number| number.to_string()),
        DeValue::Array(elements) => {
            let texts: Option<Vec<String>> = elements.iter().map(|each| text_of(each.get_ref())).collect();
            texts.map(|texts| texts.join(","))
        }
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}
