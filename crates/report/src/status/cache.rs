//! Pages and metrics of `plumb cache status`.

use plumb_block::{Bytes, Nanos};
use plumb_cache::driver::{LatencyBucket, LatencyByRequest, RequestLatency};
use plumb_cache::{Findings, Layout, Mode};
use plumb_caches::{CacheStatus, EnduranceBy, Sleep, Wear, last_resort, serving};
use plumb_path::metrics::Metrics;
use plumb_targets::ByteExtent;
use plumb_text::printable;
use plumb_text::shell_word;

use super::Sections;
use crate::document::cache::{CacheDetached, CacheShown, CachesShown};
use crate::export::prometheus::put_histogram;
use crate::outline::{Item, Page, Row};
use crate::quantity::counted;

const TITLE: &str = "plumb cache status";
/// Maximum number of damaged parts shown in text.
const SHOWN: usize = 8;

impl Sections for CacheShown {
    const TITLE: &str = TITLE;

    fn add_to(&self, page: &mut Page) {
        let status = &self.status;
        match status.schema.as_str() {
            CacheStatus::SCHEMA_CREATE => created(page, status),
            CacheStatus::SCHEMA_SERVE => served(page, status),
            _ if self.is_stopped => {
                page.add("", vec![Item::text(&stopped(status))]);
            }
            _ => add(page, status),
        }
    }

    fn metrics(&self) -> Option<String> {
        Some(metrics(&[&self.status]))
    }
}

impl Sections for CachesShown {
    const TITLE: &str = TITLE;

    fn add_to(&self, page: &mut Page) {
        self.caches.iter().for_each(|cache| add(page, &cache.status));
        if self.caches.is_empty() {
            page.add("", vec![Item::text("there is no cache; `plumb cache create` makes one")]);
        }
    }

    fn metrics(&self) -> Option<String> {
        Some(metrics(&self.caches.iter().map(|cache| &cache.status).collect::<Vec<_>>()))
    }
}

impl Sections for CacheDetached {
    const TITLE: &str = "plumb cache detach";

    fn add_to(&self, page: &mut Page) {
        let Self { name, backing, .. } = self;
        let but = match self.given_up_bytes {
            0 => String::new(),
            bytes => format!(", but for {} that were given up,", Bytes(bytes)),
        };
        let after = if self.is_backing_gone {
            "and so is everything that was written back to"
        } else {
            "so check what is on"
        };
        let words = match self.discarded {
            false => {
                format!("{name}: removed; {backing} holds everything{but} and is used alone from now on")
            }
            true => format!("{name}: removed; the data that only its log held is lost, {after} {backing}"),
        };
        page.add("", vec![Item::text(&words)]);
    }
}

/// Describes a cache that has been stopped.
fn stopped(cache: &CacheStatus) -> String {
    let CacheStatus { name, backing, uuid, .. } = cache;
    if cache.has_deleted_log() && cache.is_written_back() {
        return format!(
            "{name}: stopped; a file of its log was deleted, and {} has everything: `plumb cache detach {} --discard-dirty {uuid}` \
             removes the cache, and nothing is lost",
            backing.path,
            shell_word(name)
        );
    }
    format!("{name}: stopped; {} only in the log, until it is served again", cache.only_in_log())
}

/// Describes why an open cache no longer serves, with a remedy.
pub fn not_serving(name: &str, why: &str) -> String {
    format!(
        "{why}; fix that, then stop it (`plumb cache stop {}`) and serve it again, which reads its log",
        shell_word(name)
    )
}

fn created(page: &mut Page, cache: &CacheStatus) {
    let (name, backing) = (&cache.name, &cache.backing.path);
    let mut facts: Vec<String> = cache.legs.iter().map(|leg| format!("log {}", leg.path)).collect();
    facts.push(format!("uuid {}", cache.uuid));
    facts.push(format!("{} serves it; from now on {backing} needs it", serving(name, "")));
    let title = format!("{name}: {} of log in front of {backing}", Bytes(cache.size));
    page.add(printable(&title), vec![Item::facts(facts)]);
}

