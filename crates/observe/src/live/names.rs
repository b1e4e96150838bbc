//! Distributions under the busiest names, in bounded memory: otherwise each of thousands of short processes
//! would be a separate series in Prometheus for its whole retention time.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use plumb_block::Nanos;
use plumb_measure::Buckets;
use plumb_report::document::live::NamedTimes;

use crate::event::Op;

/// Number of names with separate times.
pub(super) const NAMES_MAX: usize = 32;
/// Number of further names that are counted to find busier ones.
const CANDIDATES_MAX: usize = 512;
/// Interval at which the busiest names are chosen again.
const ROUND: Nanos = Nanos::secs(60);

/// Returns the name for all names without separate times.
pub(super) fn other() -> String {
    "other".to_owned()
}

/// Kind of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// A call that makes data durable.
    Sync,
    /// A flush at the device.
    Flush,
    /// A write that was durable at its completion by the device; it is also counted among the writes.
    Fua,
    /// Time in a queue of the kernel.
    Queue,
    /// A read at the device.
    Read,
    /// A write at the device.
    Write,
    /// A discard at the device.
    Trim,
}

impl Time {
    const ALL: [Self; 7] =
        [Self::Sync, Self::Flush, Self::Fua, Self::Queue, Self::Read, Self::Write, Self::Trim];

    /// Returns the kind of time for an operation of the device.
    pub(super) const fn for_operation(op: Op) -> Option<Self> {
        match op {
            Op::Read => Some(Self::Read),
            Op::Write => Some(Self::Write),
            Op::Trim => Some(Self::Trim),
            Op::Flush => Some(Self::Flush),
            Op::Other => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Flush => "flush",
            Self::Fua => "fua",
            Self::Queue => "queue",
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}

/// Distributions for each kind of time.
#[derive(Debug, Default)]
pub(super) struct Times([Buckets; Time::ALL.len()]);

impl Times {
    pub(super) fn record(&mut self, time: Time, took: Nanos) {
        self.0[time as usize].record(took);
    }
}

/// Times under the busiest names, and those of all others together.
///
/// The times of a name that is no longer among the busiest are dropped: added to those of the others, they
/// would appear as new.
#[derive(Debug)]
pub(super) struct Names<K> {
    by: HashMap<K, NameTimes>,
    others: Times,
    /// Counts of names without separate times in this round, each too small by at most the amount subtracted
    /// to make room (Misra and Gries, "Finding repeated elements", 1982).
    candidates: HashMap<K, u64>,
    round_ends: Nanos,
}

#[derive(Debug, Default)]
struct NameTimes {
    times: Times,
    /// Number of events in this round.
    recent: u64,
}

impl<K> Default for Names<K> {
    fn default() -> Self {
        Self {
            by: HashMap::new(),
            others: Times::default(),
            candidates: HashMap::new(),
            round_ends: Nanos::ZERO,
        }
    }
}

impl<K: Hash + Eq + Clone + Ord> Names<K> {
    /// Calls `add` with the times of a name: its own, or those of the others.
    pub(super) fn with<Q: Hash + Eq + ?Sized>(
        &mut self,
        at: Nanos,
        name: &Q,
        to_key: impl Fn(&Q) -> K,
        add: impl Fn(&mut Times),
    ) where
        K: Borrow<Q>,
    {
        if at >= self.round_ends {
            self.choose();
            self.round_ends = at + ROUND;
        }
        if let Some(named) = self.by.get_mut(name) {
            named.recent += 1;
            return add(&mut named.times);
        }
        if self.by.len() < NAMES_MAX {
            let named = self.by.entry(to_key(name)).or_default();
            named.recent += 1;
            return add(&mut named.times);
        }
        add(&mut self.others);
        if let Some(count) = self.candidates.get_mut(name) {
            *count += 1;
        } else if self.candidates.len() < CANDIDATES_MAX {
            self.candidates.insert(to_key(name), 1);
        } else {
            self.candidates.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// Ends a round: names that were busier than some names with separate times replace them.
    fn choose(&mut self) {
        let mut candidates: Vec<_> = self.candidates.drain().collect();
        candidates.sort_unstable_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
        let mut quietest: Vec<_> = self.by.iter().map(|(name, named)| (named.recent, name.clone())).collect();
        quietest.sort_unstable();
        for ((name, count), (recent, quiet)) in candidates.into_iter().zip(quietest) {
            if count <= recent {
                break;
            }
            self.by.remove(&quiet);
            self.by.insert(name, NameTimes::default());
        }
        self.by.values_mut().for_each(|named| named.recent = 0);
    }

    /// Returns the times of each name in order, and those of all others, with the labels that `label` returns
    /// for a name.
    pub(super) fn each(&self, label: impl Fn(Option<&K>) -> Vec<(&'static str, String)>) -> Vec<NamedTimes> {
        let mut names: Vec<_> = self.by.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let named = names.into_iter().map(|(name, named)| (Some(name), &named.times));
        let all = named.chain([(None, &self.others)]);
        let one = |(name, times): (Option<&K>, &Times)| NamedTimes {
            labels: label(name),
            times: Time::ALL.map(|time| (time.name(), times.0[time as usize])).to_vec(),
        };
        all.map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(names: &mut Names<String>, at: Nanos, name: &str) {
        let record = |times: &mut Times| times.record(Time::Sync, Nanos::millis(1));
        names.with(at, name, str::to_owned, record);
    }

    fn counts(names: &Names<String>) -> Vec<(String, u64)> {
        let all = names.each(|name| vec![("name", name.cloned().unwrap_or_else(other))]).into_iter();
        all.map(|of| (of.labels[0].1.clone(), of.times[0].1.count())).collect()
    }

    #[test]
    fn a_busy_name_takes_the_place_of_a_quiet_one_and_the_rest_is_counted_together() {
        let mut names = Names::default();
        (0..10_000).for_each(|number| add(&mut names, Nanos(number), &format!("short-{number}")));
        for _ in 0..5 {
            add(&mut names, Nanos::secs(1), "busy");
        }
        let seen = counts(&names);
        assert_eq!((seen.len(), seen.iter().map(|(_, count)| count).sum::<u64>()), (NAMES_MAX + 1, 10_005));
        assert!(names.candidates.len() <= CANDIDATES_MAX);
        // After the round it has times of its own, and nothing is added to those of the others for that.
        add(&mut names, Nanos::secs(61), "busy");
        let (before, after) = (seen.last().unwrap().1, counts(&names));
        assert_eq!(after.len(), NAMES_MAX + 1);
        assert_eq!(after.last().unwrap(), &(other(), before));
        assert!(after.contains(&("busy".to_owned(), 1)), "{after:?}");
    }

    #[test]
    fn a_name_that_stays_the_busiest_keeps_its_times() {
        let mut names = Names::default();
        for minute in 0..5 {
            let at = Nanos::secs(minute * 61);
            (0..9).for_each(|_| add(&mut names, at, "postgres"));
            (0..200).for_each(|number| add(&mut names, at, &format!("short-{minute}-{number}")));
        }
        assert!(counts(&names).contains(&("postgres".to_owned(), 45)));
    }
}
