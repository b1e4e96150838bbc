//! Reasons why two levels differ: the time from one operation to the next, divided into parts by counters.
//!
//! A load has as many slots as its depth, each always occupied by an operation. The slot time of an
//! operation, divided by the depth, is the time from one operation to the next, whose inverse is the rate.
//! The slot time is divided into parts, for each level separately:
//!
//! ```text
//! syncs x (flushes each x time of a flush     device time for flushes, as far as somebody waited for them
//!          + the rest of the sync)
//! + device I/Os each x time of an I/O         as far as operations waited for them: the time of a busy device
//!                                             for one I/O, times the number of I/Os there (queueing)
//! + processor                                 time of the workers in addition to these waits
//! + wait for a processor                      time of the workers in addition to both
//! + remainder                                 time that no count explains
//! ```
//!
//! While a thread waits for a sync or computes, all of its slots wait.
//!
//! The difference of a product is divided equally between its factors, which is exact and symmetric. If the
//! factors change in opposite directions, the stronger one gets all of it.
//!
//! # Limitations
//! Devices count the requests of all programs. Background work for which nobody waits is not measured, but
//! kept out by the bounds of the parts.

use plumb_report::document::comparison::{Counts, Term};
use plumb_report::main_term;
use plumb_report::quantity::{bytes, duration, percent};

/// Share of the whole time below which a difference is not divided among its terms.
const SHARED_MIN: f64 = 0.02;
/// Ratio of a term to the whole difference above which the difference is not divided: the other terms cancel
/// most of that term.
const CANCELLING_MIN: f64 = 2.0;

/// Parts of the slot time of one operation of a level, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    depth: f64,
    whole: f64,
    /// Number of syncs per operation.
    syncs: f64,
    flushes: Product,
    /// Time of all syncs of an operation, without their flushes.
    sync_calls: f64,
    device: Product,
    /// Mean number of requests at the devices while they have any; 1 if unknown.
    queue: f64,
    processor: f64,
    processor_wait: f64,
    /// Time that the workers compute for an operation, in seconds of a thread.
    computed: f64,
}

/// A count per operation, and the cost of each.
#[derive(Debug, Clone, Copy, Default)]
struct Product {
    count: f64,
    cost: f64,
}

impl Product {
    /// Creates the product of `count` events in `operations`, which took `seconds` together; `count` is
    /// `None` if unknown.
    fn new(count: Option<u64>, seconds: f64, operations: f64) -> Self {
        let count = count.unwrap_or(0) as f64;
        let cost = if count > 0.0 { seconds / count } else { 0.0 };
        Self { count: count / operations, cost }
    }

    fn time(self) -> f64 {
        self.count * self.cost
    }

    /// Returns the parts of the difference to `other` due to the count and due to the cost. If one cancels
    /// most of the other, the stronger one gets the whole difference.
    fn difference(self, other: Self) -> (f64, f64) {
        // A level without events has no cost of its own; with the cost of the other level, the whole
        // difference is due to the count.
        let (mut one, mut two) = (self, other);
        if one.count == 0.0 {
            one.cost = two.cost;
        }
        if two.count == 0.0 {
            two.cost = one.cost;
        }
        let by_count = (one.count - two.count) * f64::midpoint(one.cost, two.cost);
        let by_cost = (one.cost - two.cost) * f64::midpoint(one.count, two.count);
        let all = by_count + by_cost;
        // A page cache turns many I/Os into few large ones for which nobody waits, so their cost explains
        // nothing.
        let cancels = by_count.abs().min(by_cost.abs()) > (CANCELLING_MIN - 1.0) * all.abs();
        match cancels {
            true if by_count * all > 0.0 => (all, 0.0),
            true => (0.0, all),
            false => (by_count, by_cost),
        }
    }
}

