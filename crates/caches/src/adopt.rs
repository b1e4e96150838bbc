//! Adoption of a cache whose configuration is lost, or names devices that have other paths now. The devices
//! provide everything but the name of the cache, its mode, and their paths.

use std::path::Path;

use plumb_block::Time;
use plumb_cache::{Leg, MissingLegs, Mode, Uuid};
use plumb_guard::cache::config::CacheConfig;
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::marker::Marker;
use plumb_guard::{Error, Intent, Result};
use plumb_text::shell_word;

use crate::create::may_be_named;
use crate::laying_out::in_mode;
use crate::leg::leg_of;
use crate::member::Member;
use crate::named::{NamedCache, Opening};
use crate::placement::are_different;

/// Devices of a cache that has no valid configuration.
#[derive(Debug, Clone, Copy)]
pub struct AdoptWanted<'a> {
    /// Name for the cache.
    pub name: &'a str,
    /// Name of the device that was cached.
    pub backing: &'a str,
    /// Names of the devices of the log, in any order.
    pub log: &'a [String],
    /// Mode; `None`: the mode of the known cache of this name, or write-back.
    pub mode: Option<Mode>,
    /// UUID of the cache, if the backing device is a copy that was made without its attributes.
    pub unmarked: Option<Uuid>,
}

/// Writes the configuration of the cache to which these devices belong, after its log was read and checked.
/// Writes nothing else, except the marker of an unmarked copy. A device of a mirror may be left out: opening
/// the cache decides whether the log can do without it. If the name already is that of this cache, only the
/// paths change, and the mode if one is given.
///
/// # Errors
/// If the devices belong to no cache or do not belong together, the cache is known by another name, or the
/// name belongs to another cache.
pub fn adopt(directory: &Path, wanted: AdoptWanted<'_>) -> Result<CacheConfig> {
    let AdoptWanted { name, backing, log, mode, unmarked } = wanted;
    let _alone = CacheConfig::lock_directory(directory)?;
    let before = CacheConfig::load(directory, name).ok();
    if before.is_none() {
        may_be_named(directory, name)?;
    }
    let time = Time::real();
    let mode = mode.or(before.as_ref().map(|before| before.mode)).unwrap_or(Mode::WriteBack);
    let legs = &DevicePlace::parse_all(log)?[..];
    are_different(&[legs, &[DevicePlace::whole(backing)]].concat())?;
    let room = CacheConfig::reserve(directory)?;
    if let Some(cache) = unmarked {
        mark_copy(backing, legs, cache, &time)?;
    }
    let config = configuration(wanted, legs, mode, before.as_ref(), &time)?;
    let mut config = in_mode(config, mode)?;
    if unmarked.is_some() {
        (config.stopped, config.last_mark) = (None, None);
    }
    if before.is_some_and(|before| before.uuid != config.uuid) {
        may_be_named(directory, name)?;
    }
    for known in CacheConfig::names(directory)?.into_iter().filter(|known| known != name) {
        if CacheConfig::load(directory, &known).is_ok_and(|known| known.uuid == config.uuid) {
            let shown = format!("cache:{name}");
            let remedy = format!(
                "use that name, also to change where its devices are: `plumb cache adopt --name {}`",
                shell_word(&known)
            );
            return Err(Error::refused(&shown, format!("this cache is already known as {known}"), remedy));
        }
    }
    let open = NamedCache::look(config, Opening { degraded: MissingLegs::Any, ..Opening::STRICT }, &time)?;
    let config = open.config().clone();
    drop(room);
    config.save(directory)?;
    Ok(config)
}

