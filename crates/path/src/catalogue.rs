//! Meaning of each rule, as data: the same text behind a finding's remedy, `plumb explain` and the page.
//!
//! The rules of the survey are in `rules.toml` of this crate; those of measurements in that of `report`.
//! Invariant, held by tests: every rule has an entry, and every entry has a rule.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// One rule in words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable name of the rule: `barriers-off`.
    #[serde(skip)]
    pub id: String,
    /// Meaning of the rule for whoever has data there.
    pub meaning: String,
    /// From what it is known, with the limits of severity.
    pub found: String,
    /// Steps to take, or a way to prove the problem; with what that gives up.
    pub remedy: String,
    /// Where to read more, each by its title.
    pub sources: Vec<String>,
    /// For rules about the quality of a measurement: what spoils the figures, in a few words.
    #[serde(default)]
    pub quality: Option<String>,
}

/// Rules by their ids.
#[derive(Debug)]
pub struct Catalogue(BTreeMap<String, Rule>);

impl Catalogue {
    /// Reads a catalogue: a table for each rule.
    ///
    /// # Panics
    /// If `text`, which is part of the program, is not a catalogue.
    pub fn parse(text: &str) -> Self {
        let mut rules: BTreeMap<String, Rule> = toml::from_str(text).expect("a catalogue of rules");
        rules.iter_mut().for_each(|(id, rule)| rule.id.clone_from(id));
        Self(rules)
    }

    /// The rule with this id.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.0.get(id)
    }

    /// All of them, by their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.values()
    }
}

/// The rules of the survey.
pub static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::parse(include_str!("../rules.toml")));
