//! Descriptions of all rules as data: the source of a finding's remedy, of `plumb explain` and of the
//! documentation page.
//!
//! The rules of the survey are in `rules.toml` of this crate, those of measurements in that of `report`.
//! Invariant, checked by tests: every rule has an entry, and every entry has a rule.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::finding::Severity;

/// Description of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable identifier of the rule: `barriers-off`.
    #[serde(skip)]
    pub id: String,
    /// Layer that the rule is about.
    pub layer: RuleLayer,
    /// Meaning of the rule for somebody with data on the path.
    pub meaning: String,
    /// Method of detection, and which severity applies when.
    pub found: String,
    /// Steps to take, or a way to prove the problem; with the drawbacks.
    pub remedy: String,
    /// Titles of further sources.
    pub sources: Vec<String>,
    /// Sentence of a finding, for rules whose findings differ only by the names and words of their layers.
    #[serde(default)]
    pub(crate) sentence: Option<String>,
    /// Effect on the figures in a few words, for rules about the quality of a measurement.
    #[serde(default)]
    pub quality: Option<String>,
}

impl Rule {
    /// Returns the possible severities of a finding of this rule, mildest first: those named in
    /// [`found`](Self::found).
    pub fn severities(&self) -> Vec<Severity> {
        let names = |severity: &Severity| {
            let mut words = self.found.split(|letter: char| !letter.is_alphabetic());
            words.any(|word| word.eq_ignore_ascii_case(severity.word()))
        };
        [Severity::Info, Severity::Warning, Severity::Danger].into_iter().filter(names).collect()
    }
}

/// Layer that a rule is about, from the application downwards, followed by categories of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleLayer {
    /// The writing program and the durability that it requests.
    Application,
    /// The file system and its mount options.
    FileSystem,
    /// Device mapper, RAID and caches between a file system and a disk.
    Volume,
    /// The kernel's view of the drive's write cache.
    Kernel,
    /// Driver and adapter.
    Driver,
    /// The drive.
    Device,
    /// Layers on another machine: a hypervisor or a server.
    Remote,
    /// The survey itself.
    Survey,
    /// Measured flushes.
    Flushes,
    /// Reliability of measured figures.
    Figures,
    /// Failed operations and lost data.
    Failures,
    /// Hosts of a fleet.
    Hosts,
}

impl RuleLayer {
    /// Returns the heading of the layer's rules.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Application => "Application",
            Self::FileSystem => "File system",
            Self::Volume => "Volumes: device mapper, RAID, caches",
            Self::Kernel => "The kernel's view of a drive",
            Self::Driver => "Driver and adapter",
            Self::Device => "Drive",
            Self::Remote => "Hypervisor, network and server",
            Self::Survey => "The survey itself",
            Self::Flushes => "Measured flushes",
            Self::Figures => "Trust in measured figures",
            Self::Failures => "Failures and lost data",
            Self::Hosts => "Hosts of a fleet",
        }
    }
}

/// Rules by their ids.
#[derive(Debug)]
pub struct Catalogue(BTreeMap<String, Rule>);

impl Catalogue {
    /// Parses a catalogue, which has a table for each rule.
    ///
    /// # Panics
    /// If `text`, which is compiled into the program, is not a catalogue.
    pub fn parse(text: &str) -> Self {
        let rules = text.parse().and_then(toml::Table::try_into);
        let mut rules: BTreeMap<String, Rule> = rules.expect("a catalogue of rules");
        rules.iter_mut().for_each(|(id, rule)| rule.id.clone_from(id));
        Self(rules)
    }

    /// Returns the rule with this id.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.0.get(id)
    }

    /// Returns all rules, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.values()
    }
}

/// The rules of the survey.
pub static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::parse(include_str!("../rules.toml")));
