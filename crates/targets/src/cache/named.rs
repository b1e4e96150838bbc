//! A cache that was made before, opened over its devices; and caches as targets.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Device as _, LbaRange, Pool, PoolShape, Time};
use plumb_cache::driver::{self, CachedDevice, Members};
use plumb_cache::{BUFFER, Cache, Degraded, Identity, Mode, Options, State};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::{Survey, survey_cache};

use super::config::{self, CacheConfig};
use super::create::needs;
use super::follower::Follower;
use super::inline;
use super::marker::Marker;
use super::member::Member;
use crate::error::{Error, Kind, Result};
use crate::mark::mark_as_free;
use crate::name::{Name, Scheme};
use crate::network;
use crate::open::Wanted;
use crate::opened::{Opened, Route, TargetKind};
use crate::permission::{Intent, Permission};
use crate::shared::Keeping;

/// How many buffers a cache has for its records, for reads of the log and for destaging.
const BUFFERS: u32 = 48;

/// A cache that serves, with its devices.
pub struct NamedCache {
    config: Mutex<CacheConfig>,
    /// The cache.
    pub device: CachedDevice,
    backing: Arc<Member>,
    /// The files of the log, by the number of the leg.
    files: Mutex<Vec<Option<Arc<OwnedFd>>>>,
    /// None of one that is only looked at.
    follower: Option<Follower>,
}

/// What a cache is opened with, but for what only its log says.
pub(super) fn options_of(mode: Mode) -> plumb_block::Result<Options> {
    let memory = Pool::new(PoolShape { buffer: BUFFER, count: BUFFERS, alignment: Bytes::kib(4) })?;
    Ok(Options { mode, ..Options::new(memory) })
}

impl NamedCache {
    /// Opens the cache: recovers its log, and marks the backing device with the new session and each later one. `degraded` says which legs may
    /// be missing beside those that the log calls lost.
    ///
    /// # Errors
    /// The refusal: its devices are missing or in use, or do not belong together. Nothing was written then.
    pub fn open(config: CacheConfig, degraded: Degraded, time: &Time) -> Result<Self> {
        Self::served(config, |options| Options { degraded, ..options }, time)
    }

