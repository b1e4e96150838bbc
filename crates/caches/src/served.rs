//! A cache that is served under its name: what only a cache can be told, and how it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_block::{Bytes, Device as _, FailureKind, LbaRange, Nanos, Time};
use plumb_cache::driver::LatencyByRequest;
use plumb_cache::{Cache, Figures, Findings, Layout, LegState, Mode, State};
use plumb_guard::cache::config::{self, CacheConfig};
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::cache::tuning::{Sleep, Tuning};
use plumb_guard::{ByteExtent, Permission, Result};
use plumb_serve::named::control::RefusedOrder;
use plumb_serve::named::{
    Controls, Exports, Service, ServiceDevice, ServiceError, ServiceOptions, Stay, connections_max,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::changing::Changing;
use crate::find;
use crate::laying_out::{LayoutObserver, in_mode};
use crate::named::{NamedCache, Opening};
use crate::placement::{is_same_export, keeps_unflushed, lies_on, warnings};
use crate::wear::Wear;

/// State of a cache that carries out requests, in a word.
const SERVING: &str = "serving";
/// State of a device of the log that has lost its name, in a word.
const DELETED: &str = "deleted";

/// Order that a cache accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheOrder {
    /// Serve in another mode, from now on and when it is served again.
    Mode {
        /// The new mode.
        mode: Mode,
    },
    /// Write back by other thresholds, and reckon with another endurance, from now on.
    Tune {
        /// All settings.
        tuning: Tuning,
    },
    /// Write everything to the backing device, and go on serving.
    Drain,
    /// Put another device into the place of one of the log.
    ReplaceLeg {
        /// Number of the leg that is replaced.
        leg: usize,
        /// The other device, by an absolute path.
        log: String,
        /// True if the user allows the other device to be overwritten: see [`Permission`].
        overwrite: bool,
        /// See `overwrite`.
        destroy: Vec<String>,
    },
    /// Put another log into the place of the present one.
    ReplaceLog {
        /// Devices of the other log, by absolute paths.
        log: Vec<String>,
        /// Bytes used of each; `None`: as many as now.
        size: Option<u64>,
        /// True if the user allows the devices to be overwritten: see [`Permission`].
        overwrite: bool,
        /// See `overwrite`.
        destroy: Vec<String>,
    },
    /// Have the log take so many bytes of each device.
    Grow {
        /// How many.
        size: u64,
    },
    /// Take all of the backing device, which has grown.
    GrowBacking,
}

impl CacheOrder {
    /// Returns the configuration of a cache that has carried out the order.
    ///
    /// # Errors
    /// If the order cannot be carried out with the devices of the cache.
    pub fn configured(&self, config: CacheConfig) -> Result<CacheConfig> {
        match self {
            Self::Mode { mode } => in_mode(config, *mode),
            Self::Tune { tuning } => Ok(CacheConfig { tuning: *tuning, ..config }),
            _ => Ok(config),
        }
    }

    /// Changes the devices of an open cache, if the order is about them.
    ///
    /// # Errors
    /// If the change fails, or is refused.
    pub fn change(&self, cache: &NamedCache, laying_out: &mut LayoutObserver<'_>) -> Result<()> {
        let allowed = |overwrite, destroy: &[String]| Permission {
            overwrite,
            destroy: destroy.to_vec(),
            ..Permission::default()
        };
        match self {
            Self::ReplaceLeg { leg, log, overwrite, destroy } => {
                let permission = allowed(*overwrite, destroy);
                let replace = || cache.replace_leg(*leg, log, &permission, laying_out);
                cache.with_new_files(std::slice::from_ref(log), replace)
            }
            Self::ReplaceLog { log, size, overwrite, destroy } => {
                let permission = allowed(*overwrite, destroy);
                let replace = || cache.replace_log(log, size.map(Bytes), &permission, laying_out);
                cache.with_new_files(log, replace)
            }
            Self::Grow { size } => cache.grow(Bytes(*size), laying_out),
            Self::GrowBacking => cache.grow_backing(),
            Self::Mode { .. } | Self::Tune { .. } | Self::Drain => Ok(()),
        }
    }
}

