//! `plumb cache status` and `plumb cache mode`: how caches are, for people, as JSON, and for Prometheus.

use plumb_block::{Bytes, Nanos};
use plumb_cache::{Findings, Mode};
use plumb_path::metrics::{Metrics, kind_of};
use plumb_serve::named::control::Order;
use plumb_targets::cache::{self, CacheConfig, CacheOrder, CacheStatus};
use serde::Serialize;

use super::follow::not_serving;
use super::{order, refused};
use crate::exit::{self, Exit};
use crate::terminal::{self, counted};

/// How many damaged parts are shown to people.
const SHOWN: usize = 8;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    caches: Vec<serde_json::Value>,
}

/// How the cache is: as its server says, or what is known of one that is not served.
pub(super) fn of(name: &str) -> anyhow::Result<CacheStatus> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    Ok(order(name, &Order::Status)?.unwrap_or_else(|| CacheStatus::unserved(&config)))
}

/// Returns the status of the cache `name`, or of all caches. What is wrong with one of many does not hide the
/// others: it is said, and its exit code is the second.
pub(super) fn all(name: Option<&str>) -> anyhow::Result<(Vec<CacheStatus>, Exit)> {
    if let Some(name) = name {
        return Ok((vec![of(name)?], Exit::Done));
    }
    let mut found = (Vec::new(), Exit::Done);
    for name in CacheConfig::names(&cache::directory()).map_err(refused)? {
        match of(&name) {
            Ok(status) => found.0.push(status),
            Err(error) => found.1 = found.1.and(exit::say(&error)),
        }
    }
    Ok(found)
}

/// Returns the exit code for the state of a cache: what is lost, or about to be, is a finding.
fn finding(status: &CacheStatus) -> Exit {
    let failed =
        status.state.as_ref().is_some_and(|state| !["recovering", "serving", "stopped"].contains(&&**state));
    let is_lost = status.legs.iter().any(|leg| leg.state == "lost");
    if failed || is_lost { Exit::Finding } else { finding_of_data(status) }
}

/// Returns the exit code for the data that a cache alone holds: a finding if not all of it can be read and
/// written back.
pub(super) fn finding_of_data(status: &CacheStatus) -> Exit {
    let is_unsound = !status.unreadable.is_empty() || !status.damaged.is_empty();
    if is_unsound || status.write_back_error.is_some() { Exit::Finding } else { Exit::Done }
}

pub(super) fn run(name: Option<&str>, json: bool, prometheus: bool) -> anyhow::Result<Exit> {
    let (caches, failed) = all(name)?;
    let exit = caches.iter().map(finding).fold(failed, Exit::and);
    match (&caches[..], name) {
        _ if prometheus => terminal::print(&metrics(&caches))?,
        ([one], Some(_)) if json => terminal::print_json(&one.document()?)?,
        _ if json => {
            let caches = caches.iter().map(CacheStatus::document).collect::<Result<_, _>>()?;
            terminal::print_json(&Document { schema: "plumb/caches/1", caches })?;
        }
        ([], _) => terminal::print("there is no cache; `plumb cache create` makes one\n")?,
        _ => terminal::print(&caches.iter().map(text).collect::<String>())?,
    }
    Ok(exit)
}

/// Changes the mode of a cache.
pub(super) fn mode(name: &str, mode: Mode, json: bool) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let status = match order(name, &Order::Own(CacheOrder::Mode { mode }))? {
        Some(status) => status,
        None => {
            let config = config.in_mode(mode).map_err(refused)?;
            config.save(&cache::directory()).map_err(refused)?;
            CacheStatus::unserved(&config)
        }
    };
    show(&status, json)
}

/// Shows one cache.
pub(super) fn show(status: &CacheStatus, json: bool) -> anyhow::Result<Exit> {
    if json {
        terminal::print_json(&status.document()?)?
    } else {
        terminal::print(&text(status))?
    }
    Ok(Exit::Done)
}

/// A mode by its name on the command line and in documents.
pub(super) fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::WriteBack => "write-back",
        Mode::WriteThrough => "write-through",
        Mode::Protected => "protected",
        Mode::Ordered => "ordered",
    }
}

