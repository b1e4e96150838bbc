//! A cache that was made before, opened over its devices; and caches as targets.

use std::sync::Arc;

use plumb_block::{Bytes, Pool, PoolShape, Time};
use plumb_cache::driver::{self, CachedDevice, Members};
use plumb_cache::{BUFFER, Cache, Identity, Mode, Options, State};

use super::config::{self, CacheConfig};
use super::create::needs;
use super::inline;
use super::marker::Marker;
use super::member::Member;
use crate::error::{Error, Kind, Result};
use crate::name::{Name, Scheme};
use crate::network;
use crate::open::Wanted;
use crate::opened::{Opened, Route, TargetKind};
use crate::permission::Permission;

/// How many buffers a cache has for its records, for reads of the log and for destaging.
const BUFFERS: u32 = 48;

/// A cache that serves, with its devices.
pub struct NamedCache {
    /// Where it is.
    pub config: CacheConfig,
    /// The cache.
    pub device: CachedDevice,
    backing: Member,
}

/// What a cache is opened with, but for what only its log says.
pub(super) fn options_of(mode: Mode) -> plumb_block::Result<Options> {
    let memory = Pool::new(PoolShape { buffer: BUFFER, count: BUFFERS, alignment: Bytes::kib(4) })?;
    Ok(Options { mode, ..Options::new(memory) })
}

impl NamedCache {
    /// Opens the cache: recovers its log, and marks the backing device with the new session. `is_degraded` allows that a leg is not
    /// there.
    ///
    /// # Errors
    /// The refusal: its devices are missing or in use, or do not belong together. Nothing was written then.
    pub fn open(config: CacheConfig, is_degraded: bool, time: &Time) -> Result<Self> {
        let (open, marker) = Self::recovered(config, is_degraded, false, time)?;
        let session =
            open.device.with(|core, _| core.status().map_or(marker.session, |status| status.session));
        open.backing.set_marker(open.config.marker, Some(&Marker { session, ..marker }))?;
        Ok(open)
    }

    /// Opens the cache to look at it: its whole log is read and checked, and nothing is written.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn look(config: CacheConfig, time: &Time) -> Result<Self> {
        Self::recovered(config, false, true, time).map(|(open, _)| open)
    }

    fn recovered(config: CacheConfig, degraded: bool, dry_run: bool, time: &Time) -> Result<(Self, Marker)> {
        let shown = format!("cache:{}", config.name);
        let (backing, marker) = backing_of(&config, time)?;
        let legs = legs_of(&config, degraded, time)?;
        let cached = backing.cached(config.marker);
        let size = cached.info().size;
        if size < marker.size {
            let found =
                format!("it has {size} and had {} when it was cached: it was made smaller", marker.size);
            return Err(Error::refused(&backing.shown, found, "give it its size back"));
        }
        let identity =
            Identity { cache: config.uuid, backing: config.backing_uuid, session_min: marker.session };
        let options = options_of(config.mode).map_err(|error| Error::device(&shown, &error))?;
        let options = Options { degraded, dry_run, identity: Some(identity), ..options };
        let legs = legs.iter().map(|leg| leg.as_ref().map(|leg| Arc::clone(&leg.device))).collect();
        let members = Members { legs, backing: cached };
        let device =
            CachedDevice::open(options, members, time.clone()).map_err(|error| refused(&shown, &error))?;
        Ok((Self { config, device, backing }, marker))
    }

    /// Stops it: what was acknowledged is durable then, on the log or the backing device.
    ///
    /// # Errors
    /// If that is not known to be so.
    pub fn stop(&self) -> plumb_block::Result<()> {
        self.device.with(Cache::stop);
        self.stopped()
    }

    /// Whether it has stopped, as it was told or because it cannot go on.
    pub fn has_stopped(&self) -> bool {
        let state = self.device.with(|core, _| core.state());
        !matches!(state, State::Recovering | State::Serving)
    }

    /// Waits until it has stopped.
    fn stopped(&self) -> plumb_block::Result<()> {
        let ended = self.device.wait_for(|core| match core.state() {
            State::Stopped { .. } => Some(Ok(())),
            State::Latched { because } | State::Failed { because } => Some(Err(because)),
            State::Recovering | State::Serving => None,
        })?;
        let place = &self.config.name;
        ended.map_err(|because| {
            plumb_block::Error::new(plumb_block::ErrorKind::Invalid, "stop the cache", place).because(because)
        })
    }

    /// Begins to write everything to the backing device and to stop then; [`detached`](Self::detached) ends it.
    pub fn begin_to_detach(&self) {
        self.device.with(Cache::detach);
    }

    /// Waits for the end of what was begun, takes the marker away, and forgets the cache: the backing device is used without it, and
    /// the devices of the log for something else.
    ///
    /// # Errors
    /// If not everything could be written to the backing device; the cache stays then. If the log could not be erased: the cache is gone
    /// all the same.
    pub fn detached(self) -> Result<()> {
        let failed = |error| Error::device(&format!("cache:{}", self.config.name), &error);
        self.stopped().map_err(failed)?;
        self.backing.set_marker(self.config.marker, None)?;
        CacheConfig::forget(&config::directory(), &self.config.name)?;
        let Members { legs, backing } = self.device.members().clone();
        let legs: Vec<_> = legs.into_iter().flatten().collect();
        driver::erase(&self.config.settings(), &legs, &backing.info()).map_err(failed)
    }
}

