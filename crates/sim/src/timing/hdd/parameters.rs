//! `[mechanics]` of a model: figures of a spinning disk from its data sheet.

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::model::{Check, Limits, Rate, Size, Time};

/// Parameters of a disk.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddParameters {
    /// Revolutions per minute.
    pub rpm: u32,
    /// Capacity of the whole disk; a smaller drive is its outer part.
    pub capacity: Size,
    /// Recording surfaces.
    pub heads: u32,
    /// Number of zones of equal width, in each of which all tracks have the same number of sectors.
    pub zones: u32,
    /// Sectors of 512 bytes on a track of the outermost zone.
    pub sectors_per_track_outer: u32,
    /// Sectors of 512 bytes on a track of the innermost zone.
    pub sectors_per_track_inner: u32,
    /// Unit that the medium writes without a read-modify-write: a smaller write costs another revolution.
    pub physical_sector: Size,
    /// Seek to the next cylinder for a read, settled.
    pub seek_track: Time,
    /// Mean read seek over all pairs of cylinders, settled.
    pub seek_average: Time,
    /// Seek from the first cylinder to the last for a read, settled.
    pub seek_full: Time,
    /// Additional settling time before a write.
    pub write_settle: Time,
    /// Switch to another head of the same cylinder, settled.
    pub head_switch: Time,
    /// A sector that arrives within this time after the head counts as missed, because of servo and
    /// prediction errors.
    pub rotation_margin: Time,
    /// Number of accesses among which the firmware selects the next one.
    pub reorder_window: u32,
    /// A command that has waited this many times the duration of another goes first, so nothing starves.
    /// Rounded down to a power of two.
    pub patience: u32,
    /// Required advantage for unawaited destaging to be preferred to a command.
    pub background_handicap: Time,
    /// Number of streams that read-ahead can follow.
    pub read_ahead_segments: u32,
    /// Distance that read-ahead runs beyond the last requested sector.
    pub read_ahead: Size,
    /// Published figures of the drive: shown next to the simulation, never used by it.
    #[serde(default)]
    pub published: PublishedFigures,
}

/// Published figures of a drive as a whole. Only for comparison.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublishedFigures {
    /// Mean time of random 4 KiB reads at depth 1.
    pub random_read_time: Option<Time>,
    /// Sequential bandwidth at the outer edge.
    pub sequential_outer: Option<Rate>,
    /// Sequential bandwidth at the inner edge.
    pub sequential_inner: Option<Rate>,
    /// Rewrite time of one block, with the cache disabled and no media cache.
    pub rewrite_time: Option<Time>,
    /// Random reads per second at depth 32, relative to those at depth 1.
    pub depth_gain: Option<f64>,
    /// Random reads per second at depth 32.
    pub deep_read_iops: Option<f64>,
}

impl Limits for HddParameters {
    fn limits(&self, check: &mut Check) {
        check.within("rpm", &self.rpm, &(1000..=30_000));
        check.within("capacity", &self.capacity, &(Size(Bytes::mib(64))..=Size(Bytes(1 << 50))));
        check.within("heads", &self.heads, &(1..=64));
        check.within("zones", &self.zones, &(1..=64));
        check.within("sectors_per_track_outer", &self.sectors_per_track_outer, &(32..=100_000));
        check.within(
            "sectors_per_track_inner",
            &self.sectors_per_track_inner,
            &(32..=self.sectors_per_track_outer.max(32)),
        );
        let physical = self.physical_sector.0.0;
        check.that(
            "physical_sector",
            physical.is_power_of_two() && (512..=65_536).contains(&physical),
            "a power of two from 512 to 64 KiB",
        );
        self.seek_limits(check);
        let short = Time(Nanos(0))..=Time(Nanos::millis(2));
        check.within("write_settle", &self.write_settle, &(Time(Nanos(0))..=Time(Nanos::millis(5))));
        check.within("head_switch", &self.head_switch, &short);
        check.within("rotation_margin", &self.rotation_margin, &short);
        check.within("reorder_window", &self.reorder_window, &(1..=1024));
        check.within("patience", &self.patience, &(1..=1024));
        check.within(
            "background_handicap",
            &self.background_handicap,
            &(Time(Nanos(0))..=Time(Nanos::secs(1))),
        );
        check.within("read_ahead_segments", &self.read_ahead_segments, &(0..=64));
        check.within("read_ahead", &self.read_ahead, &(Size(Bytes(0))..=Size(Bytes::mib(64))));
        let PublishedFigures { depth_gain, deep_read_iops, .. } = &self.published;
        check.within("published.depth_gain", &depth_gain.unwrap_or(1.0), &(0.1..=100.0));
        check.within("published.deep_read_iops", &deep_read_iops.unwrap_or(1.0), &(0.1..=1e6));
    }
}

impl HddParameters {
    /// Checks the seek curve `track + a √x + b x` over the fraction x of the full stroke: a and b must not be
    /// negative.
    fn seek_limits(&self, check: &mut Check) {
        let (track, average, full) = (self.seek_track.0.0, self.seek_average.0.0, self.seek_full.0.0);
        check.within("seek_full", &self.seek_full, &(Time(Nanos(1000))..=Time(Nanos::millis(200))));
        check.that("seek_track", track <= full, "at most seek_full");
        let stroke = full.saturating_sub(track);
        let (least, most) = (track + stroke.div_ceil(3), track + stroke * 8 / 15);
        check.that(
            "seek_average",
            (least..=most).contains(&average),
            &format!("{} to {}, which seek_track and seek_full allow", Nanos(least), Nanos(most)),
        );
    }
}

#[cfg(test)]
pub(in crate::timing) mod tests {
    use super::*;

    /// Returns a desktop disk of 40 GB with round figures, for the tests beside.
    pub(in crate::timing) fn desktop() -> HddParameters {
        HddParameters {
            rpm: 7200,
            capacity: Size(Bytes(40_000_000_000)),
            heads: 2,
            zones: 16,
            sectors_per_track_outer: 900,
            sectors_per_track_inner: 500,
            physical_sector: Size(Bytes(512)),
            seek_track: Time(Nanos::millis(2)),
            seek_average: Time(Nanos::micros(8900)),
            seek_full: Time(Nanos::millis(21)),
            write_settle: Time(Nanos::micros(500)),
            head_switch: Time(Nanos::millis(1)),
            rotation_margin: Time(Nanos::micros(100)),
            reorder_window: 64,
            patience: 32,
            background_handicap: Time(Nanos::millis(10)),
            read_ahead_segments: 8,
            read_ahead: Size(Bytes::kib(512)),
            published: PublishedFigures::default(),
        }
    }

    /// Returns true if `parameters` are refused, and `field` is what is wrong.
    fn refused(parameters: &HddParameters, field: &str) -> bool {
        let mut check = Check::default();
        parameters.limits(&mut check);
        format!("{check:?}").contains(field)
    }

    #[test]
    fn an_average_seek_that_no_curve_has_is_refused_by_name() {
        assert!(!refused(&desktop(), "field"));
        let slow = HddParameters { seek_average: Time(Nanos::millis(15)), ..desktop() };
        assert!(refused(&slow, "seek_average"));
        let inverted = HddParameters { sectors_per_track_inner: 1000, ..desktop() };
        assert!(refused(&inverted, "sectors_per_track_inner"));
    }
}
