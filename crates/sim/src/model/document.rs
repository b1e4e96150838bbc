//! Text of a model: values without their sources for parsing, and the position and source of each.

use plumb_text::nearest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error as TomlError};

use super::change::Change;
use super::error::ContentError;
use super::limits::Limits;

/// A value of a model with its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Path of the field, `flash.channels`.
    #[serde(rename = "name")]
    pub path: String,
    /// Value as written; strings without quotes.
    pub value: String,
    /// Source of the value, if given.
    pub source: Option<String>,
    /// Line number in the file, from 1.
    #[serde(skip)]
    pub line: usize,
}

/// Position of a value in the text.
struct Place {
    path: String,
    key: std::ops::Range<usize>,
    value: std::ops::Range<usize>,
}

/// A parsed TOML text.
pub(super) struct Document<'t> {
    file: &'t str,
    text: &'t str,
    root: Spanned<DeTable<'t>>,
    places: Vec<Place>,
    /// All values inside tables.
    pub(super) figures: Vec<Figure>,
    changes: &'t [Change],
}

impl<'t> Document<'t> {
    /// Parses `text` and applies `changes`; errors name `file`, or the change.
    pub(super) fn parse(
        file: &'t str,
        text: &'t str,
        changes: &'t [Change],
    ) -> Result<Self, Box<ContentError>> {
        let root = DeTable::parse(text).map_err(|error| not_toml(file, text, &error))?;
        let mut document = Self { file, text, root, places: Vec::new(), figures: Vec::new(), changes };
        let mut root = std::mem::replace(&mut document.root, Spanned::new(0..0, DeTable::new()));
        document.strip("", root.get_mut());
        for change in changes {
            document.change(root.get_mut(), change)?;
        }
        document.root = root;
        Ok(document)
    }

    /// Applies `change`, replacing any existing value.
    fn change(&mut self, root: &mut DeTable<'t>, change: &'t Change) -> Result<(), Box<ContentError>> {
        let mut table = root;
        let (above, key) = change.path.rsplit_once('.').unwrap_or(("", &change.path));
        for name in above.split('.') {
            let inner = table
                .entry(nowhere(Cow::Borrowed(name)))
                .or_insert_with(|| nowhere(DeValue::Table(DeTable::new())));
            let DeValue::Table(inner) = inner.get_mut() else {
                return Err(self.error(&change.path, "there is no such field"));
            };
            table = inner;
        }
        if table.get(key).is_some_and(|there| there.get_ref().is_table()) {
            return Err(self.error(&change.path, "it is a table: name one of its fields"));
        }
        table.insert(nowhere(Cow::Borrowed(key)), nowhere(change.as_toml()));
        self.figures.retain(|figure| figure.path != change.path);
        self.figures.push(Figure {
            path: change.path.clone(),
            value: change.value.clone(),
            source: Some("as asked for".to_owned()),
            line: 0,
        });
        self.figures.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(())
    }

