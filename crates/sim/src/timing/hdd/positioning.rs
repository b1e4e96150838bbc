//! Time until the head reaches the start of a sector, and until sectors have passed.
//!
//! At each access, the time to reach a sector is computed for the whole queue. The results are unpredictable
//! for the processor, so the computation has no branches.

use std::hint::select_unpredictable;

use plumb_block::Bytes;

use super::geometry::{Geometry, Place};
use super::parameters::HddParameters;
use super::seek::SeekCurve;
use super::spindle::Spindle;
use crate::command::Sectors;

/// Position of the arm, and the head in use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arm {
    pub(super) cylinder: u32,
    pub(super) head: u32,
}

/// Arm, spindle and layout together. All times are in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Positioning {
    geometry: Geometry,
    spindle: Spindle,
    seek: SeekCurve,
    head_switch: u64,
    write_settle: u64,
    margin: u64,
}

impl Positioning {
    pub(super) fn new(parameters: &HddParameters, size: Bytes) -> Self {
        let spindle = Spindle::new(parameters.rpm);
        let geometry = Geometry::new(parameters, &spindle, size);
        Self {
            seek: SeekCurve::new(parameters, geometry.cylinders),
            head_switch: parameters.head_switch.0.0,
            write_settle: parameters.write_settle.0.0,
            margin: parameters.rotation_margin.0.0,
            geometry,
            spindle,
        }
    }

    pub(super) fn locate(&self, sector: u64) -> Place {
        self.geometry.locate(sector)
    }

    pub(super) const fn revolution(&self) -> u64 {
        self.spindle.revolution
    }

    /// Returns the number of sectors that a track holds at `sector`.
    pub(super) fn track(&self, sector: u64) -> u64 {
        self.geometry.track(&self.geometry.locate(sector))
    }

    /// Returns the time until the arm has settled at `place`.
    #[inline]
    pub(super) fn travel(&self, arm: Arm, place: &Place, writes: bool) -> u64 {
        let seek = self.seek.time(arm.cylinder.abs_diff(place.cylinder));
        let time = seek.max(select_unpredictable(arm.head != place.head, self.head_switch, 0));
        time + select_unpredictable(writes && time > 0, self.write_settle, 0)
    }

    /// Returns the time from `arrival` until `place` passes under the head; `moved` is true if the head has
    /// just moved.
    #[inline]
    pub(super) fn rotation(&self, arrival: u64, place: &Place, moved: bool) -> u64 {
        let wait = self.spindle.time_for(place.angle.wrapping_sub(self.spindle.angle_at(arrival)));
        wait + select_unpredictable(moved && wait < self.margin, self.revolution(), 0)
    }

    /// Returns the time between the end of the previous sector and `sector`: a change of track, or zero.
    pub(super) fn gap_before(&self, sector: u64) -> u64 {
        let Some(before) = sector.checked_sub(1).map(|before| self.geometry.locate(before)) else { return 0 };
        if self.geometry.left_on_track(&before) > 1 { 0 } else { self.skew_after(&before) }
    }

    /// Returns the time for `sectors` to pass after the head has reached the first.
    pub(super) fn transfer(&self, sectors: Sectors) -> u64 {
        self.transfer_from(self.locate(sectors.first), sectors)
    }

    /// Returns the time for `sectors` to pass after the head has reached the first, which is at `place`.
    pub(super) fn transfer_from(&self, mut place: Place, sectors: Sectors) -> u64 {
        let (mut sector, mut left, mut time) = (sectors.first, sectors.count, 0);
        loop {
            let part = left.min(self.geometry.left_on_track(&place));
            time += self.spindle.time_for(self.geometry.turn_of(&place, part));
            left -= part;
            if left == 0 {
                return time;
            }
            time += self.skew_after(&place);
            sector += part;
            place = self.locate(sector);
        }
    }

    /// Returns the position of the arm after `sectors`, the first of which is at `place`.
    pub(super) fn arm_after(&self, place: Place, sectors: Sectors) -> Arm {
        let is_one_track = sectors.count <= self.geometry.left_on_track(&place);
        let last = if is_one_track { place } else { self.locate(sectors.end() - 1) };
        Arm { cylinder: last.cylinder, head: last.head }
    }

    /// Returns the number of sectors from `first` on, at most `most`, that pass within `time`, and the time
    /// until the next one, which is later than `time` if the track has just changed.
    pub(super) fn passed(&self, first: u64, most: u64, time: u64) -> (u64, u64) {
        let (mut count, mut used) = (0, 0);
        while count < most {
            let place = self.geometry.locate(first + count);
            let track = self.geometry.left_on_track(&place).min(most - count);
            let whole = self.spindle.time_for(self.geometry.turn_of(&place, track));
            let left = time - used;
            if whole > left {
                let turned = self.spindle.turned_in(plumb_block::Nanos(left));
                let part = self.geometry.sectors_in(&place, turned).min(track);
                let part_time = self.spindle.time_for(self.geometry.turn_of(&place, part));
                // By rounding, the last of them may pass a nanosecond late.
                return if part_time > left { (count, used) } else { (count + part, used + part_time) };
            }
            count += track;
            used += whole;
            if count < most {
                used += self.skew_after(&place);
            }
            if used >= time {
                break;
            }
        }
        (count, used)
    }

    fn skew_after(&self, place: &Place) -> u64 {
        self.spindle.time_for(self.geometry.skew_after(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::hdd::parameters::tests::desktop;

    #[test]
    fn what_has_passed_in_the_time_of_a_transfer_is_the_transfer() {
        let disk = Positioning::new(&desktop(), Bytes(0));
        for (first, count) in [(0, 8), (5, 900), (899, 3), (10_000_000, 5000), (70_000_000, 4096)] {
            let time = disk.transfer(Sectors { first, count });
            let (passed, _) = disk.passed(first, u64::MAX - first, time + 2_000);
            assert!(passed.abs_diff(count) <= 1, "{passed} of {count} from {first} on in {time} ns");
            assert_eq!(disk.passed(first, count, time + 10), (count, time), "{count} from {first} on");
        }
    }

    #[test]
    fn a_sector_that_comes_too_soon_after_the_arm_costs_a_revolution() {
        let disk = Positioning::new(&desktop(), Bytes(0));
        let place = disk.locate(100);
        let at = disk.rotation(0, &place, false);
        assert!(disk.rotation(at - 50_000, &place, true) > disk.revolution());
        assert!(disk.rotation(at - 50_000, &place, false) < 60_000);
    }
}