/// How a cache is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// Always [`CacheStatus::SCHEMA`], or [`SCHEMA_CREATE`](CacheStatus::SCHEMA_CREATE).
    pub schema: String,
    /// The name of the cache.
    pub name: String,
    /// Names it for ever.
    pub uuid: String,
    /// When a write is acknowledged, and where it is then.
    pub mode: Mode,
    /// True if it is served now.
    pub served: bool,
    /// The device that is cached.
    pub backing: BackingStatus,
    /// The devices of the log.
    pub legs: Vec<LegStatus>,
    /// The bytes used of each leg.
    pub size: u64,
    /// Bytes that only the log holds; null if that is not known.
    pub dirty_bytes: Option<u64>,
    /// Bytes that were zeroed or discarded, which the backing device does not have yet; null if that is not
    /// known.
    #[serde(default)]
    pub zeroed_bytes: Option<u64>,
    /// For how many seconds the oldest of both has been in the log at least: counted from the opening of the
    /// cache for what was there then. Null if there is none.
    pub oldest_dirty: Option<f64>,
    /// Flushes since it was opened.
    pub flushes: FlushCounts,
    /// Bytes written to each leg for each byte of data that went through the log; null before the first.
    pub write_amplification: Option<f64>,
    /// How it is: `serving`, or why not; null if it is not open.
    pub state: Option<String>,
    /// How much of the log holds records, in bytes.
    pub log_used: Option<u64>,
    /// How much it can hold, in bytes; null if it is not open.
    pub log_size: Option<u64>,
    /// True if it is about to become larger.
    #[serde(default)]
    pub growing: bool,
    /// Progress of laying out a file before the log changes; left out where none is laid out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laying_out: Option<LaidOut>,
    /// True if everything is being written back.
    #[serde(default)]
    pub draining: bool,
    /// True if the backing device alone is old and consistent by now, in the mode `ordered`.
    #[serde(default)]
    pub ordered: bool,
    /// Ranges that the log can no longer read, in bytes of the cached device: reads of them fail until they
    /// are overwritten.
    #[serde(default)]
    pub unreadable: Vec<ByteExtent>,
    /// Ranges that were durable when the cache was opened and are whole on no leg, in bytes of the cached
    /// device: reads of them fail.
    #[serde(default)]
    pub damaged: Vec<ByteExtent>,
    /// Findings in the log when the cache was opened; null if it is not open.
    #[serde(default)]
    pub recovery: Option<Findings>,
    /// Reason why data is not being written back; null if nothing prevents it.
    #[serde(default)]
    pub write_back_error: Option<String>,
    /// Reason why the log is no longer written: what it holds is being written back, and writes go to the
    /// backing device. Null if it is written, or if the cache does not serve.
    #[serde(default)]
    pub log_error: Option<String>,
    /// How much of the log becomes free in bytes per second; null until it is known.
    pub drain_rate: Option<f64>,
    /// Number of seconds that it would take to destage everything at that rate; null until it is known.
    pub drain_eta: Option<f64>,
    /// Thresholds that let the backing device sleep; null if data is written back soon.
    #[serde(default)]
    pub sleep: Option<Sleep>,
    /// Number of times since the cache was opened that the backing device was used after a pause in which it
    /// is taken to have spun down; null if the cache is not open.
    #[serde(default)]
    pub spin_ups: Option<u64>,
    /// Wear of the devices of the log; null if the cache is not open.
    #[serde(default)]
    pub wear: Option<Wear>,
    /// Latency of the requests of clients since the cache was opened; null if it is not open.
    #[serde(default)]
    pub latency: Option<LatencyByRequest>,
    /// Counters since the cache was opened, by name: durations in seconds, sizes in bytes.
    pub counts: BTreeMap<String, f64>,
    /// The first NBD URI; null if it is not exported so.
    pub nbd: Option<String>,
    /// All of them, with the ports that were chosen.
    #[serde(default)]
    pub nbd_uris: Vec<String>,
    /// Number of NBD clients that are connected.
    pub nbd_clients: u64,
    /// The block device; null if it is not attached.
    pub device: Option<String>,
    /// Way by which the requests of the block device come to the server: `fuse`, `fuse-io-uring` or `ublk`.
    pub transport: Option<String>,
    /// Warnings about the placement of the cache's devices, a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The control socket; null if it is not served.
    pub control: Option<String>,
    /// The process that serves it; null if it is not served.
    pub pid: Option<u32>,
}

