//! Latency objects of fio, and the percentiles that they determine.
//!
//! fio counts latencies in bins with a width of about 1/64 of the latency. The last bin contains all longer
//! ones; it begins at 17 s in version 3.x, at 16.6 s in 2.x. A percentile in that bin is only known to be at
//! least that long.

use std::collections::BTreeMap;

use super::field::Field;
use crate::error::Error;
use crate::imported::{Distribution, Extremes, PERCENTILES};

/// Latency in seconds below which the last bin does not begin in any version.
const END_MIN: f64 = 16.0;
/// Maximum ratio between the end of a bin and the value that fio prints for it, with a margin.
const BIN_MAX: f64 = 1.005;
/// Value that fio prints for the last bin of a group, in units of the group's bin width.
const LAST_OF_GROUP: f64 = 127.5;

/// A latency object of a direction.
pub(super) struct Timing<'a> {
    object: Field<'a>,
    /// Number of the object's time units in a second.
    per_second: f64,
}

impl<'a> Timing<'a> {
    /// Returns the object `name` of `direction`: in nanoseconds, or in microseconds before version 3.0.
    pub(super) fn find(direction: &Field<'a>, name: &str) -> Self {
        let nanoseconds = direction.get(&format!("{name}_ns"));
        if nanoseconds.is_missing() {
            return Self { object: direction.get(name), per_second: 1e6 };
        }
        Self { object: nanoseconds, per_second: 1e9 }
    }

    fn seconds(&self, name: &str) -> Result<Option<f64>, Error> {
        self.object.get(name).seconds(self.per_second)
    }

    /// Returns the number of timed operations; 0 if not printed.
    pub(super) fn count(&self) -> Result<u64, Error> {
        Ok(self.object.get("N").count()?.unwrap_or(0))
    }

    /// Returns the mean, if anything was timed: versions that print no count print zeroes otherwise.
    pub(super) fn mean(&self) -> Result<Option<f64>, Error> {
        let is_timed = match self.object.get("N").count()? {
            Some(count) => count > 0,
            None => self.seconds("max")? != Some(0.0),
        };
        Ok(self.seconds("mean")?.filter(|_| is_timed))
    }

    /// Checks that the mean is between the extremes, and no operation took more than `seconds`, the run time
    /// of fio.
    pub(super) fn check(&self, seconds: f64) -> Result<(), Error> {
        if let Some(mean) = self.mean()? {
            self.extremes(mean)?;
        }
        match self.seconds("max")? {
            Some(max) if max > seconds => {
                Err(self.object.get("max").wrong(&format!("expected at most the {seconds} s that fio ran")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the distribution of `operations`; `None` if nothing was timed.
    ///
    /// # Errors
    /// Fails if the values contradict each other.
    pub(super) fn distribution(&self, operations: u64) -> Result<Option<Distribution>, Error> {
        let Some(mean) = self.mean()?.filter(|_| operations > 0) else { return Ok(None) };
        let (min, max) = self.extremes(mean)?;
        let listed = self.listed()?;
        let at = |percent: f64| {
            let own = listed.iter().find(|(known, _)| (known - percent).abs() < 1e-6);
            own.map(|(_, seconds)| *seconds)
        };
        let bins = self.bins()?;
        let last = bins.iter().flatten().next_back().map(|(length, _)| *length as f64 / self.per_second);
        let longest = listed.iter().map(|(_, seconds)| *seconds).chain(last).fold(0.0, f64::max);
        let end = Some(longest).filter(|longest| self.is_last_bin(*longest) && max > longest * BIN_MAX);
        let std = self.seconds("stddev")?.unwrap_or(0.0);
        let latency = Extremes { count: operations, mean, std, min, max }.latency();
        Ok(Some(Distribution::new(latency, PERCENTILES.map(|(percent, _)| at(percent)), bins, end)))
    }

    /// Returns the minimum and maximum, which must enclose the mean.
    fn extremes(&self, mean: f64) -> Result<(f64, f64), Error> {
        let (min, max) = (self.seconds("min")?.unwrap_or(mean), self.seconds("max")?.unwrap_or(mean));
        let unit = 1.0 / self.per_second;
        // fio prints extremes in whole units, and the mean of unrounded values.
        if mean < min - unit || mean > max + unit {
            let expected = format!("expected a mean from the minimum ({min} s) to the maximum ({max} s)");
            return Err(self.object.get("mean").wrong(&expected));
        }
        Ok((min, max))
    }

    /// Returns the percentiles that fio lists, in percent and seconds.
    fn listed(&self) -> Result<Vec<(f64, f64)>, Error> {
        let list = || self.object.get("percentile").members();
        let entry = |(name, field): (&str, Field<'_>)| {
            let percent = name.parse().ok().filter(|percent: &f64| (0.0..=100.0).contains(percent));
            let percent =
                percent.ok_or_else(|| field.wrong("expected a percentile from 0 to 100 as its name"))?;
            Ok(field.seconds(self.per_second)?.map(|seconds| (percent, seconds)))
        };
        let mut listed: Vec<(f64, f64)> = list()
            .into_iter()
            .filter_map(|member| entry(member).transpose())
            .collect::<Result<_, Error>>()?;
        listed.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        match listed.windows(2).find(|two| two[0].1 > two[1].1) {
            None => Ok(listed),
            Some(two) => {
                let (low, high) = (two[0].0, two[1].0);
                let named = |name: &str| name.parse().is_ok_and(|percent: f64| percent == high);
                let member = list().into_iter().find(|(name, _)| named(name));
                let field = member.map_or_else(|| self.object.get("percentile"), |(_, field)| field);
                Err(field.wrong(&format!("expected at least the percentile {low} of the same list")))
            }
        }
    }

    /// Returns the bins of json+, by latency in nanoseconds; `None` without bins.
    fn bins(&self) -> Result<Option<BTreeMap<u64, u64>>, Error> {
        let entry = |(name, field): (&str, Field<'_>)| {
            let length = name.parse::<u64>().ok();
            let length =
                length.ok_or_else(|| field.wrong("expected a whole number of units as the name of a bin"))?;
            Ok((length, field.count()?.unwrap_or(0)))
        };
        let bins = self.object.get("bins").members().into_iter().map(entry);
        let bins = bins.collect::<Result<BTreeMap<u64, u64>, Error>>()?;
        Ok(Some(bins).filter(|bins| bins.values().any(|count| *count > 0) && self.per_second == 1e9))
    }

    /// Returns true if fio prints `seconds` for the last bin of its histogram.
    fn is_last_bin(&self, seconds: f64) -> bool {
        let width = seconds * self.per_second / LAST_OF_GROUP;
        let exponent = width.log2();
        seconds >= END_MIN && (exponent - exponent.round()).abs() < 1e-9
    }
}
