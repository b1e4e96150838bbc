//! A cache is made: its log is laid out and written, its backing device marked, and its configuration kept,
//! in this order. What fails on the way leaves no cache behind; what a killed process leaves is taken away
//! later (`new_files`).

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

/// The unit in which log space becomes free.
pub(crate) const SEGMENT: Bytes = Bytes::mib(4);

/// The cache that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct CreateWanted<'a> {
    /// Name of the cache.
    pub name: &'a str,
    /// The device to be cached; what is on it stays.
    pub backing: &'a str,
    /// The devices of the log, or parts of them: what is on them goes, if the guard allows it.
    pub legs: &'a [String],
    /// How several of them share the log.
    pub layout: Layout,
    /// The bytes used of each.
    pub size: Bytes,
    /// The mode in which it is to be served.
    pub mode: Mode,
    /// Settings that may be changed later.
    pub tuning: Tuning,
    /// Permission of the user for the devices of the log, and for a backing device that is one of another
    /// log.
    pub permission: &'a Permission,
    /// A cache that the backing device needs, and whose dirty data may be lost.
    pub discard_dirty: Option<Uuid>,
}

/// Makes a cache, which is then known by its name. Without `laying_out` the files of its log are only
/// reserved, which is quick: for one that does not live long, and never in the mode `protected`.
///
/// # Errors
/// The refusal, or the system's failure; EINTR when laying out was stopped.
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
        // The end of the log.
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

/// Facts about the devices of a cache that is to be made.
struct Plan {
    settings: Settings,
    /// Description of the cached device.
    info: DeviceInfo,
    backing: Member,
    /// Place of the marker on it.
    spot: Spot,
    /// True if it is one of another log, which goes.
    is_log: bool,
    /// Markers on it that go.
    marked: Vec<(Marker, Spot)>,
}

/// Writes the log on `legs`, then the marker, then the configuration.
fn write(directory: &Path, wanted: &CreateWanted<'_>, plan: &Plan, legs: &[Member]) -> Result<CacheConfig> {
    let Plan { settings, info, backing, spot, is_log, marked } = plan;
    // Laying out takes long, and others need not wait for that.
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

/// Returns the markers that go from a device to be cached: all that it bears, of the cache whose data may be
/// lost.
///
/// # Errors
/// The refusal, if it bears one of another cache, or another cache's configuration names it.
fn may_be_cached(backing: &Member, discard_dirty: Option<Uuid>) -> Result<Vec<(Marker, Spot)>> {
    let marked = backing.markers()?;
    let by_mark = marked.iter().map(|(marker, _)| marker.cache);
    let by_name = backing.known_caches().into_iter().map(|config| config.uuid);
    match by_mark.chain(by_name).find(|cache| Some(*cache) != discard_dirty) {
        Some(other) => Err(needs(&backing.shown, other)),
        None => Ok(marked),
    }
}

/// Returns the error, with the files that [`guarded`] has made taken away, or as long as before.
pub(crate) fn without_made(error: Error, mut made: Vec<OpenedTarget>) -> Error {
    made.iter_mut().fold(error, |error, leg| error.after_clearing_up(leg.remove_if_made()))
}

/// Refuses a name that is none, or that another cache has.
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

/// Refuses a size of a log that no file would have.
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

/// Makes room on a device whose contents may go for what says which cache it needs, in the last block. What
/// it says of one stays.
///
/// # Errors
/// As [`create`] of the backing device.
pub fn clear_place_of_marker(backing: &str, permission: &Permission) -> Result<()> {
    let backing = Member::open(backing, &Time::real())?;
    backing.is_log_that_goes(permission)?;
    // Only of something else than zeroes or a marker is it an error, which `create` tells, if it stays one.
    let found = backing.spot_of_new();
    if matches!(found, Ok(Spot::Attribute)) || !backing.markers()?.is_empty() {
        return Ok(());
    }
    take_off(&backing).map_err(|error| Error::device(&backing.shown, &error))?;
    if found.is_err() { backing.set_marker(Spot::Block(last_block(&*backing.device)), None) } else { Ok(()) }
}

/// The backing device says that it needs a cache, or the configuration of that says so.
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

/// Has the guard judge the devices of the log, which makes files that are missing, and those longer that are
/// short: these come back. Files that are the log of the cache `own`, and show no sign of another use, may be
/// written. Block devices are let go again, so that they can be claimed as a cache claims them.
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

/// Refuses a cache of which two devices are the same storage.
fn are_apart(backing: &Member, legs: &[Member]) -> Result<()> {
    for (number, leg) in legs.iter().enumerate() {
        leg.is_apart_from(backing)?;
        legs[..number].iter().try_for_each(|other| leg.is_apart_from(other))?;
    }
    Ok(())
}

/// Returns the devices of the log, laid out, if they do for the mode.
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
    // All of them before anything is written.
    let infos: Vec<_> = legs.iter().map(|leg| leg.device.info()).collect();
    Cache::create(&plan.settings, &infos, &plan.info).map_err(|error| not_made(wanted.name, &error))?;
    legs.iter().try_for_each(|leg| leg.reserve_for_log(wanted.size))?;
    legs.iter().try_for_each(|leg| leg.take_for_log(wanted.size, laying_out.as_deref_mut()))?;
    Ok(legs)
}

fn not_made(name: &str, error: &plumb_block::Error) -> Error {
    Error::device(&format!("cache:{name}"), error)
}
