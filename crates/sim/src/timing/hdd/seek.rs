//! The arm: how long it takes from cylinder to cylinder.
//!
//! A short seek is all acceleration and grows with the root of the distance, a long one coasts and grows with
//! the distance itself. The three figures of a data sheet (one track, average, full stroke) give the curve
//! `track + a √x + b x`, where x is the part of the full stroke: over all pairs of cylinders the mean of √x
//! is 8/15 and that of x is 1/3, hence `a = 5 A - 5/3 F` and `b = 8/3 F - 5 A` with A and F the average and
//! the full stroke above the one track.

use std::hint::select_unpredictable;

use super::parameters::HddParameters;

/// Distances up to this have an entry of their own.
const NEAR: usize = 1024;
/// Entries for the others.
const FAR: usize = 4096;

/// Seek times by distance, looked up.
#[derive(Debug, Clone)]
pub(super) struct SeekCurve {
    /// Seek times of the near distances, and behind them those of the far ones.
    times: Box<[u32]>,
    shift: u32,
}

impl SeekCurve {
    /// Returns the curve of `parameters` on a disk of `cylinders`.
    pub(super) fn new(parameters: &HddParameters, cylinders: u32) -> Self {
        let stroke = f64::from(cylinders.max(2) - 1);
        let track = parameters.seek_track.0.0 as f64;
        let average = parameters.seek_average.0.0 as f64 - track;
        let full = parameters.seek_full.0.0 as f64 - track;
        let (root, linear) = (5.0 * average - 5.0 / 3.0 * full, 8.0 / 3.0 * full - 5.0 * average);
        let time = |distance: u64| {
            // The first cylinder is the one track; the curve begins there.
            let x = ((distance as f64 - 1.0) / stroke).clamp(0.0, 1.0);
            (track + root * libm::sqrt(x) + linear * x) as u32
        };
        let shift = (0..32).find(|shift| (cylinders as usize >> shift) < FAR).unwrap_or(31);
        let middle = (1 << shift) / 2;
        let far = (0..=FAR as u64).map(|entry| time((entry << shift) + middle));
        let mut times: Box<[u32]> = (0..NEAR as u64).map(time).chain(far).collect();
        times[0] = 0;
        Self { times, shift }
    }

    /// Returns how long a move by `distance` cylinders takes, in nanoseconds; none takes none.
    #[inline]
    pub(super) fn time(&self, distance: u32) -> u64 {
        let distance = distance as usize;
        let far = NEAR + (distance >> self.shift).min(FAR);
        u64::from(self.times[select_unpredictable(distance < NEAR, distance, far)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::hdd::parameters::tests::desktop;

    #[test]
    fn the_curve_goes_through_the_figures_of_the_data_sheet() {
        let parameters = desktop();
        let cylinders = 40_000;
        let curve = SeekCurve::new(&parameters, cylinders);
        assert_eq!(curve.time(0), 0);
        assert_eq!(curve.time(1), parameters.seek_track.0.0);
        let close = |seen: f64, meant: f64| assert!((seen / meant - 1.0).abs() < 0.01, "{seen} for {meant}");
        close(curve.time(cylinders - 1) as f64, parameters.seek_full.0.0 as f64);
        // Mean over all pairs: a distance d occurs 2 (n - d) times.
        let n = f64::from(cylinders);
        let sum: f64 = (1..cylinders).map(|d| 2.0 * (n - f64::from(d)) * curve.time(d) as f64).sum();
        close(sum / (n * n), parameters.seek_average.0.0 as f64);
    }

    #[test]
    fn further_never_takes_less() {
        let curve = SeekCurve::new(&desktop(), 40_000);
        assert!((1..40_000).all(|d| curve.time(d - 1) <= curve.time(d)));
    }
}