fn served(page: &mut Page, cache: &CacheStatus) {
    let title = format!("{}: {} with {} in the log", cache.name, cache.backing.path, cache.only_in_log());
    let places = places(cache.device.as_ref(), &cache.nbd_uris);
    let stop = Row::new("stop", &format!("plumb cache stop {}", shell_word(&cache.name)));
    page.add(printable(&title), vec![Item::Rows(places.chain([stop]).collect())]);
}

/// Returns rows with the places at which something is served.
pub(super) fn places<'a>(device: Option<&'a String>, uris: &'a [String]) -> impl Iterator<Item = Row> {
    let device = device.into_iter().map(|device| Row::new("device", device));
    device.chain(uris.iter().map(|uri| Row::new("nbd", uri)))
}

fn add(page: &mut Page, cache: &CacheStatus) {
    let size = cache.backing.size.map(|size| format!(" of {}", Bytes(size))).unwrap_or_default();
    let title = format!("{}: {}{size}, {}", cache.name, cache.backing.path, cache.mode.word());
    let mut facts = match cache.dirty_bytes {
        Some(dirty) => contents(cache, dirty),
        None => {
            let serving = serving(&cache.name, "");
            let verify = format!("`plumb cache verify {}`", shell_word(&cache.name));
            vec![
                format!("not served: {serving} serves it; log of {}", Bytes(cache.size)),
                format!("how much data only the log holds is not known: {verify} reads the log and says it"),
            ]
        }
    };
    facts.extend(cache.legs.iter().map(|leg| format!("log {} ({})", leg.path, leg.state)));
    facts.extend(missing(cache));
    facts.extend(log_deleted(cache));
    facts.extend(backing_deleted(cache));
    facts.extend(cache.warnings.iter().map(|why| format!("WARNING: {why}")));
    facts.extend(cache.recovery.iter().flat_map(|found| recovery(cache, found)));
    if let Some(flushes) = cache.flushes.as_ref().filter(|_| cache.served) {
        let amplification =
            cache.write_amplification.map(|times| format!("; {times:.2} bytes to the log per byte written"));
        facts.push(format!(
            "flushes: {} requested, {} of the log, {} of the backing device{}",
            flushes.front,
            flushes.log,
            flushes.backing,
            amplification.unwrap_or_default()
        ));
    }
    facts.extend(cache.wear.iter().filter(|_| cache.served).map(wear));
    facts.extend(latency(cache));
    facts.extend(sleep(cache));
    facts.extend(cache.device.iter().map(|device| format!("device {device}")));
    facts.extend(cache.transport.iter().map(|transport| format!("transport {transport}")));
    facts.extend(cache.nbd_uris.iter().map(|uri| format!("nbd {uri}")));
    facts.extend(
        (!cache.nbd_uris.is_empty()).then(|| format!("NBD clients connected: {}", cache.nbd_clients)),
    );
    facts.push(format!("uuid {}", cache.uuid));
    page.add(printable(&title), vec![Item::facts(facts)]);
}

/// Describes the writes to each device of the log, compared with its rated endurance.
fn wear(wear: &Wear) -> String {
    let (written, counted) = (Bytes(wear.written_bytes), Nanos::from_secs_f64(wear.seconds));
    let rate = wear.bytes_per_day.map(|rate| format!(", {} per day", Bytes(rate as u64))).unwrap_or_default();
    let rated = wear.endurance.as_ref().map(|endurance| {
        let by = if endurance.by == EnduranceBy::Given { "" } else { "about, as the drive says, " };
        let used = endurance.used.map(|used| format!(", of which {:.0} % are used up", used * 100.0));
        let lasts = wear.lifetime.map(|lasts| format!("; at that rate they last {}", years(lasts)));
        let (used, lasts) = (used.unwrap_or_default(), lasts.unwrap_or_default());
        format!("; rated for {by}{}{used}{lasts}", Bytes(endurance.bytes))
    });
    let rated = rated.unwrap_or_default();
    format!("wear: {written} written to each device of the log in {counted}{rate}{rated}")
}