fn text(status: &CacheStatus) -> String {
    let size = status.backing.size.map(|size| format!(" of {}", Bytes(size))).unwrap_or_default();
    let mut text = format!("{}: {}{size}, {}\n", status.name, status.backing.path, word(status.mode));
    let mut lines = Vec::new();
    match (status.dirty_bytes, &status.state) {
        (Some(dirty), state) => {
            let state =
                state.as_deref().filter(|state| !matches!(*state, "serving" | "recovering" | "stopped"));
            lines.extend(state.map(|why| format!("NOT SERVING: {}", not_serving(&status.name, why))));
            lines.extend((!status.served).then(|| "not served; this is what its log holds".to_owned()));
            lines.extend(status.draining.then(|| "everything is being written back".to_owned()));
            let age = status
                .oldest_dirty
                .filter(|_| status.served)
                .map(|age| format!(", the oldest for {} or more", Nanos::from_secs_f64(age)));
            let eta =
                status.drain_eta.map(|eta| format!(", written back in about {}", Nanos::from_secs_f64(eta)));
            let (age, eta) = (
                age.unwrap_or_default(),
                eta.filter(|_| status.only_in_log() > Bytes(0)).unwrap_or_default(),
            );
            let zeroed = status.zeroed_bytes.filter(|zeroed| *zeroed > 0);
            let zeroed = zeroed.map(|zeroed| format!(", {} zeroed or discarded", Bytes(zeroed)));
            lines.push(format!("{} only in the log{}{age}{eta}", Bytes(dirty), zeroed.unwrap_or_default()));
            let (used, log) = (status.log_used.unwrap_or(0), status.log_size.unwrap_or(status.size));
            lines.push(format!("log {} of {} in use", Bytes(used), Bytes(log)));
            lines.extend((status.mode == Mode::Ordered && !status.ordered).then(|| {
                "not in order yet: what was written in another mode, or before it was served, is written back first".to_owned()
            }));
            lines.extend(status.write_back_error.iter().map(|why| format!("WRITING BACK FAILS: {why}")));
            lines.extend(status.unreadable.iter().take(SHOWN).map(|part| {
                format!("UNREADABLE: {} from byte {} on; write it again", Bytes(part.length), part.offset)
            }));
        }
        (None, _) => lines.push(format!(
            "not served: `plumb cache serve {}`; log of {}",
            status.name,
            Bytes(status.size)
        )),
    }
    lines.extend(status.legs.iter().map(|leg| format!("log {} ({})", leg.path, leg.state)));
    lines.extend(status.warnings.iter().map(|why| format!("WARNING: {why}")));
    lines.extend(status.recovery.iter().flat_map(|found| recovery(status, found)));
    if status.served {
        let flushes = status.flushes;
        let (front, log, backing) = (flushes.front, flushes.log, flushes.backing);
        let amplification =
            status.write_amplification.map(|times| format!("; {times:.2} bytes to the log for each written"));
        lines.push(format!(
            "flushes: {front} asked for, {log} of the log, {backing} of the backing device{}",
            amplification.unwrap_or_default()
        ));
    }
    lines.extend(status.device.iter().map(|device| format!("device {device}")));
    lines.extend(status.nbd_uris.iter().map(|uri| format!("nbd {uri}")));
    lines.extend((!status.nbd_uris.is_empty()).then(|| format!("{} connected over NBD", status.nbd_clients)));
    lines.push(format!("uuid {}", status.uuid));
    text.extend(lines.iter().map(|line| format!("  {line}\n")));
    text
}

/// Describes what was found in the log when it was opened.
fn recovery(status: &CacheStatus, found: &Findings) -> Vec<String> {
    let mut lines = vec![format!(
        "{} of {} in the log when it was opened",
        counted(found.records, "record"),
        found.record_bytes
    )];
    let is_sound = !status.served && found.is_sound() && status.unreadable.is_empty();
    let are_all = status.legs.iter().all(|leg| leg.state != "lost");
    let missing = if are_all { "" } else { " on the devices that are there" };
    lines.extend(is_sound.then(|| format!("no record that was durable is damaged or gone{missing}")));
    let (given_up, lost) = (found.given_up_records, found.lost_records);
    lines.extend((lost > 0).then(|| {
        let lost = counted(lost, "durable record");
        format!(
            "LOST: at least {lost}, from the first that is damaged or gone on; check what is on the device"
        )
    }));
    lines.extend((given_up > 0).then(|| {
        let given_up = counted(given_up, "record");
        format!("given up at its end: {given_up} behind a torn one; no record says that anything there was flushed")
    }));
    for (leg, lacks) in status.legs.iter().zip(&found.legs) {
        let (path, behind, damaged) = (&leg.path, lacks.behind_bytes, lacks.damaged_bytes);
        lines.extend(lacks.front_lost.then(|| {
            format!("DAMAGED: what log {path} is found by has gone from its start; its end has it, and serving writes it again")
        }));
        lines.extend(
            (behind.0 > 0).then(|| format!("log {path} lacked the last {behind}, which another one has")),
        );
        lines.extend((damaged.0 > 0).then(|| {
            format!("DAMAGED: log {path} has durable records of {damaged} with something damaged or gone")
        }));
    }
    lines.extend(status.damaged.iter().take(SHOWN).map(|part| {
        format!(
            "DAMAGED: {} from byte {} on; reads of it fail until it is written again",
            Bytes(part.length),
            part.offset
        )
    }));
    let more = status.damaged.len().saturating_sub(SHOWN);
    lines.extend((more > 0).then(|| format!("DAMAGED: {more} more; --json has all")));
    lines
}