/// The device that is cached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingStatus {
    /// Path of the backing device.
    pub path: String,
    /// The size of the cached part in bytes; null if it is not open.
    pub size: Option<u64>,
    /// True if it is a file in use that has lost its name: it goes with the server.
    #[serde(default)]
    pub is_deleted: bool,
}

/// A file of the log that is being laid out for a change of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaidOut {
    /// Path of the file that is laid out.
    pub path: String,
    /// How much of it is written.
    pub done_bytes: u64,
    /// Number of bytes to be written in all; 0 until that is known.
    pub size_bytes: u64,
}

/// A device of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegStatus {
    /// Path of the leg, as it can be typed: of a part of a device with that.
    pub path: String,
    /// The part of the device that is the leg; left out if all of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<ByteExtent>,
    /// `live`, `lost` or `resilvering`; `deleted` if its file is in use and has lost its name; `unknown` if
    /// the cache is not served.
    pub state: String,
}

/// Flushes since the cache was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushCounts {
    /// Asked for by clients.
    pub front: u64,
    /// Flushes of the legs.
    pub log: u64,
    /// Flushes of the backing device.
    pub backing: u64,
}

impl CacheStatus {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/cache-status/1";
    /// Name and version of the document with the status of a cache that has just been made.
    pub const SCHEMA_CREATE: &str = "plumb/cache-create/1";
    /// Name and version of the document with the status of a cache that has just been served.
    pub const SCHEMA_SERVE: &str = "plumb/cache-serve/1";

    /// Returns the status of a cache that is not served. What only its log says is unknown.
    pub fn unserved(config: &CacheConfig) -> Self {
        Self { warnings: warnings(config), ..Self::without_warnings(config) }
    }

    fn without_warnings(config: &CacheConfig) -> Self {
        let leg = |place: &DevicePlace| LegStatus {
            path: place.to_string(),
            part: place.part,
            state: "unknown".to_owned(),
        };
        Self {
            schema: Self::SCHEMA.to_owned(),
            name: config.name.clone(),
            uuid: config.uuid.to_string(),
            mode: config.mode,
            backing: BackingStatus { path: config.backing.clone(), ..BackingStatus::default() },
            legs: config.legs.iter().map(leg).collect(),
            size: config.size,
            sleep: config.tuning.sleep,
            ..Self::default()
        }
    }