/// Returns a long time in the unit that suits planning.
pub(super) fn years(seconds: f64) -> String {
    let days = seconds / 86_400.0;
    if days < 730.0 { format!("{days:.0} days") } else { format!("{:.1} years", days / 365.25) }
}

/// Describes the waiting times of clients.
fn latency(cache: &CacheStatus) -> Option<String> {
    let all = cache.latency.as_ref().filter(|_| cache.served)?;
    let one = |(name, RequestLatency { summary, .. }): (&str, &RequestLatency)| {
        let time = |seconds| Nanos::from_secs_f64(seconds);
        let p99 = summary.p99.map(|p99| format!(", p99 {}", time(p99))).unwrap_or_default();
        format!("{name} {}{p99}, {} at most", time(summary.mean), time(summary.max))
    };
    let all: Vec<String> = all.by_name().map(one).collect();
    (!all.is_empty()).then(|| format!("latency: {}", all.join("; ")))
}

/// Describes when data is destaged to a device that sleeps in between.
fn sleep(cache: &CacheStatus) -> Option<String> {
    let Sleep { at_percent, age, spin_down } = cache.sleep.as_ref()?;
    let (age, pause) = (Nanos::from_secs_f64(*age), Nanos::from_secs_f64(*spin_down));
    let count = cache.spin_ups.map(|count| {
        format!(
            "; {} since it was opened (uses after {pause} or more without a request)",
            counted(count, "spin-up")
        )
    });
    Some(format!(
        "write-back starts at {at_percent} % of the log or an age of {age}{}",
        count.unwrap_or_default()
    ))
}

/// Describes why the log is no longer written, with a remedy.
fn log_error(name: &str, why: &str) -> String {
    format!(
        "LOG NOT WRITTEN: {why}. Its data is being written back, and new writes go to the backing device, \
         at the speed of that device, until `plumb cache replace-log {name} NEW` gives the cache another \
         log, or `plumb cache detach {name}` removes the cache",
        name = shell_word(name)
    )
}

/// Describes the devices of a cache that are not there.
fn missing(cache: &CacheStatus) -> Vec<String> {
    let (legs, is_mirror) = (cache.missing_legs().count(), cache.layout == Some(Layout::Mirror));
    let mut facts = Vec::new();
    for leg in cache.missing_legs() {
        let remedy = if is_mirror && legs < cache.legs.len() {
            format!(
                "bring it back, or serve the cache from the rest of its mirror: {}",
                serving(&cache.name, "--degraded")
            )
        } else {
            format!("bring it back; {}", last_resort(&cache.name, &cache.uuid))
        };
        facts.push(format!("LOG MISSING: {} is not there; {remedy}", leg.path));
    }
    facts.extend(cache.backing.is_missing.then(|| {
        let (path, last_resort) = (&cache.backing.path, last_resort(&cache.name, &cache.uuid));
        format!("BACKING MISSING: {path} is not there; bring it back; {last_resort}")
    }));
    facts
}

/// Describes how to save the contents of log files in use that were deleted. A cache that does not serve
/// cannot replace a log.
fn log_deleted(cache: &CacheStatus) -> Option<String> {
    let deleted = cache.legs.iter().find(|leg| leg.state == "deleted")?;
    if cache.layout.is_some_and(|layout| !cache.has_no_named_log(layout)) {
        let (name, lost) = (shell_word(&cache.name), shell_word(&deleted.path));
        return Some(format!(
            "LOG DELETED: {} was deleted. Nothing is lost when the server ends, because another device of the mirror holds \
             the whole log; replace the deleted one (`plumb cache replace-leg {name} --lost {lost} --log NEW`)",
            deleted.path
        ));
    }
    let first = match (not_serving_reason(cache), cache.pid) {
        (Some(_), Some(pid)) => format!(
            "copy it to its place before you stop the server: `ls -l /proc/{pid}/fd` shows its number N, then \
             `cp --sparse=always /proc/{pid}/fd/N {}`",
            shell_word(&deleted.path)
        ),
        _ => format!(
            "give the cache another log first (`plumb cache replace-log {} NEW`)",
            shell_word(&cache.name)
        ),
    };
    Some(format!(
        "LOG DELETED: a file of the log was deleted. If the server is killed, the file and all data that only the log holds are lost: \
         {first}"
    ))
}

