//! Mapping of sectors to columns.

use crate::command::{SECTOR, Sectors};

/// Stripes over columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Number of sectors in a stripe.
    stripe: u64,
    columns: u64,
}

impl Layout {
    pub(super) const fn new(stripe_bytes: u64, columns: u32) -> Self {
        Self { stripe: stripe_bytes / SECTOR.0, columns: columns as u64 }
    }

    /// Returns the number of sectors of each member for `sectors` in total: whole stripes.
    pub(super) const fn member_sectors(self, sectors: u64) -> u64 {
        sectors.div_ceil(self.stripe).div_ceil(self.columns) * self.stripe
    }

    /// Returns the sectors of the run on `column`. There is at most one range, since consecutive stripes of a
    /// column are adjacent on the member.
    pub(super) fn on_column(self, sectors: Sectors, column: u64) -> Option<Sectors> {
        if sectors.count == 0 {
            return None;
        }
        let first = self.below(sectors.first, column);
        let end = self.below(sectors.end(), column);
        (end > first).then_some(Sectors { first, count: end - first })
    }

    /// Returns the number of sectors of `column` before `sector`.
    const fn below(self, sector: u64, column: u64) -> u64 {
        let (stripe, offset) = (sector / self.stripe, sector % self.stripe);
        let (row, at) = (stripe / self.columns, stripe % self.columns);
        let partial = if column < at {
            self.stripe
        } else if column == at {
            offset
        } else {
            0
        };
        row * self.stripe + partial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_is_on_one_column_at_its_own_place() {
        let layout = Layout::new(4 * 512, 3);
        for first in 0..40 {
            for count in 0..40 {
                let run = Sectors { first, count };
                let pieces: Vec<_> = (0..3).filter_map(|column| layout.on_column(run, column)).collect();
                assert_eq!(pieces.iter().map(|piece| piece.count).sum::<u64>(), count);
                // Sector by sector, the slow way.
                for sector in first..first + count {
                    let (column, place) = (sector / 4 % 3, sector / 12 * 4 + sector % 4);
                    let piece = layout.on_column(run, column).unwrap();
                    assert!((piece.first..piece.end()).contains(&place), "{first}+{count}: {sector}");
                }
            }
        }
        assert_eq!(layout.member_sectors(13), 8);
    }
}
