//! Documents of `plumb drive`. The status of a single drive is that of [`plumb_targets`], as its server
//! returns it.

use plumb_path::Cache;
use plumb_sim::figures::FigureRow;
use plumb_sim::model::{Figure, IgnoresFlush, Model, Wce};
use plumb_targets::served_drive::DriveStatus;
use serde::{Deserialize, Serialize};

use crate::wording;

/// `plumb drive list`: the available models.
#[derive(Debug, Serialize)]
pub struct DriveList {
    /// Name and version of the document: [`DriveList::SCHEMA`].
    pub schema: &'static str,
    /// Models.
    pub models: Vec<ListedModel>,
}

impl DriveList {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/drive-list/1";

    /// Creates the list of these models.
    pub fn new(models: Vec<Model>) -> Self {
        Self { schema: Self::SCHEMA, models: models.into_iter().map(ListedModel::from).collect() }
    }
}

/// Facts of a model that are shown in every document.
#[derive(Debug, Serialize)]
pub struct ModelFacts {
    /// Name of the model.
    pub name: String,
    /// `hdd`, `ssd`, ...
    pub kind: String,
    /// `sata`, `nvme`, ...
    pub interface: String,
    /// Behaviour of the cache, in a sentence.
    pub cache: String,
    /// Drives that the model represents.
    pub description: String,
    /// Sources of the figures.
    pub source: Vec<String>,
}

impl From<Model> for ModelFacts {
    fn from(model: Model) -> Self {
        Self {
            kind: word(&model.kind),
            interface: word(&model.interface),
            name: model.name,
            cache: model.cache_summary,
            description: model.description,
            source: model.sources,
        }
    }
}

/// Returns the word for a value in documents.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Model in the list.
#[derive(Debug, Serialize)]
pub struct ListedModel {
    /// Facts of the model.
    #[serde(flatten)]
    pub facts: ModelFacts,
    /// State of the write cache, and the fate of acknowledged writes in it at a power cut: `none`, `on,
    /// volatile`, `off, protected`, `on, volatile, flushes ignored`.
    pub write_cache: String,
    /// Capacity in bytes.
    pub size: u64,
}

impl From<Model> for ListedModel {
    fn from(model: Model) -> Self {
        Self {
            write_cache: write_cache(&model),
            size: model.geometry.default_size.0.0,
            facts: ModelFacts::from(model),
        }
    }
}

/// Describes the effect of a power cut on an acknowledged write in the drive.
fn write_cache(model: &Model) -> String {
    let behaviour = &model.behaviour;
    let state = match behaviour.wce {
        Wce::Absent => return wording::write_cache(None).to_owned(),
        Wce::On => wording::write_cache(Some(true)),
        Wce::Off => wording::write_cache(Some(false)),
    };
    let kept = match (matches!(behaviour.ignores_flush, IgnoresFlush::Never), behaviour.survives_power_cut())
    {
        (false, _) => "volatile, flushes ignored",
        (true, true) => wording::cache(Cache::Protected),
        (true, false) => wording::cache(Cache::Volatile),
    };
    format!("{state}, {kept}")
}

/// `plumb drive show`: the parameters of a model.
#[derive(Debug, Serialize)]
pub struct DriveModel {
    /// Name and version of the document: [`DriveModel::SCHEMA`].
    pub schema: &'static str,
    /// Facts of the model.
    #[serde(flatten)]
    pub facts: ModelFacts,
    /// Parameters of the model.
    pub parameters: Vec<Figure>,
    /// Simulated figures next to published ones, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Vec<FigureRow>>,
}

impl DriveModel {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/drive-model/1";
    /// Seed of the runs that give the figures.
    pub const SEED: u64 = 1;

    /// Creates the document of a model, with its figures if they were measured.
    pub fn new(model: Model, figures: Option<Vec<FigureRow>>) -> Self {
        let parameters = model.figures.to_vec();
        Self { schema: Self::SCHEMA, parameters, figures, facts: ModelFacts::from(model) }
    }
}

/// Status of a drive, with presentation hints.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct DriveShown {
    /// Status.
    pub status: DriveStatus,
    /// True if the command has just taken the drive away.
    #[serde(skip)]
    pub is_gone: bool,
}

/// Status of all drives.
#[derive(Debug, Serialize)]
pub struct DrivesShown {
    /// Name and version of the document: [`DrivesShown::SCHEMA`].
    pub schema: &'static str,
    /// Drives.
    pub drives: Vec<DriveStatus>,
}

impl DrivesShown {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/drives/1";
}

/// `plumb drive detach` of a drive whose process has ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct DriveGone {
    /// Name and version of the document: [`DriveGone::SCHEMA`].
    pub schema: String,
    /// Name of the drive.
    pub name: String,
    /// Always true.
    pub gone: bool,
}

impl DriveGone {
    /// Name and version of the JSON document.
    pub const SCHEMA: &str = "plumb/drive-gone/1";
}