/// Marks a copy of a backing device that was made without its attributes as needing the cache `cache`, whose
/// log is on `legs`.
fn mark_copy(backing: &str, legs: &[DevicePlace], cache: Uuid, time: &Time) -> Result<()> {
    let backing = Member::open(backing, time)?;
    if !backing.markers()?.is_empty() {
        return Ok(());
    }
    let mut leg = None;
    for typed in legs {
        leg = leg.or(leg_of(&Member::opened(typed, Intent::READ, time)?)?);
    }
    let Some(leg) = leg.filter(|leg| leg.settings.cache == cache) else {
        let found = format!("none of the named devices belongs to the log of cache {cache}");
        return Err(Error::refused(&backing.shown, found, "name the devices of its log with --log"));
    };
    let (spot, size) = (backing.spot_of_new()?, leg.backing_size);
    let has = backing.cached(spot.place()).info().size;
    if has != size {
        let found = format!("the log is for a device of {} bytes, and this has {}", size.0, has.0);
        return Err(Error::refused(&backing.shown, found, "name a whole copy of the device that was cached"));
    }
    backing.set_marker(spot, Some(&Marker::new(cache, leg.settings.backing, size)))
}

/// Builds the configuration of a cache from the metadata on its devices.
fn configuration(
    wanted: AdoptWanted<'_>,
    legs: &[DevicePlace],
    mode: Mode,
    before: Option<&CacheConfig>,
    time: &Time,
) -> Result<CacheConfig> {
    let AdoptWanted { name, backing, .. } = wanted;
    let backing = Member::opened(&DevicePlace::whole(backing), Intent::READ, time)?;
    let Some((marker, spot)) = backing.markers()?.first().copied() else {
        let remedy = "name the device that was cached; if it is a copy of that, made without its attributes \
                      while the cache was not served, add --unmarked with the UUID of the cache";
        return Err(Error::refused(&backing.shown, "it does not say that it needs a cache", remedy));
    };
    let mut paths: Vec<Option<DevicePlace>> = Vec::new();
    let mut known: Option<Leg> = None;
    for typed in legs {
        let member = Member::opened(typed, Intent::READ, time)?;
        member.is_apart_from(&backing)?;
        let Some(leg) = leg_of(&member)?.filter(|leg| leg.settings.cache == marker.cache) else {
            let found = format!(
                "it is not a device of the log of cache {}, which {} needs",
                marker.cache, backing.shown
            );
            return Err(Error::refused(&member.shown, found, "name the devices of that log"));
        };
        paths.resize(paths.len().max(leg.legs), None);
        if paths[leg.number].replace(member.place()).is_some() {
            let found =
                format!("it is device {} of the log, and so is another one that was named", leg.number);
            return Err(Error::refused(&member.shown, found, "name each device of the log once"));
        }
        known = Some(leg);
    }
    let Some(Leg { settings, .. }) = known else {
        return Err(Error::usage(name, "no device of the log was named", "name it with --log"));
    };
    // A device that was not named keeps its last path, or gets one that does not exist, so that opening finds
    // it missing and judges by the other devices whether the log is complete.
    let named: Vec<DevicePlace> = paths.iter().flatten().cloned().collect();
    let before = before.filter(|before| before.uuid == marker.cache);
    let last = |number: usize| {
        let known = before?.legs.get(number)?;
        (!named.contains(known)).then(|| known.clone())
    };
    let missing = |(number, path): (usize, Option<DevicePlace>)| {
        let nowhere = || format!("/dev/disk/by-id/missing-device-{number}-of-the-log-of-{name}");
        path.or_else(|| last(number)).unwrap_or_else(|| DevicePlace::whole(&nowhere()))
    };
    Ok(CacheConfig {
        schema: CacheConfig::SCHEMA.to_owned(),
        name: name.to_owned(),
        uuid: marker.cache,
        backing_uuid: marker.backing,
        mode,
        layout: settings.layout,
        size: settings.size.0,
        backing: backing.path.clone(),
        marker: spot.place(),
        backing_size: Some(marker.size.0),
        moves_to: None,
        tuning: before.map(|before| before.tuning).unwrap_or_default(),
        stopped: before.and_then(|before| before.stopped.clone()),
        last_mark: before.and_then(|before| before.last_mark),
        detaching: None,
        legs: paths.into_iter().enumerate().map(missing).collect(),
    })
}