    /// Returns the document: each value that is null has its reason beside it.
    ///
    /// # Errors
    /// None in practice: all of it can be serialised.
    pub fn document(&self) -> serde_json::Result<Value> {
        let mut document = serde_json::to_value(self)?;
        if let Some(Value::Object(backing)) =
            document.get_mut("backing").filter(|_| self.backing.size.is_none())
        {
            backing.insert("size_unknown_because".to_owned(), "it is not open".into());
        }
        if let Value::Object(values) = &mut document {
            let nulls: Vec<_> =
                values.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key.clone()).collect();
            for (key, because) in nulls.iter().filter_map(|key| Some((key, self.unknown_because(key)?))) {
                values.insert(format!("{key}_unknown_because"), because.into());
            }
        }
        Ok(document)
    }

    /// Returns true if the cache is open and carries out requests.
    pub fn serves(&self) -> bool {
        self.state.as_deref() == Some(SERVING)
    }

    /// Returns true if a file of the log has lost its name.
    pub fn has_deleted_log(&self) -> bool {
        self.legs.iter().any(|leg| leg.state == DELETED)
    }

    /// Returns true if a log of this `layout` lasts only as long as the server: no device that it needs has
    /// its name.
    pub fn has_no_named_log(&self, layout: Layout) -> bool {
        let is_named = layout == Layout::Mirror && self.legs.iter().any(|leg| leg.state == "live");
        self.has_deleted_log() && !is_named
    }

    /// Returns true if the backing device is known to have everything.
    pub fn is_written_back(&self) -> bool {
        (self.dirty_bytes, self.zeroed_bytes, self.log_used) == (Some(0), Some(0), Some(0))
            && self.unreadable.is_empty()
    }

    /// Returns the number of bytes that only the log holds: data, and what was zeroed or discarded. 0 if that
    /// is not known.
    pub fn only_in_log(&self) -> Bytes {
        Bytes(self.dirty_bytes.unwrap_or(0) + self.zeroed_bytes.unwrap_or(0))
    }

    /// Returns why a value is null, unless that is because there is nothing of that kind.
    fn unknown_because(&self, key: &str) -> Option<&'static str> {
        match key {
            "nbd" | "device" | "transport" | "control" | "pid" | "write_back_error" | "log_error"
            | "sleep" => None,
            _ if self.state.is_none() => Some("it is not open"),
            "oldest_dirty" => None,
            "write_amplification" => Some("nothing went through the log since it was opened"),
            _ => Some("nothing became free in the log since it was opened"),
        }
    }

    /// Returns the status of a cache that is open.
    pub fn open(cache: &NamedCache) -> Self {
        let (warnings, endurance) = cache.placement();
        let unserved = Self { warnings, ..Self::without_warnings(&cache.config()) };
        let cached = cache.device.info();
        let block = cached.logical_block.0;
        let extents = |ranges: &[LbaRange]| {
            let extent =
                |range: &LbaRange| ByteExtent { offset: range.lba.0 * block, length: range.nlb * block };
            ranges.iter().map(extent).collect()
        };
        let is_deleted = cache.is_backing_deleted();
        let backing = BackingStatus { size: Some(cached.size.0), is_deleted, ..unserved.backing };
        // The clock of the core stands still while nothing happens, and ages are those of now.
        let status = cache.device.with(|core, now| {
            core.advance(now);
            core.status()
        });
        let Some(status) = status else {
            return Self { backing, ..unserved };
        };
        let figures = &status.figures;
        // A mirror writes everything to each leg.
        let written = status.legs.iter().filter(|state| **state != LegState::Lost).count().max(1) as u64;
        let copies = if status.layout == Layout::Mirror { written } else { 1 };
        let logged = figures.logged.0;
        let amplification = (figures.leg_written.0 / copies) as f64 / logged as f64;
        Self {
            mode: status.mode,
            backing,
            legs: leg_statuses(cache, unserved.legs, &status.legs),
            dirty_bytes: Some(status.dirty.0),
            zeroed_bytes: Some(status.zeroed.0),
            oldest_dirty: status
                .oldest
                .filter(|_| status.dirty.0 + status.zeroed.0 > 0)
                .map(Nanos::as_secs_f64),
            flushes: FlushCounts {
                front: figures.flushes,
                log: figures.leg_flushes,
                backing: figures.backing_flushes,
            },
            write_amplification: Some(amplification).filter(|_| logged > 0),
            state: Some(state_words(&status.state)),
            log_used: Some(status.log_used.0),
            log_size: Some(status.log.0),
            growing: status.is_growing,
            draining: status.is_draining,
            ordered: status.is_ordered,
            unreadable: extents(&status.unreadable),
            damaged: extents(&status.findings.damaged),
            recovery: Some(status.findings.clone()),
            write_back_error: status.destage_error.clone(),
            log_error: status.log_error.clone(),
            drain_rate: Some(status.drain_rate).filter(|rate| *rate > 0.0),
            drain_eta: status.drain_eta.map(Nanos::as_secs_f64),
            spin_ups: Some(status.spin_ups),
            // Each device is written its part, or the same; one that replaced another, a copy of the log too.
            wear: Some(Wear::new(
                figures.leg_written.0 / written + figures.resilvered.0,
                status.open_for.as_secs_f64(),
                endurance,
            )),
            latency: Some(cache.device.latency()),
            counts: counts(figures),
            ..unserved
        }
    }
}

/// Returns the devices of the log of an open cache, with their states.
fn leg_statuses(cache: &NamedCache, legs: Vec<LegStatus>, states: &[LegState]) -> Vec<LegStatus> {
    let legs = legs.into_iter().zip(states).zip(cache.deleted_legs());
    let legs = legs.map(|((leg, state), is_gone)| {
        let is_deleted = *state == LegState::Live && is_gone;
        let state = if is_deleted { DELETED } else { leg_word(*state) };
        LegStatus { state: state.to_owned(), ..leg }
    });
    legs.collect()
}

