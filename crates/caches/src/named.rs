//! A cache opened by its name over its devices, and caches as targets.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_block::{Bytes, Device, LbaRange, Pool, PoolShape, Time};
use plumb_cache::driver::{self, CachedDevice, Members};
use plumb_cache::{BUFFER, Cache, Identity, MissingLegs, Mode, Options, State, WITNESSES_MAX};
use plumb_guard::cache::config::{self, CacheConfig, LastMark};
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::marker::Marker;
use plumb_guard::cache::stop_record::StopRecord;
use plumb_guard::network;
use plumb_guard::shared::KeepingDevice;
use plumb_guard::{
    Error, Intent, Kind, Name, OpenedTarget, Permission, Result, Scheme, TargetKind, TargetRequest,
};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_path::{Survey, survey_cache};
use plumb_state::LockedRecord;
use plumb_text::shell_word;

use crate::create::needs;
use crate::find;
use crate::follower::Follower;
use crate::inline;
use crate::leg::is_there;
use crate::member::{Member, Spot};
use crate::patient_check::PatientCheck;
use crate::placement;
use crate::remedies::{adopt_command, last_resort, serving};
use crate::wear::{self, Endurance};
use crate::witness::{self, Marking};

/// Number of buffers of a cache for its records, for reads of the log, and for destaging.
const BUFFERS: u32 = 48;

/// Open cache with its devices.
pub struct NamedCache {
    config: Mutex<CacheConfig>,
    /// The cache as a device.
    pub device: CachedDevice,
    pub(crate) backing: Arc<Member>,
    /// Descriptors of those legs that are files, by the number of the leg.
    files: Mutex<Vec<Option<Arc<OwnedFd>>>>,
    /// Writer of the marks on the backing device; `None` for a cache that is only inspected, or is detached.
    follower: Option<Follower>,
    pub(crate) marking: Arc<Marking>,
    /// Refusal because something else wrote to the backing device; only for a cache that is only inspected.
    written_beside: Option<Error>,
    /// Warnings and endurance of its devices, computed on first use.
    placement: Mutex<Option<Placement>>,
    /// Check whether the backing file was deleted.
    pub(crate) backing_name: PatientCheck,
    /// Claim on the cache, which must be dropped after its devices.
    _claim: Option<LockedRecord>,
}

/// Warnings and endurance of the devices of a cache, with the settings for which they are valid.
struct Placement {
    mode: Mode,
    legs: Vec<DevicePlace>,
    given: Option<u64>,
    warnings: Vec<String>,
    endurance: Option<Endurance>,
}

/// Problems that an opening tolerates.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// Legs that may be missing beside those that the log records as lost.
    pub degraded: MissingLegs,
    /// True if recovery may stop at a durable record that is damaged or missing; later records are lost.
    pub gives_up_lost: bool,
    /// True if writes of other programs to the backing device since the cache was served may be lost.
    pub discards_backing_writes: bool,
}

impl Opening {
    /// Strictest opening, which tolerates nothing.
    pub const STRICT: Self =
        Self { degraded: MissingLegs::No, gives_up_lost: false, discards_backing_writes: false };
}

/// Returns the options of a cache, except those that depend on its log.
pub(crate) fn options_of(mode: Mode) -> plumb_block::Result<Options> {
    let memory = Pool::new(PoolShape { buffer: BUFFER, count: BUFFERS, alignment: Bytes::kib(4) })?;
    Ok(Options { mode, ..Options::new(memory) })
}

impl NamedCache {
    /// Opens the cache: recovers its log, and from then on marks the backing device as the log requires.
    ///
    /// # Errors
    /// If its devices are missing or in use, do not belong together, or were used without each other. Nothing
    /// has been written to the backing device then.
    pub fn open(config: CacheConfig, opening: Opening, time: &Time) -> Result<Self> {
        let mut open = Self::recovered(config, opening, Intent::WRITE, time)?;
        if let Some(refusal) = open.written_beside.take() {
            return Err(refusal);
        }
        open.clear_left_markers()?;
        let shown = open.shown();
        let failed = |error: plumb_block::Error| Error::device(&shown, &error);
        open.follower =
            Some(Follower::start(open.device.clone(), Arc::clone(&open.marking)).map_err(failed)?);
        // The marker must name the session before any request is served.
        let marked = open.device.wait_for(|core| match core.state() {
            State::Latched { because } => Some(Err(because)),
            _ => core.is_session_marked().then_some(Ok(())),
        });
        marked.map_err(failed)?.map_err(|why| Error::refused(&shown, why, "see to the backing device"))?;
        // A stop record that shows no foreign write belongs to an earlier session by now.
        let last_mark = Some(open.last_mark());
        let now = CacheConfig { stopped: None, detaching: None, last_mark, ..open.config().clone() };
        now.save(&config::directory())?;
        *open.config() = now;
        Ok(open)
    }

