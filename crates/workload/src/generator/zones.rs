//! Zones: pieces of the range with a share of the operations each.

use plumb_block::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use crate::access::{Zone, ZoneLength};
use crate::generator::places::{Place, Uniform};
use crate::grid::Grid;
use crate::invalid::Invalid;
use crate::share::Share;
use crate::workload::ByteRange;

/// Percents that are typed as fractions rarely add up to the last bit.
pub(crate) const PERCENT_SLACK: f64 = 1e-9;

/// The zones that are touched at all.
#[derive(Debug, Clone)]
pub(crate) struct Zones(Vec<Chosen>);

/// A zone, or a worker's part of it.
#[derive(Debug, Clone)]
struct Chosen {
    /// The last fraction of 2^64 that chooses this zone; those before it choose the ones before.
    upto: u64,
    uniform: Uniform,
}

impl Zones {
    /// `zones` of `range`, each cut on `grid`; with a share, each zone is divided, so that all workers together have
    /// the zones that were described.
    ///
    /// # Errors
    /// If a zone lies past the end, or one that is touched has no room for an operation (of each worker). The field is
    /// relative to the zones: `[0].length`.
    pub(crate) fn new(
        zones: &[Zone],
        range: ByteRange,
        grid: Grid,
        share: Option<Share>,
    ) -> Result<Self, Invalid> {
        let mut chosen = Vec::with_capacity(zones.len() + 1);
        let (mut percent, mut start) = (0.0, 0);
        let rest = Zone {
            io_percent: 100.0 - zones.iter().map(|zone| zone.io_percent).sum::<f64>(),
            length: ZoneLength::Percent(100.0),
        };
        for (index, zone) in zones.iter().chain([&rest]).enumerate() {
            let is_rest = index == zones.len();
            let length = if is_rest { range.length.0 - start } else { length_of(zone, range, start, index)? };
            let piece = ByteRange { offset: Bytes(range.offset.0 + start), length: Bytes(length) };
            start += length;
            if zone.io_percent <= PERCENT_SLACK {
                continue;
            }
            percent += zone.io_percent;
            let piece = grid.aligned(piece, range.offset.0);
            let part = share.map_or(Some(piece), |share| grid.part(piece, share));
            let part = part.filter(|part| grid.places(part.length.0) > 0).ok_or_else(|| {
                let whose =
                    share.map_or(String::new(), |share| format!(" for each of {} workers", share.of()));
                let field = if is_rest { String::new() } else { format!("[{index}].length") };
                let value =
                    format!("{} on the grid with {} % of the operations", piece.length, zone.io_percent);
                Invalid::new(
                    field,
                    value,
                    format!("room for at least one block of {}{whose}", Bytes(grid.longest)),
                )
            })?;
            chosen.push(Chosen { upto: last_fraction(percent), uniform: Uniform::new(part, grid) });
        }
        if let Some(last) = chosen.last_mut() {
            last.upto = u64::MAX;
        }
        Ok(Self(chosen))
    }

    /// A place, in a zone drawn by its share. A run from there ends with the zone.
    pub(crate) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> Place {
        let fraction = random.next_u64();
        let zone = self.0.partition_point(|zone| zone.upto < fraction);
        self.0[zone].uniform.draw(random)
    }
}

/// The length of zone `index`, which begins `start` bytes into `range`.
fn length_of(zone: &Zone, range: ByteRange, start: u64, index: usize) -> Result<u64, Invalid> {
    let left = range.length.0 - start;
    match zone.length {
        // Rounding must not take the last one past the end.
        ZoneLength::Percent(percent) => Ok(left.min((range.length.0 as f64 * percent / 100.0) as u64)),
        ZoneLength::Bytes(Bytes(length)) if length <= left => Ok(length),
        ZoneLength::Bytes(length) => {
            let expected = format!("at most what the zones before it leave of the range, {}", Bytes(left));
            Err(Invalid::new(format!("[{index}].length"), length, expected))
        }
    }
}

/// The last fraction of 2^64 that lies within the first `percent`.
fn last_fraction(percent: f64) -> u64 {
    // `as` saturates: 100 % and a little more are all of it.
    ((percent / 100.0 * 18_446_744_073_709_551_616.0) as u64).saturating_sub(1)
}
