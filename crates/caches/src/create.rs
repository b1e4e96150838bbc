//! Creation of a cache: the log is laid out and written, then the backing device is marked, then the
//! configuration is saved. A failure leaves no cache behind; the files that a killed process leaves are
//! removed later (`new_files`).

use std::path::Path;
use std::sync::Arc;

use plumb_block::{Bytes, DeviceInfo, Time};
use plumb_cache::{Cache, LOG_BLOCK, Layout, Mode, Settings, Uuid, driver};
use plumb_guard::cache::config::{CacheConfig, MarkerPlace};
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::marker::{Marker, last_block};
use plumb_guard::cache::tuning::Tuning;
use plumb_guard::opened::OpenedTarget;
use plumb_guard::{Error, Intent, Kind, Name, Permission, Result, Scheme, TargetRequest, open_all};
use plumb_linux::FileOptions;
use plumb_serve::named::registry;
use plumb_text::shell_word;

use crate::last_block::{is_left_free, take_off};
use crate::laying_out::{LayoutObserver, may_hold_log_of};
use crate::leg::leg_of;
use crate::member::{Member, Spot, new_uuid};
use crate::new_files::{self, LogToMake};
use crate::placement::are_different;

/// Unit in which space in the log is freed.
pub(crate) const SEGMENT: Bytes = Bytes::mib(4);

/// Cache to create.
#[derive(Debug, Clone, Copy)]
pub struct CreateWanted<'a> {
    /// Name of the cache.
    pub name: &'a str,
    /// Name of the device to be cached; its contents stay.
    pub backing: &'a str,
    /// Names of the devices of the log, or of parts of them. Their contents are overwritten, if the guard
    /// permits.
    pub legs: &'a [String],
    /// Layout of the log on several devices.
    pub layout: Layout,
    /// Bytes used of each leg.
    pub size: Bytes,
    /// Mode of the cache.
    pub mode: Mode,
    /// Settings that can be changed later.
    pub tuning: Tuning,
    /// Permission of the user for the devices of the log, and for a backing device that belongs to another
    /// log.
    pub permission: &'a Permission,
    /// UUID of a cache that the backing device needs, and whose dirty data may be lost.
    pub discard_dirty: Option<Uuid>,
}

/// Creates a cache, which is then known by its name. Without `laying_out` the files of its log are only
/// reserved, which is quick: suitable for a cache that does not live long, and never for the mode
/// `protected`.
///
/// # Errors
/// If a device is refused or fails, or with EINTR if laying out was stopped.
pub fn create(
    directory: &Path,
    wanted: &CreateWanted<'_>,
    laying_out: Option<&mut LayoutObserver<'_>>,
) -> Result<CacheConfig> {
    may_be_named(directory, wanted.name)?;
    in_whole_blocks(wanted.size)?;
    let time = Time::real();
    for typed in wanted.legs.iter().map(String::as_str).chain([wanted.backing]) {
        if let Name::Scheme { scheme: Scheme::Sim | Scheme::Cache, .. } = Name::parse(typed)? {
            let found = "a simulated drive does not outlive this process, so a cache cannot use one";
            let remedy = "try it as a target: cache:backing=sim:MODEL,log=sim:MODEL,size=1GiB";
            return Err(Error::usage(typed, found, remedy));
        }
    }
    let legs = DevicePlace::parse_all(wanted.legs)?;
    are_different(&[&legs[..], &[DevicePlace::whole(wanted.backing)]].concat())?;
    let backing = Member::open(wanted.backing, &time)?;
    let is_log = backing.is_log_that_goes(wanted.permission)?;
    let marked = may_be_cached(&backing, wanted.discard_dirty)?;
    let spot = match backing.spot_of_new() {
        // The contents of another log may be overwritten, so its last block is free.
        Err(error) if is_log && error.kind() == Kind::Refused => Spot::Block(last_block(&*backing.device)),
        found => found?,
    };
    let place = spot.place();
    if marked.is_empty() && place == MarkerPlace::LastBlock && !is_log {
        is_left_free(&backing)?;
    }
    let permission = backing.without_own_name(wanted.permission)?;
    let info = backing.cached(place).info();
    let settings = Settings {
        cache: new_uuid()?,
        backing: new_uuid()?,
        size: wanted.size,
        segment: SEGMENT,
        layout: wanted.layout,
    };
    let path = backing.path.clone();
    let log = LogToMake { directory, name: wanted.name, cache: settings.cache, backing: &path };
    new_files::while_made(&log, &legs, || {
        let opened = guarded(&legs, wanted.size, &permission, wanted.discard_dirty, &time)?;
        let plan = Plan { settings, info, backing, spot, is_log, marked };
        let legs = legs_of(wanted, &legs, &plan, &time, laying_out);
        let made = legs.and_then(|legs| write(directory, wanted, &plan, &legs));
        made.map_err(|error| without_made(error, opened))
    })
}

