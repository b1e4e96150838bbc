//! Discovery of a target's layers, down through mounts and devices.
//!
//! A survey never writes and never stops half-way: an unreadable fact becomes an unknown in its layer, and a
//! query that requires root is listed in the finding `needs-root`. Only a target that does not exist is an
//! error. /sys is read before a drive is queried, since the kernel reads some devices again when they are
//! opened.

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
pub use device::{DeviceKind, null_device, survey_device};
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

/// Returns the write paths of `target`, read through `tree` and `probe`.
///
/// # Errors
/// [`SurveyError`] if the target does not exist or cannot be reached; nothing else fails.
pub fn survey(tree: &dyn Tree, probe: &dyn Probe, target: &Target) -> Result<Survey, SurveyError> {
    let mut surveyor = Surveyor::new(tree, probe);
    let tops = surveyor.tops(target)?;
    let paths = tops.iter().map(|top| surveyor.path_of(top)).collect();
    Ok(document(tree, paths))
}

/// Surveys `target` as [`survey`] does, and continues its disks on the host, down to the host's drives, with
/// the host's own survey of its virtual machines ([`survey_guests`]). Findings about these paths on the host
/// are included.
///
/// # Errors
/// Fails as [`survey`] does.
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

/// Surveys `target` as [`survey`] does, and plans for each path the readings of the data that a power cut
/// would lose.
///
/// # Errors
/// Fails as [`survey`] does.
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

/// Returns the write path of each disk of the virtual machines on this machine, from the hypervisor down, as
/// far as this user may inspect their processes.
pub fn survey_guests(tree: &dyn Tree, probe: &dyn Probe) -> Survey {
    document(tree, Surveyor::new(tree, probe).guests())
}

fn document(tree: &dyn Tree, paths: Vec<WritePath>) -> Survey {
    let kernel = tree.text("/proc/sys/kernel/osrelease").ok();
    Survey { schema: Survey::SCHEMA.to_owned(), kernel, paths }
}

/// Returns the write path of one named target, a shorthand for [`survey`].
///
/// # Errors
/// Fails as [`survey`] does.
pub fn survey_path(tree: &dyn Tree, probe: &dyn Probe, name: &str) -> Result<WritePath, SurveyError> {
    let mut surveyor = Surveyor::new(tree, probe);
    let top = surveyor.find(name)?;
    Ok(surveyor.path_of(&top))
}

/// Top of a path: the requested target and its node.
struct Top {
    /// Target for display.
    target: String,
    /// Name of the node directly below the page cache.
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
        let mut above = vec![assemble::application(), assemble::page_cache(&top.node)];
        self.preloads(&mut above[0], &top.target);
        rules::judge(&top.target, &self.nodes_under(above, &top.node))
    }
}
