//! `plumb cache status` and `plumb cache mode`: how caches are, for people, as JSON, and for Prometheus.

use std::fmt::Write as _;

use plumb_block::{Bytes, Nanos};
use plumb_cache::Mode;
use plumb_serve::named::control::Order;
use plumb_target::cache::{self, CacheConfig, CacheOrder, CacheStatus};
use serde::Serialize;

use super::{order, refused};
use crate::exit::Exit;
use crate::terminal;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    caches: Vec<CacheStatus>,
}

/// How the cache is: as its server says, or what is known of one that is not served.
pub(super) fn of(name: &str) -> anyhow::Result<CacheStatus> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    Ok(order(name, &Order::Status)?.unwrap_or_else(|| CacheStatus::unserved(&config)))
}

/// That cache, or all.
pub(super) fn all(name: Option<&str>) -> anyhow::Result<Vec<CacheStatus>> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => CacheConfig::names(&cache::directory()).map_err(refused)?,
    };
    names.iter().map(|name| of(name)).collect()
}

pub(super) fn run(name: Option<&str>, json: bool, prometheus: bool) -> anyhow::Result<Exit> {
    let caches = all(name)?;
    match (&caches[..], name) {
        _ if prometheus => terminal::print(&metrics(&caches))?,
        ([one], Some(_)) if json => terminal::print_json(one)?,
        _ if json => terminal::print_json(&Document { schema: "plumb/caches/1", caches })?,
        ([], _) => terminal::print("there is no cache; `plumb cache create` makes one\n")?,
        _ => terminal::print(&caches.iter().map(text).collect::<String>())?,
    }
    Ok(Exit::Done)
}

/// Changes the mode of a cache.
pub(super) fn mode(name: &str, mode: Mode, json: bool) -> anyhow::Result<Exit> {
    let config = CacheConfig::load(&cache::directory(), name).map_err(refused)?;
    let status = match order(name, &Order::Own(CacheOrder::Mode { mode }))? {
        Some(status) => status,
        None => {
            let config = CacheConfig { mode, ..config };
            config.save(&cache::directory()).map_err(refused)?;
            CacheStatus::unserved(&config)
        }
    };
    show(&status, json)
}

/// Shows one cache.
pub(super) fn show(status: &CacheStatus, json: bool) -> anyhow::Result<Exit> {
    if json {
        terminal::print_json(status)?
    } else {
        terminal::print(&text(status))?
    }
    Ok(Exit::Done)
}

/// A mode by its name on the command line and in documents.
fn word(mode: Mode) -> &'static str {
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
            let state = state.as_deref().filter(|state| !matches!(*state, "serving" | "stopped"));
            lines.extend(state.map(|why| format!("NOT SERVING: {why}")));
            lines.extend((!status.served).then(|| "not served; this is what its log holds".to_owned()));
            let age =
                status.oldest_dirty.map(|age| format!(", the oldest for {}", Nanos::from_secs_f64(age)));
            let eta =
                status.drain_eta.map(|eta| format!(", written back in about {}", Nanos::from_secs_f64(eta)));
            let (age, eta) = (age.unwrap_or_default(), eta.filter(|_| dirty > 0).unwrap_or_default());
            lines.push(format!("{} only in the log{age}{eta}", Bytes(dirty)));
            let used = Bytes(status.log_used.unwrap_or(0));
            lines.push(format!("log {used} of {} in use", Bytes(status.size)));
        }
        (None, _) => lines.push(format!(
            "not served: `plumb cache serve {}`; log of {}",
            status.name,
            Bytes(status.size)
        )),
    }
    lines.extend(status.legs.iter().map(|leg| format!("log {} ({})", leg.path, leg.state)));
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
    lines.extend(status.nbd.iter().map(|nbd| format!("nbd {nbd}, {} connected", status.nbd_clients)));
    lines.push(format!("uuid {}", status.uuid));
    text.extend(lines.iter().map(|line| format!("  {line}\n")));
    text
}

/// The metrics of caches in the text format of Prometheus. What is unknown has no sample.
fn metrics(caches: &[CacheStatus]) -> String {
    let mut text = String::new();
    let mut family = |name: &str, help: &str, value: &dyn Fn(&CacheStatus) -> Option<f64>| {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        // Writing to a String cannot fail.
        writeln!(text, "# HELP plumb_cache_{name} {help}\n# TYPE plumb_cache_{name} {kind}").ok();
        for (cache, value) in caches.iter().filter_map(|cache| Some((cache, value(cache)?))) {
            writeln!(text, "plumb_cache_{name}{{cache=\"{}\",uuid=\"{}\"}} {value}", cache.name, cache.uuid)
                .ok();
        }
    };
    family("served", "The cache is served.", &|cache| Some(f64::from(cache.served)));
    family("log_size_bytes", "Bytes used of each device of the log.", &|cache| Some(cache.size as f64));
    family("log_used_bytes", "Bytes of the log that hold records.", &|cache| {
        cache.log_used.map(|used| used as f64)
    });
    family("dirty_bytes", "Bytes that only the log holds.", &|cache| {
        cache.dirty_bytes.map(|dirty| dirty as f64)
    });
    family("oldest_dirty_seconds", "How long the oldest record is in the log.", &|cache| cache.oldest_dirty);
    family("drain_bytes_per_second", "The rate of writing back.", &|cache| cache.drain_rate);
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
        ("leg_written", "log_written_bytes_total", "Bytes written to all devices of the log."),
        ("destage_writes", "destage_writes_total", "Writes to the backing device from the log."),
        ("destaged", "destaged_bytes_total", "Bytes of them."),
        ("delayed", "delayed_seconds_total", "How long writes were delayed because the log fills."),
        ("checksum_errors", "checksum_errors_total", "Blocks of the log that were not what was written."),
    ];
    for (key, name, help) in counted {
        family(name, help, &|cache| cache.counts.get(key).copied());
    }
    text
}