    /// Opens the cache for inspection: reads and checks the whole log, and writes nothing. The result is what
    /// `opening` would lead to; [`written_beside`](Self::written_beside) has a reason for which
    /// [`open`](Self::open) would still refuse.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), except that one.
    pub fn look(config: CacheConfig, opening: Opening, time: &Time) -> Result<Self> {
        Self::recovered(config, opening, Intent::READ, time)
    }

    /// Returns a refusal if something else is known to have written to the backing device since the cache was
    /// served.
    pub fn written_beside(&self) -> Option<&Error> {
        self.written_beside.as_ref()
    }

    fn recovered(config: CacheConfig, opening: Opening, intent: Intent, time: &Time) -> Result<Self> {
        let shown = format!("cache:{}", config.name);
        let claim = config.claim(&config::directory())?;
        let config = find::backing(config);
        let (backing, mut marker, spot) = backing_of(&config, intent, time)?;
        refuse_old_copy(&config, &backing, marker.mark.into())?;
        let config = find::legs(config.after_move(marker.mark.is_sealed));
        let legs = legs_of(&config, intent, time)?;
        let size = backing.cached(spot.place()).info().size;
        backing.is_not_smaller(size, marker.size)?;
        // Space by which the device has grown is not cached yet.
        let cached = backing.part(marker.size);
        if opening.discards_backing_writes {
            marker.state([None; WITNESSES_MAX]);
        }
        let options = options_of(config.mode).map_err(|error| Error::device(&shown, &error))?;
        let (cache, backing_uuid) = (config.uuid, config.backing_uuid);
        let options = Options {
            identity: Some(Identity { cache, backing: backing_uuid, marked: marker.mark }),
            name: config.name.clone(),
            witnesses: witness::ranges(&*cached),
            degraded: opening.degraded,
            gives_up_lost: opening.gives_up_lost,
            // The marker gets the larger size before the log does.
            grows_backing: true,
            destage: config.tuning.destage(),
            dry_run: !intent.writes,
            ..options
        };
        let missing = config.legs.iter().zip(&legs).filter(|(_, leg)| leg.is_none());
        let missing: Vec<&str> = missing.map(|(place, _)| &*place.path).collect();
        let adopt = match *missing {
            [] => String::new(),
            _ => format!("{} is not there; {}; ", missing.join(", "), adopt_command(&config, &missing)),
        };
        let files = legs.iter().map(|leg| leg.as_ref()?.file().cloned()).collect();
        let legs = legs.iter().map(|leg| leg.as_ref().map(|leg| Arc::clone(&leg.device))).collect();
        let members = Members { legs, backing: Arc::clone(&cached) };
        let device = CachedDevice::open(options, members, time.clone()).map_err(|error| {
            let refusal = refused(&shown, &error);
            match refusal.kind() {
                Kind::Refused => Error::refused(
                    &shown,
                    refusal.found(),
                    format!("{adopt}{}", last_resort(&config.name, config.uuid)),
                ),
                _ => refusal,
            }
        })?;
        let is_needed = device.look(Cache::status).is_some_and(|status| status.dirty.0 + status.zeroed.0 > 0);
        let stopped = config.stopped.as_ref().filter(|_| !opening.discards_backing_writes);
        let evidence = evidence_of_write(stopped, &backing, &*cached, &marker);
        if evidence.is_some() {
            // The next mark must read the contents again.
            marker.state([None; WITNESSES_MAX]);
        }
        let written_beside = evidence.filter(|_| is_needed).map(|why| foreign_write(&config, &backing, &why));
        let config = CacheConfig { marker: spot.place(), backing_size: Some(marker.size.0), ..config };
        let (config, files, backing) = (Mutex::new(config), Mutex::new(files), Arc::new(backing));
        let marking = Arc::new(Marking::new(Arc::clone(&backing), spot, cached, marker));
        Ok(Self {
            config,
            device,
            backing,
            files,
            follower: None,
            marking,
            written_beside,
            placement: Mutex::default(),
            backing_name: PatientCheck::default(),
            _claim: claim,
        })
    }