impl Parts {
    fn from_counts(counts: &Counts) -> Option<Self> {
        let operations = counts.operations as f64;
        let whole = counts.slot_seconds / operations;
        if counts.operations == 0 || counts.seconds <= 0.0 || !whole.is_finite() || whole <= 0.0 {
            return None;
        }
        // `places` slots wait with a waiting thread: one if the number of threads is unknown.
        let threads = counts.thread_seconds.filter(|of| *of > 0.0);
        let places = threads.map_or(1.0, |threads| (counts.slot_seconds / threads).max(1.0));
        let has_syncs = counts.syncs > 0;
        let syncs = if has_syncs { (counts.sync_seconds * places).min(counts.slot_seconds) } else { 0.0 };
        // Flushes are waited for in syncs or, without syncs, in durable writes.
        let waited = if has_syncs { syncs } else { counts.operation_seconds };
        let each = if has_syncs { places } else { 1.0 };
        let flush_seconds = (counts.flush_seconds.unwrap_or(0.0) * each).min(waited);
        let in_operations = if has_syncs { 0.0 } else { flush_seconds };
        let left = (counts.operation_seconds - in_operations).max(0.0);
        let in_devices = counts.device_seconds.unwrap_or(0.0);
        let device_seconds = in_devices.min(left);
        let busy = counts.device_busy_seconds.map(|busy| busy - counts.flush_seconds.unwrap_or(0.0));
        let queue = busy.filter(|busy| *busy > 0.0).map_or(1.0, |busy| (in_devices / busy).max(1.0));
        // Workers compute while requests are in flight: only the rest of the time can be due to them.
        let idle = (counts.slot_seconds - syncs - in_operations - device_seconds).max(0.0);
        let computed = threads.and(counts.cpu_seconds).unwrap_or(0.0);
        let processor = (computed * places).min(idle);
        let waiting = counts.waiting_seconds.unwrap_or(0.0) * places;
        Some(Self {
            depth: counts.slot_seconds / counts.seconds,
            whole,
            syncs: counts.syncs as f64 / operations,
            flushes: Product::new(counts.flushes, flush_seconds, operations),
            sync_calls: (syncs - (flush_seconds - in_operations)) / operations,
            device: Product::new(counts.device_ios, device_seconds, operations),
            queue,
            processor: processor / operations,
            processor_wait: waiting.min(idle - processor) / operations,
            computed: computed / operations,
        })
    }

    fn remainder(&self) -> f64 {
        let waited = self.flushes.time() + self.sync_calls + self.device.time();
        self.whole - waited - self.processor - self.processor_wait
    }
}

/// Returns the terms of the difference between `compared` and `against` in the time from one operation to the
/// next: the largest first, the remainder last; none if the counts are missing.
pub(crate) fn explain(compared: &Counts, against: &Counts) -> Vec<Term> {
    let (compared, against) = (&compared.known_with(against), &against.known_with(compared));
    let (Some(one), Some(two)) = (Parts::from_counts(compared), Parts::from_counts(against)) else {
        return Vec::new();
    };
    let (mine, theirs) = (one.whole / one.depth, two.whole / two.depth);
    let in_time = |name: &str, seconds: f64, sentence: String| Term {
        term: name.to_owned(),
        share: None,
        seconds,
        sentence,
    };
    // Weight of slot time in the time from one operation to the next.
    let weight = f64::midpoint(1.0 / one.depth, 1.0 / two.depth);
    let term = |name: &str, seconds: f64, sentence: String| in_time(name, weight * seconds, sentence);
    let by_depth = (1.0 / one.depth - 1.0 / two.depth) * f64::midpoint(one.whole, two.whole);
    let depths = against_words(&figure(one.depth), &figure(two.depth));
    let mut terms = vec![in_time("depth", by_depth, format!("{depths} requests in flight"))];
    terms.extend(
        of_flushes(&one, &two)
            .into_iter()
            .chain(of_device(&one, &two, [compared, against]))
            .map(|(name, seconds, sentence)| term(name, seconds, sentence)),
    );
    let computed =
        format!("the workers need {} of processor time per operation", times(one.computed, two.computed));
    terms.push(term("processor", one.processor - two.processor, computed));
    let waits = times(one.processor_wait, two.processor_wait);
    let waits = format!("the workers wait {waits} per operation for a processor");
    terms.push(term("processor-wait", one.processor_wait - two.processor_wait, waits));
    terms.retain(|term| term.seconds != 0.0);
    terms.sort_by(|one, two| two.seconds.abs().total_cmp(&one.seconds.abs()));
    let rest = one.remainder() - two.remainder();
    terms.push(term(
        "remainder",
        rest,
        format!("not explained: {} per operation", times(one.remainder(), two.remainder())),
    ));
    let difference = mine - theirs;
    let largest = terms.iter().map(|term| term.seconds.abs()).fold(0.0, f64::max);
    if difference.abs() > SHARED_MIN * mine.min(theirs) && largest <= CANCELLING_MIN * difference.abs() {
        terms.iter_mut().for_each(|term| term.share = Some(term.seconds / difference));
    }
    terms
}

/// Returns the main term of a difference in words; `None` if it is the remainder.
pub(crate) fn main_cause(terms: &[Term]) -> Option<String> {
    let main = main_term(terms)?;
    let share = main.share?;
    (main.term != "remainder")
        .then(|| format!("{} ({}, {} of the difference)", main.sentence, main.term, percent(share)))
}

