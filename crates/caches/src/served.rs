//! A cache served under its name: its orders, its status, and their execution.

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

/// State of a cache that executes requests.
const SERVING: &str = "serving";
/// State of a leg whose file was deleted.
const DELETED: &str = "deleted";
/// State of a leg that is not there, of a cache that is not open.
const MISSING: &str = "missing";

/// Order that a cache accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheOrder {
    /// Switch to another mode, now and for later sessions.
    Mode {
        /// The new mode.
        mode: Mode,
    },
    /// Change the thresholds of destaging and the endurance, now and for later sessions.
    Tune {
        /// All settings.
        tuning: Tuning,
    },
    /// Write everything to the backing device, and continue to serve.
    Drain,
    /// Replace a leg with another device.
    ReplaceLeg {
        /// Number of the leg to replace.
        leg: usize,
        /// The new device, by an absolute path.
        log: String,
        /// True if the user permits overwriting the new device: see [`Permission`].
        overwrite: bool,
        /// Names that the user permits to be destroyed: see [`Permission`].
        destroy: Vec<String>,
    },
    /// Replace the log with another one.
    ReplaceLog {
        /// Devices of the new log, by absolute paths.
        log: Vec<String>,
        /// Bytes used of each device; `None`: as now.
        size: Option<u64>,
        /// True if the user permits overwriting the devices: see [`Permission`].
        overwrite: bool,
        /// Names that the user permits to be destroyed: see [`Permission`].
        destroy: Vec<String>,
    },
    /// Grow the log.
    Grow {
        /// New number of bytes used of each device.
        size: u64,
    },
    /// Extend the cache to all of the backing device, which has grown.
    GrowBacking,
}

impl CacheOrder {
    /// Returns the configuration of a cache after the order.
    ///
    /// # Errors
    /// If the devices of the cache do not suit the order.
    pub fn configured(&self, config: CacheConfig) -> Result<CacheConfig> {
        match self {
            Self::Mode { mode } => in_mode(config, *mode),
            Self::Tune { tuning } => Ok(CacheConfig { tuning: *tuning, ..config }),
            _ => Ok(config),
        }
    }

    /// Executes an order that changes the devices of an open cache; does nothing for other orders.
    ///
    /// # Errors
    /// If the change fails or is refused.
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

/// Status of a cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// Name and version of the document: [`SCHEMA`](CacheStatus::SCHEMA),
    /// [`SCHEMA_CREATE`](CacheStatus::SCHEMA_CREATE) or [`SCHEMA_SERVE`](CacheStatus::SCHEMA_SERVE).
    pub schema: String,
    /// Name of the cache.
    pub name: String,
    /// UUID of the cache, which never changes.
    pub uuid: String,
    /// Mode: when and where a write is acknowledged.
    pub mode: Mode,
    /// True if the cache is served.
    pub served: bool,
    /// Backing device.
    pub backing: BackingStatus,
    /// Legs of the log.
    pub legs: Vec<LegStatus>,
    /// Distribution of the log over the legs; null if the server is of a version that does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Bytes used of each leg.
    pub size: u64,
    /// Bytes that only the log holds; null if unknown.
    pub dirty_bytes: Option<u64>,
    /// Bytes that were zeroed or discarded, and are not on the backing device yet; null if unknown.
    #[serde(default)]
    pub zeroed_bytes: Option<u64>,
    /// Minimum age in seconds of the oldest dirty or zeroed data in the log. Data that was there when the
    /// cache was opened counts from then. Null if there is none.
    pub oldest_dirty: Option<f64>,
    /// Flushes since the cache was opened; null if the cache is not open.
    pub flushes: Option<FlushCounts>,
    /// Bytes written to each leg per byte of data that went through the log; null before the first byte.
    pub write_amplification: Option<f64>,
    /// `serving`, or the reason why not; null if the cache is not open.
    pub state: Option<String>,
    /// Bytes of the log that hold records.
    pub log_used: Option<u64>,
    /// Capacity of the log in bytes; null if the cache is not open.
    pub log_size: Option<u64>,
    /// True if the log is growing.
    #[serde(default)]
    pub growing: bool,
    /// Progress of laying out a file for a change of the log; omitted if no file is laid out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laying_out: Option<LaidOut>,
    /// True if the cache is draining.
    #[serde(default)]
    pub draining: bool,
    /// True if the backing device alone is now a consistent older state, in the mode `ordered`.
    #[serde(default)]
    pub ordered: bool,
    /// Ranges that the log can no longer read, in bytes of the cached device. Reads of them fail until they
    /// are overwritten.
    #[serde(default)]
    pub unreadable: Vec<ByteExtent>,
    /// Ranges that were durable when the cache was opened but are complete on no leg, in bytes of the cached
    /// device. Reads of them fail.
    #[serde(default)]
    pub damaged: Vec<ByteExtent>,
    /// Findings of the recovery of the log; null if the cache is not open.
    #[serde(default)]
    pub recovery: Option<Findings>,
    /// Reason why data cannot be destaged; null if there is none.
    #[serde(default)]
    pub write_back_error: Option<String>,
    /// Reason why the log is no longer written: it is being drained, and writes bypass it. Null if it is
    /// written, or if the cache does not serve.
    #[serde(default)]
    pub log_error: Option<String>,
    /// Rate at which the log becomes free, in bytes per second; null if unknown.
    pub drain_rate: Option<f64>,
    /// Seconds to destage everything at that rate; null if unknown.
    pub drain_eta: Option<f64>,
    /// Thresholds that let the backing device sleep; null if data is destaged soon.
    #[serde(default)]
    pub sleep: Option<Sleep>,
    /// Number of times since the cache was opened that the backing device was used after a pause in which it
    /// presumably spun down; null if the cache is not open.
    #[serde(default)]
    pub spin_ups: Option<u64>,
    /// Wear of the devices of the log; null if the cache is not open.
    #[serde(default)]
    pub wear: Option<Wear>,
    /// Latency of client requests since the cache was opened; null if the cache is not open.
    #[serde(default)]
    pub latency: Option<LatencyByRequest>,
    /// Counters since the cache was opened, by name: durations in seconds, sizes in bytes.
    pub counts: BTreeMap<String, f64>,
    /// First NBD URI; null if the cache is not exported over NBD.
    pub nbd: Option<String>,
    /// All NBD URIs, with the ports that were chosen.
    #[serde(default)]
    pub nbd_uris: Vec<String>,
    /// Number of connected NBD clients.
    pub nbd_clients: u64,
    /// Block device; null if the cache is not attached.
    pub device: Option<String>,
    /// Transport of the block device: `fuse`, `fuse-io-uring` or `ublk`.
    pub transport: Option<String>,
    /// Warnings about the placement of the devices, a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Control socket; null if the cache is not served.
    pub control: Option<String>,
    /// Process that serves the cache; null if it is not served.
    pub pid: Option<u32>,
}