    /// Returns warnings about the placement of the devices, a sentence each, and the endurance of the log's
    /// devices.
    pub(crate) fn placement(&self) -> (Vec<String>, Option<Endurance>) {
        let config = self.config().clone();
        let given = config.tuning.endurance_bytes;
        let mut known = self.placement.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match known.take() {
            Some(it) if it.mode == config.mode && it.legs == config.legs && it.given == given => {
                known.insert(it)
            }
            _ => {
                let warnings = placement::warnings(&config);
                let endurance = wear::endurance(given, &config.legs);
                let CacheConfig { mode, legs, .. } = config;
                known.insert(Placement { mode, legs, given, warnings, endurance })
            }
        };
        (known.warnings.clone(), known.endurance)
    }

    /// Returns a message if the backing device was found at another path than that in `before`, the
    /// configuration before opening.
    pub fn found_elsewhere(&self, before: &CacheConfig) -> Option<String> {
        let CacheConfig { name, backing: found, .. } = &*self.config();
        (*found != before.backing).then(|| {
            format!("{name}: its backing device was found at {found} in place of {}", before.backing)
        })
    }

    /// Returns the configuration, with the present paths of the devices.
    pub fn config(&self) -> MutexGuard<'_, CacheConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the descriptors of those legs that are files, by the number of the leg. Each keeps its file
    /// locked, as does the open device.
    pub(crate) fn files(&self) -> MutexGuard<'_, Vec<Option<Arc<OwnedFd>>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of the cache for messages.
    pub(crate) fn shown(&self) -> String {
        format!("cache:{}", self.config().name)
    }

    /// Stops the cache. What was acknowledged is then durable, in the log or on the backing device.
    ///
    /// # Errors
    /// If that is not certain.
    pub fn stop(&self) -> plumb_block::Result<()> {
        self.device.with(Cache::stop);
        self.wait_until_stopped()?;
        let Some(mark) = self.device.look(Cache::mark_at_stop) else { return Ok(()) };
        let failed = |error: Error| {
            let place = self.config().name.clone();
            plumb_block::Error::new(plumb_block::ErrorKind::Invalid, "mark the backing device of", place)
                .because(error.to_string())
        };
        self.marking.write(mark).map_err(failed)?;
        let stopped = StopRecord::now(mark.session, self.backing.held());
        let config = CacheConfig { stopped, last_mark: Some(self.last_mark()), ..self.config().clone() };
        // Without a stop record the witnesses detect foreign writes.
        config.save(&config::directory()).or(Ok(()))
    }

    fn last_mark(&self) -> LastMark {
        self.marking.last().0.mark.into()
    }

    /// Returns true if the cache has stopped, as ordered or after a failure.
    pub fn has_stopped(&self) -> bool {
        let state = self.device.look(Cache::state);
        !matches!(state, State::Recovering | State::Serving)
    }

