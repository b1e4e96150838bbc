//! A cache is made: its log is written, its backing device marked, and its configuration kept, in this order. What fails on the way
//! leaves no cache behind; after a crash a marker may be left, which names the cache to discard.

use std::path::Path;
use std::sync::Arc;

use plumb_block::{Bytes, RealClock, Time};
use plumb_cache::{Layout, Mode, Settings, Uuid, driver};
use plumb_linux::FileOptions;
use plumb_serve::named::registry;

use super::config::{CacheConfig, MarkerPlace};
use super::marker::Marker;
use super::member::{Member, new_uuid};
use crate::error::{Error, Kind, Result};
use crate::name::{Name, Scheme};
use crate::open::{Wanted, open_all};
use crate::opened::Opened;
use crate::permission::{Intent, Permission};

/// The unit in which log space becomes free.
pub(super) const SEGMENT: Bytes = Bytes::mib(4);

/// The cache that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct CreateWanted<'a> {
    /// Its name.
    pub name: &'a str,
    /// The device to be cached; what is on it stays.
    pub backing: &'a str,
    /// The devices of the log; what is on them goes, if the guard allows it.
    pub legs: &'a [String],
    /// How several of them share the log.
    pub layout: Layout,
    /// The bytes used of each.
    pub size: Bytes,
    /// The mode in which it is to be served.
    pub mode: Mode,
    /// What the user allows for the devices of the log.
    pub permission: &'a Permission,
    /// A cache that the backing device needs, and whose dirty data may be lost.
    pub discard_dirty: Option<Uuid>,
}

/// Makes a cache, which is then known by its name.
///
/// # Errors
/// The refusal, or the system's failure.
pub fn create(directory: &Path, wanted: &CreateWanted<'_>) -> Result<CacheConfig> {
    let shown = format!("cache:{}", wanted.name);
    if !registry::is_name(wanted.name) {
        let remedy = "take up to 40 letters, digits, `-`, `_` and `.`, first a letter, a digit or `_`";
        return Err(Error::usage(&shown, "this is no name for a cache", remedy));
    }
    if CacheConfig::names(directory)?.iter().any(|name| name == wanted.name) {
        let remedy =
            format!("take another name, or take that one out with `plumb cache detach {}`", wanted.name);
        return Err(Error::refused(&shown, "there is a cache of this name", remedy));
    }
    let time = Time::Real(Arc::new(RealClock::start()));
    for typed in wanted.legs.iter().map(String::as_str).chain([wanted.backing]) {
        if let Name::Scheme { scheme: Scheme::Sim | Scheme::Cache, .. } = Name::parse(typed)? {
            let found =
                "it is gone with this process, and a cache is found again by the paths of its devices";
            let remedy = "try it as a target: cache:backing=sim:MODEL,log=sim:MODEL,size=1GiB";
            return Err(Error::usage(typed, found, remedy));
        }
    }
    let backing = Member::open(wanted.backing, &time)?;
    let (marked, place) = backing.marker()?;
    if let Some(marker) = marked.filter(|marker| Some(marker.cache) != wanted.discard_dirty) {
        return Err(needs(&backing.shown, &marker));
    }
    let mut opened = guarded(wanted.legs, wanted.size, wanted.permission, &time)?;
    let made = written(wanted, &backing.cached(place).info(), &time).and_then(|(settings, legs)| {
        let marker = Marker {
            cache: settings.cache,
            backing: settings.backing,
            session: 0,
            size: backing.cached(place).info().size,
        };
        backing.set_marker(place, Some(&marker))?;
        let config = CacheConfig {
            schema: CacheConfig::SCHEMA.to_owned(),
            name: wanted.name.to_owned(),
            uuid: settings.cache,
            backing_uuid: settings.backing,
            mode: wanted.mode,
            layout: wanted.layout,
            size: wanted.size.0,
            backing: backing.path.clone(),
            marker: place,
            legs: legs.into_iter().map(|leg| leg.path).collect(),
        };
        config.save(directory).map(|()| config)
    });
    made.map_err(|error| {
        opened.iter_mut().fold(error, |error, leg| error.after_clearing_up(leg.remove_if_made()))
    })
}

/// Zeroes the last block of a device whose contents may go, where it would say which cache it needs. What it says of one stays.
///
/// # Errors
/// As [`create`] of the backing device.
pub fn clear_place_of_marker(backing: &str) -> Result<()> {
    let backing = Member::open(backing, &Time::Real(Arc::new(RealClock::start())))?;
    // Only of something else than zeroes or a marker is it an error, which `create` tells, if it stays one.
    if backing.marker().is_err() { backing.set_marker(MarkerPlace::LastBlock, None) } else { Ok(()) }
}

/// The backing device says that it needs a cache.
pub(super) fn needs(shown: &str, marker: &Marker) -> Error {
    let Marker { cache, .. } = marker;
    let found = format!("it needs the cache {cache}, which may hold the only copy of what was written to it");
    let remedy = format!(
        "serve that cache, or take it out with `plumb cache detach`; only if what it holds may be lost, say --discard-dirty {cache}"
    );
    Error::refused(shown, found, remedy)
}

/// Has the guard judge the devices of the log, which makes files that are missing. Block devices are let go again, so that they can
/// be claimed as a cache claims them.
pub(super) fn guarded(
    legs: &[String],
    size: Bytes,
    permission: &Permission,
    time: &Time,
) -> Result<Vec<Opened>> {
    let legs = legs.iter().map(|typed| {
        let intent = Intent::WRITE.sized(size);
        Ok(Wanted { name: Name::parse(typed)?, intent, options: FileOptions::write_direct() })
    });
    let legs = legs.collect::<Result<Vec<_>>>()?;
    let mut opened = open_all(&legs, permission, time)?;
    opened.retain(|leg| leg.made);
    Ok(opened)
}

/// Writes what makes a cache to the devices of the log.
fn written(
    wanted: &CreateWanted<'_>,
    backing: &plumb_block::DeviceInfo,
    time: &Time,
) -> Result<(Settings, Vec<Member>)> {
    let legs = wanted.legs.iter().map(|typed| Member::open(typed, time)).collect::<Result<Vec<_>>>()?;
    legs.iter().try_for_each(|leg| leg.allocate(wanted.size))?;
    let settings = Settings {
        cache: new_uuid()?,
        backing: new_uuid()?,
        size: wanted.size,
        segment: SEGMENT,
        layout: wanted.layout,
    };
    let devices: Vec<_> = legs.iter().map(|leg| Arc::clone(&leg.device)).collect();
    driver::create(&settings, &devices, backing)
        .map_err(|error| Error::device(&format!("cache:{}", wanted.name), &error))?;
    Ok((settings, legs))
}

/// Gives up the cache of this name without opening its log: what only the log holds is lost.
///
/// # Errors
/// If `uuid` is not the cache's, or it is in use.
pub fn discard(directory: &Path, name: &str, uuid: Uuid) -> Result<CacheConfig> {
    let config = CacheConfig::load(directory, name)?;
    let shown = format!("cache:{name}");
    if config.uuid != uuid {
        let found = format!("its UUID is {}, not {uuid}", config.uuid);
        return Err(Error::new(
            Kind::Refused,
            shown,
            found,
            "type the UUID of the cache whose data may be lost",
        ));
    }
    let time = Time::Real(Arc::new(RealClock::start()));
    let backing = Member::open(&config.backing, &time)?;
    backing.set_marker(config.marker, None)?;
    CacheConfig::forget(directory, name)?;
    Ok(config)
}
