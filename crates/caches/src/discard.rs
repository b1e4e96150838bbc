//! A cache is given up without opening its log. Three steps, each durable before the next:
//!
//! 1. zeroes where the devices of the log say that they are its devices, of those that are there and can be
//!    written;
//! 2. the backing device does not say any more that it needs the cache;
//! 3. the configuration goes.
//!
//! | A power cut, or the end of the process | leaves |
//! |---|---|
//! | before or within step 1 | a cache that is opened as before, or refused because of what its log lacks |
//! | after step 1, or within step 2 | a backing device that needs a cache of which there is no log: refused, until this is done again |
//! | after step 2 | a backing device and a log that know nothing of each other, and a name that is refused until this is done again |
//!
//! By this order, a backing device without a trace of its cache is never beside a log that looks in use,
//! except for a log device that could not be erased: no backing device requires that log, and it is refused.

use std::path::Path;

use plumb_block::Time;
use plumb_cache::{Uuid, driver};
use plumb_guard::cache::config::CacheConfig;
use plumb_guard::{Error, Intent, Kind, Result};

use crate::find;
use crate::leg::{is_there, leg_of};
use crate::member::Member;

/// Remains of a cache that was given up.
#[derive(Debug)]
pub struct DiscardedCache {
    /// Reason why devices of the log could not be looked at or written, of each that is there: they were not
    /// erased.
    pub not_erased: Vec<Error>,
    /// Reason why the backing device could not be looked at, if it is gone: should it come back, it needs the
    /// cache still.
    pub backing_gone: Option<Error>,
}

/// Returns the number of bytes that were given up by a [`detached`](crate::NamedCache::detached) which was
/// interrupted after it had taken the mark off the backing device: [`discard`] ends it without a loss. `None`
/// if there was none.
pub fn was_detached(config: &CacheConfig) -> Option<u64> {
    config.detaching.filter(|_| find::is_stranger_at_backing(config))
}

/// Gives up the cache of this name: what only its log holds is lost. What is of another cache, or of none,
/// stays as it is.
///
/// # Errors
/// If `uuid` is not the cache's, its backing device is in use, or a device fails; it can be done again then.
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
        // A path that cannot be used as a device, such as an empty file, holds no information either.
        Err(error) if error.is_gone() || error.kind() == Kind::Usage => (None, Some(error)),
        // Another device has the name, and somebody uses it: that is no reason to keep the cache.
        Err(error) if find::is_stranger_at_backing(&config) => (None, Some(error)),
        Err(error) => return Err(error),
    };
    let mut not_erased = Vec::new();
    let moves_to = config.moves_to.iter().flat_map(|new| &new.legs);
    for place in config.legs.iter().chain(moves_to) {
        // One that cannot be written any more keeps what it has.
        let erased = Member::opened(place, Intent::WRITE, &time).and_then(|leg| erase_if_of(uuid, &leg));
        not_erased.extend(erased.err().filter(|_| is_there(place)));
    }
    // Something else may be in its place by now.
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
