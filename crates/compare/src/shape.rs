//! Data about blocks that a page draws beside their figures: the distribution of latencies at each level, and
//! the rate within each block.

use plumb_load::LoadOutcome;
use plumb_measure::Histogram;
use plumb_report::document::comparison::Within;

/// Points of a distribution, in thousandths of the operations.
const PER_MILLE: [u32; 17] =
    [0, 10, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 990, 995, 999, 1000];
/// Maximum number of parts for the rate within a block.
const PARTS_MAX: usize = 16;

/// Latencies of the operations of a level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Distribution(Histogram);

impl Distribution {
    /// Adds a block.
    pub(crate) fn add(&mut self, outcome: &LoadOutcome) {
        let moved = [&outcome.read, &outcome.write, &outcome.trim];
        moved.into_iter().for_each(|direction| self.0.merge(direction.operation_latency()));
    }

    pub(crate) fn points(&self) -> Vec<Within> {
        let at = |per_mille: u32| {
            let seconds = self.0.at_per_mille(per_mille)?.as_secs_f64();
            Some(Within { seconds, share: f64::from(per_mille) / 1e3 })
        };
        PER_MILLE.into_iter().filter_map(at).collect()
    }
}

/// Returns the operations per second in parts of a block.
pub(crate) fn rates(outcome: &LoadOutcome) -> Vec<f64> {
    let series = outcome.operations().series;
    let points = series.whole_points(outcome.length);
    let each = points.len().div_ceil(PARTS_MAX).max(1);
    let rate = |part: &[plumb_measure::SeriesPoint]| {
        let operations: u64 = part.iter().map(|point| point.operations).sum();
        operations as f64 / (series.width().as_secs_f64() * part.len() as f64)
    };
    points.chunks_exact(each).map(rate).collect()
}