/// The backing device, and what it says of its cache.
fn backing_of(config: &CacheConfig, time: &Time) -> Result<(Member, Marker)> {
    let backing = Member::open(&config.backing, time)?;
    match backing.marker()? {
        (Some(marker), place) if place == config.marker => {
            let is_ours = marker.cache == config.uuid && marker.backing == config.backing_uuid;
            if is_ours { Ok((backing, marker)) } else { Err(needs(&backing.shown, &marker)) }
        }
        _ => {
            let found = format!(
                "it does not say that it needs the cache {}: it is another device, or was taken out of that cache and \
                 may have been written since",
                config.uuid
            );
            let remedy = format!(
                "name the right device, or give up the cache with `plumb cache detach {} --discard-dirty \
                                  {}`",
                config.name, config.uuid
            );
            Err(Error::refused(&backing.shown, found, remedy))
        }
    }
}

/// The devices of the log. One that is not there is `None`, if that is allowed and another one is there.
fn legs_of(config: &CacheConfig, is_degraded: bool, time: &Time) -> Result<Vec<Option<Member>>> {
    let missing = |leg: &Result<Member>| leg.as_ref().is_err_and(|error| error.kind() == Kind::NotFound);
    let legs: Vec<_> = config.legs.iter().map(|path| Member::open(path, time)).collect();
    let is_any_there = legs.iter().any(Result::is_ok);
    let legs = legs.into_iter().map(|leg| match leg {
        leg if missing(&leg) && is_degraded && is_any_there => Ok(None),
        Err(error) if error.kind() == Kind::NotFound => {
            let remedy = format!(
                "bring it back; a mirror can be served without it with --degraded; if what only it holds may be lost, \
                 `plumb cache detach {} --discard-dirty {}`",
                config.name, config.uuid
            );
            Err(Error::refused(error.target(), "this device of the log is missing", remedy))
        }
        leg => leg.map(Some),
    });
    legs.collect()
}

/// What the core says when it does not open.
pub(super) fn refused(shown: &str, error: &plumb_block::Error) -> Error {
    match (&error.kind, &error.detail) {
        (plumb_block::ErrorKind::Invalid, Some(why)) => Error::refused(shown, why, ""),
        _ => Error::device(shown, error),
    }
}

/// Whether `name` is that of a cache.
pub(crate) fn is_meant(name: &Name) -> bool {
    matches!(name, Name::Scheme { scheme: Scheme::Cache, .. })
}

/// Opens the caches that are wanted, each with its place in the list. Names that are typed alike are the same cache.
///
/// # Errors
/// If there is none of the name, its devices refuse, or the guard does.
pub(crate) fn open_all(
    wanted: &[(usize, Wanted)],
    permission: &Permission,
    time: &Time,
) -> Result<Vec<(usize, Opened)>> {
    let mut known: Vec<(&Name, inline::Made)> = Vec::new();
    let mut opened = Vec::new();
    for (place, want) in wanted {
        let Name::Scheme { rest, .. } = &want.name else { continue };
        let made = known.iter().find(|(name, _)| **name == want.name).map(|(_, made)| made.clone());
        let made = match made {
            Some(made) => made,
            None => {
                let made = match rest.contains('=') {
                    true => inline::make(&want.name, rest, time)?,
                    false => {
                        let config = CacheConfig::load(&config::directory(), rest)?;
                        let cache = NamedCache::open(config, false, time)?;
                        inline::Made { device: cache.device.clone(), counters: None }
                    }
                };
                known.push((&want.name, made.clone()));
                made
            }
        };
        let target = match &made.counters {
            Some(_) => inline::describe(want, made, time)?,
            None => {
                let about =
                    network::About { kind: TargetKind::Cache, route: Route::Cache, is_read_only: false };
                network::describe(want, Arc::new(made.device), about, permission)?
            }
        };
        opened.push((*place, target));
    }
    Ok(opened)
}