    /// Returns true if there is a table `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.root.get_ref().contains_key(name)
    }

    /// Deserializes the whole document.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Box<ContentError>> {
        T::deserialize(Deserializer::from(self.root.clone())).map_err(|error| self.misread("", &error))
    }

    /// Deserializes the table `name` and checks its limits; a missing table counts as empty.
    pub(super) fn table<T: DeserializeOwned + Limits>(&self, name: &str) -> Result<T, Box<ContentError>> {
        let absent = nowhere(DeValue::Table(DeTable::new()));
        let value = self.root.get_ref().get(name).unwrap_or(&absent);
        let DeValue::Table(table) = value.get_ref() else { return Err(self.error(name, "expected a table")) };
        let spanned = Spanned::new(value.span(), table.clone());
        let table =
            T::deserialize(Deserializer::from(spanned)).map_err(|error| self.misread(name, &error))?;
        let mut check = super::limits::Check::default();
        table.limits(&mut check);
        match check.finish() {
            Some(violation) => Err(self.error(&format!("{name}.{}", violation.field), &violation.expected)),
            None => Ok(table),
        }
    }

    /// Creates an error at `field`, or at its nearest existing table.
    pub(super) fn error(&self, field: &str, expected: &str) -> Box<ContentError> {
        if let Some(change) = self.changes.iter().rev().find(|change| change.path == field) {
            return Box::new(change.error(self.file, expected));
        }
        let place = |path: &str| self.places.iter().find(|place| place.path == path);
        let exact = place(field);
        let mut above = field;
        let mut nearby = exact;
        while let (None, Some((parent, _))) = (nearby, above.rsplit_once('.')) {
            above = parent;
            nearby = place(parent);
        }
        Box::new(ContentError {
            file: self.file.to_owned(),
            line: nearby.map_or(1, |place| line_of(self.text, place.key.start)),
            field: field.to_owned(),
            value: exact.and_then(|place| self.written(&place.value)),
            expected: expected.to_owned(),
        })
    }

    /// Replaces every `{ value, source }` in `table` by its value, and records the positions.
    fn strip(&mut self, prefix: &str, table: &mut DeTable<'t>) {
        for (key, value) in table.iter_mut() {
            let path = if prefix.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{prefix}.{}", key.get_ref())
            };
            let mut source = None;
            if let DeValue::Table(inner) = value.get_mut()
                && inner.contains_key("value")
                && inner.keys().all(|key| matches!(key.get_ref().as_ref(), "value" | "source"))
            {
                source = inner.get("source").and_then(|source| source.get_ref().as_str()).map(str::to_owned);
                source = source.filter(|source| !source.trim().is_empty());
                if let Some(plain) = inner.remove("value") {
                    *value = plain;
                }
            }
            let (key, span) = (key.span(), value.span());
            self.places.push(Place { path: path.clone(), key: key.clone(), value: span.clone() });
            match value.get_mut() {
                DeValue::Table(inner) => self.strip(&path, inner),
                _ if prefix.is_empty() => {}
                _ => {
                    let value = self.written(&span).unwrap_or_default().trim_matches('"').to_owned();
                    self.figures.push(Figure { path, value, source, line: line_of(self.text, key.start) });
                }
            }
        }
    }

    /// Converts an error of serde to one that names the field and the expected value.
    fn misread(&self, table: &str, error: &TomlError) -> Box<ContentError> {
        let span = error.span().unwrap_or(0..0);
        let inside = |outer: &std::ops::Range<usize>| outer.start <= span.start && span.end <= outer.end;
        let place = self
            .places
            .iter()
            .filter(|place| span.end > 0 && (inside(&place.key) || inside(&place.value)))
            .min_by_key(|place| place.value.len().min(place.key.len()));
        let message = error.message();
        let named: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let field = match place {
            Some(place) => place.path.as_str(),
            None => self.change_of(table, &named).map_or(table, |change| change.path.as_str()),
        };
        if message.starts_with("missing field") {
            let field = if field.is_empty() { named[0].to_owned() } else { format!("{field}.{}", named[0]) };
            return self.error(&field, "is missing");
        }
        if message.starts_with("unknown field") {
            return self.error(field, &unknown_field(&named));
        }
        self.error(field, message)
    }

    /// Returns the change of `table` that is wrong, if the text itself is correct; `named` lists the names in
    /// the error.
    fn change_of(&self, table: &str, named: &[&str]) -> Option<&'t Change> {
        let inside = |change: &&Change| {
            change.path.strip_prefix(table).is_some_and(|rest| table.is_empty() || rest.starts_with('.'))
        };
        let mut changes = self.changes.iter().filter(inside);
        let is_named =
            |change: &&Change| named.first().is_some_and(|name| [change.key(), &change.value].contains(name));
        let by_name = changes.clone().rfind(is_named);
        by_name.or_else(|| changes.next().filter(|_| changes.next().is_none()))
    }

    /// Returns the text at `span`, shortened if it is long.
    fn written(&self, span: &std::ops::Range<usize>) -> Option<String> {
        let text = self.text.get(span.clone())?.lines().next()?;
        Some(if text.chars().count() > 60 {
            text.chars().take(57).chain("...".chars()).collect()
        } else {
            text.to_owned()
        })
    }
}

/// Wraps a value that is not in the text.
fn nowhere<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// Formats the error for an unknown field; `named` is the field, followed by the known ones.
fn unknown_field(named: &[&str]) -> String {
    let (word, known) = named.split_first().map_or(("", &[][..]), |(word, known)| (*word, known));
    match nearest(word, known.iter().copied()) {
        Some(meant) => format!("there is no such field; `{meant}` was probably meant"),
        None if known.is_empty() => "there is no such field".to_owned(),
        None => format!("there is no such field; there are {}", known.join(", ")),
    }
}

fn not_toml(file: &str, text: &str, error: &TomlError) -> Box<ContentError> {
    Box::new(ContentError {
        file: file.to_owned(),
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        field: repeated_key(text, error).unwrap_or_default().to_owned(),
        value: None,
        expected: format!("not TOML: {}", error.message()),
    })
}

/// Returns the duplicate key, if that is the error.
fn repeated_key<'t>(text: &'t str, error: &TomlError) -> Option<&'t str> {
    text.get(error.span().filter(|_| error.message().contains("duplicate key"))?)
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
