//! The write path as data: the survey that finds its layers, and the rules that judge them.
//!
//! - [`survey`](mod@survey) follows a target through mounts and devices and collects [`facts`].
//! - [`rules`] are pure functions that turn facts into a [`WritePath`] with [`Finding`]s, whose texts are in
//!   the [`CATALOGUE`].
//! - [`exposure`] measures the data on a path that a power cut would lose at one moment.
//! - [`metrics`] formats figures for Prometheus.
//!
//! Only recording a survey writes anything, and only to its own directory.

mod catalogue;
pub mod exposure;
pub mod facts;
pub mod finding;
pub mod metrics;
pub mod model;
pub mod rules;
mod storage_under;
pub mod survey;

pub use catalogue::{CATALOGUE, Catalogue, Rule, RuleLayer};
pub use finding::{Finding, Severity};
pub use model::{
    Cache, CachedPage, DurableAt, Evidence, Flush, Fua, Layer, LayerKind, LayerUntorn, PageAnswer,
    SYNC_ATTRIBUTE, SYNC_OPTION, Survey, UntornPage, UntornRank, WritePath,
};
pub use rules::untorn::PAGE_SIZES;
pub use survey::{
    AttachedCache, DeviceKind, RecordedSurvey, RecordingError, SurveyError, Target, UnflushedLog,
    disks_below, is_kernel_state, is_numbered, load, null_device, nvme_controllers, record, survey,
    survey_cache, survey_device, survey_exposed, survey_guests, survey_on_host, survey_path,
    survey_unflushed_log, text_of,
};
