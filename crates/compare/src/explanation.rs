//! Why two levels differ: the time from one operation to the next, taken apart by what was counted.
//!
//! There are as many places for a request as the depth, each always with some operation. What an operation takes of the time of a
//! place, divided by the depth, is the time from one operation to the next, and a rate is its inverse. The time of a place is
//! parted, for each level by itself:
//!
//! ```text
//! flushes each x time of a flush        what the devices took for flushes, as far as somebody waited for them
//! + the rest of its syncs
//! + device I/Os each x time of an I/O   as far as operations waited for them; queueing is in the time
//! + processor                           of the workers, beyond what was waited for
//! + remainder                           what no count explains
//! ```
//!
//! The difference of a product goes to both of its factors by halves: exact, and the same in both directions. Where they pull against
//! each other it goes to the stronger.
//!
//! # Limitations
//! Devices count for all programs. What they do in the background, while nobody waits for it, is kept out by the bounds above, not known.

use plumb_report::document::comparison::{Counts, Term};
use plumb_report::quantity::{bytes, duration};

/// Differences smaller than this part of the whole are not shared out.
const SHARED_MIN: f64 = 0.02;
/// Nor are those of which one term is more than so many times as large: others take back most of it.
const CANCELLING_MIN: f64 = 2.0;

/// Where the time of one operation of a level goes, in seconds of a place.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    depth: f64,
    whole: f64,
    flushes: Product,
    sync_calls: f64,
    device: Product,
    processor: f64,
}

/// A count for each operation, and what one costs.
#[derive(Debug, Clone, Copy, Default)]
struct Product {
    count: f64,
    cost: f64,
}

impl Product {
    /// So many of `operations`, which took so long together; `None` if that is not known.
    fn of(count: Option<u64>, seconds: f64, operations: f64) -> Self {
        let count = count.unwrap_or(0) as f64;
        let cost = if count > 0.0 { seconds / count } else { 0.0 };
        Self { count: count / operations, cost }
    }

    fn time(self) -> f64 {
        self.count * self.cost
    }

    /// What the count and the cost make of the difference to `other`. If one takes back most of what the other makes, the difference is
    /// all of the one that goes its way.
    fn difference(self, other: Self) -> (f64, f64) {
        // A cost that does not occur at one level is that of the other: all of the difference is the count's.
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
        // A page cache makes few I/Os of many, each large and waited for by nobody: their cost explains nothing.
        let cancels = by_count.abs().min(by_cost.abs()) > (CANCELLING_MIN - 1.0) * all.abs();
        match cancels {
            true if by_count * all > 0.0 => (all, 0.0),
            true => (0.0, all),
            false => (by_count, by_cost),
        }
    }
}

impl Parts {
    fn of(counts: &Counts) -> Option<Self> {
        let operations = counts.operations as f64;
        let whole = counts.slot_seconds / operations;
        if counts.operations == 0 || counts.seconds <= 0.0 || !whole.is_finite() || whole <= 0.0 {
            return None;
        }
        // Flushes are waited for in syncs; where none is asked for, in durable writes.
        let syncs = if counts.syncs > 0 { counts.sync_seconds } else { 0.0 };
        let waited = if counts.syncs > 0 { syncs } else { counts.operation_seconds };
        let flush_seconds = counts.flush_seconds.unwrap_or(0.0).min(waited);
        let in_operations = if counts.syncs > 0 { 0.0 } else { flush_seconds };
        let left = (counts.operation_seconds - in_operations).max(0.0);
        let device_seconds = counts.device_seconds.unwrap_or(0.0).min(left);
        // Workers compute while requests are under way: only what is left of the time can be theirs.
        let idle = (counts.slot_seconds - syncs - in_operations - device_seconds).max(0.0);
        Some(Self {
            depth: counts.slot_seconds / counts.seconds,
            whole,
            flushes: Product::of(counts.flushes, flush_seconds, operations),
            sync_calls: (syncs - (flush_seconds - in_operations)) / operations,
            device: Product::of(counts.device_ios, device_seconds, operations),
            processor: counts.cpu_seconds.unwrap_or(0.0).min(idle) / operations,
        })
    }

    fn remainder(&self) -> f64 {
        self.whole - self.flushes.time() - self.sync_calls - self.device.time() - self.processor
    }
}