/// Describes how to save the data of a deleted backing file.
fn backing_deleted(cache: &CacheStatus) -> Option<String> {
    cache.backing.is_deleted.then(|| {
        format!(
            "BACKING DELETED: {} was deleted or renamed. When the server ends, all data is lost unless the file is back \
             under this name: rename it back, or copy the data from the device or the export of the cache first",
            cache.backing.path
        )
    })
}

/// Returns the reason why an open cache does not serve; `None` if it does.
fn not_serving_reason(cache: &CacheStatus) -> Option<&str> {
    cache.state.as_deref().filter(|state| !matches!(*state, "serving" | "recovering" | "stopped"))
}

/// Describes the contents of the log of an open cache.
fn contents(cache: &CacheStatus, dirty: u64) -> Vec<String> {
    let mut facts = Vec::new();
    let (used, log) = (cache.log_used.unwrap_or(0), cache.log_size.unwrap_or(cache.size));
    let in_use = format!("log {} of {} in use", Bytes(used), Bytes(log));
    // Nothing is destaged or written before the cache serves.
    if let Some(why) = not_serving_reason(cache) {
        facts.push(format!("NOT SERVING: {}", not_serving(&cache.name, why)));
        facts.extend([format!("{} only in the log", Bytes(dirty)), in_use]);
        return facts;
    }
    facts.extend(cache.log_error.iter().map(|why| log_error(&cache.name, why)));
    facts.extend((!cache.served).then(|| "not served; this is what its log holds".to_owned()));
    facts.extend(cache.draining.then(|| "everything is being written back".to_owned()));
    let age = cache.oldest_dirty.filter(|_| cache.served);
    let age = age.map(|age| format!(", the oldest for {} or more", Nanos::from_secs_f64(age)));
    let eta = cache.drain_eta.filter(|_| cache.only_in_log() > Bytes(0));
    let drain = if cache.draining { "written back in" } else { "a drain would take" };
    let eta = eta.map(|eta| format!(", {drain} about {}", Nanos::from_secs_f64(eta)));
    let zeroed = cache.zeroed_bytes.filter(|zeroed| *zeroed > 0);
    let zeroed = zeroed.map(|zeroed| format!(", {} zeroed or discarded", Bytes(zeroed)));
    let beside = [zeroed, age, eta].into_iter().flatten().collect::<String>();
    facts.push(format!("{} only in the log{beside}", Bytes(dirty)));
    facts.push(in_use);
    facts.extend((cache.mode == Mode::Ordered && !cache.ordered).then(|| {
        "not in order yet: data written in another mode, or before the cache was served, is written back \
         first"
            .to_owned()
    }));
    facts.extend(cache.write_back_error.iter().map(|why| format!("WRITING BACK FAILS: {why}")));
    let unreadable = |part: &ByteExtent| {
        format!("UNREADABLE: {} from byte {} on; write it again", Bytes(part.length), part.offset)
    };
    facts.extend(cache.unreadable.iter().take(SHOWN).map(unreadable));
    facts
}

/// Returns true if no durable data is damaged or missing.
fn is_sound(cache: &CacheStatus, found: &Findings) -> bool {
    cache.damaged.is_empty() && cache.unreadable.is_empty() && found.is_sound()
}