/// Returns the state in a word, or why it does not serve.
fn state_words(state: &State) -> String {
    match state {
        State::Recovering => "recovering".to_owned(),
        State::Serving => SERVING.to_owned(),
        State::Stopped { .. } => "stopped".to_owned(),
        State::Latched { because } | State::Failed { because } => because.clone(),
    }
}

/// Returns all figures by their names; times in seconds.
fn counts(figures: &Figures) -> BTreeMap<String, f64> {
    let Ok(Value::Object(all)) = serde_json::to_value(figures) else { return BTreeMap::new() };
    let number = |value: &Value| value.as_f64().or_else(|| value.as_bool().map(f64::from));
    let mut counts: BTreeMap<String, f64> =
        all.iter().filter_map(|(name, value)| Some((name.clone(), number(value)?))).collect();
    counts.insert("delayed".to_owned(), figures.delayed.as_secs_f64());
    counts
}

const fn leg_word(state: LegState) -> &'static str {
    match state {
        LegState::Live => "live",
        LegState::Lost => "lost",
        LegState::Resilvering => "resilvering",
    }
}

/// The controls of a cache.
pub struct CacheControls {
    cache: Arc<NamedCache>,
    changing: Option<Changing>,
    /// Block device of the cache; `None` if it is not attached.
    device: Option<String>,
    nbd_uris: Vec<String>,
}

/// Opens a cache and serves it.
///
/// # Errors
/// See [`ServiceError`]; nothing is left behind. A refusal to open it is `Err` within.
pub fn serve_cache(
    config: CacheConfig,
    opening: Opening,
    service: ServiceOptions,
) -> std::result::Result<Result<Service<CacheControls>>, ServiceError> {
    let time = Time::real();
    // Before any of its devices is opened.
    connections_max()?;
    let config = find::legs(config);
    let checked = config.legs.iter().try_for_each(|leg| keeps_unflushed(config.mode, &leg.path));
    let cache = match checked.and_then(|()| NamedCache::open(config.clone(), opening, &time)) {
        Ok(cache) => cache,
        Err(refusal) => return Ok(Err(refusal)),
    };
    cache.found_elsewhere(&config).iter().for_each(|found| (service.say)(found));
    let service = Service::open(service, |_| {
        let CacheConfig { size, backing, .. } = cache.config().clone();
        let description = format!("cache of {backing} ({} of log)", Bytes(size));
        let device = Arc::new(cache.device.clone());
        let cache = Arc::new(cache);
        let controls = CacheControls { cache, changing: None, device: None, nbd_uris: Vec::new() };
        Ok(ServiceDevice { device, description, controls })
    });
    service.map(Ok)
}

/// Returns a refusal of the devices, as whoever ordered it is told.
fn not_done(error: &plumb_guard::Error) -> RefusedOrder {
    let why = error.to_string();
    match error.kind().failure() {
        FailureKind::Usage => RefusedOrder::invalid(why),
        FailureKind::Refused => RefusedOrder::unsafe_now(why),
        FailureKind::NotMeasured | FailureKind::Failed => RefusedOrder::failed(why),
    }
}

impl CacheControls {
    /// Begins a change of the log, or goes on waiting for it, for as long as others can wait to be heard: the
    /// status says whether it goes on.
    fn change(&mut self, order: CacheOrder, path: &str) -> std::result::Result<(), RefusedOrder> {
        let mut changing = match self.changing.take() {
            Some(changing) if changing.is_meant_by(&order) => changing,
            Some(changing) if changing.is_running() => {
                let why = "its log is being changed: `status` shows how far that is; wait until it is over";
                self.changing = Some(changing);
                return Err(RefusedOrder::unsafe_now(why.to_owned()));
            }
            _ => {
                let (cache, change) = (Arc::clone(&self.cache), order.clone());
                let begun = Changing::begin(order, path, move |laying_out| change.change(&cache, laying_out));
                begun.map_err(|error| not_done(&error))?
            }
        };
        match changing.ended() {
            Some(outcome) => outcome.map_err(|error| not_done(&error)),
            None => {
                self.changing = Some(changing);
                Ok(())
            }
        }
    }