    /// Opens the cache with what its log has before the first durable record that is damaged or gone; what comes after it is lost.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn salvage(config: CacheConfig, time: &Time) -> Result<Self> {
        Self::served(config, |options| Options { gives_up_lost: true, ..options }, time)
    }

    fn served(config: CacheConfig, how: impl FnOnce(Options) -> Options, time: &Time) -> Result<Self> {
        let (mut open, marker) = Self::recovered(config, how, Intent::WRITE, time)?;
        let session = open.device.look(Cache::session_durable).unwrap_or(marker.session);
        let (backing, place) = (Arc::clone(&open.backing), open.config().marker);
        let mark = move |session| backing.set_marker(place, Some(&Marker { session, ..marker }));
        mark(session)?;
        let shown = open.shown();
        let follower = Follower::start(open.device.clone(), mark);
        open.follower = Some(follower.map_err(|error| Error::device(&shown, &error))?);
        Ok(open)
    }

    /// Opens the cache to look at it: its whole log is read and checked, and nothing is written. `degraded` as in [`open`](Self::open);
    /// with `gives_up_lost` as [`salvage`](Self::salvage) would leave it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn look(config: CacheConfig, degraded: Degraded, gives_up_lost: bool, time: &Time) -> Result<Self> {
        let how = |options| Options { degraded, dry_run: true, gives_up_lost, ..options };
        Self::recovered(config, how, Intent::READ, time).map(|(open, _)| open)
    }

    fn recovered(
        config: CacheConfig,
        how: impl FnOnce(Options) -> Options,
        intent: Intent,
        time: &Time,
    ) -> Result<(Self, Marker)> {
        let shown = format!("cache:{}", config.name);
        let (backing, marker) = backing_of(&config, intent, time)?;
        let legs = legs_of(&config, intent, time)?;
        let cached = backing.cached(config.marker);
        let size = cached.info().size;
        if size < marker.size {
            let (now, before) = (size.0, marker.size.0);
            let found =
                format!("it has {now} bytes and had {before} when it was cached: it was made smaller");
            return Err(Error::refused(&backing.shown, found, "give it its size back"));
        }
        let identity =
            Identity { cache: config.uuid, backing: config.backing_uuid, session_min: marker.session };
        let options = options_of(config.mode).map_err(|error| Error::device(&shown, &error))?;
        let options = how(Options { identity: Some(identity), ..options });
        let missing: Vec<_> = config.legs.iter().zip(&legs).filter(|(_, leg)| leg.is_none()).collect();
        let missing =
            missing.into_iter().map(|(path, _)| format!("{path} is not there; ")).collect::<String>();
        let files = legs.iter().map(|leg| leg.as_ref()?.file().cloned()).collect();
        let legs = legs.iter().map(|leg| leg.as_ref().map(|leg| Arc::clone(&leg.device))).collect();
        let members = Members { legs, backing: cached };
        let device = CachedDevice::open(options, members, time.clone()).map_err(|error| {
            let refusal = refused(&shown, &error);
            match refusal.kind() {
                Kind::Refused => {
                    Error::refused(&shown, refusal.found(), format!("{missing}{}", last_resort(&config)))
                }
                _ => refusal,
            }
        })?;
        let (config, files) = (Mutex::new(config), Mutex::new(files));
        Ok((Self { config, device, backing: Arc::new(backing), files, follower: None }, marker))
    }

    /// Where it is.
    pub fn config(&self) -> MutexGuard<'_, CacheConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files among the devices of the log, by the number of the leg: each is locked for as long as it is here, or its device is in use.
    pub(super) fn files(&self) -> MutexGuard<'_, Vec<Option<Arc<OwnedFd>>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name for people.
    pub(super) fn shown(&self) -> String {
        format!("cache:{}", self.config().name)
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
        let state = self.device.look(Cache::state);
        !matches!(state, State::Recovering | State::Serving)
    }

    /// Waits until it has stopped.
    fn stopped(&self) -> plumb_block::Result<()> {
        let ended = self.device.wait_for(|core| match core.state() {
            State::Stopped { .. } => Some(Ok(())),
            State::Latched { because } | State::Failed { because } => Some(Err(because)),
            State::Recovering | State::Serving => None,
        })?;
        ended.map_err(|because| {
            let place = self.config().name.clone();
            plumb_block::Error::new(plumb_block::ErrorKind::Invalid, "stop the cache", place).because(because)
        })
    }

    /// Begins to write everything to the backing device and to stop then; [`detached`](Self::detached) ends it.
    pub fn begin_to_detach(&self) {
        self.device.with(Cache::detach);
    }

    /// Waits for the end of what was begun, takes the marker away, and forgets the cache: the backing device is used without it, and
    /// the devices of the log for something else. `gives_up` allows that blocks which the log cannot read are older there.
    ///
    /// # Errors
    /// If not everything could be written to the backing device; the cache stays then. If the log could not be erased: the cache is gone
    /// all the same.
    pub fn detached(mut self, gives_up: bool) -> Result<()> {
        let shown = self.shown();
        let failed = |error| Error::device(&shown, &error);
        self.stopped().map_err(failed)?;
        let (state, status) = self.device.look(|core| (core.state(), core.status()));
        let is_written = status.as_ref().is_some_and(|status| status.dirty.0 + status.zeroed.0 == 0);
        let unreadable = status.map(|status| status.unreadable).unwrap_or_default();
        let is_clean = state == State::Stopped { is_clean: true };
        let is_given_up = gives_up && is_written && !unreadable.is_empty();
        if !is_clean && !is_given_up {
            return Err(self.not_everything(&shown, &unreadable));
        }
        self.follower = None;
        let CacheConfig { name, marker, legs: paths, .. } = self.config().clone();
        self.backing.set_marker(marker, None)?;
        CacheConfig::forget(&config::directory(), &name)?;
        let legs = self.device.members().legs.clone();
        legs.iter().flatten().try_for_each(|leg| driver::erase(&**leg)).map_err(failed)?;
        paths.iter().for_each(|path| mark_as_free(path));
        Ok(())
    }

    /// The refusal to detach a cache of which the backing device does not have everything.
    fn not_everything(&self, shown: &str, unreadable: &[LbaRange]) -> Error {
        let CacheConfig { name, uuid, backing, .. } = self.config().clone();
        let Some(first) = unreadable.first() else {
            let found = "not everything is on the backing device";
            return Error::refused(shown, found, format!("do it again: `plumb cache detach {name}`"));
        };
        let block = self.device.info().logical_block.0;
        let (offset, length) = (first.lba.0 * block, Bytes(first.nlb * block));
        let more = match unreadable.len() {
            1 => String::new(),
            count => format!(", and {} places more", count - 1),
        };
        let found = format!(
            "the log cannot be read where {length} from byte {offset} of {backing} on are{more}: the backing device has something older \
             there"
        );
        let remedy = format!(
            "serve the cache and write these bytes again, or give them up with `plumb cache detach {name} --give-up-unreadable {uuid}`"
        );
        Error::refused(shown, found, remedy)
    }
}