/// Describes the findings of recovery.
fn recovery(cache: &CacheStatus, found: &Findings) -> Vec<String> {
    let mut facts = vec![format!(
        "{} of {} in the log when it was opened",
        counted(found.records, "record"),
        found.record_bytes
    )];
    let are_all = cache.legs.iter().all(|leg| leg.state != "lost");
    let missing = if are_all { "" } else { " on the devices that are there" };
    facts.extend(
        (!cache.served && is_sound(cache, found))
            .then(|| format!("no record that was durable is damaged or gone{missing}")),
    );
    let (given_up, lost) = (found.given_up_records, found.lost_records);
    facts.extend((lost > 0).then(|| {
        let lost = counted(lost, "durable record");
        format!(
            "LOST: at least {lost}, from the first that is damaged or missing on; check what is on the device"
        )
    }));
    facts.extend((given_up > 0).then(|| {
        let given_up = counted(given_up, "record");
        format!(
            "discarded at its end: {given_up} after a torn one; no record says that anything there was \
             flushed"
        )
    }));
    for (leg, lacks) in cache.legs.iter().zip(&found.legs) {
        let (path, behind, damaged) = (&leg.path, lacks.behind_bytes, lacks.damaged_bytes);
        facts.extend(lacks.front_lost.then(|| {
            format!(
                "DAMAGED: the start of log {path}, by which it is found, is overwritten; the copy at its \
                 end is whole, and serving restores it"
            )
        }));
        facts.extend(
            (behind.0 > 0).then(|| format!("log {path} lacked the last {behind}, which another one has")),
        );
        facts.extend((damaged.0 > 0).then(|| {
            format!("DAMAGED: in log {path}, durable records of {damaged} are damaged or missing in part")
        }));
    }
    let damaged = |part: &ByteExtent| {
        let length = Bytes(part.length);
        let has_damage = |number: usize| found.legs.get(number).is_none_or(|lacks| lacks.damaged_bytes.0 > 0);
        let legs: Vec<_> = (0..).zip(&cache.legs).filter(|(number, _)| has_damage(*number)).collect();
        let legs: Vec<_> = legs.into_iter().map(|(_, leg)| leg.path.as_str()).collect();
        format!(
            "DAMAGED: log {} had {length} from byte {} on; reads of that fail until it is written again",
            legs.join(", "),
            part.offset,
        )
    };
    facts.extend(cache.damaged.iter().take(SHOWN).map(damaged));
    let more = cache.damaged.len().saturating_sub(SHOWN);
    facts.extend((more > 0).then(|| format!("DAMAGED: {more} more; --json has all")));
    facts
}

/// Returns the labels of a cache.
fn labels(cache: &CacheStatus) -> [(&str, &str); 2] {
    [("cache", &cache.name), ("uuid", &cache.uuid)]
}

/// Writes the problems of caches, a sample for each reason.
fn problems<'a>(out: &mut Metrics, caches: &[&'a CacheStatus]) {
    let of_cache = |cache: &'a CacheStatus| {
        let (log, back) = (cache.log_error.as_deref(), cache.write_back_error.as_deref());
        let not_serving = not_serving_reason(cache);
        let all = [("not-serving", not_serving), ("log-not-written", log), ("not-written-back", back)];
        let [name, uuid] = labels(cache);
        all.into_iter().filter_map(move |(problem, reason)| {
            Some(([name, uuid, ("problem", problem), ("reason", reason?)], 1.0))
        })
    };
    let all = caches.iter().copied().filter(|cache| cache.served).flat_map(of_cache);
    let help = "1 for each reason why a served cache is degraded.";
    out.known("plumb_cache_problem", help, all);
}

/// Writes the latency of the requests of clients, a histogram for each kind.
fn latencies(out: &mut Metrics, caches: &[&CacheStatus]) {
    const FAMILY: &str = "plumb_cache_request_seconds";
    let all = caches.iter().copied().flat_map(|cache| {
        let by_name = cache.latency.iter().flat_map(LatencyByRequest::by_name);
        by_name.map(move |(request, latency)| (cache, request, latency))
    });
    let help = "Latency of the requests of clients.";
    out.each(FAMILY, "histogram", help, all, |out, (cache, request, RequestLatency { summary, buckets })| {
        let [name, uuid] = labels(cache);
        let labels = [name, uuid, ("request", request)];
        let edges = buckets.iter().map(|LatencyBucket { at_most, count }| (*at_most, *count));
        let count = summary.count as f64;
        put_histogram(out, FAMILY, &labels, edges, count, summary.mean * count);
    });
}

