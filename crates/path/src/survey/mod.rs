//! Following a target down through mounts and devices.
//!
//! A survey never writes and never gives up half-way: what cannot be read becomes an unknown in the layer
//! that lacks it, and a question that only root may ask ends up in the finding `needs-root`. Only a target
//! that does not exist is an error. /sys is read before a drive is asked, since opening some devices makes
//! the kernel look again.

mod all;
mod assemble;
mod bcache;
mod block_device;
mod controller;
mod device;
mod device_mapper;
mod disk;
mod exposed;
mod file_system;
mod guest;
mod guests;
mod host;
mod loop_device;
mod md;
mod memory;
mod mount_of;
mod mount_options;
mod mounts;
mod network;
mod nvme;
mod overlay;
mod preload;
mod recorded_errors;
mod recording;
mod served_drive;
mod surveyor;
mod target;
mod untorn;
mod virtio;
mod write_back_cache;
mod zfs;

pub use controller::is_numbered;
pub use device::{DeviceKind, survey_device};
pub use file_system::is_kernel_state;
pub use nvme::nvme_controllers;
pub use recording::{RecordedSurvey, RecordingError, load, record};
pub use target::{SurveyError, Target, text_of};
pub use write_back_cache::{AttachedCache, UnflushedLog, disks_below, survey_cache, survey_unflushed_log};

use plumb_linux::probe::Probe;
use plumb_linux::tree::Tree;

use crate::exposure::ExposurePlan;
use crate::model::{Survey, WritePath};
use crate::rules;
use surveyor::Surveyor;

/// Returns the write paths of `target`, as `tree` and `probe` show them.
///
/// # Errors
/// [`SurveyError`] if the target does not exist or cannot be reached; nothing else stops a survey.
pub fn survey(tree: &dyn Tree, probe: &dyn Probe, target: &Target) -> Result<Survey, SurveyError> {
    let mut surveyor = Surveyor::new(tree, probe);
    let tops = surveyor.tops(target)?;
    let paths = tops.iter().map(|top| surveyor.path_of(top)).collect();
    Ok(document(tree, paths))
}

/// Surveys `target` as [`survey`] does, and follows the disks that `host` has among those of its virtual
/// machines ([`survey_guests`] there) down to the drives of the host. What the host found on these paths is
/// found on those of this machine, too.
///
/// # Errors
/// As [`survey`].
pub fn survey_on_host(
    tree: &dyn Tree,
    probe: &dyn Probe,
    target: &Target,
    host: &Survey,
) -> Result<Survey, SurveyError> {
    let mut surveyor = Surveyor::new(tree, probe);
    surveyor.host = Some(host);
    let tops = surveyor.tops(target)?;
    let paths = tops.iter().map(|top| surveyor.path_of(top)).map(|path| host::with_findings(path, host));
    Ok(document(tree, paths.collect()))
}

/// Surveys `target` as [`survey`] does, and finds for each path what to read to say what a power cut would
/// take from it.
///
/// # Errors
/// As [`survey`].
pub fn survey_exposed(
    tree: &dyn Tree,
    probe: &dyn Probe,
    target: &Target,
) -> Result<(Survey, Vec<ExposurePlan>), SurveyError> {
    let mut surveyor = Surveyor::new(tree, probe);
    let tops = surveyor.tops(target)?;
    let paths: Vec<WritePath> = tops.iter().map(|top| surveyor.path_of(top)).collect();
    let exposed = paths.iter().map(|path| surveyor.exposed(path)).collect();
    Ok((document(tree, paths), exposed))
}

/// Returns the write path of each disk of the virtual machines that run here, from the hypervisor down, as
/// far as this user may look at their processes.
pub fn survey_guests(tree: &dyn Tree, probe: &dyn Probe) -> Survey {
    document(tree, Surveyor::new(tree, probe).guests())
}

fn document(tree: &dyn Tree, paths: Vec<WritePath>) -> Survey {
    let kernel = tree.text("/proc/sys/kernel/osrelease").ok();
    Survey { schema: Survey::SCHEMA.to_owned(), kernel, paths }
}

/// Returns the write path of one named target: [`survey`] for a caller that wants just that.
///
/// # Errors
/// As [`survey`].
pub fn survey_path(tree: &dyn Tree, probe: &dyn Probe, name: &str) -> Result<WritePath, SurveyError> {
    let mut surveyor = Surveyor::new(tree, probe);
    let top = surveyor.find(name)?;
    Ok(surveyor.path_of(&top))
}

/// The top of a path: what was asked for and the node that it leads to.
struct Top {
    /// Target as it is shown to people.
    target: String,
    /// The name of the node directly below the page cache.
    node: String,
}

impl Surveyor<'_> {
    fn tops(&mut self, target: &Target) -> Result<Vec<Top>, SurveyError> {
        match target {
            Target::Named(name) => Ok(vec![self.find(name)?]),
            Target::All => Ok(self.everything()),
        }
    }

    fn path_of(&self, top: &Top) -> WritePath {
        let mut above = assemble::kernel_above(&top.node);
        self.preloads(&mut above[0], &top.target);
        rules::judge(&top.target, &self.nodes_under(above, &top.node))
    }
}