/// The metrics of caches in the text format of Prometheus. What is unknown has no sample.
fn metrics(caches: &[CacheStatus]) -> String {
    let mut out = Metrics::default();
    let mut family = |name: &str, help: &str, value: &dyn Fn(&CacheStatus) -> Option<f64>| {
        let name = format!("plumb_cache_{name}");
        out.family(&name, kind_of(&name), help);
        for (cache, value) in caches.iter().filter_map(|cache| Some((cache, value(cache)?))) {
            out.sample(&name, &[("cache", &cache.name), ("uuid", &cache.uuid)], value);
        }
    };
    family("served", "The cache is served.", &|cache| Some(f64::from(cache.served)));
    family("log_size_bytes", "Bytes used of each device of the log.", &|cache| Some(cache.size as f64));
    family("log_used_bytes", "Bytes of the log that hold records.", &|cache| {
        cache.log_used.map(|used| used as f64)
    });
    family("dirty_bytes", "Bytes of data that only the log holds.", &|cache| {
        cache.dirty_bytes.map(|dirty| dirty as f64)
    });
    family(
        "zeroed_bytes",
        "Bytes that were zeroed or discarded, which the backing device does not have yet.",
        &|cache| cache.zeroed_bytes.map(|zeroed| zeroed as f64),
    );
    family("oldest_dirty_seconds", "The least age of the oldest record in the log.", &|cache| {
        cache.oldest_dirty
    });
    family("drain_bytes_per_second", "The rate of writing back.", &|cache| cache.drain_rate);
    family("drain_eta_seconds", "How long it would take to write everything back.", &|cache| cache.drain_eta);
    family("failed", "The cache does not serve any more, though its server runs.", &|cache| {
        cache.state.as_ref().map(|state| f64::from(state != "serving" && state != "recovering"))
    });
    family("write_back_failing", "Writing back does not go on.", &|cache| {
        cache.served.then(|| f64::from(cache.write_back_error.is_some()))
    });
    family("unreadable_bytes", "Bytes that the log cannot read any more.", &|cache| {
        cache.served.then(|| cache.unreadable.iter().map(|part| part.length).sum::<u64>() as f64)
    });
    family("legs_lost", "Devices of the log that failed.", &|cache| {
        cache.served.then(|| cache.legs.iter().filter(|leg| leg.state == "lost").count() as f64)
    });
    family(
        "write_amplification_ratio",
        "Bytes written to the log for each byte written through it.",
        &|cache| cache.write_amplification,
    );
    let counted = [
        ("flushes", "flushes_front_total", "Flushes and FUA writes asked for by clients."),
        ("leg_flushes", "flushes_log_total", "Flushes of the devices of the log."),
        ("backing_flushes", "flushes_backing_total", "Flushes of the backing device."),
        ("reads", "reads_total", "Reads by clients."),
        ("read", "read_bytes_total", "Bytes read by clients."),
        ("writes", "writes_total", "Writes, zeroings and discards by clients."),
        ("written", "written_bytes_total", "Bytes written by clients."),
        ("bypassed", "bypassed_bytes_total", "Bytes of them that went past the log."),
        ("absorbed", "absorbed_bytes_total", "Bytes of them that replaced what only the log had."),
        ("backing_read", "backing_read_bytes_total", "Bytes read from the backing device for clients."),
        ("leg_written", "log_written_bytes_total", "Bytes written to all devices of the log."),
        ("destage_writes", "destage_writes_total", "Writes to the backing device from the log."),
        ("destaged", "destaged_bytes_total", "Bytes of them."),
        ("delayed", "delayed_seconds_total", "How long writes were delayed because the log fills."),
        ("checksum_errors", "checksum_errors_total", "Blocks of the log that were not what was written."),
        ("leg_read_errors", "log_read_errors_total", "Reads of the log that failed."),
        (
            "repaired",
            "repairs_total",
            "Places of a device of the log that were replaced by what another had.",
        ),
        ("destage_errors", "write_back_errors_total", "Failed reads and writes of writing back."),
    ];
    for (key, name, help) in counted {
        family(name, help, &|cache| cache.counts.get(key).copied());
    }
    let name = "plumb_cache_leg_live";
    out.family(name, "gauge", "The device of the log has everything.");
    for cache in caches.iter().filter(|cache| cache.served) {
        for leg in &cache.legs {
            let labels = [("cache", &*cache.name), ("uuid", &cache.uuid), ("leg", &leg.path)];
            out.sample(name, &labels, f64::from(leg.state == "live"));
        }
    }
    out.into_text()
}