/// Name, help text and value of a metric of each cache.
type Gauge = (&'static str, &'static str, fn(&CacheStatus) -> Option<f64>);

const GAUGES: [Gauge; 19] = [
    ("served", "The cache is served.", |cache| Some(f64::from(cache.served))),
    ("leg_size_bytes", "Bytes used of each device of the log.", |cache| Some(cache.size as f64)),
    ("log_size_bytes", "Bytes of records that the log can hold.", |cache| cache.log_size.map(|of| of as f64)),
    ("log_used_bytes", "Bytes of the log that hold records.", |cache| cache.log_used.map(|of| of as f64)),
    ("dirty_bytes", "Bytes of data that only the log holds.", |cache| cache.dirty_bytes.map(|of| of as f64)),
    (
        "zeroed_bytes",
        "Bytes that were zeroed or discarded, which the backing device does not have yet.",
        |cache| cache.zeroed_bytes.map(|zeroed| zeroed as f64),
    ),
    ("oldest_dirty_seconds", "Lower bound of the age of the oldest record in the log.", |cache| {
        cache.oldest_dirty
    }),
    ("drain_bytes_per_second", "The rate of writing back.", |cache| cache.drain_rate),
    ("drain_eta_seconds", "How long it would take to write everything back.", |cache| cache.drain_eta),
    ("failed", "The cache has stopped serving, though its server runs.", |cache| {
        cache.state.as_ref().map(|state| f64::from(state != "serving" && state != "recovering"))
    }),
    ("write_back_failing", "Write-back makes no progress.", |cache| {
        cache.served.then(|| f64::from(cache.write_back_error.is_some()))
    }),
    ("log_failed", "The log takes no more writes: they go to the backing device.", |cache| {
        cache.served.then(|| f64::from(cache.log_error.is_some()))
    }),
    ("unreadable_bytes", "Bytes that the log can no longer read.", |cache| {
        cache.served.then(|| cache.unreadable.iter().map(|part| part.length).sum::<u64>() as f64)
    }),
    ("devices_missing", "Devices that are not there, of a cache that is not served.", |cache| {
        let missing = cache.missing_legs().count() + usize::from(cache.backing.is_missing);
        (!cache.served).then_some(missing as f64)
    }),
    ("legs_lost", "Devices of the log that failed.", |cache| {
        cache.served.then(|| cache.legs.iter().filter(|leg| leg.state == "lost").count() as f64)
    }),
    (
        "log_wear_bytes_per_day",
        "Bytes written a day to each device of the log, since it was opened.",
        |cache| cache.wear.as_ref().and_then(|wear| wear.bytes_per_day),
    ),
    ("log_endurance_bytes", "Bytes that a device of the log is rated to be written in its life.", |cache| {
        cache.wear.as_ref().and_then(|wear| Some(wear.endurance.as_ref()?.bytes as f64))
    }),
    ("log_lifetime_seconds", "Time that a new device of the log lasts at the rate of its wear.", |cache| {
        cache.wear.as_ref().and_then(|wear| wear.lifetime)
    }),
    ("write_amplification_ratio", "Bytes written to the log for each byte written through it.", |cache| {
        cache.write_amplification
    }),
];