/// Devices and settings of a cache to be created.
struct Plan {
    settings: Settings,
    /// Description of the cached device.
    info: DeviceInfo,
    backing: Member,
    /// Place of the marker on the backing device.
    spot: Spot,
    /// True if the backing device belongs to another log, which is overwritten.
    is_log: bool,
    /// Markers to be removed from the backing device.
    marked: Vec<(Marker, Spot)>,
}

/// Writes the log on `legs`, then the marker, then the configuration.
fn write(directory: &Path, wanted: &CreateWanted<'_>, plan: &Plan, legs: &[Member]) -> Result<CacheConfig> {
    let Plan { settings, info, backing, spot, is_log, marked } = plan;
    // The lock is taken after laying out, which takes long.
    let _alone = CacheConfig::lock_directory(directory)?;
    may_be_named(directory, wanted.name)?;
    let devices: Vec<_> = legs.iter().map(|leg| Arc::clone(&leg.device)).collect();
    driver::create(settings, &devices, info).map_err(|error| not_made(wanted.name, &error))?;
    let Settings { cache, backing: uuid, .. } = *settings;
    let marker = Marker::new(cache, uuid, info.size);
    if *is_log {
        // The old log becomes part of the cached device and must not look like a log any more.
        driver::erase(&*backing.device).map_err(|error| Error::device(&backing.shown, &error))?;
    }
    backing.set_marker(*spot, Some(&marker))?;
    let others = marked.iter().filter(|(_, other)| other != spot);
    others.into_iter().try_for_each(|(_, other)| backing.set_marker(*other, None))?;
    let config = CacheConfig {
        schema: CacheConfig::SCHEMA.to_owned(),
        name: wanted.name.to_owned(),
        uuid: cache,
        backing_uuid: uuid,
        mode: wanted.mode,
        layout: wanted.layout,
        size: wanted.size.0,
        backing: backing.path.clone(),
        marker: spot.place(),
        legs: legs.iter().map(Member::place).collect(),
        backing_size: Some(info.size.0),
        moves_to: None,
        tuning: wanted.tuning,
        stopped: None,
        last_mark: None,
        detaching: None,
    };
    let before = marked.iter().find(|(_, before)| before == spot).map(|(marker, _)| marker);
    let unmarked = |error: Error| error.after_clearing_up(backing.set_marker(*spot, before));
    config.save(directory).map(|()| config).map_err(unmarked)
}

/// Returns the markers to be removed from a device to be cached: all of them, if they belong to the cache
/// whose data may be lost.
///
/// # Errors
/// If the device has a marker of another cache, or the configuration of another cache names it.
fn may_be_cached(backing: &Member, discard_dirty: Option<Uuid>) -> Result<Vec<(Marker, Spot)>> {
    let marked = backing.markers()?;
    let by_mark = marked.iter().map(|(marker, _)| marker.cache);
    let by_name = backing.known_caches().into_iter().map(|config| config.uuid);
    match by_mark.chain(by_name).find(|cache| Some(*cache) != discard_dirty) {
        Some(other) => Err(needs(&backing.shown, other)),
        None => Ok(marked),
    }
}

/// Removes the files that [`guarded`] created, restores the length of those that it extended, and returns the
/// error.
pub(crate) fn without_made(error: Error, mut made: Vec<OpenedTarget>) -> Error {
    made.iter_mut().fold(error, |error, leg| error.after_clearing_up(leg.remove_if_made()))
}

/// Refuses an invalid name, and one that another cache has.
pub(crate) fn may_be_named(directory: &Path, name: &str) -> Result<()> {
    let shown = format!("cache:{name}");
    if !registry::is_name(name) {
        let remedy = "use up to 40 letters, digits, `-`, `_` and `.`, first a letter, a digit or `_`";
        return Err(Error::usage(&shown, "this is not a name for a cache", remedy));
    }
    if CacheConfig::names(directory)?.iter().any(|known| known == name) {
        let remedy =
            format!("use another name, or remove that cache with `plumb cache detach {}`", shell_word(name));
        return Err(Error::refused(&shown, "there is a cache of this name", remedy));
    }
    Ok(())
}

