//! Discarding of a cache without opening its log. Three steps, each durable before the next:
//!
//! 1. Zero the superblocks of the log on all devices that are present and writable.
//! 2. Remove the marker from the backing device.
//! 3. Remove the configuration.
//!
//! | Crash | Result |
//! |---|---|
//! | before or within step 1 | a cache that opens as before, or is refused because parts of its log are missing |
//! | after step 1, or within step 2 | a backing device that needs a cache without a log: refused until the discard is repeated |
//! | after step 2 | a backing device and a log without reference to each other, and a name that is refused until the discard is repeated |
//!
//! This order ensures that a backing device without its marker is never beside a log that looks in use,
//! except on a log device that could not be erased. No backing device needs that log, and it is refused.

use std::path::Path;

use plumb_block::Time;
use plumb_cache::{Uuid, driver};
use plumb_guard::cache::config::CacheConfig;
use plumb_guard::{Error, Intent, Kind, Result};

use crate::find;
use crate::leg::{is_there, leg_of};
use crate::member::Member;

/// Devices of a discarded cache that were not erased.
#[derive(Debug)]
pub struct DiscardedCache {
    /// Errors of the devices of the log that are present but were not erased.
    pub not_erased: Vec<Error>,
    /// Error of opening the backing device, if it is missing. If it comes back, it still needs the cache.
    pub backing_gone: Option<Error>,
}

/// Returns the number of bytes given up by a [`detached`](crate::NamedCache::detached) that was interrupted
/// after it had removed the marker from the backing device. [`discard`] then completes it without further
/// loss. `None` if there was no such interruption.
pub fn was_detached(config: &CacheConfig) -> Option<u64> {
    config.detaching.filter(|_| find::is_stranger_at_backing(config))
}

/// Discards the cache `name`; data that only its log holds is lost. Devices that belong to another cache, or
/// to none, are not changed.
///
/// # Errors
/// If `uuid` is not that of the cache, its backing device is in use, or a device fails. The discard can then
/// be repeated.
pub fn discard(directory: &Path, name: &str, uuid: Uuid) -> Result<DiscardedCache> {
    let config = CacheConfig::load(directory, name)?;
    if config.uuid != uuid {
        let found = format!("its UUID is {}, not {uuid}", config.uuid);
        let remedy = "give the UUID of the cache whose data may be lost";
        return Err(Error::refused(&format!("cache:{name}"), found, remedy));
    }
    let _claim = config.claim(directory)?;
    let config = find::legs(find::backing(config));
    let time = Time::real();
    let (backing, backing_gone) = match Member::open(&config.backing, &time) {
        Ok(backing) => (Some(backing), None),
        // A path that cannot be a device, such as an empty file, holds no marker either.
        Err(error) if error.is_gone() || error.kind() == Kind::Usage => (None, Some(error)),
        // Another device has the path now and is in use, which does not prevent the discard.
        Err(error) if find::is_stranger_at_backing(&config) => (None, Some(error)),
        Err(error) => return Err(error),
    };
    let mut not_erased = Vec::new();
    let moves_to = config.moves_to.iter().flat_map(|new| &new.legs);
    for place in config.legs.iter().chain(moves_to) {
        // A device that can no longer be written keeps its superblocks.
        let erased = Member::opened(place, Intent::WRITE, &time).and_then(|leg| erase_if_of(uuid, &leg));
        not_erased.extend(erased.err().filter(|_| is_there(place)));
    }
    // The path may lead to another device by now; only this cache's marker is removed.
    backing.map_or(Ok(()), |backing| backing.unmark(uuid))?;
    CacheConfig::forget(directory, name)?;
    Ok(DiscardedCache { not_erased, backing_gone })
}

fn erase_if_of(cache: Uuid, leg: &Member) -> Result<()> {
    match leg_of(leg)? {
        Some(found) if found.settings.cache == cache => {
            driver::erase(&*leg.device).map_err(|error| Error::device(&leg.shown, &error))?;
            leg.place().mark_as_free();
            Ok(())
        }
        _ => Ok(()),
    }
}
