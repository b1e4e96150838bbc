//! Promises that a drive really keeps, derived from its behaviour and its write cache.

use plumb_block::DeviceInfo;

use crate::contents::{Atomicity, FlushKept, FuaKept, Promise};
use crate::model::{Behaviour, IgnoresFlush, Kind};

/// Returns true if the drive uses a cache that it wrongly believes to survive a power cut, and therefore
/// ignores flushes and FUA. A protected flash drive uses its buffer independently of WCE; a disk or array
/// controller uses its cache only when it is enabled.
const fn is_deceived(behaviour: &Behaviour, kind: Kind, wce: Option<bool>) -> bool {
    let is_used = match kind {
        Kind::Ssd | Kind::Usb => true,
        Kind::Hdd | Kind::Array => matches!(wce, Some(true)),
        Kind::Null | Kind::Memory => false,
    };
    is_used && behaviour.is_deceived()
}

/// Returns the guarantees that a drive with this behaviour keeps.
pub(super) fn promise(behaviour: &Behaviour, kind: Kind, info: &DeviceInfo, wce: Option<bool>) -> Promise {
    let is_deceived = is_deceived(behaviour, kind, wce);
    Promise {
        volatile: is_deceived || wce == Some(true) && !behaviour.keeps_cache(),
        fua: if behaviour.ignores_fua || is_deceived { FuaKept::Ignored } else { FuaKept::Honoured },
        flush: match behaviour.ignores_flush {
            _ if is_deceived || behaviour.driver_drops_flush => FlushKept::Never,
            IgnoresFlush::Never => FlushKept::Always,
            IgnoresFlush::Always => FlushKept::Never,
            IgnoresFlush::Last(count) => FlushKept::AllButLast(count),
        },
        discard_zeroes: info.discard_zeroes,
        atomicity: Atomicity {
            unit: info.atomic_unit.0 / info.logical_block.0,
            boundary: info.atomic_boundary.0 / info.logical_block.0,
        },
    }
}
