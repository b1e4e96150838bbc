//! Disks as they are named on the command line, with devices that the kernel does not know.

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

/// Returns the disks that were chosen, all where none was named.
///
/// # Errors
/// [`FailureKind::Usage`] for a name that stands for nothing and an expression that is not understood;
/// [`FailureKind::NotMeasured`] where it cannot be known what uses the disks.
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

/// Returns the view of what was named: also of a simulated drive, or of an export of an NBD server.
fn shown(reader: &Reader<'_>, name: &str) -> anyhow::Result<DeviceView> {
    match elsewhere(name)? {
        Some(view) => Ok(view),
        None => Ok(reader.one(name).map_err(PolicyError::from)?),
    }
}

/// Returns the view of what the kernel does not know; `None` if it does. A cache that was made is not opened
/// for it: it may be served, and opening it would recover its log.
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

/// Refuses what is named with a scheme: it can be shown, and is no disk whose policy could be changed.
pub(super) fn are_disks_of_this_machine(names: &[String]) -> anyhow::Result<()> {
    for name in names {
        if let Some(refused) = elsewhere(name)?.and_then(|view| view.refusal) {
            return Err(PolicyError::refused_disk(name, &refused).into());
        }
    }
    Ok(())
}

/// Returns the expression of `--where`.
pub(super) fn filter(chosen: &Chosen) -> Result<Option<Selection>, SelectError> {
    chosen.filter.as_deref().map(Selection::parse).transpose()
}
