//! Numbers that may only fall: how often each crate still breaks a rule that the tree does not keep yet.
//!
//! `xtask/ceilings.toml` has a table for each crate with a number for each rule. More than that is refused
//! with every place; less is refused too, with the number to write down, so that what was gained is not lost
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::offence::Offence;

/// File with the numbers, relative to the root.
const FILE: &str = "xtask/ceilings.toml";

/// Places at which each crate breaks each rule, held against the numbers.
pub(super) struct Ceilings {
    most: BTreeMap<String, BTreeMap<String, usize>>,
    found: BTreeMap<(String, &'static str), Vec<String>>,
}

impl Ceilings {
    /// Reads the numbers.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a table of tables of numbers.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
        Ok(Self { most: toml::from_str(&text).context(FILE)?, found: BTreeMap::new() })
    }

    /// Counts one place of `file` at which `rule` is broken. The place may be a line, or a line and what
    /// stands there.
    pub(super) fn count(&mut self, rule: &'static str, file: &str, place: impl std::fmt::Display) {
        let key = (owner_of(file).to_owned(), rule);
        self.found.entry(key).or_default().push(format!("{file}:{place}"));
    }

    /// Returns an offence for each crate and each of `rules` whose number is not the one that was found.
    pub(super) fn offences(&self, rules: &[&'static str]) -> Vec<Offence> {
        let owners: BTreeSet<&str> = self
            .most
            .keys()
            .map(String::as_str)
            .chain(self.found.keys().map(|(owner, _)| owner.as_str()))
            .collect();
        let mut offences = Vec::new();
        for owner in owners {
            for rule in rules {
                let most = self.most.get(owner).and_then(|rules| rules.get(*rule)).copied().unwrap_or(0);
                let places = self.found.get(&(owner.to_owned(), *rule)).map_or(&[][..], Vec::as_slice);
                if places.len() > most {
                    let listed = places.iter().map(|place| format!("\n    {place}")).collect::<String>();
                    let what = format!("{rule}: {} places, over the {most} of {FILE}:{listed}", places.len());
                    offences.push(Offence::new(owner, what));
                } else if places.len() < most {
                    let what = format!("{rule}: only {} places: lower the {most} in {FILE}", places.len());
                    offences.push(Offence::new(owner, what));
                }
            }
        }
        offences
    }
}

/// Returns the crate that a file belongs to, or `documents`.
fn owner_of(file: &str) -> &str {
    let in_crates = file.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    match file.split('/').next() {
        _ if file.ends_with(".md") => "documents",
        Some("xtask") => "xtask",
        Some(top) => in_crates.unwrap_or(top),
        None => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_the_one_found_is_an_offence() {
        let most = toml::from_str("[load]\nopener = 1\n[sim]\nopener = 2\n").unwrap();
        let mut ceilings = Ceilings { most, found: BTreeMap::new() };
        ceilings.count("opener", "crates/load/src/a.rs", 3);
        ceilings.count("opener", "crates/sim/src/a.rs", 4);
        let said: Vec<String> =
            ceilings.offences(&["opener"]).into_iter().map(|offence| offence.what).collect();
        assert_eq!(said, ["opener: only 1 places: lower the 2 in xtask/ceilings.toml"]);
        ceilings.count("opener", "crates/load/src/b.rs", 9);
        let offences = ceilings.offences(&["opener"]);
        assert!(offences[0].what.contains("crates/load/src/b.rs:9"), "{offences:?}");
    }

    #[test]
    fn a_file_belongs_to_its_crate_or_to_the_documents() {
        let files = ["crates/load/src/a.rs", "xtask/src/main.rs", "docs/CACHE.md", "crates/x/README.md"];
        assert_eq!(files.map(owner_of), ["load", "xtask", "documents", "documents"]);
    }
}
