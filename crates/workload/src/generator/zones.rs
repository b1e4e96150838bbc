//! Zones: parts of the range, each with a share of the operations.
//!
//! A place belongs to the zone in which it starts; an operation may extend into the next zone. Bounds in
//! percent are rounded down to the grid. A zone in which no place starts passes its share to a neighbour: the
//! zone before it if that has a single place or the smaller share, otherwise the one after it. Zones in bytes
//! end with the range, and the remaining zones keep the ratio of their shares. All of this matches DiskSpd
//! 2.2 (`-rdpct`, `-rdabs`).

use plumb_block::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::access::{Access, Distribution, Zone, ZoneLength};
use crate::byte_range::ByteRange;
use crate::generator::places::{Place, Uniform};
use crate::grid::Grid;
use crate::invalid::{Invalid, invalid_if};
use crate::share::Share;
use crate::workload::Workload;

/// Tolerance for the sum of percentages, since fractions rarely add up exactly.
pub(crate) const PERCENT_SLACK: f64 = 1e-9;

/// A zone as applied to a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EffectiveZone {
    /// Percentage of operations in the zone. If the range ends before the zones do, the sum is below 100.
    pub io_percent: f64,
    /// Bytes in which the zone's operations start.
    pub range: ByteRange,
}

impl Workload {
    /// Returns the effective zones in order, without holes; none if the distribution has no zones.
    ///
    /// # Errors
    /// If the range, which must be resolved, is too small for all of them.
    pub fn effective_zones(&self) -> Result<Vec<EffectiveZone>, Invalid> {
        match &self.access {
            Access::Random(random) => match &random.distribution {
                Distribution::Zoned(zones) => effective(zones, self.range, self.grid()),
                _ => Ok(Vec::new()),
            },
            Access::Sequential(_) => Ok(Vec::new()),
        }
    }
}

/// Zones with a share of the operations.
#[derive(Debug, Clone)]
pub(crate) struct Zones(Vec<Chosen>);

/// A zone, or a worker's part of it.
#[derive(Debug, Clone)]
struct Chosen {
    /// Last fraction of 2^64 that selects this zone; earlier fractions select earlier zones.
    upto: u64,
    uniform: Uniform,
}

impl Zones {
    /// Creates the zones of `range`. With several shares each zone is divided, so that all workers together
    /// cover the described zones without a common block.
    ///
    /// # Errors
    /// If none is large enough for an operation, or a worker's part of one is too small.
    pub(crate) fn new(
        zones: &[Zone],
        range: ByteRange,
        grid: Grid,
        share: Option<Share>,
    ) -> Result<Self, Invalid> {
        let effective = effective(zones, range, grid)?;
        let all: f64 = effective.iter().map(|zone| zone.io_percent).sum();
        let share = share.filter(|share| share.shares().get() > 1);
        let mut percent = 0.0;
        let chosen = effective.iter().map(|zone| {
            percent += zone.io_percent;
            let uniform = match share {
                None => Uniform::beginning_in(zone.range, range, grid),
                Some(share) => {
                    let part = grid.part(grid.aligned(zone.range, range.offset.0), share);
                    let part = part.ok_or_else(|| {
                        let expected = format!(
                            "room for at least one block of {} for each of {} workers",
                            Bytes(grid.longest),
                            share.shares()
                        );
                        Invalid::new("", format!("a zone of {}", zone.range.length), expected)
                    })?;
                    Uniform::new(part, grid)
                }
            };
            Ok(Chosen { upto: last_fraction(100.0 * percent / all), uniform })
        });
        let mut chosen: Vec<Chosen> = chosen.collect::<Result<_, Invalid>>()?;
        if let Some(last) = chosen.last_mut() {
            last.upto = u64::MAX;
        }
        Ok(Self(chosen))
    }

    /// Draws a place in a zone drawn by its share. A run from there ends with the zone.
    pub(crate) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Place {
        let fraction = random.next_u64();
        let zone = self.0.partition_point(|zone| zone.upto < fraction);
        self.0[zone].uniform.draw(random)
    }
}

