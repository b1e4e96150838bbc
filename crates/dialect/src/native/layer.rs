//! The words of one table of a file: of the file itself, a span, or a job.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::lines::Lines;
use super::rules;
use super::words::{SPAN_WORDS, Words};
use crate::Error;
use plumb_block::nearest;

/// Words with the places where they stand.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    /// The words.
    pub(super) words: Words,
    /// Where the table begins: the place of a word that is not said.
    place: String,
    places: BTreeMap<String, String>,
}

/// What a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All that is in the file, or a span.
    Span,
    /// One of the jobs of a span.
    Job,
}

impl Layer {
    /// The words of `table`, which begins at `place`; each is known, has a value of its kind, and contradicts no other.
    /// `inner` are the keys that hold further tables.
    pub(super) fn of_table(
        table: &DeTable<'_>,
        place: String,
        scope: Scope,
        inner: &[&str],
        lines: &Lines<'_>,
    ) -> Result<Self, Error> {
        let known = Words::all();
        let mut values = toml::Table::new();
        let mut places = BTreeMap::new();
        for (key, value) in table.iter().filter(|(key, _)| !inner.contains(&key.get_ref().as_ref())) {
            let word = key.get_ref().as_ref();
            let place = lines.place(key.span().start);
            check_word(word, &place, scope, known, inner)?;
            values.extend(said(key, value, &place, lines)?.table());
            places.insert(word.to_owned(), place);
        }
        let layer = Self { words: Words::of_table(values), place, places };
        rules::check_agreement(&layer.words.said())
            .map_err(|fault| fault.written(layer.place_of(fault.word)))?;
        Ok(layer)
    }

    /// These words, and of `outer` those that they neither replace nor contradict.
    pub(super) fn within(&self, outer: &Self) -> Self {
        let said = self.words.said();
        let mut values = outer.words.table();
        values.retain(|word, _| !rules::gives_way(word, &said));
        values.extend(self.words.table());
        let mut places = outer.places.clone();
        places.extend(self.places.clone());
        Self { words: Words::of_table(values), place: self.place.clone(), places }
    }

    /// Where `word` stands, or would.
    pub(super) fn place_of(&self, word: &str) -> String {
        self.places.get(word).unwrap_or(&self.place).clone()
    }
}

fn check_word(word: &str, place: &str, scope: Scope, known: &[String], inner: &[&str]) -> Result<(), Error> {
    if scope == Scope::Job && SPAN_WORDS.contains(&word) {
        let problem = format!("{word}: is about a span, not about one of its jobs");
        return Err(Error::new(place, problem).remedy("say it before the first job"));
    }
    if known.iter().any(|known| known == word) {
        return Ok(());
    }
    let shown: String = word.chars().take(40).collect();
    let error = Error::new(place, format!("{shown}: no such word"));
    let candidates: Vec<String> =
        known.iter().cloned().chain(inner.iter().map(|&inner| inner.to_owned())).collect();
    Err(match nearest(&shown, candidates.iter().map(String::as_str)) {
        Some(near) => error.remedy(format!("did you mean {near}?")),
        None => error.remedy("`plumb load --help` lists the words, here without their dashes"),
    })
}

/// The one word with its value.
fn said(
    key: &Spanned<toml::de::DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    place: &str,
    lines: &Lines<'_>,
) -> Result<Words, Error> {
    let mut alone = DeTable::new();
    alone.insert(key.clone(), value.clone());
    let alone = Spanned::new(value.span(), DeValue::Table(alone));
    serde::Deserialize::deserialize(ValueDeserializer::from(alone)).map_err(|error: toml::de::Error| {
        let expected = error.message().find("expected ").map_or(error.message(), |at| &error.message()[at..]);
        Error::new(place, format!("{}: found {}, {expected}", key.get_ref(), lines.quote(value.span())))
    })
}
