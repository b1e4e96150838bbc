//! The documents of `plumb drive`. The status of a drive belongs to whoever serves it: here is the part of it
//! that reports show, as it stands in the JSON document.

use serde::{Deserialize, Serialize};

/// `plumb drive list`: the models that are shipped.
#[derive(Debug, Serialize, Deserialize)]
pub struct DriveList {
    /// [`DriveList::SCHEMA`].
    pub schema: String,
    /// The models.
    pub models: Vec<ListedModel>,
}

impl DriveList {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/drive-list/1";
}

/// A model in the list.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListedModel {
    /// Name of the model.
    pub name: String,
    /// `hdd`, `ssd`, ...
    pub kind: String,
    /// `sata`, `nvme`, ...
    pub interface: String,
    /// Behaviour of its cache, in a sentence.
    pub cache: String,
    /// State of the write cache, and what becomes of an acknowledged write in it when the power is cut:
    /// `none`, `on, volatile`, `off, protected`, `on, volatile, flushes ignored`.
    pub write_cache: String,
    /// Capacity in bytes.
    pub size: u64,
    /// Drives for which it stands.
    pub description: String,
    /// Sources of its figures.
    pub source: Vec<String>,
}

/// `plumb drive show`: the parameters of a model.
#[derive(Debug, Serialize, Deserialize)]
pub struct DriveModel {
    /// [`DriveModel::SCHEMA`].
    pub schema: String,
    /// Name of the model.
    pub name: String,
    /// `hdd`, `ssd`, ...
    pub kind: String,
    /// `sata`, `nvme`, ...
    pub interface: String,
    /// Behaviour of its cache, in a sentence.
    pub cache: String,
    /// Drives for which it stands.
    pub description: String,
    /// Sources of its figures.
    pub source: Vec<String>,
    /// Parameters of the model.
    pub parameters: Vec<ModelParameter>,
    /// Figures beside published ones, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Vec<ModelFigure>>,
}

impl DriveModel {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/drive-model/1";
    /// The seed of the runs that figures are taken from.
    pub const SEED: u64 = 1;
}

/// A parameter of a model.
#[derive(Debug, Serialize, Deserialize)]
pub struct ModelParameter {
    /// Place in the file of the model.
    pub name: String,
    /// Value as written there.
    pub value: String,
    /// Source of the value.
    pub source: Option<String>,
}

/// A figure of a model in virtual time.
#[derive(Debug, Serialize, Deserialize)]
pub struct ModelFigure {
    /// Name of what was done.
    pub name: String,
    /// `ms`, `IOPS`, `MB/s`, or `times`.
    pub unit: String,
    /// Value that the simulation gives.
    pub simulated: f64,
    /// Value that is published.
    pub published: Option<f64>,
    /// How far the simulation is off: 0.05 is 5 % above.
    pub deviation: Option<f64>,
    /// Where it is published.
    pub source: Option<String>,
}

/// The status of a drive.
#[derive(Debug, Deserialize)]
pub struct DriveShown {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) power: bool,
    pub(crate) wce: Option<bool>,
    pub(crate) size: u64,
    pub(crate) dirty_bytes: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    pub(crate) flushes_dropped: u64,
    pub(crate) fua_writes: u64,
    pub(crate) cuts: u64,
    pub(crate) cut_armed: Option<String>,
    pub(crate) lost_at_last_cut_blocks: Option<u64>,
    pub(crate) lost_although_durable_blocks: Option<u64>,
    pub(crate) latched: bool,
    pub(crate) faults: Vec<String>,
    pub(crate) nbd_uris: Vec<String>,
    pub(crate) nbd_clients: u64,
    pub(crate) device: Option<String>,
    pub(crate) transport: Option<String>,
    pub(crate) device_open_across_cut: Vec<String>,
    /// True if it was taken away just now.
    #[serde(skip)]
    pub is_gone: bool,
}

/// The status of all drives: `plumb/drives/1`.
#[derive(Debug, Deserialize)]
pub struct DrivesShown {
    pub(crate) drives: Vec<DriveShown>,
}

/// `plumb drive detach` of a drive whose process was gone.
#[derive(Debug, Serialize, Deserialize)]
pub struct DriveGone {
    /// [`DriveGone::SCHEMA`].
    pub schema: String,
    /// Name of the drive.
    pub name: String,
    /// Always true.
    pub gone: bool,
}

impl DriveGone {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/drive-gone/1";
}