    /// Waits until the cache has stopped.
    fn wait_until_stopped(&self) -> plumb_block::Result<()> {
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

    /// Starts to drain the cache, which then stops; [`detached`](Self::detached) completes it.
    pub fn begin_to_detach(&self) {
        self.device.with(Cache::detach);
    }

    /// Waits for the drain, removes the marker, and removes the cache's configuration: the backing device can
    /// then be used alone, and the devices of the log for something else. With `gives_up`, blocks that the
    /// log cannot read may stay older on the backing device. Returns the errors of log devices that could not
    /// be erased; no backing device needs them.
    ///
    /// # Errors
    /// If data could not be written to the backing device; the cache then stays.
    pub fn detached(mut self, gives_up: bool) -> Result<Vec<Error>> {
        let shown = self.shown();
        let failed = |error| Error::device(&shown, &error);
        self.wait_until_stopped().map_err(failed)?;
        let (state, status) = self.device.look(|core| (core.state(), core.status()));
        let is_written = status.as_ref().is_some_and(|status| status.dirty.0 + status.zeroed.0 == 0);
        let unreadable = status.map(|status| status.unreadable).unwrap_or_default();
        let is_clean = state == State::Stopped { is_clean: true };
        let is_given_up = gives_up && is_written && !unreadable.is_empty();
        if !is_clean && !is_given_up {
            return Err(self.not_everything(&shown, &unreadable));
        }
        self.follower = None;
        let given_up: u64 =
            unreadable.iter().map(|range| range.nlb * self.device.info().logical_block.0).sum();
        let config = CacheConfig { detaching: Some(given_up), ..self.config().clone() };
        // If the process ends after removing the marker, this note is the only evidence that the log is not
        // needed.
        config.save(&config::directory())?;
        let CacheConfig { name, uuid, legs: paths, .. } = config;
        self.backing.unmark(uuid)?;
        CacheConfig::forget(&config::directory(), &name)?;
        let legs = self.device.members().legs.clone();
        let there = paths.iter().zip(&legs).filter(|(path, leg)| leg.is_some() || is_there(path));
        let erased = there.map(|(path, leg)| match leg {
            Some(leg) => driver::erase(&**leg)
                .map(|()| path.mark_as_free())
                .map_err(|error| Error::device(&path.to_string(), &error)),
            None => {
                let found = "it does not answer";
                Err(Error::new(Kind::NotFound, path.to_string(), found, ""))
            }
        });
        Ok(erased.filter_map(Result::err).collect())
    }

    /// Returns the refusal to detach a cache whose backing device lacks data.
    pub(crate) fn not_everything(&self, shown: &str, unreadable: &[LbaRange]) -> Error {
        let CacheConfig { name, uuid, backing, .. } = self.config().clone();
        let Some(first) = unreadable.first() else {
            let found = "some data is only in the log";
            return Error::refused(
                shown,
                found,
                format!("try again: `plumb cache detach {}`", shell_word(&name)),
            );
        };
        let block = self.device.info().logical_block.0;
        let (offset, length) = (first.lba.0 * block, Bytes(first.nlb * block));
        let more = match unreadable.len() {
            1 => String::new(),
            count => format!(", and {} places more", count - 1),
        };
        let found = format!(
            "{length} from byte {offset} of {backing} on cannot be read from the log{more}: the backing \
             device has older data there"
        );
        let is_sealed = self.device.look(Cache::status).is_some_and(|status| status.log_error.is_some());
        let again = if is_sealed { "" } else { "serve the cache and write these bytes again, or " };
        let remedy = format!(
            "{again}give them up with `plumb cache detach {} --give-up-unreadable {uuid}`",
            shell_word(&name)
        );
        Error::refused(shown, found, remedy)
    }
}

/// Refuses a backing device that is a copy from before the cache wrote to it, by its mark.
fn refuse_old_copy(config: &CacheConfig, backing: &Member, mark: LastMark) -> Result<()> {
    let Some(last) = config.last_mark.filter(|last| mark.is_before(*last)) else { return Ok(()) };
    let found = format!(
        "it is an old copy: it was marked last in session {} with everything before record {}, but the backing device \
         of this cache in session {} with everything before record {}, and what was written to it since is missing",
        mark.session, mark.tail, last.session, last.tail
    );
    let remedy = format!(
        "bring back the device that was served last; only if what was written since may be lost, keep this one with \
         `plumb cache detach {} --discard-dirty {}`",
        shell_word(&config.name),
        config.uuid
    );
    Err(Error::refused(&backing.shown, found, remedy))
}

/// Returns evidence of a foreign write to the backing device: since the cache `stopped`, or against the
/// contents stated in its marker.
fn evidence_of_write(
    stopped: Option<&StopRecord>,
    backing: &Member,
    cached: &dyn Device,
    marker: &Marker,
) -> Option<String> {
    let since = stopped.and_then(|record| record.write_since(marker.mark.session, backing.held()));
    since.or_else(|| {
        let at = witness::changed(cached, &marker.contents)?;
        Some(format!("its contents at byte {at} are not those that the cache left there"))
    })
}

/// Returns the refusal of a cache whose backing device was written by something else, with the remedies.
fn foreign_write(config: &CacheConfig, backing: &Member, why: &str) -> Error {
    let (CacheConfig { name, uuid, .. }, shown) = (config, &backing.shown);
    let serving = serving(name, &format!("--discard-backing-writes {uuid}"));
    let (name, device) = (shell_word(name), shell_word(shown));
    let found = format!(
        "something other than its cache (perhaps a mount) has written to it since the cache was served: \
         {why}. Data that only the log holds would overwrite that"
    );
    let remedy = format!(
        "decide which of the two to keep: the backing device, without the data that only the log holds: \
         `plumb cache detach {name} --discard-dirty {uuid}`; or the log, which overwrites those writes: \
         {serving}, then check the file system; to look at both first: `plumb cache verify {name}`, and `mount -o ro,noload` (xfs: ro,norecovery) of \
         {device}, which changes nothing"
    );
    Error::refused(shown, found, remedy)
}

/// Opens the backing device, and returns it with its marker and the place of the marker.
fn backing_of(config: &CacheConfig, intent: Intent, time: &Time) -> Result<(Member, Marker, Spot)> {
    let place = DevicePlace::whole(&config.backing);
    let backing = Member::opened(&place, intent, time).map_err(|error| match error.kind() {
        Kind::NotFound => {
            let adopt = adopt_command(config, &[&config.backing]);
            let remedy =
                format!("bring it back under this name; {adopt}; {}", last_resort(&config.name, config.uuid));
            Error::refused(error.target(), "the backing device is missing", remedy)
        }
        _ => error,
    })?;
    let found = backing.markers()?;
    let is_ours = |marker: &Marker| marker.cache == config.uuid && marker.backing == config.backing_uuid;
    let own = found.iter().find(|(marker, _)| is_ours(marker)).copied();
    match (own, found.first()) {
        (Some((marker, spot)), _) => Ok((backing, marker, spot)),
        (None, Some((other, _))) => Err(needs(&backing.shown, other.cache)),
        (None, None) if config.detaching.is_some() => {
            let remedy = format!("`plumb cache detach {}` ends that", shell_word(&config.name));
            Err(Error::refused(
                &backing.shown,
                "its cache was being detached, and the log is not needed",
                remedy,
            ))
        }
        (None, None) => {
            let found = format!(
                "it does not say that it needs the cache {}: it is another device, or was removed from that \
                 cache and may have been written since",
                config.uuid
            );
            let adopt = adopt_command(config, &[&config.backing]);
            let remedy =
                format!("bring back the right one; {adopt}; {}", last_resort(&config.name, config.uuid));
            Err(Error::refused(&backing.shown, found, remedy))
        }
    }
}

/// Opens the devices of the log; `None` for one that is missing or does not answer, if at least one opens.
/// Recovery decides whether the log can do without it.
fn legs_of(config: &CacheConfig, intent: Intent, time: &Time) -> Result<Vec<Option<Member>>> {
    let legs: Vec<_> = config.legs.iter().map(|path| Member::of_log(path, intent, time)).collect();
    let is_any_there = legs.iter().any(Result::is_ok);
    let legs = legs.into_iter().zip(&config.legs).map(|(leg, place)| match leg {
        Err(error) if error.is_gone() && is_any_there => Ok(None),
        Err(error) if error.kind() == Kind::NotFound => {
            let adopt = adopt_command(config, &[&place.path]);
            let remedy = format!("bring it back; {adopt}; {}", last_resort(&config.name, config.uuid));
            Err(Error::refused(error.target(), "this device of the log is missing", remedy))
        }
        Err(error) if error.kind() == Kind::Usage => {
            Err(Error::refused(error.target(), error.found(), last_resort(&config.name, config.uuid)))
        }
        leg => leg.map(Some),
    });
    legs.collect()
}

/// Converts an error of the core while opening.
pub(crate) fn refused(shown: &str, error: &plumb_block::Error) -> Error {
    match (&error.kind, &error.detail) {
        (plumb_block::ErrorKind::Invalid, Some(why)) => Error::refused(shown, why, ""),
        _ => Error::device(shown, error),
    }
}

/// Returns the write path below the cache `typed` according to its configuration, without opening the cache;
/// `None` if `typed` is not the name of a cache with a configuration.
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

/// Returns true if `name` has the scheme of a cache.
pub fn is_meant(name: &Name) -> bool {
    matches!(name, Name::Scheme { scheme: Scheme::Cache, .. })
}

/// Opens the wanted caches, each with its position in the list. Equal names are the same cache.
///
/// # Errors
/// If there is no cache of a name, or its devices or the guard refuse.
pub fn open_all(
    wanted: &[(usize, TargetRequest)],
    permission: &Permission,
    time: &Time,
) -> Result<Vec<(usize, OpenedTarget)>> {
    let mut known: Vec<(&Name, inline::InlineCache)> = Vec::new();
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
                        let cache = NamedCache::open(config, Opening::STRICT, time)?;
                        inline::InlineCache {
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
                // The target keeps the named cache alive, and so the writer of its marker.
                let device = Arc::new(KeepingDevice { device: made.device, _kept: made.named });
                network::describe(want, device, TargetKind::Cache, permission)?
            }
        };
        opened.push((*place, target));
    }
    Ok(opened)
}