/// Key of the document, name and help text of a metric that counts.
const COUNTERS: [(&str, &str, &str); 20] = [
    ("flushes", "flushes_front_total", "Flushes and FUA writes asked for by clients."),
    ("leg_flushes", "flushes_log_total", "Flushes of the devices of the log."),
    ("backing_flushes", "flushes_backing_total", "Flushes of the backing device."),
    ("reads", "reads_total", "Reads by clients."),
    ("read", "read_bytes_total", "Bytes read by clients."),
    ("writes", "writes_total", "Writes, zeroings and discards by clients."),
    ("written", "written_bytes_total", "Bytes written by clients."),
    ("bypassed", "bypassed_bytes_total", "Bytes of them that went past the log."),
    ("absorbed", "absorbed_bytes_total", "Bytes of them that replaced data that only the log had."),
    ("backing_read", "backing_read_bytes_total", "Bytes read from the backing device for clients."),
    (
        "kept_reads",
        "kept_reads_total",
        "Reads of the log that the backing device was spared, of what was written back.",
    ),
    ("kept_read", "kept_read_bytes_total", "Bytes of them."),
    (
        "leg_written",
        "log_written_bytes_total",
        "Bytes of records and superblocks written to all devices of the log.",
    ),
    ("destage_writes", "destage_writes_total", "Writes to the backing device from the log."),
    ("destaged", "destaged_bytes_total", "Bytes of them."),
    ("delayed", "delayed_seconds_total", "How long writes were delayed because the log fills."),
    ("checksum_errors", "checksum_errors_total", "Blocks of the log that were not what was written."),
    ("leg_read_errors", "log_read_errors_total", "Reads of the log that failed."),
    ("repaired", "repairs_total", "Places of a device of the log that were replaced by what another had."),
    ("destage_errors", "write_back_errors_total", "Failed reads and writes of writing back."),
];

/// Returns the metrics of caches. What is unknown has no sample.
fn metrics(caches: &[&CacheStatus]) -> String {
    let mut out = Metrics::default();
    let mut family = |name: &str, help: &str, value: &dyn Fn(&CacheStatus) -> Option<f64>| {
        let known = caches.iter().copied().filter_map(|cache| Some((labels(cache), value(cache)?)));
        out.family(&format!("plumb_cache_{name}"), help, known);
    };
    for (name, help, value) in GAUGES {
        family(name, help, &value);
    }
    for (key, name, help) in COUNTERS {
        family(name, help, &|cache| cache.counts.get(key).copied());
    }
    family("spin_ups_total", "Uses of the backing device after it had time to spin down.", &|cache| {
        cache.spin_ups.map(|count| count as f64)
    });
    problems(&mut out, caches);
    latencies(&mut out, caches);
    let legs = caches.iter().copied().filter(|cache| cache.served).flat_map(|cache| {
        let [name, uuid] = labels(cache);
        let is_live = |state: &str| f64::from(state == "live");
        cache.legs.iter().map(move |leg| ([name, uuid, ("leg", &*leg.path)], is_live(&leg.state)))
    });
    out.family("plumb_cache_leg_live", "The device of the log has everything.", legs);
    out.into_text()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A cache that has stopped for good cannot replace its log.
    #[test]
    fn a_deleted_log_is_replaced_while_the_cache_serves_and_copied_once_it_does_not() {
        let leg = || serde_json::from_str(r#"{"path": "/a log", "state": "deleted"}"#).unwrap();
        let of_state = |state: &str| {
            let (state, pid) = (Some(state.to_owned()), Some(4711));
            log_deleted(&CacheStatus { state, pid, legs: vec![leg()], ..CacheStatus::default() }).unwrap()
        };
        let (serving, latched) = (of_state("serving"), of_state("its log failed a flush"));
        assert!(serving.contains("replace-log") && !serving.contains("/proc"), "{serving}");
        assert!(
            latched.contains("/proc/4711/fd/N '/a log'") && !latched.contains("replace-log"),
            "{latched}"
        );
    }

    #[test]
    fn a_deleted_log_loses_data_only_where_no_device_of_a_mirror_is_left() {
        let said = |layout: Layout, states: [&str; 2]| {
            let leg = |state| json!({"path": format!("/{state}"), "state": state});
            let legs = serde_json::from_value(states.map(leg).into_iter().collect()).unwrap();
            let layout = Some(layout);
            log_deleted(&CacheStatus { layout, legs, ..CacheStatus::default() }).unwrap()
        };
        let whole = said(Layout::Mirror, ["deleted", "live"]);
        assert!(whole.contains("Nothing is lost") && whole.contains("--lost /deleted"), "{whole}");
        for (layout, other) in
            [(Layout::Mirror, "deleted"), (Layout::Mirror, "resilvering"), (Layout::Stripe, "live")]
        {
            let lost = said(layout, ["deleted", other]);
            assert!(lost.contains("only the log holds are lost"), "{layout:?} {other}: {lost}");
        }
    }
}
