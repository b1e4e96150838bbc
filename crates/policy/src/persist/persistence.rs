//! Mechanism by which the policy of a disk persists across a restart.

use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::view::DeviceView;

/// Mechanism that makes a policy persist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// The drive: its saved value is the requested one.
    InTheDrive,
    /// The state is set again whenever the disk appears.
    AtEveryStart,
}

/// Returns the mechanism for `state` on a disk that was read after its change.
///
/// `protected` never persists in the drive, because the kernel forms its view again at every start.
pub fn persistence(view: &DeviceView, state: State) -> Persistence {
    let wanted = match state {
        State::Off => false,
        State::On => true,
        State::Protected => return Persistence::AtEveryStart,
    };
    let kept = view.device.saveable == Some(true) && view.device.saved == Some(wanted);
    // SCT has no saved value: a forced state with its option bit persists, and is read back as forced.
    let forced = match view.device.sct.as_deref() {
        Some("forced-on") => Some(true),
        Some("forced-off") => Some(false),
        _ => None,
    };
    let forced_and_kept = forced == Some(wanted) && view.device.saveable == Some(true);
    if kept || forced_and_kept { Persistence::InTheDrive } else { Persistence::AtEveryStart }
}
