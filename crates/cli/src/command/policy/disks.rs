//! Disks named on the command line, including devices that are unknown to the kernel.

use plumb_block::FailureKind;
use plumb_cache::Mode;
use plumb_policy::device::{Reader, foreign, surveyed_cache};
use plumb_policy::error::PolicyError;
use plumb_policy::machine::Machine;
use plumb_policy::select::{SelectError, Selection};
use plumb_policy::view::{DeviceView, PolicyDocument};
use plumb_targets::{OpenedTarget, open_foreign};

use crate::arguments::policy::Chosen;
use crate::exit::Refusal;

/// Returns the chosen disks; all disks if none is named.
///
/// # Errors
/// [`FailureKind::Usage`] for an unknown name or an invalid expression; [`FailureKind::NotMeasured`] if the
/// users of the disks cannot be determined.
pub(super) fn document(machine: &Machine, chosen: &Chosen) -> anyhow::Result<PolicyDocument> {
    let filter = filter(chosen).map_err(PolicyError::from)?;
    let reader = machine.reader().map_err(|unseen| Refusal::because(FailureKind::NotMeasured, unseen))?;
    let mut document = if chosen.devices.is_empty() { reader.all() } else { reader.named(&[])? };
    for name in &chosen.devices {
        document.devices.push(shown(&reader, name)?);
    }
    document.devices.retain(|view| filter.as_ref().is_none_or(|filter| filter.chooses(view)));
    Ok(document)
}

/// Returns the view of a named disk, simulated drive, or export of an NBD server.
fn shown(reader: &Reader<'_>, name: &str) -> anyhow::Result<DeviceView> {
    match elsewhere(name)? {
        Some(view) => Ok(view),
        None => Ok(reader.one(name).map_err(PolicyError::from)?),
    }
}

/// Returns the view of a device that is unknown to the kernel; `None` for a known one. A cache is not opened
/// for that, because it may be served, and opening it would recover its log.
fn elsewhere(name: &str) -> anyhow::Result<Option<DeviceView>> {
    if let Some(survey) = plumb_caches::survey(name)? {
        let own = name.strip_prefix("cache:").unwrap_or(name);
        let config = plumb_caches::CacheConfig::load(&plumb_caches::directory(), own)?;
        return Ok(Some(surveyed_cache(name, &survey, config.mode == Mode::Protected)));
    }
    let view = |device: OpenedTarget| {
        Some(foreign(&device.shown, &device.device.info(), device.kind.device_kind()?))
    };
    Ok(open_foreign(name.as_ref())?.and_then(view))
}

/// Refuses names with a scheme: such a device can be shown, but its policy cannot be changed.
pub(super) fn are_disks_of_this_machine(names: &[String]) -> anyhow::Result<()> {
    for name in names {
        if let Some(refused) = elsewhere(name)?.and_then(|view| view.refusal) {
            return Err(PolicyError::refused_disk(name, &refused).into());
        }
    }
    Ok(())
}

/// Returns the parsed expression of `--where`.
pub(super) fn filter(chosen: &Chosen) -> Result<Option<Selection>, SelectError> {
    chosen.filter.as_deref().map(Selection::parse).transpose()
}
