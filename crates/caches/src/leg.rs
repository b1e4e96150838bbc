//! The superblocks of a device: which leg of which log it is.

use plumb_block::{Bytes, Payload, Pool, PoolShape, Request, Tag};
use plumb_cache::driver::carry_out;
use plumb_cache::{Cache, LOG_BLOCK, Leg};
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::known::leg_at;
use plumb_guard::network;
use plumb_guard::{Error, Name, Result};
use rustix::io::Errno;

use crate::member::Member;

/// Returns the leg that this device is, with its log; `None` if it belongs to no log.
///
/// # Errors
/// If memory is short, or a later version of plumb wrote the log.
pub(crate) fn leg_of(member: &Member) -> Result<Option<Leg>> {
    let shape = PoolShape { buffer: Bytes(LOG_BLOCK), count: 2, alignment: Bytes(LOG_BLOCK) };
    let pool = Pool::new(shape).map_err(|error| Error::device(&member.shown, &error))?;
    let read = |range| Some(Request::read_into(Tag(0), range, pool.take(Bytes(LOG_BLOCK))?));
    // Each copy may be torn, so all are read.
    let mut found = None;
    for request in Cache::superblocks_of(&member.device.info()).into_iter().filter_map(read) {
        for payload in carry_out(&*member.device, [request]).unwrap_or_default() {
            if let Payload::Into(bytes) = payload {
                let leg = Cache::leg_of(&bytes).map_err(|version| {
                    let found = format!("it has a cache of format version {version}");
                    Error::refused(&member.shown, found, "use the later version of plumb that wrote it")
                })?;
                found = found.or(leg);
            }
        }
    }
    Ok(found)
}

/// Returns false if nothing is at `place`, or something that is certainly not a device of a log. An
/// unreadable device or an export may be one.
pub(crate) fn is_there(place: &DevicePlace) -> bool {
    let is_export = || Name::parse(&place.path).is_ok_and(|name| network::is_meant(&name));
    is_export() || !matches!(leg_at(place), Ok(None) | Err(Errno::NOENT))
}
