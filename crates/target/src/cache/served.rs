//! A cache that is served under its name: what only a cache can be told, and how it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_block::{Bytes, Nanos, RealClock, Time};
use plumb_cache::{Cache, Figures, Layout, LegState, Mode, State, Status};
use plumb_serve::named::control::Refused;
use plumb_serve::named::{Controls, Exports, Served, Service, ServiceError, ServiceOptions};
use serde::{Deserialize, Serialize};

use super::config::{self, CacheConfig};
use super::named::NamedCache;
use crate::error::Result;
use crate::permission::Permission;

/// What a cache can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheOrder {
    /// Serve in another mode, from now on and when it is served again.
    Mode {
        /// Which.
        mode: Mode,
    },
    /// Write everything to the backing device, and go on serving.
    Drain,
    /// Put another device into the place of one of the log.
    ReplaceLeg {
        /// Which.
        leg: usize,
        /// The other device, by an absolute path.
        log: String,
        /// What the user allows for it: see [`Permission`].
        overwrite: bool,
        /// See `overwrite`.
        destroy: Vec<String>,
    },
    /// Have the log take so many bytes of each device.
    Grow {
        /// How many.
        size: u64,
    },
}

/// How a cache is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheStatus {
    /// Always [`CacheStatus::SCHEMA`], or [`SCHEMA_CREATE`](CacheStatus::SCHEMA_CREATE).
    pub schema: String,
    /// The name of the cache.
    pub name: String,
    /// Names it for ever.
    pub uuid: String,
    /// When a write is acknowledged, and where it is then.
    pub mode: Mode,
    /// Whether it is served now.
    pub served: bool,
    /// The device that is cached.
    pub backing: BackingStatus,
    /// The devices of the log.
    pub legs: Vec<LegStatus>,
    /// The bytes used of each leg.
    pub size: u64,
    /// Bytes that only the log holds; null if that is not known.
    pub dirty_bytes: Option<u64>,
    /// Why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes_unknown_because: Option<String>,
    /// The age in seconds of the oldest of them; null if there are none.
    pub oldest_dirty: Option<f64>,
    /// Flushes since it was opened.
    pub flushes: FlushCounts,
    /// Bytes written to each leg for each byte that clients wrote through the log; null before the first.
    pub write_amplification: Option<f64>,
    /// How it is: `serving`, or why not; null if it is not served.
    pub state: Option<String>,
    /// How much of the log holds records, in bytes.
    pub log_used: Option<u64>,
    /// How much it can hold, in bytes; null if it is not served.
    pub log_size: Option<u64>,
    /// Whether it is about to become larger.
    #[serde(default)]
    pub growing: bool,
    /// The rate of destaging in bytes per second; null until it is known.
    pub drain_rate: Option<f64>,
    /// How many seconds it would take to destage everything at that rate; null until it is known.
    pub drain_eta: Option<f64>,
    /// What was counted since it was opened, by name: durations in seconds, sizes in bytes.
    pub counts: BTreeMap<String, f64>,
    /// The first NBD URI, if it is exported so.
    pub nbd: Option<String>,
    /// How many NBD clients are connected.
    pub nbd_clients: u64,
    /// The block device, if it is attached.
    pub device: Option<String>,
    /// The control socket; null if it is not served.
    pub control: Option<String>,
    /// The process that serves it.
    pub pid: Option<u32>,
}

/// The device that is cached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingStatus {
    /// Its path.
    pub path: String,
    /// The size of the cached part in bytes; null if it is not open.
    pub size: Option<u64>,
}

/// A device of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegStatus {
    /// Its path.
    pub path: String,
    /// `live`, `lost` or `resilvering`; `unknown` if the cache is not served.
    pub state: String,
}

/// Flushes since the cache was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushCounts {
    /// Asked for by clients.
    pub front: u64,
    /// Of the legs.
    pub log: u64,
    /// Of the backing device.
    pub backing: u64,
}

impl CacheStatus {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/cache-status/1";
    /// The same of the document that says how a cache is that has just been made.
    pub const SCHEMA_CREATE: &str = "plumb/cache-create/1";
    /// And of one that has just been served.
    pub const SCHEMA_SERVE: &str = "plumb/cache-serve/1";

    /// Of a cache that is not served. What only its log says is unknown.
    pub fn unserved(config: &CacheConfig) -> Self {
        let leg = |path: &String| LegStatus { path: path.clone(), state: "unknown".to_owned() };
        Self {
            schema: Self::SCHEMA.to_owned(),
            name: config.name.clone(),
            uuid: config.uuid.to_string(),
            mode: config.mode,
            served: false,
            backing: BackingStatus { path: config.backing.clone(), size: None },
            legs: config.legs.iter().map(leg).collect(),
            size: config.size,
            dirty_bytes: None,
            dirty_bytes_unknown_because: Some("it is not served".to_owned()),
            oldest_dirty: None,
            flushes: FlushCounts::default(),
            write_amplification: None,
            state: None,
            log_used: None,
            log_size: None,
            growing: false,
            drain_rate: None,
            drain_eta: None,
            counts: BTreeMap::new(),
            nbd: None,
            nbd_clients: 0,
            device: None,
            control: None,
            pid: None,
        }
    }