/// Returns the zones of `range` in which places start, including the rest of the range.
fn effective(zones: &[Zone], range: ByteRange, grid: Grid) -> Result<Vec<EffectiveZone>, Invalid> {
    let rest = Zone {
        io_percent: 100.0 - zones.iter().map(|zone| zone.io_percent).sum::<f64>(),
        length: ZoneLength::Percent(100.0),
    };
    let in_percent = zones.iter().all(|zone| matches!(zone.length, ZoneLength::Percent(_)));
    let zones = zones.iter().chain([&rest]);
    let cut = if in_percent { in_steps(zones, range, grid) } else { in_bytes(zones, range, grid) };
    let expected = format!("a zone with room for a block of {}", Bytes(grid.longest));
    invalid_if!(cut.is_empty(), "", format!("zones on {}", range.length), expected);
    Ok(cut)
}

/// A zone in whole steps of the grid from the start of the range. A zone that starts and ends in the same
/// step has only that place.
struct Steps {
    io_percent: f64,
    start: u64,
    end: u64,
}

/// Returns zones in percent, rounded to whole steps.
fn in_steps<'a>(zones: impl Iterator<Item = &'a Zone>, range: ByteRange, grid: Grid) -> Vec<EffectiveZone> {
    let places = grid.places(range.length.0);
    let whole = places.saturating_mul(grid.step);
    let (mut cut, mut carried, mut before) = (Vec::<Steps>::new(), 0.0, 0.0);
    for zone in zones {
        let ZoneLength::Percent(length) = zone.length else { continue };
        let length = length.min(100.0 - before);
        let (from, is_last) = (before, before + length >= 100.0 - PERCENT_SLACK);
        before += length;
        if zone.io_percent <= PERCENT_SLACK {
            continue;
        }
        let begin = (from * whole as f64 / 100.0) as u64;
        let end = if is_last { whole } else { begin.saturating_add((length * whole as f64 / 100.0) as u64) };
        let (mut start, end) = (begin / grid.step, end / grid.step);
        let last = cut.last_mut();
        // No place starts in this zone, or only the single place of the zone before it.
        if end.saturating_mul(grid.step) < begin {
            match last {
                Some(last) if last.start == end => last.io_percent += zone.io_percent,
                _ => carried += zone.io_percent,
            }
            continue;
        }
        if let Some(last) = last.filter(|last| last.start == start && start < end) {
            start += 1;
            last.end += 1;
            if start == places {
                carried += zone.io_percent;
                continue;
            }
            if start == end {
                last.io_percent += zone.io_percent;
                continue;
            }
        }
        let mut io_percent = zone.io_percent;
        match cut.last_mut() {
            Some(last) if last.io_percent < io_percent => last.io_percent += carried,
            _ => io_percent += carried,
        }
        carried = 0.0;
        cut.push(Steps { io_percent, start, end });
    }
    if let Some(last) = cut.last_mut().filter(|_| carried > 0.0) {
        last.io_percent += carried;
        last.end = places;
    }
    let bytes = |steps: &Steps| EffectiveZone {
        io_percent: steps.io_percent,
        range: ByteRange {
            offset: Bytes(range.offset.0.saturating_add(steps.start.saturating_mul(grid.step))),
            length: Bytes((steps.end.max(steps.start + 1) - steps.start).saturating_mul(grid.step)),
        },
    };
    cut.iter().map(bytes).collect()
}

/// Returns zones of which some are in bytes, clipped to the range.
fn in_bytes<'a>(zones: impl Iterator<Item = &'a Zone>, range: ByteRange, grid: Grid) -> Vec<EffectiveZone> {
    let mut cut = Vec::new();
    let mut start = 0;
    for zone in zones {
        let left = range.length.0 - start;
        let length = match zone.length {
            ZoneLength::Percent(percent) => left.min((range.length.0 as f64 * percent / 100.0) as u64),
            ZoneLength::Bytes(Bytes(length)) => left.min(length),
        };
        let piece = ByteRange { offset: range.offset + Bytes(start), length: Bytes(length) };
        start += length;
        if zone.io_percent > PERCENT_SLACK && Uniform::beginning_in(piece, range, grid).has_places() {
            cut.push(EffectiveZone { io_percent: zone.io_percent, range: piece });
        }
    }
    cut
}

/// Returns the last fraction of 2^64 that lies within the first `percent`.
fn last_fraction(percent: f64) -> u64 {
    // `as` saturates: 100 % and slightly more become everything.
    ((percent / 100.0 * 18_446_744_073_709_551_616.0) as u64).saturating_sub(1)
}
