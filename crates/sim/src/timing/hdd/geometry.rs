//! Location of a sector: zone, cylinder, head, angle.
//!
//! Sectors are numbered along a track, then over the heads of a cylinder, then inwards. The start of each
//! track is rotated by the time of a change of head or cylinder (the skew), so that a sequential transfer
//! loses only that time and not a revolution.

use plumb_block::Bytes;

use super::parameters::HddParameters;
use super::spindle::{Angle, Spindle};
use crate::command::SECTOR;

/// Tracks with the same number of sectors.
#[derive(Debug, Clone)]
struct Zone {
    first_sector: u64,
    first_cylinder: u32,
    sectors_per_track: u32,
    sector_angle: Angle,
}

/// Location of a sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    /// Angle at which its start passes under the head.
    pub(super) angle: Angle,
    /// Number of the sector on its track.
    sector: u32,
    zone: u32,
}

/// The layout of a disk.
#[derive(Debug, Clone)]
pub(super) struct Geometry {
    zones: Box<[Zone]>,
    heads: u32,
    pub(super) cylinders: u32,
    head_skew: Angle,
    cylinder_skew: Angle,
}

impl Geometry {
    /// Creates the layout of a disk with `parameters` for at least `size`.
    pub(super) fn new(parameters: &HddParameters, spindle: &Spindle, size: Bytes) -> Self {
        let heads = parameters.heads;
        let sectors = size.0.max(parameters.capacity.0.0).div_ceil(SECTOR.0);
        let widths: Vec<u32> = (0..parameters.zones).map(|zone| width_of(parameters, zone)).collect();
        let per_round: u64 = widths.iter().map(|width| u64::from(*width) * u64::from(heads)).sum();
        let per_zone = sectors.div_ceil(per_round).max(1) as u32;
        let mut first_sector = 0;
        let zone = |(index, width): (usize, &u32)| {
            let first = first_sector;
            first_sector += u64::from(per_zone) * u64::from(heads) * u64::from(*width);
            Zone {
                first_sector: first,
                first_cylinder: index as u32 * per_zone,
                sectors_per_track: *width,
                sector_angle: Angle::MAX / width,
            }
        };
        let zones = widths.iter().enumerate().map(zone).collect();
        let head_skew = spindle.turned_in(parameters.head_switch.0);
        let cylinder_skew = spindle.turned_in(parameters.seek_track.0.max(parameters.head_switch.0));
        Self { zones, heads, cylinders: per_zone * parameters.zones, head_skew, cylinder_skew }
    }

    /// Returns the location of `sector`; one beyond the end counts as part of the last zone.
    pub(super) fn locate(&self, sector: u64) -> Place {
        let zone = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        let Zone { first_sector, first_cylinder, sectors_per_track, sector_angle } = self.zones[zone];
        let track = (sector - first_sector) / u64::from(sectors_per_track);
        let within = ((sector - first_sector) % u64::from(sectors_per_track)) as u32;
        let cylinder = first_cylinder + (track / u64::from(self.heads)) as u32;
        let head = (track % u64::from(self.heads)) as u32;
        Place {
            cylinder,
            head,
            angle: self.track_angle(cylinder, head).wrapping_add(within.wrapping_mul(sector_angle)),
            sector: within,
            zone: zone as u32,
        }
    }

    /// Returns the number of sectors from `place` to the end of its track.
    pub(super) fn left_on_track(&self, place: &Place) -> u64 {
        u64::from(self.zones[place.zone as usize].sectors_per_track - place.sector)
    }

    /// Returns the rotation while `sectors` of one track pass at `place`.
    pub(super) fn turn_of(&self, place: &Place, sectors: u64) -> Angle {
        (sectors as u32).wrapping_mul(self.zones[place.zone as usize].sector_angle)
    }

    /// Returns the number of sectors that pass at `place` during a rotation by `angle`.
    pub(super) fn sectors_in(&self, place: &Place, angle: Angle) -> u64 {
        u64::from(angle / self.zones[place.zone as usize].sector_angle)
    }

    /// Returns the rotation between the end of the track of `place` and the start of the next one.
    pub(super) const fn skew_after(&self, place: &Place) -> Angle {
        if place.head + 1 < self.heads { self.head_skew } else { self.cylinder_skew }
    }

    /// Returns the number of sectors on the track of `place`.
    pub(super) fn track(&self, place: &Place) -> u64 {
        u64::from(self.zones[place.zone as usize].sectors_per_track)
    }

    fn track_angle(&self, cylinder: u32, head: u32) -> Angle {
        let whole = self.head_skew.wrapping_mul(self.heads - 1).wrapping_add(self.cylinder_skew);
        whole.wrapping_mul(cylinder).wrapping_add(self.head_skew.wrapping_mul(head))
    }
}

/// Returns the number of sectors on a track of `zone`, decreasing linearly from the outermost to the
/// innermost.
fn width_of(parameters: &HddParameters, zone: u32) -> u32 {
    let (outer, inner) = (parameters.sectors_per_track_outer, parameters.sectors_per_track_inner);
    let steps = (parameters.zones - 1).max(1);
    outer - (outer - inner) * zone / steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::hdd::parameters::tests::desktop;

    fn geometry() -> Geometry {
        Geometry::new(&desktop(), &Spindle::new(7200), Bytes(0))
    }

    #[test]
    fn every_sector_has_a_place_of_its_own_in_order() {
        let geometry = geometry();
        let sectors = desktop().capacity.0.0 / 512;
        let mut last = geometry.locate(0);
        assert_eq!((last.cylinder, last.head, last.sector), (0, 0, 0));
        for sector in (1..sectors).step_by(7919) {
            let place = geometry.locate(sector);
            assert!(place.cylinder < geometry.cylinders, "sector {sector} lies at {place:?}");
            let order = |place: &Place| (place.cylinder, place.head, place.sector);
            assert!(order(&last) < order(&place), "sector {sector}: {last:?} before {place:?}");
            last = place;
        }
        // The capacity fills the disk but for a few cylinders.
        assert!(last.cylinder + 100 > geometry.cylinders, "{} of {}", last.cylinder, geometry.cylinders);
    }

    #[test]
    fn the_next_track_begins_when_the_head_has_switched() {
        let geometry = geometry();
        let first = geometry.locate(0);
        let left = geometry.left_on_track(&first);
        let next = geometry.locate(left);
        assert_eq!((next.cylinder, next.head), (0, 1));
        let end = first.angle.wrapping_add(geometry.turn_of(&first, left));
        let skew = next.angle.wrapping_sub(end);
        let off = skew.wrapping_sub(geometry.skew_after(&first)) as i32;
        assert!(off.unsigned_abs() < geometry.turn_of(&first, 1), "off by {off}");
    }
}