    /// Of a cache that is open.
    pub fn open(cache: &NamedCache) -> Self {
        let unserved = Self::unserved(&cache.config);
        let backing = Arc::clone(&cache.device.members().backing);
        let backing = BackingStatus { size: Some(backing.info().size.0), ..unserved.backing };
        let Some(status) = cache.device.with(|core, _| core.status()) else {
            return Self { backing, ..unserved };
        };
        let Status { figures, legs: states, .. } = &status;
        let legs = unserved.legs.into_iter().zip(states);
        let legs = legs.map(|(leg, state)| LegStatus { state: leg_word(*state).to_owned(), ..leg }).collect();
        // A mirror writes everything to each leg.
        let copies = if status.layout == Layout::Mirror { status.legs.len().max(1) as u64 } else { 1 };
        let logged = figures.written.0.saturating_sub(figures.bypassed.0);
        let amplification = (figures.leg_written.0 / copies) as f64 / logged as f64;
        Self {
            mode: status.mode,
            backing,
            legs,
            dirty_bytes: Some(status.dirty.0),
            dirty_bytes_unknown_because: None,
            oldest_dirty: status.oldest.filter(|_| status.dirty > Bytes(0)).map(Nanos::as_secs_f64),
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
            drain_rate: Some(status.drain_rate).filter(|rate| *rate > 0.0),
            drain_eta: status.drain_eta.map(Nanos::as_secs_f64),
            counts: counts(figures),
            ..unserved
        }
    }
}

/// In a word, or why it does not serve.
fn state_words(state: &State) -> String {
    match state {
        State::Recovering => "recovering".to_owned(),
        State::Serving => "serving".to_owned(),
        State::Stopped { .. } => "stopped".to_owned(),
        State::Latched { because } | State::Failed { because } => because.clone(),
    }
}

/// All figures by their names; times in seconds.
fn counts(figures: &Figures) -> BTreeMap<String, f64> {
    let Ok(serde_json::Value::Object(all)) = serde_json::to_value(figures) else { return BTreeMap::new() };
    let number = |value: &serde_json::Value| value.as_f64().or_else(|| value.as_bool().map(f64::from));
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
    cache: NamedCache,
}

/// Opens a cache and serves it.
///
/// # Errors
/// See [`ServiceError`]; nothing is left behind. A refusal to open it is `Err` within.
pub fn serve_cache(
    config: CacheConfig,
    is_degraded: bool,
    service: ServiceOptions,
) -> std::result::Result<Result<Service<CacheControls>>, ServiceError> {
    let time = Time::Real(Arc::new(RealClock::start()));
    let cache = match NamedCache::open(config, is_degraded, &time) {
        Ok(cache) => cache,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let service = Service::open(service, |_| {
        let size = Bytes(cache.config.size);
        let description = format!("cache of {} ({size} of log)", cache.config.backing);
        let device = Arc::new(cache.device.clone());
        Ok(Served { device, description, controls: CacheControls { cache } })
    });
    service.map(Ok)
}

/// A refusal of the devices, as whoever ordered it is told.
fn not_done(error: &crate::Error) -> Refused {
    let why = error.to_string();
    match error.kind().exit_code() {
        2 => Refused::invalid(why),
        4 => Refused::unsafe_now(why),
        _ => Refused::failed(why),
    }
}

impl Controls for CacheControls {
    type Order = CacheOrder;
    type Status = CacheStatus;

    fn status(&self, exports: &Exports<'_>) -> CacheStatus {
        CacheStatus {
            served: true,
            nbd: exports.nbd_uris().first().cloned(),
            nbd_clients: exports.nbd_clients() as u64,
            device: exports.block_device(),
            control: Some(exports.control().display().to_string()),
            pid: Some(std::process::id()),
            ..CacheStatus::open(&self.cache)
        }
    }

    fn carry_out(&mut self, order: CacheOrder) -> std::result::Result<(), Refused> {
        match order {
            CacheOrder::Mode { mode } => {
                self.cache.config.mode = mode;
                let saved = self.cache.config.save(&config::directory());
                saved.map_err(|error| Refused::failed(error.to_string()))?;
                self.cache.device.with(|core, now| core.set_mode(mode, now));
            }
            CacheOrder::Drain => self.cache.device.with(Cache::drain),
            CacheOrder::ReplaceLeg { leg, log, overwrite, destroy } => {
                let permission = Permission { overwrite, destroy, ..Permission::default() };
                self.cache.replace_leg(leg, &log, &permission).map_err(|error| not_done(&error))?;
            }
            CacheOrder::Grow { size } => self.cache.grow(Bytes(size)).map_err(|error| not_done(&error))?,
        }
        Ok(())
    }

    fn shut_down(&mut self) -> plumb_block::Result<()> {
        self.cache.stop()
    }
}
