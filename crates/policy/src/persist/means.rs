//! By what a policy lasts.

use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::view::DeviceView;

/// Mechanism that makes a policy persist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// The drive keeps it: its saved value is what was asked for.
    InTheDrive,
    /// The state is set again whenever the disk appears.
    AtEveryStart,
}

/// Returns how `state` lasts on a disk that was read after it was changed.
///
/// No drive keeps `protected`: the kernel forms its view again at every start.
pub fn means(view: &DeviceView, state: State) -> Means {
    let wanted = match state {
        State::Off => false,
        State::On => true,
        State::Protected => return Means::AtEveryStart,
    };
    let kept = view.device.saveable == Some(true) && view.device.saved == Some(wanted);
    // SCT reports no saved value: a forced state with its option bit is kept, and read back as forced.
    let forced = match view.device.sct.as_deref() {
        Some("forced-on") => Some(true),
        Some("forced-off") => Some(false),
        _ => None,
    };
    let forced_and_kept = forced == Some(wanted) && view.device.saveable == Some(true);
    if kept || forced_and_kept { Means::InTheDrive } else { Means::AtEveryStart }
}