/// Refuses a size that is not a multiple of the block of a log.
pub(crate) fn in_whole_blocks(size: Bytes) -> Result<()> {
    let below = size.round_down(Bytes(LOG_BLOCK)).0;
    if below == size.0 {
        return Ok(());
    }
    let or = if below == 0 { String::new() } else { format!("{below} or ") };
    let found = format!(
        "a log uses whole blocks of {LOG_BLOCK} bytes of each device, and {} are not a multiple",
        size.0
    );
    Err(Error::usage("--size", found, format!("say {or}{}", below + LOG_BLOCK)))
}

/// Makes the last block of a device, whose contents may be overwritten, available for a marker. Existing
/// markers stay.
///
/// # Errors
/// The errors of [`create`] for the backing device.
pub fn clear_place_of_marker(backing: &str, permission: &Permission) -> Result<()> {
    let backing = Member::open(backing, &Time::real())?;
    backing.is_log_that_goes(permission)?;
    // Only foreign data in the last block is an error here; if it stays, `create` reports it.
    let found = backing.spot_of_new();
    if matches!(found, Ok(Spot::Attribute)) || !backing.markers()?.is_empty() {
        return Ok(());
    }
    take_off(&backing).map_err(|error| Error::device(&backing.shown, &error))?;
    if found.is_err() { backing.set_marker(Spot::Block(last_block(&*backing.device)), None) } else { Ok(()) }
}

/// Returns the refusal of a device that is the backing device of the cache `cache`.
pub(crate) fn needs(shown: &str, cache: Uuid) -> Error {
    let found = format!(
        "it is the backing device of the cache {cache}, which may hold the only copy of its newest data"
    );
    let remedy = format!(
        "serve that cache, or remove it with `plumb cache detach`; only if the data in its log may be lost, \
         add --discard-dirty {cache}"
    );
    Error::refused(shown, found, remedy)
}

/// Lets the guard judge the devices of the log, and returns the files that it created or extended. Files that
/// hold the log of the cache `own`, and nothing else, may be overwritten. Block devices are closed again, so
/// that the cache can claim them.
pub(crate) fn guarded(
    legs: &[DevicePlace],
    size: Bytes,
    permission: &Permission,
    own: Option<Uuid>,
    time: &Time,
) -> Result<Vec<OpenedTarget>> {
    let mut permission = permission.clone();
    let members = legs.iter().filter_map(|place| Member::opened(place, Intent::WRITE, time).ok());
    for member in members.filter(|member| own.is_some() && member.is_log_file()) {
        let leg = leg_of(&member)?;
        permission
            .destroy
            .extend(leg.filter(|leg| Some(leg.settings.cache) == own).map(|_| member.place().to_string()));
    }
    let legs = legs.iter().map(|place| {
        let (name, intent) = (Name::parse(&place.path)?, Intent::WRITE.sized(size).within(place.part));
        Ok(TargetRequest { name, intent, options: FileOptions::write_direct().shared() })
    });
    let legs = legs.collect::<Result<Vec<_>>>()?;
    let mut opened = open_all(&legs, &permission, time)?;
    opened.retain(|leg| leg.needs_layout.is_some());
    Ok(opened)
}

/// Refuses a cache with two devices on the same storage.
fn are_apart(backing: &Member, legs: &[Member]) -> Result<()> {
    for (number, leg) in legs.iter().enumerate() {
        leg.is_apart_from(backing)?;
        legs[..number].iter().try_for_each(|other| leg.is_apart_from(other))?;
    }
    Ok(())
}

/// Opens the devices of the log, checks that they suit the mode, and lays them out.
fn legs_of(
    wanted: &CreateWanted<'_>,
    places: &[DevicePlace],
    plan: &Plan,
    time: &Time,
    mut laying_out: Option<&mut LayoutObserver<'_>>,
) -> Result<Vec<Member>> {
    let legs = places.iter().map(|place| Member::opened(place, Intent::WRITE, time));
    let legs = legs.collect::<Result<Vec<_>>>()?;
    legs.iter().try_for_each(|leg| may_hold_log_of(wanted.mode, &leg.path))?;
    are_apart(&plan.backing, &legs)?;
    // Check all devices before anything is written.
    let infos: Vec<_> = legs.iter().map(|leg| leg.device.info()).collect();
    Cache::create(&plan.settings, &infos, &plan.info).map_err(|error| not_made(wanted.name, &error))?;
    legs.iter().try_for_each(|leg| leg.reserve_for_log(wanted.size))?;
    legs.iter().try_for_each(|leg| leg.take_for_log(wanted.size, laying_out.as_deref_mut()))?;
    Ok(legs)
}

fn not_made(name: &str, error: &plumb_block::Error) -> Error {
    Error::device(&format!("cache:{name}"), error)
}