/// Status of the backing device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingStatus {
    /// Path of the backing device.
    pub path: String,
    /// Size of the cached part in bytes; null if the cache is not open.
    pub size: Option<u64>,
    /// True if the device is an open file that was deleted: it lasts until the server ends.
    #[serde(default)]
    pub is_deleted: bool,
    /// True if the cache is not open and the device is certainly not there.
    #[serde(default)]
    pub is_missing: bool,
}

/// Progress of laying out a file of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaidOut {
    /// Path of the file.
    pub path: String,
    /// Bytes written.
    pub done_bytes: u64,
    /// Bytes to write in total; 0 if unknown.
    pub size_bytes: u64,
}

/// Status of a leg.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegStatus {
    /// Path of the leg, with its part, in the form in which it can be typed.
    pub path: String,
    /// Part of the device that is the leg; omitted if it is all of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<ByteExtent>,
    /// `live`, `lost` or `resilvering`; `deleted` if its file is open but was deleted. If the cache is not
    /// open: `missing` if the leg is certainly not there, otherwise `unknown`.
    pub state: String,
}

/// Flushes since the cache was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushCounts {
    /// Flushes requested by clients.
    pub front: u64,
    /// Flushes of the legs.
    pub log: u64,
    /// Flushes of the backing device.
    pub backing: u64,
}

impl CacheStatus {
    /// Name and version of the document.
    pub const SCHEMA: &str = "plumb/cache-status/1";
    /// Name and version of the document about a cache that was just created.
    pub const SCHEMA_CREATE: &str = "plumb/cache-create/1";
    /// Name and version of the document about a cache that has just started to be served.
    pub const SCHEMA_SERVE: &str = "plumb/cache-serve/1";

    /// Returns the status of a cache that is not served. Values that only the log has are unknown.
    pub fn unserved(config: &CacheConfig) -> Self {
        let mut status = Self { warnings: warnings(config), ..Self::without_warnings(config) };
        status.backing.is_missing = find::is_backing_missing(config);
        for (leg, is_missing) in status.legs.iter_mut().zip(find::missing_legs(config)) {
            if is_missing {
                leg.state = MISSING.to_owned();
            }
        }
        status
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
            layout: Some(config.layout),
            size: config.size,
            sleep: config.tuning.sleep,
            ..Self::default()
        }
    }

    /// Returns the document, with the reason beside each null.
    ///
    /// # Errors
    /// None in practice, because every status can be serialised.
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

    /// Returns true if the cache is open and executes requests.
    pub fn serves(&self) -> bool {
        self.state.as_deref() == Some(SERVING)
    }

    /// Returns the legs that are certainly not there, of a cache that is not open.
    pub fn missing_legs(&self) -> impl Iterator<Item = &LegStatus> {
        self.legs.iter().filter(|leg| leg.state == MISSING)
    }

    /// Returns true if a file of the log was deleted.
    pub fn has_deleted_log(&self) -> bool {
        self.legs.iter().any(|leg| leg.state == DELETED)
    }

    /// Returns true if a log of this `layout` lasts only until the server ends: no leg that it needs still
    /// has its name.
    pub fn has_no_named_log(&self, layout: Layout) -> bool {
        let is_named = layout == Layout::Mirror && self.legs.iter().any(|leg| leg.state == "live");
        self.has_deleted_log() && !is_named
    }

    /// Returns true if the backing device certainly has all data.
    pub fn is_written_back(&self) -> bool {
        (self.dirty_bytes, self.zeroed_bytes, self.log_used) == (Some(0), Some(0), Some(0))
            && self.unreadable.is_empty()
    }

    /// Returns the number of bytes that only the log holds: data, and zeroed or discarded bytes. 0 if
    /// unknown.
    pub fn only_in_log(&self) -> Bytes {
        Bytes(self.dirty_bytes.unwrap_or(0) + self.zeroed_bytes.unwrap_or(0))
    }

    /// Returns the reason why a value is null; `None` if null means that there is nothing.
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

    /// Returns the status of an open cache.
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
        // The core's clock advances only with events, and ages must be those of now.
        let status = cache.device.with(|core, now| {
            core.advance(now);
            core.status()
        });
        let Some(status) = status else {
            return Self { backing, ..unserved };
        };
        let figures = &status.figures;
        // Each leg of a mirror gets all of the data.
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
            flushes: Some(FlushCounts {
                front: figures.flushes,
                log: figures.leg_flushes,
                backing: figures.backing_flushes,
            }),
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
            // Each leg gets its share of the log, or all of it in a mirror; a leg that replaced another also
            // gets a copy.
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