/// Why `compared` takes another time from one operation to the next than `against`, the largest term first and the remainder last; empty
/// if that was not counted.
pub(crate) fn explain(compared: &Counts, against: &Counts) -> Vec<Term> {
    let (compared, against) = (&compared.known_with(against), &against.known_with(compared));
    let (Some(one), Some(two)) = (Parts::of(compared), Parts::of(against)) else { return Vec::new() };
    let (mine, theirs) = (one.whole / one.depth, two.whole / two.depth);
    let in_time = |name: &str, seconds: f64, sentence: String| Term {
        term: name.to_owned(),
        share: None,
        seconds,
        sentence,
    };
    // Of the time of a place, this much counts from one operation to the next.
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
        format!("the workers compute for {} of each operation", times(one.processor, two.processor));
    terms.push(term("processor", one.processor - two.processor, computed));
    terms.retain(|term| term.seconds != 0.0);
    terms.sort_by(|one, two| two.seconds.abs().total_cmp(&one.seconds.abs()));
    let rest = one.remainder() - two.remainder();
    terms.push(term(
        "remainder",
        rest,
        format!("not explained: {} of each operation", times(one.remainder(), two.remainder())),
    ));
    let difference = mine - theirs;
    let largest = terms.iter().map(|term| term.seconds.abs()).fold(0.0, f64::max);
    if difference.abs() > SHARED_MIN * mine.min(theirs) && largest <= CANCELLING_MIN * difference.abs() {
        terms.iter_mut().for_each(|term| term.share = Some(term.seconds / difference));
    }
    terms
}

/// A term: its name, the difference that it makes in the time of a place, and its sentence.
type Part = (&'static str, f64, String);

fn against_words(one: &str, two: &str) -> String {
    format!("{one} against {two}")
}

fn times(one: f64, two: f64) -> String {
    against_words(&duration(one), &duration(two))
}

fn of_flushes(one: &Parts, two: &Parts) -> [Part; 3] {
    let (by_count, by_cost) = one.flushes.difference(two.flushes);
    let counts = against_words(&figure(one.flushes.count), &figure(two.flushes.count));
    let calls = times(one.sync_calls, two.sync_calls);
    [
        ("flush-count", by_count, format!("{counts} flushes at the devices for each operation")),
        ("flush-cost", by_cost, format!("a flush takes {}", times(one.flushes.cost, two.flushes.cost))),
        (
            "sync-calls",
            one.sync_calls - two.sync_calls,
            format!("syncs take {calls} of each operation beside the flushes of the devices"),
        ),
    ]
}

fn of_device(one: &Parts, two: &Parts, [compared, against]: [&Counts; 2]) -> [Part; 2] {
    let (by_count, by_cost) = one.device.difference(two.device);
    let counts = against_words(&figure(one.device.count), &figure(two.device.count));
    let sizes = against_words(&mean_size(compared), &mean_size(against));
    let joined = coalesced(compared, "").or_else(|| coalesced(against, " of the other")).unwrap_or_default();
    let cost = times(one.device.cost, two.device.cost);
    [
        (
            "device-ios",
            by_count,
            format!("{counts} I/Os at the devices for each operation, of {sizes} on average{joined}"),
        ),
        ("device-io-cost", by_cost, format!("an I/O at the devices takes {cost}, its queue included")),
    ]
}

/// That the page cache made few large I/Os of many small operations, if it did.
fn coalesced(counts: &Counts, of: &str) -> Option<String> {
    let (ios, size) = (counts.device_ios?, counts.device_bytes?);
    let is_coalesced = ios > 0 && counts.operations >= 2 * ios;
    is_coalesced.then(|| {
        let each = bytes(size as f64 / ios as f64);
        format!(
            "; {} operations{of} became {ios} I/Os of {each}: the page cache joined or kept them",
            counts.operations
        )
    })
}

fn mean_size(counts: &Counts) -> String {
    match (counts.device_ios, counts.device_bytes) {
        (Some(ios), Some(all)) if ios > 0 => bytes(all as f64 / ios as f64),
        _ => "none".to_owned(),
    }
}

/// A count for each operation.
fn figure(count: f64) -> String {
    if count > 0.0 { plumb_report::quantity::ratio(count) } else { "no".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_waited_for_explains_nothing() {
        // Direct: an I/O of 45 us for each. Cached: an operation of 2 us, and rare writes of 2 ms behind it.
        let (direct, cached) = (Product { count: 1.0, cost: 45e-6 }, Product { count: 0.001, cost: 2e-3 });
        let (by_count, by_cost) = cached.difference(direct);
        assert!((by_count - (cached.time() - direct.time())).abs() < 1e-12 && by_cost == 0.0);
        // Two factors that go the same way share it.
        let dearer = Product { count: 2.0, cost: 90e-6 };
        let (by_count, by_cost) = dearer.difference(direct);
        assert!((by_count - 67.5e-6).abs() < 1e-12 && (by_cost - 67.5e-6).abs() < 1e-12);
    }
}