    /// Has the configuration say what was ordered, now and when the cache is served again.
    fn configure(&self, order: &CacheOrder) -> std::result::Result<(), RefusedOrder> {
        let mut config = self.cache.config();
        let changed = order.configured(config.clone()).map_err(|error| not_done(&error))?;
        changed.save(&config::directory()).map_err(|error| RefusedOrder::failed(error.to_string()))?;
        *config = changed;
        Ok(())
    }

    /// Refuses devices of a log that lie on this cache: on its block device, or behind one of its exports.
    fn lies_elsewhere(&self, log: &[String]) -> std::result::Result<(), RefusedOrder> {
        let is_own = |typed: &&String| {
            self.nbd_uris.iter().any(|own| is_same_export(typed, own))
                || self.device.as_ref().is_some_and(|device| lies_on(typed, device))
        };
        log.iter().find(is_own).map_or(Ok(()), |typed| {
            let why =
                format!("{typed}: it lies on this cache, whose log it cannot hold; name one that does not");
            Err(RefusedOrder::unsafe_now(why))
        })
    }

    /// Waits until what a mode took to be durable is, if that mode was left.
    fn settled(&self) -> std::result::Result<(), RefusedOrder> {
        let settled = self.cache.device.wait_for(|core| match core.state() {
            State::Serving if !core.is_mode_settled() => None,
            State::Serving => Some(Ok(())),
            state => Some(Err(RefusedOrder::failed(state_words(&state)))),
        });
        settled.map_err(|error| RefusedOrder::failed(error.to_string()))?
    }
}

impl Controls for CacheControls {
    type Order = CacheOrder;
    type Status = CacheStatus;
    const WAITS_FOR_HOLDERS: bool = true;

    fn identity(&self) -> Option<String> {
        Some(self.cache.config().block_device_identity())
    }

    fn status(&self, exports: &Exports<'_>) -> CacheStatus {
        let mut status = CacheStatus::open(&self.cache);
        status.warnings.extend(exports.size_warning().map(str::to_owned));
        CacheStatus {
            served: true,
            nbd: exports.nbd_uris().first().cloned(),
            nbd_uris: exports.nbd_uris().to_vec(),
            nbd_clients: exports.nbd_clients() as u64,
            device: exports.block_device(),
            transport: exports.transport(),
            control: Some(exports.control().display().to_string()),
            pid: Some(std::process::id()),
            laying_out: self
                .changing
                .as_ref()
                .filter(|changing| changing.is_untold())
                .map(Changing::laid_out),
            ..status
        }
    }

    fn exported(&mut self, exports: &Exports<'_>) {
        (self.device, self.nbd_uris) = (exports.block_device(), exports.nbd_uris().to_vec());
    }

    fn carry_out(&mut self, order: CacheOrder) -> std::result::Result<(), RefusedOrder> {
        let empties_log = matches!(order, CacheOrder::Drain | CacheOrder::ReplaceLog { .. });
        if let Some(why) = self.cache.backing_deleted().filter(|_| empties_log) {
            return Err(RefusedOrder::unsafe_now(why));
        }
        match order {
            CacheOrder::Mode { mode } => {
                self.configure(&order)?;
                self.cache.device.with(|core, now| core.set_mode(mode, now));
                self.settled()?;
            }
            CacheOrder::Tune { tuning } => {
                self.configure(&order)?;
                let destage = tuning.destage();
                self.cache.device.with(|core, now| core.set_destage(destage, now));
            }
            CacheOrder::Drain => self.cache.device.with(Cache::drain),
            CacheOrder::ReplaceLeg { ref log, .. } => {
                self.lies_elsewhere(std::slice::from_ref(log))?;
                let path = log.clone();
                self.change(order, &path)?;
            }
            CacheOrder::ReplaceLog { .. } | CacheOrder::Grow { .. } => {
                if let CacheOrder::ReplaceLog { ref log, .. } = order {
                    self.lies_elsewhere(log)?;
                }
                let path = self.cache.shown();
                self.change(order, &path)?;
            }
            CacheOrder::GrowBacking => self.cache.grow_backing().map_err(|error| not_done(&error))?,
        }
        Ok(())
    }

    fn stay(&mut self) -> Option<Stay> {
        self.cache.stay()
    }

    fn shut_down(&mut self, is_forced: bool) -> plumb_block::Result<()> {
        self.changing = None;
        self.cache.stop_with_server(is_forced)
    }
}