/// A term: its name, its difference in slot time, and its sentence.
type Part = (&'static str, f64, String);

fn against_words(one: &str, two: &str) -> String {
    format!("{one} against {two}")
}

fn times(one: f64, two: f64) -> String {
    against_words(&duration(one), &duration(two))
}

fn of_flushes(one: &Parts, two: &Parts) -> Vec<Part> {
    let costs = format!("a flush takes {}", times(one.flushes.cost, two.flushes.cost));
    let calls = times(one.sync_calls, two.sync_calls);
    let calls = format!("syncs take {calls} per operation in addition to device flushes");
    let flushes = |one: f64, two: f64| against_words(&figure(one), &figure(two));
    if one.syncs == 0.0 || two.syncs == 0.0 {
        let (by_count, by_cost) = one.flushes.difference(two.flushes);
        let counts = flushes(one.flushes.count, two.flushes.count);
        return vec![
            ("flush-count", by_count, format!("{counts} device flushes per operation")),
            ("flush-cost", by_cost, costs),
            ("sync-calls", one.sync_calls - two.sync_calls, calls),
        ];
    }
    // The time of one sync is split into its flushes and its rest.
    let each = |parts: &Parts| Product { count: parts.flushes.count / parts.syncs, cost: parts.flushes.cost };
    let (mine, theirs) = (each(one), each(two));
    let (by_count, by_cost) = mine.difference(theirs);
    let rest = one.sync_calls / one.syncs - two.sync_calls / two.syncs;
    let syncs = |parts: &Parts| Product {
        count: parts.syncs,
        cost: each(parts).time() + parts.sync_calls / parts.syncs,
    };
    let (by_syncs, by_each) = syncs(one).difference(syncs(two));
    let all = by_count + by_cost + rest;
    let times_each = if all == 0.0 { f64::midpoint(one.syncs, two.syncs) } else { by_each / all };
    vec![
        ("sync-count", by_syncs, format!("{} syncs per operation", flushes(one.syncs, two.syncs))),
        (
            "flushes-per-sync",
            times_each * by_count,
            format!("{} device flushes per sync", flushes(mine.count, theirs.count)),
        ),
        ("flush-cost", times_each * by_cost, costs),
        ("sync-calls", times_each * rest, calls),
    ]
}

fn of_device(one: &Parts, two: &Parts, [compared, against]: [&Counts; 2]) -> [Part; 3] {
    let (by_count, by_cost) = one.device.difference(two.device);
    let alone = |parts: &Parts| Product { count: parts.queue, cost: parts.device.cost / parts.queue };
    let (mine, theirs) = (alone(one), alone(two));
    let (by_queue, by_alone) = mine.difference(theirs);
    let all = by_queue + by_alone;
    let times_each = if all == 0.0 { 0.0 } else { by_cost / all };
    let counts = against_words(&figure(one.device.count), &figure(two.device.count));
    let sizes = against_words(&mean_size(compared), &mean_size(against));
    let joined = coalesced(compared, "").or_else(|| coalesced(against, " of the other")).unwrap_or_default();
    let queues = against_words(&figure(mine.count), &figure(theirs.count));
    [
        (
            "device-ios",
            by_count,
            format!("{counts} device I/Os per operation, of {sizes} on average{joined}"),
        ),
        (
            "device-io-cost",
            times_each * by_alone,
            format!("an I/O keeps the device busy for {}", times(mine.cost, theirs.cost)),
        ),
        ("queueing", times_each * by_queue, format!("{queues} I/Os at a time are at the busy device")),
    ]
}

/// Returns a remark if many small operations became few large I/Os.
fn coalesced(counts: &Counts, of: &str) -> Option<String> {
    let (ios, size) = (counts.device_ios?, counts.device_bytes?);
    let is_coalesced = ios > 0 && counts.operations >= 2 * ios;
    let by = if counts.page_cache { ": the page cache merged or kept them" } else { "" };
    is_coalesced.then(|| {
        let each = bytes(size as f64 / ios as f64);
        format!("; {} operations{of} became {ios} I/Os of {each}{by}", counts.operations)
    })
}

fn mean_size(counts: &Counts) -> String {
    match (counts.device_ios, counts.device_bytes) {
        (Some(ios), Some(all)) if ios > 0 => bytes(all as f64 / ios as f64),
        _ => "none".to_owned(),
    }
}

/// Formats a count per operation.
fn figure(count: f64) -> String {
    if count > 0.0 { plumb_report::quantity::ratio(count) } else { "0".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the counts of a second at `depth` by one thread, with `operations` that take all slot time.
    fn counts(depth: f64, operations: u64) -> Counts {
        Counts {
            seconds: 1.0,
            operations,
            slot_seconds: depth,
            thread_seconds: Some(1.0),
            operation_seconds: depth,
            device_ios: Some(operations),
            device_bytes: Some(operations * 4096),
            device_seconds: Some(depth),
            device_busy_seconds: Some(1.0),
            flushes: Some(0),
            flush_seconds: Some(0.0),
            cpu_seconds: Some(0.05),
            ..Counts::default()
        }
    }

    /// Returns the counts of a second with `syncs` syncs that take most of it, and `flushes` flushes of
    /// `flush` seconds each.
    fn synced(syncs: u64, flushes: u64, flush: f64) -> Counts {
        let sync_seconds = flushes as f64 * flush + syncs as f64 * 1e-4;
        Counts {
            syncs,
            sync_seconds,
            operation_seconds: 1.0 - sync_seconds,
            device_seconds: Some(1.0 - sync_seconds),
            device_busy_seconds: Some(1.0),
            flushes: Some(flushes),
            flush_seconds: Some(flushes as f64 * flush),
            ..counts(1.0, syncs)
        }
    }

    #[test]
    fn the_main_term_is_what_makes_the_difference() {
        let at_32 = counts(32.0, 100_000);
        let computing = Counts { device_seconds: Some(1.0), cpu_seconds: Some(0.99), ..at_32 };
        let queued = Counts { device_busy_seconds: Some(0.5), ..counts(32.0, 1000) };
        let coalesced = Counts {
            device_ios: Some(39),
            device_bytes: Some(39 * 250_000),
            device_seconds: Some(0.5),
            page_cache: true,
            cpu_seconds: Some(0.9),
            ..counts(1.0, 158_000)
        };
        let busy_elsewhere =
            Counts { waiting_seconds: Some(0.7), device_seconds: Some(0.2), ..counts(1.0, 2000) };
        let alone = Counts { waiting_seconds: Some(0.0), ..counts(1.0, 10_000) };
        let often = Counts { operations: 4 * 90, ..synced(90, 90, 0.01) };
        for (name, one, two, wanted) in [
            (
                "bound by the processor at depth 32",
                computing,
                Counts { operations: 500_000, device_ios: Some(500_000), ..computing },
                "processor",
            ),
            ("a busy machine", busy_elsewhere, alone, "processor-wait"),
            ("coalesced", coalesced, counts(1.0, 30_000), "device-ios"),
            ("a slower device", counts(32.0, 10_000), at_32, "device-io-cost"),
            ("queueing", queued, counts(32.0, 2000), "queueing"),
            ("flushes vanish", synced(5000, 0, 0.0), synced(90, 90, 0.01), "flushes-per-sync"),
            ("dearer flushes", synced(45, 45, 0.02), synced(900, 900, 0.001), "flush-cost"),
            ("fewer syncs", often, synced(90, 90, 0.01), "sync-count"),
        ] {
            let terms = explain(&one, &two);
            let main = terms.iter().max_by(|one, two| one.share.partial_cmp(&two.share).unwrap());
            assert_eq!(main.map(|term| term.term.as_str()), Some(wanted), "{name}: {terms:#?}");
            let whole: f64 = terms.iter().map(|term| term.seconds).sum();
            let difference = 1.0 / one.operations as f64 - 1.0 / two.operations as f64;
            assert!((whole - difference).abs() < 1e-12, "{name}: {whole} of {difference}");
        }
    }

    #[test]
    fn a_rate_that_a_schedule_sets_is_not_explained() {
        let scheduled =
            |device| Counts { operation_seconds: device, device_seconds: Some(device), ..counts(4.0, 1000) };
        assert!(explain(&scheduled(2.0), &scheduled(0.5)).iter().all(|term| term.share.is_none()));
    }

    #[test]
    fn only_the_page_cache_is_said_to_join() {
        let direct = Counts { device_ios: Some(100), ..counts(1.0, 10_000) };
        let said = |counts| coalesced(&counts, "").unwrap_or_default();
        assert!(
            said(direct).contains("10000 operations became 100 I/Os") && !said(direct).contains("page cache")
        );
        assert!(said(Counts { page_cache: true, ..direct }).contains("page cache"));
    }

    #[test]
    fn what_was_not_waited_for_explains_nothing() {
        // Direct: an I/O of 45 us for each. Cached: an operation of 2 us, and rare writes of 2 ms behind it.
        let (direct, cached) = (Product { count: 1.0, cost: 45e-6 }, Product { count: 0.001, cost: 2e-3 });
        let (by_count, by_cost) = cached.difference(direct);
        assert!((by_count - (cached.time() - direct.time())).abs() < 1e-12 && by_cost == 0.0);
        // Two factors that change in one direction share the difference.
        let dearer = Product { count: 2.0, cost: 90e-6 };
        let (by_count, by_cost) = dearer.difference(direct);
        assert!((by_count - 67.5e-6).abs() < 1e-12 && (by_cost - 67.5e-6).abs() < 1e-12);
    }
}