/// The way out of a cache that cannot be opened.
fn last_resort(CacheConfig { name, uuid, .. }: &CacheConfig) -> String {
    format!(
        "only if what its log holds may be lost, give it up with `plumb cache detach {name} --discard-dirty {uuid}`"
    )
}

/// The backing device, and what it says of its cache.
fn backing_of(config: &CacheConfig, intent: Intent, time: &Time) -> Result<(Member, Marker)> {
    let backing = Member::opened(&config.backing, intent, time).map_err(|error| match error.kind() {
        Kind::NotFound => {
            let remedy = format!("bring it back under this name; {}", last_resort(config));
            Error::refused(error.target(), "the backing device is missing", remedy)
        }
        _ => error,
    })?;
    let found = match backing.marker() {
        // Something that is no mark: it is another device.
        Err(error) if error.kind() == Kind::Refused => (None, config.marker),
        found => found?,
    };
    match found {
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
                "name the right devices, `plumb cache adopt --name {} --backing PATH --log PATH`; {}",
                config.name,
                last_resort(config)
            );
            Err(Error::refused(&backing.shown, found, remedy))
        }
    }
}

/// The devices of the log, `None` for one that is not there, or does not answer: the others say whether it counts. One has to be there.
fn legs_of(config: &CacheConfig, intent: Intent, time: &Time) -> Result<Vec<Option<Member>>> {
    let legs: Vec<_> = config.legs.iter().map(|path| Member::opened(path, intent, time)).collect();
    let is_any_there = legs.iter().any(Result::is_ok);
    let legs = legs.into_iter().map(|leg| match leg {
        Err(error) if error.is_gone() && is_any_there => Ok(None),
        Err(error) if error.kind() == Kind::NotFound => {
            let remedy = format!("bring it back; {}", last_resort(config));
            Err(Error::refused(error.target(), "this device of the log is missing", remedy))
        }
        Err(error) if error.kind() == Kind::Usage => {
            Err(Error::refused(error.target(), error.found(), last_resort(config)))
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

/// The way beneath the cache that is called `typed`, by its configuration: it is not opened, and may be served. `None` if that is no name
/// of a cache that was made.
///
/// # Errors
/// If there is no cache of this name.
pub fn survey(typed: &str) -> Result<Option<Survey>> {
    match Name::parse(typed) {
        Ok(Name::Scheme { scheme: Scheme::Cache, rest }) if !rest.contains('=') => {
            let directory = config::directory();
            CacheConfig::load(&directory, &rest)?;
            let file = CacheConfig::path(&directory, &rest);
            Ok(Some(survey_cache(&LiveTree::new(), &LiveProbe::new(), typed, &file.to_string_lossy())))
        }
        _ => Ok(None),
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
                        let cache = NamedCache::open(config, Degraded::No, time)?;
                        inline::Made {
                            device: cache.device.clone(),
                            counters: None,
                            named: Some(Arc::new(cache)),
                        }
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
                // With the cache its mark goes on to follow its sessions.
                let device = Arc::new(Keeping { device: made.device, _kept: made.named });
                network::describe(want, device, about, permission)?
            }
        };
        opened.push((*place, target));
    }
    Ok(opened)
}