/// Returns the legs of an open cache with their states.
fn leg_statuses(cache: &NamedCache, legs: Vec<LegStatus>, states: &[LegState]) -> Vec<LegStatus> {
    let legs = legs.into_iter().zip(states).zip(cache.deleted_legs());
    let legs = legs.map(|((leg, state), is_gone)| {
        let is_deleted = *state == LegState::Live && is_gone;
        let state = if is_deleted { DELETED } else { leg_word(*state) };
        LegStatus { state: state.to_owned(), ..leg }
    });
    legs.collect()
}

/// Returns the state in one word, or the reason why the cache does not serve.
fn state_words(state: &State) -> String {
    match state {
        State::Recovering => "recovering".to_owned(),
        State::Serving => SERVING.to_owned(),
        State::Stopped { .. } => "stopped".to_owned(),
        State::Latched { because } | State::Failed { because } => because.clone(),
    }
}

/// Returns all figures by name, with times in seconds.
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

/// Control interface of a served cache.
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
/// See [`ServiceError`]; nothing is left behind. The inner `Err` is the refusal to open the cache.
pub fn serve_cache(
    config: CacheConfig,
    opening: Opening,
    service: ServiceOptions,
) -> std::result::Result<Result<Service<CacheControls>>, ServiceError> {
    let time = Time::real();
    // Checked before a device is opened.
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

/// Converts a refusal by the devices into a refusal of the order.
fn refused_order(error: &plumb_guard::Error) -> RefusedOrder {
    let why = error.to_string();
    match error.kind().failure() {
        FailureKind::Usage => RefusedOrder::invalid(why),
        FailureKind::Refused => RefusedOrder::unsafe_now(why),
        FailureKind::NotMeasured | FailureKind::Failed => RefusedOrder::failed(why),
    }
}

impl CacheControls {
    /// Starts a change of the log, or waits for it if it is running, for a limited time because other orders
    /// wait meanwhile. The status says whether it is still running.
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
                begun.map_err(|error| refused_order(&error))?
            }
        };
        match changing.ended() {
            Some(outcome) => outcome.map_err(|error| refused_order(&error)),
            None => {
                self.changing = Some(changing);
                Ok(())
            }
        }
    }

    /// Saves the effect of an order in the configuration.
    fn configure(&self, order: &CacheOrder) -> std::result::Result<(), RefusedOrder> {
        let mut config = self.cache.config();
        let changed = order.configured(config.clone()).map_err(|error| refused_order(&error))?;
        changed.save(&config::directory()).map_err(|error| RefusedOrder::failed(error.to_string()))?;
        *config = changed;
        Ok(())
    }

    /// Refuses devices of a log that are on this cache: on its block device, or behind one of its exports.
    fn refuse_own_exports(&self, log: &[String]) -> std::result::Result<(), RefusedOrder> {
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

    /// After a change of mode, waits until the data that the old mode counted as durable is durable in the
    /// new one.
    fn wait_for_mode(&self) -> std::result::Result<(), RefusedOrder> {
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
                self.wait_for_mode()?;
            }
            CacheOrder::Tune { tuning } => {
                self.configure(&order)?;
                let destage = tuning.destage();
                self.cache.device.with(|core, now| core.set_destage(destage, now));
            }
            CacheOrder::Drain => self.cache.device.with(Cache::drain),
            CacheOrder::ReplaceLeg { ref log, .. } => {
                self.refuse_own_exports(std::slice::from_ref(log))?;
                let path = log.clone();
                self.change(order, &path)?;
            }
            CacheOrder::ReplaceLog { .. } | CacheOrder::Grow { .. } => {
                if let CacheOrder::ReplaceLog { ref log, .. } = order {
                    self.refuse_own_exports(log)?;
                }
                let path = self.cache.shown();
                self.change(order, &path)?;
            }
            CacheOrder::GrowBacking => self.cache.grow_backing().map_err(|error| refused_order(&error))?,
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
