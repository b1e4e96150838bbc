//! Loading of a model from its text.

use std::path::Path;
use std::sync::Arc;

use plumb_block::{Bytes, DeviceInfo, VolatileCache};
use plumb_text::nearest;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::fault::{Fault, FaultError};

use super::behaviour::{Behaviour, Wce};
use super::change::Change;
use super::document::{Document, Figure};
use super::error::{ContentError, ModelError};
use super::file;
use super::geometry::{Geometry, Interface, Kind};
use super::limits::{Check, Limits};
use super::shipped;

pub use super::build::Parameters;

/// A validated drive model. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Model {
    /// Name of the model in commands: letters, digits, `-` and `.`.
    pub name: String,
    /// Kind of the drive.
    pub kind: Kind,
    /// Interface of the drive.
    pub interface: Interface,
    /// Caches of the drive, in a few words.
    pub cache_summary: String,
    /// Description in a sentence or two.
    pub description: String,
    /// General sources of its figures.
    pub sources: Vec<String>,
    /// Properties that the drive reports.
    pub geometry: Geometry,
    /// Honesty of the drive.
    pub behaviour: Behaviour,
    /// Errors that occur without being requested.
    pub faults: Vec<Fault>,
    /// Components of the drive.
    pub parameters: Arc<Parameters>,
    /// Each value with its source.
    pub figures: Arc<[Figure]>,
    file: Arc<str>,
    text: Arc<str>,
    changes: Arc<[Change]>,
}

/// Top level of a file. Tables are read separately.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Top {
    name: String,
    kind: Kind,
    interface: Interface,
    cache_summary: String,
    description: String,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(rename = "geometry")]
    _geometry: IgnoredAny,
    #[serde(rename = "behaviour")]
    _behaviour: Option<IgnoredAny>,
    #[serde(rename = "faults")]
    _faults: Option<IgnoredAny>,
    #[serde(rename = "mechanics")]
    _mechanics: Option<IgnoredAny>,
    #[serde(rename = "cache")]
    _cache: Option<IgnoredAny>,
    #[serde(rename = "flash")]
    _flash: Option<IgnoredAny>,
    #[serde(rename = "array")]
    _array: Option<IgnoredAny>,
    #[serde(rename = "null")]
    _null: Option<IgnoredAny>,
}

/// `[faults]`: errors that occur without being requested.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Faults {
    rules: Vec<Rule>,
}

/// One fault as written.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Rule(Fault);

impl TryFrom<String> for Rule {
    type Error = FaultError;

    fn try_from(typed: String) -> Result<Self, FaultError> {
        typed.parse().map(Self)
    }
}

impl Limits for Faults {
    fn limits(&self, check: &mut Check) {
        check.that("rules", self.rules.len() <= 1000, "at most 1000 rules");
    }
}

impl Model {
    /// Returns the shipped model called `name`.
    ///
    /// # Errors
    /// If there is none; the error suggests the nearest name.
    pub fn named(name: &str) -> Result<Self, ModelError> {
        match shipped::text(name) {
            Some(text) => Ok(Self::from_text(&format!("{name}.toml"), text)?),
            None => Err(ModelError::Unknown {
                typed: name.to_owned(),
                nearest: nearest(name, shipped::names()).map(str::to_owned),
            }),
        }
    }

    /// Loads the model in the regular file at `path`, of at most 1 MiB. Never blocks.
    ///
    /// # Errors
    /// If the file cannot be read, is not regular or too long, or does not describe a drive.
    pub fn from_file(path: &Path) -> Result<Self, ModelError> {
        let text = file::text_of(path)?;
        Ok(Self::from_text(&path.display().to_string(), &text)?)
    }

    /// Returns all shipped models, ordered by name.
    ///
    /// # Errors
    /// If one is invalid, which tests exclude.
    pub fn all() -> Result<Vec<Self>, ModelError> {
        shipped::names().map(Self::named).collect()
    }

    /// Parses the model in `text`; errors name `file`.
    ///
    /// # Errors
    /// Fails with the first invalid value.
    pub fn from_text(file: &str, text: &str) -> Result<Self, Box<ContentError>> {
        Self::read(file, text, &[])
    }

    /// Returns the model with changed parameters, within the same limits.
    ///
    /// # Errors
    /// If a parameter does not exist or the value is invalid.
    pub fn with(&self, changes: &[Change]) -> Result<Self, ModelError> {
        let all = [&*self.changes, changes].concat();
        Ok(Self::read(&self.file, &self.text, &all)?)
    }

    fn read(file: &str, text: &str, changes: &[Change]) -> Result<Self, Box<ContentError>> {
        let document = Document::parse(file, text, changes)?;
        let top: Top = document.read()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if top.name.is_empty() || top.name.len() > 64 || !top.name.chars().all(plain) {
            return Err(document.error("name", "expected 1 to 64 letters, digits, `-` and `.`"));
        }
        let behaviour: Behaviour = document.table("behaviour")?;
        let parameters = Parameters::read(&document, top.kind)?;
        parameters.suit(&behaviour, &document)?;
        Ok(Self {
            parameters: Arc::new(parameters),
            geometry: document.table("geometry")?,
            faults: document.table::<Faults>("faults")?.rules.into_iter().map(|rule| rule.0).collect(),
            behaviour,
            name: top.name,
            kind: top.kind,
            interface: top.interface,
            cache_summary: top.cache_summary,
            description: top.description,
            sources: top.sources,
            figures: document.figures.as_slice().into(),
            file: file.into(),
            text: text.into(),
            changes: changes.into(),
        })
    }

    /// Returns the description that a drive of this model and `size` reports. `volatile_cache` is the current
    /// state of the drive.
    pub fn device_info(&self, size: Bytes, volatile_cache: VolatileCache) -> DeviceInfo {
        DeviceInfo {
            keeps_nothing: self.kind == Kind::Null,
            is_flush_dropped: self.behaviour.driver_drops_flush,
            ..self.geometry.device_info(&self.name, size, volatile_cache)
        }
    }

    /// Returns the capacity for a requested `size`, rounded to whole logical blocks, at least one; the
    /// model's default without a request.
    pub fn size(&self, size: Option<Bytes>) -> Bytes {
        let block = self.geometry.logical_block.0;
        let size = size.unwrap_or(self.geometry.default_size.0);
        Bytes(size.0.clamp(*Geometry::SIZES.start(), *Geometry::SIZES.end())).round_down(block)
    }

    /// Returns true if the write cache is enabled at power-on.
    pub fn wce(&self) -> bool {
        self.behaviour.wce == Wce::On
    }
}
