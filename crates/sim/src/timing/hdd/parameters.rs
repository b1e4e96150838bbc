//! `[mechanics]` of a model: the figures of a spinning disk, as its data sheet has them.

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::model::{Check, Limits, Rate, Size, Time};

/// Parameters of a disk.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddParameters {
    /// Revolutions a minute.
    pub rpm: u32,
    /// The capacity of the whole disk; a smaller drive is its outer part.
    pub capacity: Size,
    /// Recording surfaces.
    pub heads: u32,
    /// Zones of equal width in which all tracks hold the same.
    pub zones: u32,
    /// Sectors of 512 bytes on a track of the outermost zone.
    pub sectors_per_track_outer: u32,
    /// Sectors of 512 bytes on a track of the innermost zone.
    pub sectors_per_track_inner: u32,
    /// The unit that the medium writes without reading it first: a write of less costs a revolution more.
    pub physical_sector: Size,
    /// Seek to the next cylinder for a read, settled.
    pub seek_track: Time,
    /// The mean over all pairs of cylinders, settled, for reading.
    pub seek_average: Time,
    /// Seek from the first cylinder to the last for a read, settled.
    pub seek_full: Time,
    /// How much longer the head must settle after a move before it may write.
    pub write_settle: Time,
    /// Switch to another head of the same cylinder, settled.
    pub head_switch: Time,
    /// A sector that comes within this time of the arrival of the head is taken as missed: servo and
    /// prediction err.
    pub rotation_margin: Time,
    /// Number of accesses that the firmware chooses the next one from.
    pub reorder_window: u32,
    /// A command that has waited this many times as long as another takes goes first: nothing starves. A
    /// power of two is used, the next lower one.
    pub patience: u32,
    /// How much nearer a destaging that nobody waits for must be to be preferred to a command.
    pub background_handicap: Time,
    /// How many streams read-ahead can follow.
    pub read_ahead_segments: u32,
    /// How far read-ahead runs in front of the last sector that was asked for.
    pub read_ahead: Size,
    /// Figures that others published about the drive: shown beside the simulation, never used by it.
    #[serde(default)]
    pub published: PublishedFigures,
}

/// Figures that are known about a drive as a whole. Only compared with.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PublishedFigures {
    /// Random 4 KiB reads at depth 1, mean time.
    pub random_read_time: Option<Time>,
    /// Sequential bandwidth at the outer edge.
    pub sequential_outer: Option<Rate>,
    /// Sequential bandwidth at the inner edge.
    pub sequential_inner: Option<Rate>,
    /// Rewriting one block again and again, cache off and no media cache.
    pub rewrite_time: Option<Time>,
    /// Random reads per second at depth 32 over those at depth 1.
    pub depth_gain: Option<f64>,
    /// Random reads per second at depth 32.
    pub deep_read_iops: Option<f64>,
    /// An fdatasync of a Ceph OSD with the write cache on: mean, p25, p50, p75.
    pub object_store_sync_on: Option<[Time; 4]>,
    /// An fdatasync of a Ceph OSD with the write cache off: mean, p25, p50, p75.
    pub object_store_sync_off: Option<[Time; 4]>,
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
    /// The seek curve is `track + a √x + b x` over the part x of the full stroke, and neither a nor b may be
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
